"""Names of chats, topics, people and jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import JobId
from goclaw_py.core.messages import Target
from goclaw_py.records import Notice, SeenName
from goclaw_py.store.postgres.part import PostgresPart, notify
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("names")


class PostgresNames(PostgresPart):
    """Implements ``NameStore``."""

    async def note_names(self, seen: Sequence[SeenName], *, now: datetime) -> None:
        last = list({one.target: one for one in map(storable, seen)}.values())
        if not last:
            return
        await self._pool.fetch(
            _SQL["note"],
            [one.target.channel for one in last],
            [one.target.account for one in last],
            [one.target.chat for one in last],
            [one.name for one in last],
            [one.username for one in last],
            [f"{one.name}\n@{one.username or ''}".lower() for one in last],
            now,
            [one.kind for one in last],
        )

    async def names(self, targets: Collection[Target], jobs: Collection[JobId] = ()) -> KnownNames:
        asked = list(targets)
        async with self._pool.connection() as connection:
            found = await connection.fetch(
                _SQL["names"],
                [storable(one.channel) for one in asked],
                [storable(one.account) for one in asked],
                [storable(one.chat) for one in asked],
                [storable(one.thread) for one in asked],
            )
            titles = await connection.fetch(_SQL["jobs"], list(jobs)) if jobs else []
        return KnownNames(
            {asked[row["ordinal"] - 1]: row["name"] for row in found},
            {JobId(row["id"]): row["name"] for row in titles},
        )

    async def forget_name(self, target: Target) -> None:
        async with self._pool.transaction() as connection:
            place = target.channel, target.account, target.chat
            if await connection.fetch(_SQL["forget"], *place):
                await notify(connection, [Notice.PEOPLE])
