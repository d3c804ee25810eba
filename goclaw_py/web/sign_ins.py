"""Tokens, and browsers that are signed in to the dashboard (SPEC SEC-6, SEC-8).

The rules of SPEC SEC-6:

Signing in to the dashboard. A sign-in is a row of the database: a hash of the cookie's 256 random
bits, begin, last use (at most one write a minute), end (30 d), address, name of the browser. It is
over when it is ended: by *Sign out*, the page Sign-ins, `goclaw people web sign-out ID|--all`,
`DELETE /api/web/sign-ins[/ID]`, or its time. Another token ends all. A node looks a sign-in up once
in 5 s at most, so that is how long an end takes on all nodes; event streams of the browser end with
it. While the database is away, whoever was in stays in until the end of the sign-in, and others get
503. Backups contain no sign-ins.

- **Wrong tokens**, by form or `Authorization`, are counted by address (of IPv6: its /64): 10, then
  one more each 30 s; of all addresses together 100, then one each 3 s. Beyond that 429 without
  regard to the token, except that an address from which the right token came within a day is let
  in with it: behind a reverse proxy strangers have the operator's address. `X-Forwarded-For` is
  read from trusted proxies only (SEC-10), `Forwarded` and its like never. Counts are of a process.
- **Log**: `sign_in_accepted`, `sign_in_ended`, `sign_in_refused` (each counted one, and the first
  that was not), and `web_request_refused` for requests without a token, of another site or for
  another name (10 of an address, then one each 30 s), with address and reason, never with a token
  or cookie.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.types import Scope

from goclaw_py.core.actors import AccessRole, Actor, ActorKind
from goclaw_py.core.errors import NotFound
from goclaw_py.core.web_links import SECRET_BYTES, is_secret, secret_hash
from goclaw_py.records import Notice, SignIn, SignInMethod, Store, Token
from goclaw_py.records.tokens import SETTINGS_TOKEN_NAME, is_token
from goclaw_py.web.attempts import Attempts
from goclaw_py.web.checked import CheckedSecrets
from goclaw_py.web.connections import address_of, peer_of

log = logging.getLogger(__name__)

LASTS: Final = timedelta(days=30)
"""How long a sign-in is valid."""

_MOST_AGENT: Final = 300
_PURPOSE: Final = b"goclaw sign-ins with this token"


def settings_actor(address: str) -> Actor:
    """Return who shows the token of the settings."""
    return Actor(ActorKind.SETTINGS_TOKEN, SETTINGS_TOKEN_NAME, AccessRole.ADMIN, via=address)


@dataclass(frozen=True, slots=True)
class AcceptedToken:
    """Somebody whose token is accepted: who it is, by which method, and when the token ends."""

    actor: Actor
    method: SignInMethod
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TokenRefusal:
    """Why a token is not accepted. ``is_blocked``: there were too many wrong ones."""

    reason: str
    is_blocked: bool


WRONG_TOKEN: Final = TokenRefusal("wrong token", is_blocked=False)

_KINDS: Final = {
    SignInMethod.SETTINGS_TOKEN: ActorKind.SETTINGS_TOKEN,
    SignInMethod.TOKEN: ActorKind.TOKEN,
    SignInMethod.PROXY: ActorKind.PERSON,
    SignInMethod.OPENID: ActorKind.PERSON,
}


class SignIns:
    """Checks tokens, limits wrong ones, and begins, checks and ends sign-ins of browsers.

    Args:
        store: Where sign-ins and named tokens are; None: only the token of the settings opens.
        token: That of the settings; with another one no sign-in is valid.
        now_s: Returns the Unix time in seconds.
    """

    def __init__(self, store: Store | None, token: str, now_s: Callable[[], float]) -> None:
        self._store = store
        self._token = token.encode()
        # Not the whole of it: it shows whether the token is the same, and helps nobody to guess.
        mark = hmac.new(self._token, _PURPOSE, hashlib.sha256).hexdigest()
        self._token_hash = mark[:8]
        self.now_s = now_s
        self._browsers = CheckedSecrets(self._sign_in_of, self._note_sign_in, now_s)
        self._tokens = CheckedSecrets(self._token_of, self._note_token, now_s)
        self._attempts = Attempts()
        self._changed = asyncio.Event()
        if store is not None:
            store.on_notice(self._on_notice)

    @property
    def lasts_s(self) -> int:
        """How long the cookie of a sign-in is valid."""
        return int(LASTS.total_seconds())

    async def admit(self, given: bytes, scope: Scope) -> AcceptedToken | TokenRefusal:
        """Return whose token this is, or why it is refused; log and count wrong ones.

        Beyond the limit an address is refused without a comparison, unless the right token came
        from it lately: behind a reverse proxy strangers have the address of the operator. The
        token of the settings is compared without a statement. Raises ``StoreUnavailable``.
        """
        now, peer, address = self.now_s(), peer_of(scope.get("client")), address_of(scope)
        blocked = self._attempts.blocked(peer, now)
        found: AcceptedToken | None = None
        # Compared in any case, so that the duration reveals nothing.
        if not (self._token and hmac.compare_digest(given, self._token)):
            # Beyond the limit only what was valid lately: guesses must not reach the database.
            found = await self._named(given, address, only_known=bool(blocked))
        elif not blocked or self._attempts.is_trusted(peer, now):
            found = AcceptedToken(settings_actor(address), SignInMethod.SETTINGS_TOKEN)
        if found is not None:
            if found.actor.role is AccessRole.ADMIN:
                # Not for others: they could guess at the token of the settings without a limit.
                self._attempts.note_right(peer, now)
            return found
        if not blocked:
            self._attempts.note_wrong(peer, now)
        if not blocked or self._attempts.is_first_refusal(peer):
            facts = {"address": address, "path": scope["path"][:200]}
            log.warning("sign_in_refused", extra=facts | {"reason": blocked or WRONG_TOKEN.reason})
        return TokenRefusal(blocked, is_blocked=True) if blocked else WRONG_TOKEN

    async def is_admitted(self, given: bytes) -> bool:
        """Return whether a token that was accepted is so still. Raises ``StoreUnavailable``."""
        if self._token and hmac.compare_digest(given, self._token):
            return True
        return await self._named(given, "") is not None

    async def _named(
        self, given: bytes, address: str, *, only_known: bool = False
    ) -> AcceptedToken | None:
        """Return whose named token this is, if it is one."""
        text = given.decode("latin-1")
        if self._store is None or not is_token(text):
            return None
        hashed = secret_hash(text)
        if only_known and not self._tokens.has(hashed):
            return None
        token = await self._tokens.find(hashed)
        if token is None:
            return None
        actor = Actor(ActorKind.TOKEN, token.name, token.role, token.reads_text, address)
        return AcceptedToken(actor, SignInMethod.TOKEN, token.expires_at)

    async def begin(
        self,
        actor: Actor,
        user_agent: str = "",
        *,
        method: SignInMethod = SignInMethod.SETTINGS_TOKEN,
        expires_at: datetime | None = None,
    ) -> str:
        """Sign a browser in; return the secret for its cookie.

        Args:
            actor: Who signs in, with a role, from where.
            user_agent: What the browser calls itself.
            method: How the browser signs in.
            expires_at: When its token ends, if that is before the usual end of a sign-in.

        Raises ``StoreUnavailable``, and ``NotFound`` if its token was revoked meanwhile.
        """
        assert self._store is not None
        assert actor.role is not None
        secret, now = secrets.token_urlsafe(SECRET_BYTES), self._now()
        made = SignIn(
            id=secrets.token_hex(6),
            created_at=now,
            last_used_at=now,
            expires_at=min(now + LASTS, expires_at or now + LASTS),
            address=actor.via,
            user_agent="".join(filter(str.isprintable, user_agent))[:_MOST_AGENT],
            name=actor.name,
            role=actor.role,
            reads_text=actor.reads_text,
            method=method,
        )
        if not await self._store.begin_sign_in(made, secret_hash(secret), self._token_hash):
            raise NotFound(f"the token {actor.name!r} was revoked")
        facts = {"address": actor.via, "sign_in": made.id, "user_agent": made.user_agent}
        facts |= {"actor": actor.name, "role": actor.role.value, "method": method.value}
        log.info("sign_in_accepted", extra=facts)
        return secret

    async def find(self, secret: str) -> SignIn | None:
        """Return the sign-in of a browser; None if it is not valid, or not any more.

        See ``CheckedSecrets.find``. Raises ``StoreUnavailable``.
        """
        if self._store is None or not is_secret(secret):
            return None
        return await self._browsers.find(secret_hash(secret))

    async def end(self, secret: str) -> SignIn | None:
        """Sign a browser out; return its sign-in, if it had one. Raises ``StoreUnavailable``."""
        found = await self.find(secret)
        if found is not None and self._store is not None:
            await self._store.end_sign_in(found.id)
            self._browsers.forget(secret_hash(secret))
            self._announce()
            log.info("sign_in_ended", extra={"sign_in": found.id})
        return found

    def forget(self) -> None:
        """Look every sign-in and token up again: some were ended here."""
        self._browsers.forget()
        self._tokens.forget()
        self._announce()

    async def until_changed(self) -> None:
        """Wait until a sign-in or token may have ended."""
        await self._changed.wait()

    def _on_notice(self, notice: Notice) -> None:
        if notice is Notice.PEOPLE:
            self._browsers.recheck()
            self._tokens.recheck()
            self._announce()

    def _announce(self) -> None:
        """Wake those that wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _sign_in_of(self, hashed: str, now: datetime) -> SignIn | None:
        assert self._store is not None
        return await self._store.sign_in_of(hashed, self._token_hash, now=now)

    async def _note_sign_in(self, found: SignIn, now: datetime) -> None:
        assert self._store is not None
        await self._store.note_sign_in_used(found.id, now=now)

    async def _token_of(self, hashed: str, now: datetime) -> Token | None:
        assert self._store is not None
        return await self._store.token_of(hashed, now=now)

    async def _note_token(self, found: Token, now: datetime) -> None:
        assert self._store is not None
        await self._store.note_token_used(found.name, now=now)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.now_s(), UTC)


def actor_of(sign_in: SignIn, address: str) -> Actor:
    """Return who a signed-in browser is."""
    kind = _KINDS[sign_in.method]
    return Actor(kind, sign_in.name, sign_in.role, sign_in.reads_text, address)
