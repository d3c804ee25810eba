"""What is stored of runs and sessions: for operators, and for budgets."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.events import Usage
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.ports.store import Run, Session, StoredEntry
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import Part
from goclaw_py.store.sql import queries

_SQL = queries("records")
_LAST_CHARACTER = chr(0x10FFFF)


class Records(Part):
    """Implements what ``RunStore`` reads."""

    async def runs(
        self, *, limit: int = 50, session: SessionKey | None = None, active: bool = False
    ) -> list[Run]:
        """Each kind of question has its own index."""
        async with self._pool.connection() as connection:
            if active:
                found = await connection.fetch(_SQL["active"], limit, session)
            elif session is not None:
                found = await connection.fetch(_SQL["newest_of_session"], limit, session)
            else:
                found = await connection.fetch(_SQL["newest"], limit)
        return [rows.run(row) for row in found]

    async def find_run(self, prefix: str) -> list[Run]:
        """The prefix is compared character by character; nothing in it is a pattern."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["find"], prefix, prefix + _LAST_CHARACTER)
        return [rows.run(row) for row in found]

    async def sessions(self, *, limit: int = 50) -> list[Session]:
        """A message, a run and a reset are activity."""
        async with self._pool.connection() as connection:
            return [rows.session(row) for row in await connection.fetch(_SQL["sessions"], limit)]

    async def session(self, key: SessionKey) -> Session | None:
        """None if nobody ever wrote or ran there."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["session"], key)
        return None if row is None else rows.session(row)

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """Empty for a session that does not exist."""
        async with self._pool.connection() as connection:
            newest_first = await connection.fetch(_SQL["history"], key, limit)
        return [rows.stored_entry(row) for row in reversed(newest_first)]

    async def spent(
        self,
        *,
        since: datetime,
        payer: SessionKey | None = None,
        agent: AgentName | None = None,
    ) -> Usage:
        """Without a payer it reads all runs since then."""
        async with self._pool.connection() as connection:
            if payer is None:
                row = await connection.row(_SQL["spent"], since, agent)
            else:
                row = await connection.row(_SQL["spent_by"], since, agent, payer)
        assert row is not None
        return rows.usage(row)

    async def unannounced(self, *, since: datetime) -> list[Run]:
        """The order is that in which they ended."""
        async with self._pool.connection() as connection:
            return [rows.run(row) for row in await connection.fetch(_SQL["unannounced"], since)]
