"""Heartbeats and heartbeat runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.errors import Fenced, StoreError, TooManyEvents, UnknownAgent
from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.records import Notice, OutboxState
from goclaw_py.schedule.heartbeat import grid
from goclaw_py.schedule.heartbeat.models import (
    MAX_EVENTS,
    WAKES_APART,
    Heartbeat,
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunEnd,
    PreconditionQuery,
    Undelivered,
)
from goclaw_py.store import heartbeat_rules, rules
from goclaw_py.store.postgres.claims import (
    ClaimEnding,
    LockedHeartbeatRuns,
    check_alive,
    end_claims,
    end_heartbeat_runs,
    not_yours,
    release_heartbeat_runs,
)
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.heartbeat import rows
from goclaw_py.store.postgres.pages import place
from goclaw_py.store.postgres.part import PostgresPart, enqueue, notify
from goclaw_py.store.postgres.pool import Connection, Pool
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("heartbeat_runs")


class PostgresHeartbeats(PostgresPart):
    """Implements ``HeartbeatStore``. Ends that come during a transaction share the next one."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._heartbeat_run_ends = self._ending(Group(self._end_heartbeat_runs))

    async def plan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        wanted = {plan.agent: plan for plan in storable(tuple(plans))}
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["enter"], list(wanted))
            await change(
                connection,
                list(wanted),
                lambda known: grid.planned(known, wanted[known.agent], now),
            )

    async def replan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        by_agent = {plan.agent: plan for plan in storable(tuple(plans))}
        async with self._pool.transaction() as connection:
            await change(
                connection,
                list(by_agent),
                lambda known: grid.replanned(known, by_agent[known.agent], now),
            )
            await connection.fetch(_SQL["replan_items"], list(by_agent), now)

    async def heartbeats(self, agents: Collection[AgentName] | None = None) -> list[Heartbeat]:
        found = await self._pool.fetch(_SQL["list"], None if agents is None else list(agents))
        return [rows.heartbeat(row) for row in found]

    async def switch_heartbeat(self, agent: AgentName, *, on: bool | None, now: datetime) -> bool:
        return await self._change_heartbeat(
            agent, lambda known: grid.switched(known, on=on, now=now)
        )

    async def mute_heartbeat(self, agent: AgentName, until: datetime | None) -> bool:
        return await self._change_heartbeat(agent, lambda known: replace(known, muted_until=until))

    async def wake_heartbeat(
        self, agent: AgentName, kind: HeartbeatRunKind, *, now: datetime
    ) -> bool:
        return await self._change_heartbeat(agent, lambda known: grid.woken(known, kind, now))

    async def _change_heartbeat(
        self, agent: AgentName, how: Callable[[Heartbeat], Heartbeat]
    ) -> bool:
        async with self._pool.transaction() as connection:
            return bool(await change(connection, [agent], how))

    # ------------------------------------------------------------------ when they are due

    async def next_heartbeat_due(
        self, agents: Collection[AgentName], *, wakes: bool = True
    ) -> datetime | None:
        row = await self._pool.row(_SQL["next_due"], _listed(agents), wakes, WAKES_APART)
        due_at: datetime | None = None if row is None else row["due_at"]
        return due_at

    async def claim_heartbeats(
        self,
        node: NodeId,
        agents: Collection[AgentName],
        *,
        now: datetime,
        ids: Sequence[HeartbeatRunId],
        wakes: int,
    ) -> list[HeartbeatClaim]:
        found = await self._pool.fetch(
            _SQL["claim"], node, _listed(agents), now, list(ids), WAKES_APART, wakes
        )
        if not found[0]["alive"]:
            raise Fenced(f"node {node} is not alive")
        return [rows.claimed(row) for row in found if row["agent"] is not None]

    async def claim_heartbeat_now(
        self, node: NodeId, agent: AgentName, *, now: datetime, heartbeat_run: HeartbeatRunId
    ) -> HeartbeatClaim | None:
        async with self._pool.transaction() as connection:
            await check_alive(connection, node)
            row = await connection.row(_SQL["lock"], [agent])
            if row is None:
                return None
            if row["heartbeat_run"] is None:
                await connection.fetch(_SQL["claim_now"], agent, heartbeat_run, now, node)
            elif (row["heartbeat_run"], row["node"]) != (storable(heartbeat_run), node):
                return None
            claimed = await connection.row(_SQL["claimed"], agent)
        return None if claimed is None else rows.claimed(claimed)

    async def defer_heartbeat(
        self, heartbeat_run: HeartbeatRunId, *, node: NodeId, detail: str
    ) -> None:
        if await self._pool.row(_SQL["defer"], heartbeat_run, node, detail) is None:
            raise not_yours("heartbeat_run", heartbeat_run)

    async def end_heartbeat_run(
        self, end: HeartbeatRunEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId
    ) -> None:
        await self._heartbeat_run_ends(ClaimEnding(end, say, node))

    async def _end_heartbeat_runs(
        self, endings: Sequence[ClaimEnding[HeartbeatRunEnd]]
    ) -> list[StoreError | None]:
        ends = [storable(one.end) for one in endings]
        if len({end.id for end in ends}) < len(ends) or any(one.say for one in endings):
            return await end_claims(
                self._pool,
                LockedHeartbeatRuns,
                endings,
                lambda one: rules.marked(one.say, heartbeat_run=one.end.id),
            )
        # One statement, which is one transaction.
        async with self._pool.connection() as connection:
            holders = [one.node for one in endings]
            refused = await end_heartbeat_runs(connection, ends, holders)
        return [not_yours("heartbeat_run", end.id) if end.id in refused else None for end in ends]

    async def release_heartbeats(self, ids: Collection[HeartbeatRunId], *, node: NodeId) -> None:
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(_SQL["lock_claimed"], [node], list(ids))
            await release_heartbeat_runs(connection, locked)

    async def release_unclaimed_heartbeats(
        self, known: Collection[HeartbeatRunId], *, node: NodeId
    ) -> None:
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(_SQL["lock_unknown"], node, list(known))
            await release_heartbeat_runs(connection, locked)

    # ------------------------------------------------------------------ what a run looks at

    async def run_facts(self, agent: AgentName, *, spent_since: datetime) -> PreconditionQuery:
        row = await self._pool.row(_SQL["run_facts"], agent, spent_since)
        if row is None:
            raise StoreError("a look without a result")
        return rows.looks(storable(agent), row)

    async def heartbeat_usage(self, agent: AgentName, *, since: datetime) -> Usage | None:
        row = await self._pool.row(_SQL["used"], agent, since)
        return None if row is None else rows.used(row)

    async def alert_state(self, key: str, *, since: datetime) -> OutboxState | None:
        row = await self._pool.row(_SQL["alert_state"], key, since)
        if row is None or row["sent"] is None:
            return None
        return OutboxState.SENT if row["sent"] else OutboxState.WAITING

    async def add_event(
        self, agent: AgentName, text: str, *, now: datetime, wake: bool
    ) -> HeartbeatEvent:

        def woken(known: Heartbeat) -> Heartbeat:
            return grid.woken(known, HeartbeatRunKind.EVENT, now) if wake else known

        async with self._pool.transaction() as connection:
            if not await change(connection, [agent], woken):
                raise UnknownAgent(agent)
            counted = await connection.row(_SQL["count_events"], agent)
            if counted is None or counted["events"] >= MAX_EVENTS:
                raise TooManyEvents(agent, MAX_EVENTS)
            row = await connection.row(_SQL["add_event"], agent, text, now)
        if row is None:
            raise StoreError("an event that was not kept")
        return rows.event(row)

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        return [rows.event(row) for row in await self._pool.fetch(_SQL["events"], agent)]

    # ------------------------------------------------------------------ results

    async def heartbeat_runs(
        self,
        agent: AgentName | None = None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        since: datetime | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        wanted = heartbeat_rules.Wanted() if outcome is None else heartbeat_rules.wanted(outcome)
        page = (limit, *place(before))
        kind = (wanted.status, wanted.shown_as, wanted.skip)
        if agent is not None:
            query = _SQL["log_of_agent"]
            found = await self._pool.fetch(query, *page, *kind, agent, since)
        elif wanted.skip is not None:
            found = await self._pool.fetch(_SQL["log_with_skip"], *page, *kind, since)
        elif wanted.status is not None:
            found = await self._pool.fetch(_SQL["log_with_status"], *page, *kind[:2], since)
        else:
            found = await self._pool.fetch(_SQL["log"], *page, since)
        return [rows.heartbeat_run(row) for row in found]

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
        row = await self._pool.row(_SQL["heartbeat_run"], heartbeat_run)
        return None if row is None else rows.heartbeat_run(row)

    async def undelivered(
        self, agents: Collection[AgentName], *, since: datetime
    ) -> list[Undelivered]:
        found = await self._pool.fetch(_SQL["undelivered"], list(agents), since)
        return [rows.undelivered(row) for row in found]

    async def notify_undelivered(
        self, heartbeat_run: HeartbeatRunId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["mark_notified"], heartbeat_run, now) is None:
                return False
            await enqueue(connection, say, session=None, now=now)
        return True

    async def sweep_heartbeat_runs(self, *, now: datetime) -> int:
        async with self._pool.connection() as connection:
            swept = await connection.fetch(
                _SQL["sweep_log"], now - heartbeat_rules.KEPT, heartbeat_rules.MOST_SWEPT
            )
            await connection.fetch(_SQL["sweep_items"], now - heartbeat_rules.ITEMS_KEPT)
        return len(swept)


async def change(
    connection: Connection, agents: Sequence[AgentName], how: Callable[[Heartbeat], Heartbeat]
) -> list[Heartbeat]:
    """Change stored heartbeats within the caller's transaction, and return them.

    Sends a notice if the next run of one has moved.
    """
    locked = await connection.fetch(_SQL["lock"], list(agents))
    before = [rows.heartbeat(row) for row in locked]
    after = [how(known) for known in before]
    changed = [new for old, new in zip(before, after, strict=True) if new != old]
    if changed:
        await connection.fetch(_SQL["update"], *rows.columns(changed))
    if any(grid.is_moved(old, new) for old, new in zip(before, after, strict=True)):
        await notify(connection, [Notice.CRON])
    return after


def _listed(agents: Collection[AgentName]) -> str:
    """Join names into one text: the driver converts arrays element by element, which is slow."""
    return ",".join(storable(tuple(agents)))
