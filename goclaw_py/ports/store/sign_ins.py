"""Browsers that are signed in to the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.model.actors import AccessRole
from goclaw_py.model.tokens import SETTINGS_TOKEN_NAME


class SignInMethod(StrEnum):
    """How a browser signed in."""

    SETTINGS_TOKEN = "settings_token"  # noqa: S105 - a method
    TOKEN = "token"  # noqa: S105 - a method
    """With a token that has a name."""

    PROXY = "proxy"
    OPENID = "openid"


@dataclass(frozen=True, slots=True)
class SignIn:
    """A browser that is signed in to the dashboard.

    Args:
        last_used_at: The last request, to about a minute.
        address: Where the browser connected from; behind a reverse proxy that of the proxy.
        user_agent: What the browser calls itself.
        name: Who signed in: the name of a token or of a person.
        role: What the person may do.
        reads_text: Whether a viewer may read the text of messages.
    """

    id: str
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    address: str
    user_agent: str
    name: str = SETTINGS_TOKEN_NAME
    role: AccessRole = AccessRole.ADMIN
    reads_text: bool = True
    method: SignInMethod = SignInMethod.SETTINGS_TOKEN


class SignInStore(Protocol):
    """Sign-ins to the dashboard (SPEC SEC-6).

    Of the secret in the cookie and of the token only hashes are stored.
    """

    async def begin_sign_in(self, sign_in: SignIn, secret_hash: str, token_hash: str) -> bool:
        """Store a sign-in, and delete those with another token of the settings.

        Returns False if it is one of a token that was revoked meanwhile.
        """

    async def sign_in_of(
        self, secret_hash: str, token_hash: str, *, now: datetime
    ) -> SignIn | None:
        """Return a valid sign-in; None if it has expired, was ended, or is for another token."""

    async def note_sign_in_used(self, sign_in: str, *, now: datetime) -> None:
        """Store that a request came."""

    async def sign_ins(self, *, now: datetime) -> list[SignIn]:
        """Return the sign-ins that have not expired, the most recently used first."""

    async def end_sign_in(self, sign_in: str) -> bool:
        """End a sign-in; return whether it was stored."""

    async def end_sign_ins(self) -> int:
        """End all sign-ins; return how many."""
