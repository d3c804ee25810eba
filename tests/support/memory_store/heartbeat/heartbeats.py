"""Heartbeats and heartbeat runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce

from goclaw_py.core.errors import Fenced, TooManyEvents, UnknownAgent
from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.records import InboxKind, Notice, OutboxState
from goclaw_py.schedule.heartbeat import grid
from goclaw_py.schedule.heartbeat.models import (
    MAX_EVENTS,
    Heartbeat,
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
    PreconditionQuery,
    Undelivered,
)
from goclaw_py.store import heartbeat_rules, rules
from goclaw_py.store.text import storable
from tests.support.memory_store.claims import check_holder, end_heartbeat_run, give_back
from tests.support.memory_store.heartbeat.tables import manual
from tests.support.memory_store.tables import MemoryPart


class MemoryHeartbeats(MemoryPart):
    """Implements ``HeartbeatStore``."""

    async def plan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        plans = storable(tuple(plans))
        for plan in plans:
            self._store_heartbeat(grid.planned(self._heartbeat(plan.agent), plan, now))

    async def replan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        by_agent = {plan.agent: plan for plan in storable(tuple(plans))}
        for known in self._of_agents(by_agent):
            self._store_heartbeat(grid.replanned(known, by_agent[known.agent], now))
            items = self._db.heartbeat_runs.items[known.agent]
            items.update({key: min(done_at, now) for key, done_at in items.items()})

    async def heartbeats(self, agents: Collection[AgentName] | None = None) -> list[Heartbeat]:
        known = self._db.heartbeat_runs.heartbeats
        wanted = known if agents is None else set(storable(tuple(agents))) & known.keys()
        return [known[agent] for agent in sorted(wanted)]

    async def switch_heartbeat(self, agent: AgentName, *, on: bool | None, now: datetime) -> bool:
        return self._change_heartbeat(agent, lambda known: grid.switched(known, on=on, now=now))

    async def mute_heartbeat(self, agent: AgentName, until: datetime | None) -> bool:
        return self._change_heartbeat(agent, lambda known: replace(known, muted_until=until))

    async def wake_heartbeat(
        self, agent: AgentName, kind: HeartbeatRunKind, *, now: datetime
    ) -> bool:
        return self._change_heartbeat(agent, lambda known: grid.woken(known, kind, now))

    def _change_heartbeat(self, agent: AgentName, how: Callable[[Heartbeat], Heartbeat]) -> bool:
        known = self._db.heartbeat_runs.heartbeats.get(storable(agent))
        if known is not None:
            self._store_heartbeat(how(known))
        return known is not None

    def _heartbeat(self, agent: AgentName) -> Heartbeat:
        return self._db.heartbeat_runs.heartbeats.get(agent) or Heartbeat(agent, None)

    def _store_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Store a heartbeat, and send a notice if its next run has moved."""
        before = self._heartbeat(heartbeat.agent)
        self._db.heartbeat_runs.heartbeats[heartbeat.agent] = heartbeat
        if grid.is_moved(before, heartbeat):
            self._db.notify(Notice.CRON)

    # ------------------------------------------------------------------ when they are due

    async def next_heartbeat_due(
        self, agents: Collection[AgentName], *, wakes: bool = True
    ) -> datetime | None:
        times = (grid.due_from(one, wakes=wakes) for one in self._of_agents(agents))
        return min((time for time in times if time is not None), default=None)

    async def claim_heartbeats(
        self,
        node: NodeId,
        agents: Collection[AgentName],
        *,
        now: datetime,
        ids: Sequence[HeartbeatRunId],
        wakes: int,
    ) -> list[HeartbeatClaim]:
        self._db.check_alive(node)
        free = [one for one in self._of_agents(agents) if one.node is None]
        left = [one for one in free if one.heartbeat_run is not None]
        dues = [(one, grid.due(one, now)) for one in free if one.heartbeat_run is None]
        whys = {one.agent: why for one, why in dues if why is not None}
        line = sorted(whys, key=lambda agent: (whys[agent].at, agent))
        woken = [agent for agent in line if whys[agent].is_wake]
        late = set(woken[wakes:])
        left.sort(key=lambda one: (one.began_at or now, one.agent))
        claimed = [self._db.heartbeat_runs.resume(one.agent, node, now) for one in left[: len(ids)]]
        fresh = iter(ids[len(claimed) :])
        chosen = [agent for agent in line if agent not in late][: len(ids) - len(claimed)]
        claimed += [
            self._db.heartbeat_runs.claim(agent, node, now, next(fresh), whys[agent])
            for agent in chosen
        ]
        return claimed

    async def claim_heartbeat_now(
        self, node: NodeId, agent: AgentName, *, now: datetime, heartbeat_run: HeartbeatRunId
    ) -> HeartbeatClaim | None:
        agent, heartbeat_run = storable(agent), storable(heartbeat_run)
        self._db.check_alive(node)
        heartbeat = self._db.heartbeat_runs.heartbeats.get(agent)
        if heartbeat is None:
            return None
        if heartbeat.heartbeat_run is None:
            return self._db.heartbeat_runs.claim(agent, node, now, heartbeat_run, manual(now))
        mine = (heartbeat.heartbeat_run, heartbeat.node) == (heartbeat_run, node)
        return self._db.heartbeat_runs.claimed_run(agent) if mine else None

    async def defer_heartbeat(
        self, heartbeat_run: HeartbeatRunId, *, node: NodeId, detail: str
    ) -> None:
        row = self._db.heartbeat_runs.rows.get(storable(heartbeat_run))
        if row is None or row.node != node:
            raise Fenced(f"heartbeat_run {heartbeat_run} is not this node's any more")
        self._db.heartbeat_runs.rows[row.id] = replace(
            row, status=HeartbeatRunStatus.DEFERRED, detail=storable(detail)
        )

    async def end_heartbeat_run(
        self, end: HeartbeatRunEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId
    ) -> None:
        end, say = storable((end, tuple(say)))
        check_holder("heartbeat_run", self._db.heartbeat_runs.rows.get(end.id), node)
        if end_heartbeat_run(self._db, end):
            said = rules.marked(say, heartbeat_run=end.id)
            self._db.enqueue(said, session=None, now=end.finished_at)

    async def release_heartbeats(self, ids: Collection[HeartbeatRunId], *, node: NodeId) -> None:
        wanted = set(storable(tuple(ids)))
        give_back(
            self._db,
            [row for row in self._db.heartbeat_runs.claimed_by([node]) if row.id in wanted],
        )

    async def release_unclaimed_heartbeats(
        self, known: Collection[HeartbeatRunId], *, node: NodeId
    ) -> None:
        wanted = set(storable(tuple(known)))
        give_back(
            self._db,
            [
                row
                for row in self._db.heartbeat_runs.claimed_by([node])
                if row.id not in wanted
                and (row.kind is not HeartbeatRunKind.MANUAL or row.due_at != row.claimed_at)
            ],
        )

    def _of_agents(self, agents: Collection[AgentName]) -> list[Heartbeat]:
        known = self._db.heartbeat_runs.heartbeats
        return [known[agent] for agent in set(storable(tuple(agents))) if agent in known]

    # ------------------------------------------------------------------ what a run looks at

    async def run_facts(self, agent: AgentName, *, spent_since: datetime) -> PreconditionQuery:
        agent = storable(agent)
        waits = any(
            row.agent == agent and row.kind is InboxKind.MESSAGE
            for row in self._db.pending.values()
        )
        return PreconditionQuery(
            events=tuple(await self.events(agent)),
            done=dict(self._db.heartbeat_runs.items.get(agent, {})),
            is_busy=waits or bool(self._db.heartbeat_runs.talks.get(agent)),
            spent=await self.heartbeat_usage(agent, since=spent_since),
        )

    async def heartbeat_usage(self, agent: AgentName, *, since: datetime) -> Usage | None:
        rows = self._db.heartbeat_runs.since(storable(agent), since)
        used = [row.usage for row in rows if row.usage is not None]
        return reduce(Usage.plus, used) if used else None

    async def alert_state(self, key: str, *, since: datetime) -> OutboxState | None:
        known = [row for row in self._alerts(storable(key)) if self._is_known(row, since)]
        if not known:
            return None
        sent = any(self._db.outbox[row].state is OutboxState.SENT for row in known)
        return OutboxState.SENT if sent else OutboxState.WAITING

    def _alerts(self, key: str) -> list[int]:
        return self._db.heartbeat_runs.alerts.get(key, [])

    def _is_known(self, row_id: int, since: datetime) -> bool:
        row = self._db.outbox[row_id]
        heartbeat_run = row.message.heartbeat_run
        others = (
            [] if heartbeat_run is None else self._db.heartbeat_runs.said.get(heartbeat_run, [])
        )
        if any(self._db.outbox[one].state in heartbeat_rules.GIVEN_UP for one in others):
            return False
        if row.state is OutboxState.SENT:
            return row.finished_at is not None and row.finished_at >= since
        return row.state in heartbeat_rules.UNCONFIRMED

    async def add_event(
        self, agent: AgentName, text: str, *, now: datetime, wake: bool
    ) -> HeartbeatEvent:
        agent = storable(agent)
        if agent not in self._db.heartbeat_runs.heartbeats:
            raise UnknownAgent(agent)
        if len(self._db.heartbeat_runs.events[agent]) >= MAX_EVENTS:
            raise TooManyEvents(agent, MAX_EVENTS)
        if wake:
            await self.wake_heartbeat(agent, HeartbeatRunKind.EVENT, now=now)
        return self._db.heartbeat_runs.enter_event(agent, storable(text), now)

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        return list(self._db.heartbeat_runs.events.get(storable(agent), {}).values())

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
        wanted = (
            heartbeat_rules.Wanted()
            if outcome is None
            else heartbeat_rules.wanted(storable(outcome))
        )
        rows = self._db.heartbeat_runs.log(storable(agent))
        found = (
            row
            for row in rows
            if (before is None or row.cursor < before)
            and (since is None or row.claimed_at >= since)
            and self._is_wanted(row, wanted)
        )
        return [self._shown_heartbeat_run(row) for row, _ in zip(found, range(limit), strict=False)]

    def _is_wanted(self, row: HeartbeatRun, wanted: heartbeat_rules.Wanted) -> bool:
        if wanted.status not in (None, row.status) or wanted.skip not in (None, row.skip):
            return False
        return wanted.shown_as in (None, self._shown_heartbeat_run(row).status)

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
        row = self._db.heartbeat_runs.rows.get(storable(heartbeat_run))
        return None if row is None else self._shown_heartbeat_run(row)

    def _shown_heartbeat_run(self, row: HeartbeatRun) -> HeartbeatRun:
        said = [self._db.outbox[one] for one in self._db.heartbeat_runs.said.get(row.id, ())]
        runs = tuple(self._db.heartbeat_runs.runs.get(row.id, ()))
        full = replace(row, runs=runs, started_at=row.started_at or self._db.began(runs))
        return heartbeat_rules.shown(full, [one.state for one in said], [one.error for one in said])

    async def undelivered(
        self, agents: Collection[AgentName], *, since: datetime
    ) -> list[Undelivered]:
        wanted = set(storable(tuple(agents)))
        found = []
        for row in self._db.heartbeat_runs.rows.values():
            is_open = (
                row.status is HeartbeatRunStatus.ALERTED
                and row.id not in self._db.heartbeat_runs.told
            )
            if is_open and row.agent in wanted and (died := self._died(row.id, since)):
                found.append((died[0], row))
        return [self._undelivered(row) for _, row in sorted(found, key=lambda one: one[0])]

    def _died(self, heartbeat_run: HeartbeatRunId, since: datetime) -> tuple[datetime, int] | None:
        """Return when the first message of a heartbeat run became dead, and its row."""
        said = (self._db.outbox[one] for one in self._db.heartbeat_runs.said.get(heartbeat_run, ()))
        died = [
            (row.finished_at, row.id)
            for row in said
            if row.state is OutboxState.FAILED and row.finished_at and row.finished_at >= since
        ]
        return min(died, default=None)

    def _undelivered(self, row: HeartbeatRun) -> Undelivered:
        said = [self._db.outbox[one] for one in self._db.heartbeat_runs.said[row.id]]
        dead = [one for one in said if one.state is OutboxState.FAILED]
        return Undelivered(
            row.id,
            row.agent,
            row.target or dead[0].message.target,
            tuple(one.message for one in said),
            dead[0].error or "",
        )

    async def notify_undelivered(
        self, heartbeat_run: HeartbeatRunId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        heartbeat_run = storable(heartbeat_run)
        if (
            heartbeat_run not in self._db.heartbeat_runs.rows
            or heartbeat_run in self._db.heartbeat_runs.told
        ):
            return False
        self._db.heartbeat_runs.told.add(heartbeat_run)
        self._db.enqueue(storable(tuple(say)), session=None, now=now)
        return True

    async def sweep_heartbeat_runs(self, *, now: datetime) -> int:
        return self._db.heartbeat_runs.sweep(now)
