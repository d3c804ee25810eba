"""Browsers that are signed in to the dashboard."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.records import SignIn, SignInMethod
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("sign_ins")


class PostgresSignIns(PostgresPart):
    """Implements ``SignInStore``."""

    async def begin_sign_in(self, sign_in: SignIn, secret_hash: str, token_hash: str) -> bool:
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["remove_others"], token_hash)
            added = await connection.fetch(
                _SQL["add"],
                sign_in.id,
                sign_in.created_at,
                sign_in.last_used_at,
                sign_in.expires_at,
                storable(sign_in.address),
                storable(sign_in.user_agent),
                secret_hash,
                token_hash,
                storable(sign_in.name),
                sign_in.role,
                sign_in.reads_text,
                sign_in.method,
                sign_in.name if sign_in.method is SignInMethod.TOKEN else None,
            )
        return bool(added)

    async def sign_in_of(
        self, secret_hash: str, token_hash: str, *, now: datetime
    ) -> SignIn | None:
        found = await self._pool.row(_SQL["of_secret"], secret_hash, token_hash, now)
        return None if found is None else rows.from_row(SignIn, found)

    async def note_sign_in_used(self, sign_in: str, *, now: datetime) -> None:
        await self._pool.fetch(_SQL["note_used"], sign_in, now)

    async def sign_ins(self, *, now: datetime) -> list[SignIn]:
        found = await self._pool.fetch(_SQL["sign_ins"], now)
        return [rows.from_row(SignIn, row) for row in found]

    async def end_sign_in(self, sign_in: str) -> bool:
        return await self._pool.row(_SQL["remove"], storable(sign_in)) is not None

    async def end_sign_ins(self) -> int:
        return len(await self._pool.fetch(_SQL["remove_all"]))
