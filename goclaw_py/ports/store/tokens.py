"""Tokens with a name and a role."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from goclaw_py.model.actors import AccessRole


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a program or person; the text of the token itself is shown once, never stored.

    Args:
        reads_text: Whether a viewer may read the text of messages; other roles may.
        expires_at: None: never.
        last_used_at: The last request, to about a minute; None before the first one.
    """

    name: str
    role: AccessRole
    reads_text: bool
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Return whether it has not expired."""
        return self.expires_at is None or self.expires_at > now


class TokenStore(Protocol):
    """Tokens with a name and a role (SPEC SEC-8)."""

    async def add_token(self, token: Token, secret_hash: str) -> bool:
        """Store a token; return False if another one has its name, also one that has expired."""

    async def token_of(self, secret_hash: str, *, now: datetime) -> Token | None:
        """Return a valid token; None if it has expired or was revoked."""

    async def note_token_used(self, name: str, *, now: datetime) -> None:
        """Store that a request came."""

    async def tokens(self) -> list[Token]:
        """Return all tokens by name, also those that have expired."""

    async def revoke_token(self, name: str) -> bool:
        """Delete a token with the sign-ins that it began; return whether it was stored.

        Sends ``Notice.PEOPLE``.
        """
