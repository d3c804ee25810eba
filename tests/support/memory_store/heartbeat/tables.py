"""Tables of heartbeats and heartbeat runs in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from goclaw_py.core.ids import AgentName, HeartbeatRunId, NodeId, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.run_events import Usage
from goclaw_py.records import NewRun
from goclaw_py.schedule.heartbeat import grid
from goclaw_py.schedule.heartbeat.models import (
    Heartbeat,
    HeartbeatClaim,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
)
from goclaw_py.store import heartbeat_rules
from tests.support.memory_store import sql_rules

Key = TypeVar("Key")
Item = TypeVar("Item")


class HeartbeatTables:
    """Heartbeats, heartbeat runs, their events, and the times of checklist items."""

    def __init__(self) -> None:
        self.heartbeats: dict[AgentName, Heartbeat] = {}
        self.rows: dict[HeartbeatRunId, HeartbeatRun] = {}
        """Without agent runs and delivery."""
        self.told: set[HeartbeatRunId] = set()
        """Heartbeat runs whose undelivered alert was reported."""
        self.events: defaultdict[AgentName, dict[int, HeartbeatEvent]] = defaultdict(dict)
        self.items: defaultdict[AgentName, dict[str, datetime]] = defaultdict(dict)
        """When each checklist item was last included."""
        self.runs: defaultdict[HeartbeatRunId, list[RunId]] = defaultdict(list)
        """The agent runs of each heartbeat run, in order of their starts."""
        self.said: defaultdict[HeartbeatRunId, list[int]] = defaultdict(list)
        """The outbox rows of each heartbeat run."""
        self.alerts: defaultdict[str, list[int]] = defaultdict(list)
        """The outbox rows of each alert."""
        self.talks: defaultdict[AgentName, set[RunId]] = defaultdict(set)
        """The unfinished runs of each agent that answer people."""
        self.paid: defaultdict[HeartbeatRunId, list[RunId]] = defaultdict(list)
        """Child runs that are charged to a heartbeat run's session."""
        self._sessions: dict[SessionKey, HeartbeatRunId] = {}
        self._of_agent: defaultdict[AgentName, dict[HeartbeatRunId, None]] = defaultdict(dict)
        self._last_event = 0

    # ------------------------------------------------------------------ what others enter

    def began(self, run: NewRun) -> None:
        """Record that a run started."""
        if run.trigger in sql_rules.TALKS:
            self.talks[run.agent].add(run.id)
        if run.heartbeat_run is None:
            if run.payer in self._sessions:
                self.paid[self._sessions[run.payer]].append(run.id)
            return
        self._sessions[run.session] = run.heartbeat_run
        self.runs[run.heartbeat_run].append(run.id)
        row = self.rows[run.heartbeat_run]
        if row.status is HeartbeatRunStatus.DEFERRED:
            self.rows[row.id] = replace(row, status=HeartbeatRunStatus.RUNNING, detail="")

    def is_over(self, run: NewRun) -> None:
        """Record that a run ended."""
        self.talks[run.agent].discard(run.id)

    def queued(self, row: int, message: OutboundMessage) -> None:
        """Record that a message was added to the outbox."""
        if message.heartbeat_run is not None:
            self.said[message.heartbeat_run].append(row)
        if message.alert:
            self.alerts[message.alert].append(row)

    def forget_message(self, row: int, message: OutboundMessage) -> None:
        """Record that a message of the outbox was deleted."""
        if message.heartbeat_run is not None:
            _remove_from(self.said, message.heartbeat_run, row)
        if message.alert:
            _remove_from(self.alerts, message.alert, row)

    def forget_run(self, run: NewRun) -> None:
        """Record that a run was deleted."""
        if run.heartbeat_run is not None:
            _remove_from(self.runs, run.heartbeat_run, run.id)
            self._sessions.pop(run.session, None)
            self.paid.pop(run.heartbeat_run, None)
        elif run.payer in self._sessions:
            _remove_from(self.paid, self._sessions[run.payer], run.id)

    def enter_event(self, agent: AgentName, text: str, now: datetime) -> HeartbeatEvent:
        """Add an event."""
        self._last_event += 1
        event = HeartbeatEvent(self._last_event, agent, text, now)
        self.events[agent][event.id] = event
        return event

    # ------------------------------------------------------------------ claims

    def claim(
        self,
        agent: AgentName,
        node: NodeId,
        now: datetime,
        fresh: HeartbeatRunId,
        why: grid.DueCause,
    ) -> HeartbeatClaim:
        """Claim a new heartbeat run of a heartbeat without an unfinished one."""
        heartbeat = grid.claimed(self.heartbeats[agent], why, now)
        self.rows[fresh] = HeartbeatRun(
            fresh, agent, why.kind, why.at, now, HeartbeatRunStatus.RUNNING, node=node
        )
        self._of_agent[agent][fresh] = None
        self.heartbeats[agent] = replace(heartbeat, heartbeat_run=fresh, node=node)
        return self.claimed_run(agent)

    def resume(self, agent: AgentName, node: NodeId, now: datetime) -> HeartbeatClaim:
        """Claim the released run of a heartbeat."""
        heartbeat = grid.answered(replace(self.heartbeats[agent], node=node), now)
        assert heartbeat.heartbeat_run is not None
        self.heartbeats[agent] = heartbeat
        self.rows[heartbeat.heartbeat_run] = replace(
            self.rows[heartbeat.heartbeat_run],
            status=HeartbeatRunStatus.RUNNING,
            detail="",
            node=node,
            claimed_at=now,
        )
        return self.claimed_run(agent)

    def claimed_run(self, agent: AgentName) -> HeartbeatClaim:
        """Return the claimed run of a heartbeat."""
        heartbeat = self.heartbeats[agent]
        assert heartbeat.heartbeat_run is not None
        row = self.rows[heartbeat.heartbeat_run]
        return HeartbeatClaim(
            row.id, agent, row.kind, row.due_at, row.claimed_at, heartbeat.next_at, heartbeat
        )

    def claimed_by(self, nodes: Collection[NodeId]) -> list[HeartbeatRun]:
        """Return the runs that these nodes have claimed, by agent."""
        held = sorted(
            (one.agent, one.heartbeat_run)
            for one in self.heartbeats.values()
            if one.node in nodes and one.heartbeat_run is not None
        )
        return [self.rows[heartbeat_run] for _, heartbeat_run in held]

    def give_back(self, row: HeartbeatRun, usage: Usage | None) -> None:
        self.rows[row.id] = replace(row, status=HeartbeatRunStatus.DEFERRED, node=None, usage=usage)
        self.heartbeats[row.agent] = replace(self.heartbeats[row.agent], node=None)

    # ------------------------------------------------------------------ ends

    def end(self, row: HeartbeatRun, end: HeartbeatRunEnd) -> None:
        """End an unfinished heartbeat run, and update its heartbeat."""
        self.rows[row.id] = replace(
            row,
            status=heartbeat_rules.stored_status(end.status),
            skip=end.skip,
            detail=end.detail,
            reply=end.reply,
            target=end.target,
            started_at=end.started_at,
            finished_at=end.finished_at,
            attempts=end.attempts,
            usage=end.usage,
            node=None,
        )
        for event in end.events:
            self.events[row.agent].pop(event, None)
        self.items[row.agent] |= dict.fromkeys(end.done, end.noted_at or end.finished_at)
        heartbeat = self.heartbeats[row.agent]
        failures = heartbeat.failures
        if end.failed is not None:
            failures = failures + 1 if end.failed else 0
        heartbeat = replace(heartbeat, heartbeat_run=None, node=None, failures=failures)
        if end.noted_at is not None:
            heartbeat = grid.answered(heartbeat, end.noted_at)
        self.heartbeats[row.agent] = heartbeat
        self._prune(row.agent, end.finished_at)

    def _prune(self, agent: AgentName, now: datetime) -> None:
        if len(self._of_agent[agent]) > heartbeat_rules.KEPT_ROWS:
            for row in self.log(agent)[heartbeat_rules.KEPT_ROWS :]:
                counts = row.usage is not None and row.claimed_at >= now - heartbeat_rules.COUNTED
                if row.finished_at is not None and not counts:
                    self._drop(row)

    # ------------------------------------------------------------------ the log

    def log(self, agent: AgentName | None) -> list[HeartbeatRun]:
        rows: Iterable[HeartbeatRun] = self.rows.values()
        if agent is not None:
            rows = (self.rows[row] for row in self._of_agent.get(agent, ()))
        return sorted(rows, key=lambda row: (row.claimed_at, row.id), reverse=True)

    def since(self, agent: AgentName, since: datetime) -> list[HeartbeatRun]:
        """Return the rows of an agent that were claimed since then."""
        rows = (self.rows[row] for row in self._of_agent.get(agent, ()))
        return [row for row in rows if row.claimed_at >= since]

    def sweep(self, now: datetime) -> int:
        """Delete some old rows; return how many."""
        for items in self.items.values():
            for key, at in list(items.items()):
                if at < now - heartbeat_rules.ITEMS_KEPT:
                    del items[key]
        before = now - heartbeat_rules.KEPT
        old = [
            row
            for row in self.rows.values()
            if row.finished_at is not None and max(row.claimed_at, row.finished_at) < before
        ]
        old.sort(key=lambda row: (row.claimed_at, row.id))
        for row in old[: heartbeat_rules.MOST_SWEPT]:
            self._drop(row)
        return len(old[: heartbeat_rules.MOST_SWEPT])

    def _drop(self, row: HeartbeatRun) -> None:
        del self.rows[row.id]
        del self._of_agent[row.agent][row.id]
        self.told.discard(row.id)


def _remove_from(lists: dict[Key, list[Item]], key: Key, item: Item) -> None:
    """Remove an item from one of several lists, and the list with its last item."""
    if item in lists.get(key, ()):
        lists[key].remove(item)
        if not lists[key]:
            del lists[key]


def manual(now: datetime) -> grid.DueCause:
    """Return the cause of a requested heartbeat run."""
    return grid.DueCause(HeartbeatRunKind.MANUAL, now, is_wake=False)
