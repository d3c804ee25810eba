"""What operators do with browsers that are signed in, and with tokens (SPEC SEC-6, SEC-8)."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, field
from datetime import datetime

from goclaw_py.core.actors import AccessRole, Least
from goclaw_py.core.errors import NotAccepted, NotFound
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.web_links import SECRET_BYTES, secret_hash
from goclaw_py.operations.access import changes
from goclaw_py.operations.declare import operation
from goclaw_py.records import SignIn, Store, Token
from goclaw_py.records.tokens import NAME_RULE, PREFIX, TokenExists, is_token_name

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made. ``secret`` is its text, which is not stored."""

    token: Token
    secret: str = field(repr=False)


class Access:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @operation("GET /api/web/sign-ins", Least.ADMIN)
    async def sign_ins(self) -> list[SignIn]:
        """Return the browsers that are signed in, the most recently used first."""
        return await self._store.sign_ins(now=self._clock.now())

    @operation("DELETE /api/web/sign-ins/{sign_in}", Least.ADMIN, changes.END_SIGN_IN)
    async def end_sign_in(self, sign_in: str) -> None:
        """Sign a browser out. Raises ``NotFound``."""
        if not await self._store.end_sign_in(sign_in):
            raise NotFound(
                f"no browser has the sign-in {sign_in!r}; see: goclaw people web sign-ins"
            )
        log.info("sign_in_ended", extra={"sign_in": sign_in})

    @operation("DELETE /api/web/sign-ins", Least.ADMIN, changes.END_SIGN_INS, key="ended")
    async def end_sign_ins(self) -> int:
        """Sign all browsers out; return how many."""
        ended = await self._store.end_sign_ins()
        log.info("sign_in_ended", extra={"sign_in": "all", "ended": ended})
        return ended

    @operation("GET /api/tokens", Least.ADMIN)
    async def tokens(self) -> list[Token]:
        """Return the tokens with names, by name; also those that have expired."""
        return await self._store.tokens()

    @operation("POST /api/tokens", Least.ADMIN, changes.CREATE_TOKEN)
    async def create_token(
        self,
        name: str,
        role: AccessRole,
        *,
        reads_text: bool = False,
        expires_at: datetime | None = None,
    ) -> NewToken:
        """Make a token. ``reads_text``: a viewer may read the text of messages; others may anyway.

        Raises ``NotAccepted`` for a wrong name or an end that is past, and ``TokenExists``.
        """
        now = self._clock.now()
        token = Token(name, role, reads_text or role is not AccessRole.VIEWER, now, expires_at)
        if not is_token_name(name):
            raise NotAccepted(NAME_RULE)
        if not token.is_valid(now):
            raise NotAccepted("the end of a token must be in the future")
        secret = f"{PREFIX}{secrets.token_urlsafe(SECRET_BYTES)}"
        if not await self._store.add_token(token, secret_hash(secret)):
            raise TokenExists(f"there is a token {name!r}; revoke it, or take another name")
        end = None if expires_at is None else expires_at.isoformat()
        log.info("token_created", extra={"token": name, "role": role.value, "expires_at": end})
        return NewToken(token, secret)

    @operation("DELETE /api/tokens/{name:path}", Least.ADMIN, changes.REVOKE_TOKEN)
    async def revoke_token(self, name: str) -> None:
        """Revoke a token, and sign out the browsers that used it. Raises ``NotFound``."""
        if not await self._store.revoke_token(name):
            raise NotFound(f"there is no token {name!r}; see: goclaw people web tokens")
        log.info("token_revoked", extra={"token": name})
