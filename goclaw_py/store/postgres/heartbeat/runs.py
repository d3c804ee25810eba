"""What a beat looks at, and what became of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from goclaw_py.heartbeat.models import (
    MAX_EVENTS,
    Heartbeat,
    HeartbeatEvent,
    HeartbeatRun,
    PreconditionQuery,
    Undelivered,
)
from goclaw_py.model.errors import StoreError, TooManyEvents, UnknownAgent
from goclaw_py.model.ids import AgentName, HeartbeatRunId
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.store import OutboxState
from goclaw_py.store import heartbeat_rules
from goclaw_py.store.postgres.heartbeat import rows as beat_rows
from goclaw_py.store.postgres.heartbeat.heartbeats import change
from goclaw_py.store.postgres.pages import place
from goclaw_py.store.postgres.part import PostgresPart, enqueue
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("heartbeat_runs")


class PostgresHeartbeatRuns(PostgresPart):
    """Implements the rest of ``HeartbeatStore``."""

    async def look(self, agent: AgentName, *, spent_since: datetime) -> PreconditionQuery:
        """One statement."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["look"], agent, spent_since)
        if row is None:
            raise StoreError("a look without a result")
        return beat_rows.looks(storable(agent), row)

    async def heartbeat_usage(self, agent: AgentName, *, since: datetime) -> Usage | None:
        """Of a beat that works, only what it had used when it was given back."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["used"], agent, since)
        return None if row is None else beat_rows.used(row)

    async def alert_known(self, key: str, *, since: datetime) -> OutboxState | None:
        """Looks at those with this key."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["alert_known"], key, since)
        if row is None or row["sent"] is None:
            return None
        return OutboxState.SENT if row["sent"] else OutboxState.PENDING

    async def add_event(
        self, agent: AgentName, text: str, *, now: datetime, wake: bool
    ) -> HeartbeatEvent:
        """A wake that waits already is enough."""

        def woken(known: Heartbeat) -> Heartbeat:
            return heartbeat_rules.woken(known, HeartbeatRunKind.EVENT, now) if wake else known

        async with self._pool.transaction() as connection:
            if not await change(connection, [agent], woken):
                raise UnknownAgent(agent)
            counted = await connection.row(_SQL["count_events"], agent)
            if counted is None or counted["events"] >= MAX_EVENTS:
                raise TooManyEvents(agent, MAX_EVENTS)
            row = await connection.row(_SQL["add_event"], agent, text, now)
        if row is None:
            raise StoreError("an event that was not kept")
        return beat_rows.event(row)

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        """In the order in which they came."""
        async with self._pool.connection() as connection:
            return [beat_rows.event(row) for row in await connection.fetch(_SQL["events"], agent)]

    # ------------------------------------------------------------------ what became of them

    async def beats(
        self,
        agent: AgentName | None = None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        """The order is that of the claims."""
        wanted = heartbeat_rules.Wanted() if outcome is None else heartbeat_rules.wanted(outcome)
        page = (limit, *place(before))
        kind = (wanted.status, wanted.dead)
        async with self._pool.connection() as connection:
            if agent is not None:
                query = _SQL["log_of_agent"]
                found = await connection.fetch(query, *page, *kind, wanted.skip, agent)
            elif wanted.skip is not None:
                found = await connection.fetch(_SQL["log_with_skip"], *page, *kind, wanted.skip)
            elif wanted.status is not None:
                found = await connection.fetch(_SQL["log_with_status"], *page, *kind)
            else:
                found = await connection.fetch(_SQL["log"], *page)
        return [beat_rows.beat(row) for row in found]

    async def beat(self, beat: HeartbeatRunId) -> HeartbeatRun | None:
        """None if it is not kept any more."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["heartbeat_run"], beat)
        return None if row is None else beat_rows.beat(row)

    async def undelivered(
        self, agents: Collection[AgentName], *, since: datetime
    ) -> list[Undelivered]:
        """What an operator has given up is not told: somebody knows of it."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["undelivered"], list(agents), since)
        return [beat_rows.undelivered(row) for row in found]

    async def tell_undelivered(
        self, beat: HeartbeatRunId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """What is said does not count as a message of the beat, unless it says so."""
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["mark_notified"], beat, now) is None:
                return False
            await enqueue(connection, say, session=None, now=now)
        return True

    async def sweep_heartbeat_runs(self, *, now: datetime) -> int:
        """Also forgets items that no checklist has had for years."""
        async with self._pool.connection() as connection:
            rows = await connection.fetch(
                _SQL["sweep_log"], now - heartbeat_rules.KEPT, heartbeat_rules.MOST_SWEPT
            )
            await connection.fetch(_SQL["sweep_items"], now - heartbeat_rules.ITEMS_KEPT)
        return len(rows)
