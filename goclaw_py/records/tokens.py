"""Tokens with a name and a role (SPEC SEC-8), and browsers that are signed in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import GoclawError

MAX_NAME_CHARS: Final = 64

NAME_RULE: Final = (
    f"a name of a token has 1 to {MAX_NAME_CHARS} characters, no space at its ends, "
    "and no control characters, and is not web.token"
)
SETTINGS_TOKEN_NAME: Final = "web.token"  # noqa: S105 - a name
"""What the token of the settings is called; no other may have this name."""


PREFIX: Final = "goclaw_"
"""The beginning of every token, by which people and scanners of secrets recognise one."""

_TOKEN: Final = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")


class TokenExists(GoclawError):
    """A token has this name already."""


def is_token_name(text: str) -> bool:
    """Return whether a token can have this name."""
    if text == SETTINGS_TOKEN_NAME or not 1 <= len(text) <= MAX_NAME_CHARS:
        return False
    return text.isprintable() and text.strip() == text


def is_token(text: str) -> bool:
    """Return whether a text has the form of a token."""
    return _TOKEN.fullmatch(text) is not None


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
