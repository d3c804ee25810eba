"""Incidents that operators are notified about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from goclaw_py.core.messages import OutboundMessage
from goclaw_py.records import Incident
from goclaw_py.store.postgres.part import PostgresPart, enqueue
from goclaw_py.store.sql import queries

_SQL = queries("incidents")


class PostgresIncidents(PostgresPart):
    """Implements ``IncidentStore``."""

    async def open_incident(
        self, key: str, text: str, *, say: Sequence[OutboundMessage], now: datetime
    ) -> bool:
        """If several nodes report the same incident, one of them sends the messages."""
        async with self._pool.transaction() as connection:
            row = await connection.row(_SQL["open"], key, text, now)
            is_new = row is not None and bool(row["fresh"])
            if is_new:
                await enqueue(connection, say, session=None, now=now)
        return is_new

    async def close_incident(self, key: str) -> bool:
        return await self._pool.row(_SQL["close"], key) is not None

    async def incidents(self) -> list[Incident]:
        found = await self._pool.fetch(_SQL["incidents"])
        return [Incident(row["key"], row["text"], row["since"]) for row in found]
