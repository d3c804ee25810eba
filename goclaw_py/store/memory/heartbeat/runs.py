"""Heartbeats, and what became of each beat."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce

from goclaw_py.heartbeat.models import (
    MAX_EVENTS,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
    PreconditionQuery,
    Undelivered,
)
from goclaw_py.model.errors import Fenced, TooManyEvents, UnknownAgent
from goclaw_py.model.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.store import InboxKind, Notice, OutboxState
from goclaw_py.store import heartbeat_rules
from goclaw_py.store.memory.tables import MemoryDatabase, MemoryPart
from goclaw_py.store.text import storable


class MemoryHeartbeatRuns(MemoryPart):
    """Implements the rest of ``HeartbeatStore``."""

    async def look(self, agent: AgentName, *, spent_since: datetime) -> PreconditionQuery:
        """Looks at all messages that wait."""
        agent = storable(agent)
        waits = any(
            row.agent == agent and row.kind is InboxKind.MESSAGE
            for row in self._db.pending.values()
        )
        return PreconditionQuery(
            events=tuple(await self.events(agent)),
            done=dict(self._db.beats.items.get(agent, {})),
            is_busy=waits or bool(self._db.beats.talks.get(agent)),
            spent=await self.heartbeat_usage(agent, since=spent_since),
        )

    async def heartbeat_usage(self, agent: AgentName, *, since: datetime) -> Usage | None:
        """Of a beat that works, only what it had used when it was given back."""
        rows = self._db.beats.since(storable(agent), since)
        used = [row.usage for row in rows if row.usage is not None]
        return reduce(Usage.plus, used) if used else None

    async def alert_known(self, key: str, *, since: datetime) -> OutboxState | None:
        """Looks at those with this key."""
        known = [row for row in self._alerts(storable(key)) if self._is_known(row, since)]
        if not known:
            return None
        sent = any(self._db.outbox[row].state is OutboxState.SENT for row in known)
        return OutboxState.SENT if sent else OutboxState.PENDING

    def _alerts(self, key: str) -> list[int]:
        return self._db.beats.alerts.get(key, [])

    def _is_known(self, row_id: int, since: datetime) -> bool:
        row = self._db.outbox[row_id]
        beat = row.message.beat
        others = [] if beat is None else self._db.beats.said.get(beat, [])
        if any(self._db.outbox[one].state in heartbeat_rules.GIVEN_UP for one in others):
            return False
        if row.state is OutboxState.SENT:
            return row.finished_at is not None and row.finished_at >= since
        return row.state in heartbeat_rules.UNCONFIRMED

    async def add_event(
        self, agent: AgentName, text: str, *, now: datetime, wake: bool
    ) -> HeartbeatEvent:
        """A wake that waits already is enough."""
        agent = storable(agent)
        if agent not in self._db.beats.heartbeats:
            raise UnknownAgent(agent)
        if len(self._db.beats.events[agent]) >= MAX_EVENTS:
            raise TooManyEvents(agent, MAX_EVENTS)
        if wake:
            wake_up(self._db, agent, HeartbeatRunKind.EVENT, now)
        return self._db.beats.enter_event(agent, storable(text), now)

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        """In the order in which they came."""
        return list(self._db.beats.events.get(storable(agent), {}).values())

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
        wanted = (
            heartbeat_rules.Wanted()
            if outcome is None
            else heartbeat_rules.wanted(storable(outcome))
        )
        rows = self._db.beats.log(storable(agent))
        found = (
            row
            for row in rows
            if (before is None or row.cursor < before) and self._is_wanted(row, wanted)
        )
        return [self._shown_beat(row) for row, _ in zip(found, range(limit), strict=False)]

    def _is_wanted(self, row: HeartbeatRun, wanted: heartbeat_rules.Wanted) -> bool:
        if wanted.status not in (None, row.status) or wanted.skip not in (None, row.skip):
            return False
        return wanted.dead is None or wanted.dead == (self._shown_beat(row).delivery == "dead")

    async def beat(self, beat: HeartbeatRunId) -> HeartbeatRun | None:
        """None if it is not kept any more."""
        row = self._db.beats.rows.get(storable(beat))
        return None if row is None else self._shown_beat(row)

    def _shown_beat(self, row: HeartbeatRun) -> HeartbeatRun:
        said = [self._db.outbox[one] for one in self._db.beats.said.get(row.id, ())]
        runs = tuple(self._db.beats.runs.get(row.id, ()))
        full = replace(row, runs=runs, started_at=row.started_at or self._db.began(runs))
        return heartbeat_rules.shown(full, [one.state for one in said], [one.error for one in said])

    async def undelivered(
        self, agents: Collection[AgentName], *, since: datetime
    ) -> list[Undelivered]:
        """What an operator has given up is not told: somebody knows of it."""
        wanted = set(storable(tuple(agents)))
        found = []
        for row in self._db.beats.rows.values():
            is_open = row.status is HeartbeatRunStatus.ALERTED and row.id not in self._db.beats.told
            if is_open and row.agent in wanted and (died := self._died(row.id, since)):
                found.append((died[0], row))
        return [self._undelivered(row) for _, row in sorted(found, key=lambda one: one[0])]

    def _died(self, beat: HeartbeatRunId, since: datetime) -> tuple[datetime, int] | None:
        """When the first of a beat's dead messages died, and which it is."""
        said = (self._db.outbox[one] for one in self._db.beats.said.get(beat, ()))
        died = [
            (row.finished_at, row.id)
            for row in said
            if row.state is OutboxState.DEAD and row.finished_at and row.finished_at >= since
        ]
        return min(died, default=None)

    def _undelivered(self, row: HeartbeatRun) -> Undelivered:
        said = [self._db.outbox[one] for one in self._db.beats.said[row.id]]
        dead = [one for one in said if one.state is OutboxState.DEAD]
        return Undelivered(
            row.id,
            row.agent,
            row.target or dead[0].message.target,
            tuple(one.message for one in said),
            dead[0].error or "",
        )

    async def tell_undelivered(
        self, beat: HeartbeatRunId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """What is said does not count as a message of the beat, unless it says so."""
        beat = storable(beat)
        if beat not in self._db.beats.rows or beat in self._db.beats.told:
            return False
        self._db.beats.told.add(beat)
        self._db.enqueue(storable(tuple(say)), session=None, now=now)
        return True

    async def sweep_heartbeat_runs(self, *, now: datetime) -> int:
        """Also forgets items that no checklist has had for years."""
        return self._db.beats.sweep(now)


def wake_up(
    database: MemoryDatabase, agent: AgentName, kind: HeartbeatRunKind, now: datetime
) -> None:
    """Let a planned heartbeat beat as soon as may be, unless a wake waits already."""
    before = database.beats.heartbeats[agent]
    database.beats.heartbeats[agent] = after = heartbeat_rules.woken(before, kind, now)
    if heartbeat_rules.is_moved(before, after):
        database.notify(Notice.CRON)


def check(database: MemoryDatabase, beat: HeartbeatRunId, node: NodeId) -> None:
    """Raise ``Fenced`` if a beat that has not ended is not this node's any more."""
    row = database.beats.rows.get(storable(beat))
    if row is not None and row.finished_at is None and row.node != node:
        raise Fenced(f"beat {beat} is not this node's any more")


def end(database: MemoryDatabase, ended: HeartbeatRunEnd) -> bool:
    """End a beat. False: it has ended before, or is not kept any more."""
    ended = storable(ended)
    row = database.beats.rows.get(ended.id)
    if row is None or row.finished_at is not None:
        return False
    database.beats.end(
        row,
        replace(
            ended,
            usage=_used(database, row.id) if ended.usage is None else ended.usage,
            started_at=ended.started_at or database.began(database.beats.runs.get(row.id, ())),
        ),
    )
    heartbeat = database.beats.heartbeats[row.agent]
    next_at = heartbeat_rules.due_from(heartbeat, wakes=False)
    if heartbeat.wake_at is not None or (next_at is not None and next_at <= ended.finished_at):
        database.notify(Notice.CRON)
    return True


def give_back(database: MemoryDatabase, rows: Collection[HeartbeatRun]) -> None:
    """Let beats in hand be claimed again, and tell everybody."""
    for row in rows:
        database.beats.give_back(row, _used(database, row.id))
    if rows:
        database.notify(Notice.CRON)


def leave_behind(
    database: MemoryDatabase, nodes: Collection[NodeId], now: datetime, *, died: bool
) -> None:
    """Let others claim what these nodes had in hand; where they ``died`` at work, it is lost."""
    rows = database.beats.claimed_by(nodes)
    began = {row.id: database.attempts(database.beats.runs.get(row.id, ())) for row in rows}
    lost = [row for row in rows if died and began[row.id]]
    for row in lost:
        last = HeartbeatRunEnd(
            row.id, row.agent, HeartbeatRunStatus.LOST, now, detail=heartbeat_rules.LOST
        )
        end(database, replace(last, attempts=began[row.id]))
    give_back(database, [row for row in rows if row not in lost])
    if lost:
        database.notify(Notice.CRON)


def _used(database: MemoryDatabase, beat: HeartbeatRunId) -> Usage | None:
    """What its runs, and those they asked for, have used; None if that is known of none."""
    runs = database.beats.runs.get(beat, ()), database.beats.paid.get(beat, ())
    return database.used([*runs[0], *runs[1]])
