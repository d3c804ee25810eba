"""Who is signed in to the dashboard, and tokens of programs (SPEC SEC-6, SEC-8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from goclaw_py.core.actors import AccessRole
from goclaw_py.records.tokens import SignIn, Token


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made. ``secret`` is its text, which is not stored."""

    token: Token
    secret: str = field(repr=False)


class WebAccessControl(Protocol):
    """The part of ``Control`` about browsers."""

    async def sign_ins(self) -> list[SignIn]:
        """Return the browsers that are signed in, the most recently used first."""

    async def end_sign_in(self, sign_in: str) -> None:
        """Sign a browser out. Raises ``NotFound``."""

    async def end_sign_ins(self) -> int:
        """Sign all browsers out; return how many."""

    async def tokens(self) -> list[Token]:
        """Return the tokens with names, by name; also those that have expired."""

    async def create_token(
        self,
        name: str,
        role: AccessRole,
        *,
        reads_text: bool = False,
        expires_at: datetime | None = None,
    ) -> NewToken:
        """Make a token. ``reads_text``: a viewer may read the text of messages; others may anyway.

        Raises ``BadToken`` for a wrong name or an end that is past, and ``TokenExists``.
        """

    async def revoke_token(self, name: str) -> None:
        """Revoke a token, and sign out the browsers that used it. Raises ``NotFound``."""
