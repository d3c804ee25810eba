"""Browsers that are signed in to the dashboard, and tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from goclaw_py.records import Notice, SignIn, SignInMethod, Token
from goclaw_py.store.text import storable
from tests.support.memory_store.tables import MemoryPart


class MemorySignIns(MemoryPart):
    """Implements ``SignInStore``."""

    async def begin_sign_in(self, sign_in: SignIn, secret_hash: str, token_hash: str) -> bool:
        table = self._db.sign_ins
        for key in [key for key, (_, _, token) in table.items() if token != token_hash]:
            del table[key]
        if sign_in.method is SignInMethod.TOKEN and sign_in.name not in self._db.tokens:
            return False
        address, agent = storable(sign_in.address), storable(sign_in.user_agent)
        stored = replace(sign_in, address=address, user_agent=agent, name=storable(sign_in.name))
        table[sign_in.id] = stored, secret_hash, token_hash
        return True

    async def sign_in_of(
        self, secret_hash: str, token_hash: str, *, now: datetime
    ) -> SignIn | None:
        hashes = secret_hash, token_hash
        for found, *own in self._db.sign_ins.values():
            if tuple(own) == hashes and found.expires_at > now:
                return found
        return None

    async def note_sign_in_used(self, sign_in: str, *, now: datetime) -> None:
        table = self._db.sign_ins
        if sign_in in table and table[sign_in][0].last_used_at < now:
            found, secret_hash, token_hash = table[sign_in]
            table[sign_in] = replace(found, last_used_at=now), secret_hash, token_hash

    async def sign_ins(self, *, now: datetime) -> list[SignIn]:
        found = [one for one, *_ in self._db.sign_ins.values() if one.expires_at > now]
        found.sort(key=lambda one: one.id)
        return sorted(found, key=lambda one: one.last_used_at, reverse=True)

    async def end_sign_in(self, sign_in: str) -> bool:
        return self._db.sign_ins.pop(sign_in, None) is not None

    async def end_sign_ins(self) -> int:
        ended = len(self._db.sign_ins)
        self._db.sign_ins.clear()
        return ended


class MemoryTokens(MemoryPart):
    """Implements ``TokenStore``."""

    async def add_token(self, token: Token, secret_hash: str) -> bool:
        stored = replace(token, name=storable(token.name), last_used_at=None)
        if stored.name in self._db.tokens:
            return False
        self._db.tokens[stored.name] = stored, secret_hash
        return True

    async def token_of(self, secret_hash: str, *, now: datetime) -> Token | None:
        found = (one for one, own in self._db.tokens.values() if own == secret_hash)
        return next((one for one in found if one.is_valid(now)), None)

    async def note_token_used(self, name: str, *, now: datetime) -> None:
        found, secret_hash = self._db.tokens.get(name, (None, ""))
        if found is not None and (found.last_used_at is None or found.last_used_at < now):
            self._db.tokens[name] = replace(found, last_used_at=now), secret_hash

    async def tokens(self) -> list[Token]:
        return sorted((one for one, _ in self._db.tokens.values()), key=lambda one: one.name)

    async def revoke_token(self, name: str) -> bool:
        for key, (one, *_) in list(self._db.sign_ins.items()):
            if one.method is SignInMethod.TOKEN and one.name == name:
                del self._db.sign_ins[key]
        if self._db.tokens.pop(name, None) is None:
            return False
        self._db.notify(Notice.PEOPLE)
        return True
