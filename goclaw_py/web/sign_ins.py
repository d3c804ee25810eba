"""Browsers that are signed in to the dashboard with the token (SPEC SEC-6)."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.types import Scope

from goclaw_py.model.actors import AccessRole, Actor, ActorKind
from goclaw_py.model.errors import NotFound, StoreUnavailable
from goclaw_py.model.web_links import SECRET_BYTES, is_secret, secret_hash
from goclaw_py.ports.store import SETTINGS_TOKEN_NAME, SignIn, SignInMethod, SignInStore
from goclaw_py.web.attempts import Attempts
from goclaw_py.web.connections import peer_of

log = logging.getLogger(__name__)

LASTS: Final = timedelta(days=30)
"""How long a sign-in is valid."""

CHECK_S: Final = 5.0
"""Seconds for which a sign-in that was found valid is not looked up again."""

NOTE_S: Final = 60.0
"""Seconds between two notes that a sign-in is used."""

WRONG_TOKEN: Final = "wrong token"  # noqa: S105 - a reason

_MOST_CACHED: Final = 1_000
_MOST_AGENT: Final = 300
_PURPOSE: Final = b"goclaw sign-ins with this token"


def settings_actor(address: str) -> Actor:
    """Return who shows the token of the settings."""
    return Actor(ActorKind.SETTINGS_TOKEN, SETTINGS_TOKEN_NAME, AccessRole.ADMIN, via=address)


@dataclass(slots=True)
class _Checked:
    """A sign-in that was found valid, and when."""

    sign_in: SignIn
    at_s: float


class SignIns:
    """Begins, checks and ends sign-ins, and limits wrong tokens.

    Args:
        store: Where they are; None: no browser can be signed in.
        token: The token; with another one none of them is valid.
        now_s: Returns the Unix time in seconds.
    """

    def __init__(self, store: SignInStore | None, token: str, now_s: Callable[[], float]) -> None:
        self._store = store
        self._token = token.encode()
        # Not the whole of it: it shows whether the token is the same, and helps nobody to guess.
        mark = hmac.new(self._token, _PURPOSE, hashlib.sha256).hexdigest()
        self._token_hash = mark[:8]
        self.now_s = now_s
        self._checked: dict[str, _Checked] = {}
        """By the hash of the secret."""
        self._attempts = Attempts()

    @property
    def lasts_s(self) -> int:
        """How long the cookie of a sign-in is valid."""
        return int(LASTS.total_seconds())

    def refusal_of(self, given: bytes, scope: Scope) -> str:
        """Return why a token is not accepted, "" if it is; log and count wrong ones.

        Beyond the limit an address is refused without a comparison, unless the right token came
        from it lately: behind a reverse proxy strangers have the address of the operator.
        """
        client, now = scope.get("client"), self.now_s()
        peer = peer_of(client)
        blocked = self._attempts.blocked(peer, now)
        # Compared in any case, so that the duration reveals nothing.
        is_right = hmac.compare_digest(given, self._token)
        if is_right and (not blocked or self._attempts.is_trusted(peer, now)):
            self._attempts.note_right(peer, now)
            return ""
        if not blocked:
            self._attempts.note_wrong(peer, now)
        if not blocked or self._attempts.is_first_refusal(peer):
            facts = {"address": client[0] if client else "", "path": scope["path"][:200]}
            log.warning("sign_in_refused", extra=facts | {"reason": blocked or WRONG_TOKEN})
        return blocked or WRONG_TOKEN

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

        While the database is away, what was valid before stays so until its end: nobody can end it
        then, and the page of the health is wanted. Raises ``StoreUnavailable`` for others.
        """
        if self._store is None or not is_secret(secret):
            return None
        hashed, now_s = secret_hash(secret), self.now_s()
        before = self._checked.get(hashed)
        if before is not None and 0 <= now_s - before.at_s < CHECK_S:
            return before.sign_in if before.sign_in.expires_at > self._now() else None
        try:
            found = await self._look_up(self._store, hashed)
        except StoreUnavailable:
            if before is None or before.sign_in.expires_at <= self._now():
                raise
            found = before.sign_in
        self._checked.pop(hashed, None)
        if found is not None:
            if len(self._checked) >= _MOST_CACHED:
                del self._checked[next(iter(self._checked))]
            self._checked[hashed] = _Checked(found, now_s)
        return found

    async def end(self, secret: str) -> None:
        """Sign a browser out. Raises ``StoreUnavailable``."""
        found = await self.find(secret)
        if found is not None and self._store is not None:
            await self._store.end_sign_in(found.id)
            self._checked.pop(secret_hash(secret), None)
            log.info("sign_in_ended", extra={"sign_in": found.id})

    def forget(self) -> None:
        """Look every sign-in up again: some were ended here."""
        self._checked.clear()

    async def _look_up(self, store: SignInStore, hashed: str) -> SignIn | None:
        now = self._now()
        found = await store.sign_in_of(hashed, self._token_hash, now=now)
        if found is not None and (now - found.last_used_at).total_seconds() >= NOTE_S:
            await store.note_sign_in_used(found.id, now=now)
        return found

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.now_s(), UTC)
