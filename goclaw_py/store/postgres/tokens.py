"""Tokens with a name and a role."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.records import Notice, Token
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import PostgresPart, notify
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("tokens")


class PostgresTokens(PostgresPart):
    """Implements ``TokenStore``."""

    async def add_token(self, token: Token, secret_hash: str) -> bool:
        added = await self._pool.row(
            _SQL["add"],
            storable(token.name),
            token.role,
            token.reads_text,
            secret_hash,
            token.created_at,
            token.expires_at,
        )
        return added is not None

    async def token_of(self, secret_hash: str, *, now: datetime) -> Token | None:
        found = await self._pool.row(_SQL["of_secret"], secret_hash, now)
        return None if found is None else rows.from_row(Token, found)

    async def note_token_used(self, name: str, *, now: datetime) -> None:
        await self._pool.fetch(_SQL["note_used"], storable(name), now)

    async def tokens(self) -> list[Token]:
        return [rows.from_row(Token, row) for row in await self._pool.fetch(_SQL["tokens"])]

    async def revoke_token(self, name: str) -> bool:
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["remove"], storable(name)) is None:
                return False
            await notify(connection, [Notice.PEOPLE])
        return True
