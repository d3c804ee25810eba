"""The heartbeats of a simulation: how they stand, and what becomes of their beats (SPEC OPS-6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from heapq import heappop, heappush

from goclaw_py.app.heartbeat import heartbeat_setup
from goclaw_py.config.models import Settings
from goclaw_py.delivery.ok_token import HEARTBEAT_OK
from goclaw_py.heartbeat.models import (
    Heartbeat,
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
    Skip,
)
from goclaw_py.heartbeat.module import HeartbeatSetup
from goclaw_py.model.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.model.run_events import NO_USAGE, Usage
from goclaw_py.ports.agent import AgentResult
from goclaw_py.ports.store import RunEnd
from goclaw_py.store import heartbeat_rules
from goclaw_py.store.memory import MemoryStore

MOST_BEATS = 100_000
"""A simulation ends after so many beats, also if nearly all are skipped: it takes minutes."""

ASKS_ONCE = Usage(requests=1)
"""What a beat uses of which nothing is known."""

_TIDY_EVERY = 500


@dataclass(frozen=True, slots=True)
class KnownHeartbeat:
    """How a heartbeat stands, and what is assumed of its beats that come to their agent.

    Args:
        events: What waits to be told with its next beat.
        today: What its beats have used on this day, in UTC; None: nothing.
        seconds: How long one takes.
        usage: What one uses.
    """

    heartbeat: Heartbeat
    events: tuple[str, ...] = ()
    today: Usage | None = None
    seconds: float = 20.0
    usage: Usage = ASKS_ONCE

    @property
    def agent(self) -> AgentName:
        """Whose it is."""
        return self.heartbeat.agent


@dataclass(frozen=True, slots=True)
class SimulatedHeartbeatEvent:
    """A beat as it went.

    Args:
        due_at: By the grid, or when it was asked for.
        started_at: None: it did not come to its agent.
        model_calls: Runs that ask a model.
    """

    agent: AgentName
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime
    status: HeartbeatRunStatus
    skip: Skip | None = None
    model_calls: int = 0
    usd: Decimal | None = None


@dataclass(slots=True)
class ForecastHeartbeats:
    """What became of the beats of one agent. One that has not ended does not count.

    Args:
        is_on: Whether it beats at all.
        beats: All of them, those that were skipped too.
        failed: Beats that asked a model and came to nothing.
        usd: None where no cost is known.
        waited_s: The longest time from due to start.
    """

    agent: AgentName
    is_on: bool = True
    beats: int = 0
    skipped: Counter[Skip] = field(default_factory=Counter)
    failed: int = 0
    model_calls: int = 0
    usd: Decimal | None = None
    worked_s: float = 0.0
    waited_s: float = 0.0

    def count(self, beat: SimulatedHeartbeatEvent) -> None:
        """One more."""
        self.beats += 1
        if beat.skip is not None:
            self.skipped[beat.skip] += 1
        self.failed += beat.status is HeartbeatRunStatus.FAILED
        self.model_calls += beat.model_calls
        if beat.usd is not None:
            self.usd = (self.usd or Decimal(0)) + beat.usd
        if beat.started_at is not None:
            self.worked_s += (beat.finished_at - beat.started_at).total_seconds()
            self.waited_s = max(self.waited_s, (beat.started_at - beat.due_at).total_seconds())


def played_setup(settings: Settings, known: Iterable[KnownHeartbeat]) -> HeartbeatSetup:
    """What the settings say about the heartbeats that are known, and the real checklists."""
    setup = heartbeat_setup(settings)
    names = {one.agent for one in known} & setup.policies.keys()
    return replace(
        setup,
        policies={agent: one for agent, one in setup.policies.items() if agent in names},
        plans={agent: one for agent, one in setup.plans.items() if agent in names},
    )


async def all_is_well(known: KnownHeartbeat) -> AgentResult:
    """Answer a beat, after the time and at the cost that are assumed."""
    await asyncio.sleep(known.seconds)
    return AgentResult(HEARTBEAT_OK, usage=known.usage)


def foreseen(
    setup: HeartbeatSetup, known: Iterable[KnownHeartbeat], beats: Iterable[SimulatedHeartbeatEvent]
) -> tuple[ForecastHeartbeats, ...]:
    """What becomes of each heartbeat, in the order in which they are known."""
    found = {}
    for one in known:
        if (plan := setup.plans.get(one.agent)) is not None:
            heart = replace(one.heartbeat, interval=plan.interval)
            found[one.agent] = ForecastHeartbeats(one.agent, heart.is_on)
    for beat in beats:
        found[beat.agent].count(beat)
    return tuple(found.values())


class ObservedHeartbeats(MemoryStore):
    """Notes what becomes of beats, and keeps no more rows of them than it must.

    It finds those that are due in a heap: the store itself looks at all agents each time, which is
    the time of a whole simulation where there are hundreds. The agents asked for are all there are.
    """

    def __init__(self) -> None:
        super().__init__()
        self.beat_events: list[SimulatedHeartbeatEvent] = []
        self.beats_asked = 0
        """How many beats came to their agents."""
        self.full = asyncio.Event()
        """There is more than anybody reads."""
        self._used: dict[tuple[AgentName, date], Usage] = {}
        self._due: list[tuple[datetime, AgentName]] = []
        """When each can be claimed, and what was true before: see ``_is_due_at``."""
        self._tidy_at = _TIDY_EVERY

    def enter_heartbeat(self, known: KnownHeartbeat, now: datetime) -> None:
        """Let a heartbeat stand as it does; what it has in hand stays out of it."""
        agent = known.agent
        self._db.beats.heartbeats[agent] = replace(known.heartbeat, beat=None, node=None)
        for text in known.events:
            self._db.beats.enter_event(agent, text, now)
        if known.today is not None:
            self._used[agent, _day(now)] = known.today

    # ------------------------------------------------------------------ what is due

    async def plan_heartbeats(self, plans: Sequence[HeartbeatConfig], *, now: datetime) -> None:
        """They may be due at another time."""
        await super().plan_heartbeats(plans, now=now)
        self._moved(plan.agent for plan in plans)

    async def wake_heartbeat(
        self, agent: AgentName, kind: HeartbeatRunKind, *, now: datetime
    ) -> bool:
        """It may be due at once."""
        known = await super().wake_heartbeat(agent, kind, now=now)
        self._moved([agent] if known else ())
        return known

    async def next_heartbeat_due(
        self, agents: Collection[AgentName], *, wakes: bool = True
    ) -> datetime | None:
        """Looks at all of them only while wakes have to wait."""
        if not wakes:
            return await super().next_heartbeat_due(agents, wakes=wakes)
        while self._due:
            at, agent = self._due[0]
            if self._is_due_at(at, agent):
                return at
            heappop(self._due)
        return None

    async def claim_heartbeats(
        self,
        node: NodeId,
        agents: Collection[AgentName],
        *,
        now: datetime,
        ids: Sequence[HeartbeatRunId],
        wakes: int,
    ) -> list[HeartbeatClaim]:
        """Looks at those that are due."""
        del agents
        due = set()
        while self._due and self._due[0][0] <= now:
            at, agent = heappop(self._due)
            if self._is_due_at(at, agent):
                due.add(agent)
        claimed = await super().claim_heartbeats(node, due, now=now, ids=ids, wakes=wakes)
        self._moved(due)
        return claimed

    def _is_due_at(self, at: datetime, agent: AgentName) -> bool:
        return heartbeat_rules.due_from(self._db.beats.heartbeats[agent], wakes=True) == at

    def _moved(self, agents: Iterable[AgentName]) -> None:
        for agent in agents:
            at = heartbeat_rules.due_from(self._db.beats.heartbeats[agent], wakes=True)
            if at is not None:
                heappush(self._due, (at, agent))

    # ------------------------------------------------------------------ what became of it

    async def heartbeat_usage(self, agent: AgentName, *, since: datetime) -> Usage | None:
        """Of the day that begins then, in UTC: nobody asks for more here."""
        return self._used.get((agent, _day(since)))

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """Its beat is noted."""
        if end.beat is not None:
            self._note_beat(end.beat, end.usage)
        await super().finish_run(end, node=node)
        if end.beat is not None:
            await self._noted(end.beat)

    async def end_heartbeat_run(
        self, end: HeartbeatRunEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId
    ) -> None:
        """It is noted."""
        self._note_beat(end)
        await super().end_heartbeat_run(end, say, node=node)
        await self._noted(end)

    def _note_beat(self, end: HeartbeatRunEnd, usage: Usage | None = None) -> None:
        row = self._db.beats.rows[end.id]
        if row.finished_at is not None:
            return
        self.beat_events.append(
            SimulatedHeartbeatEvent(
                end.agent,
                row.due_at,
                end.started_at,
                end.finished_at,
                end.status,
                end.skip,
                end.attempts,
                None if usage is None else usage.cost_usd,
            )
        )
        self.beats_asked += end.started_at is not None
        if usage is not None:
            day = end.agent, _day(row.claimed_at)
            self._used[day] = self._used.get(day, NO_USAGE).plus(usage)
        self.look_if_full()

    def look_if_full(self) -> None:
        """See ``full``."""
        if len(self.beat_events) >= MOST_BEATS:
            self.full.set()

    async def _noted(self, end: HeartbeatRunEnd) -> None:
        """It is stored."""
        self._moved([end.agent])
        if len(self.beat_events) >= self._tidy_at:
            # The log of an agent is slow where it holds thousands of beats that used something.
            self._tidy_at = len(self.beat_events) + _TIDY_EVERY
            await self.sweep_heartbeat_runs(
                now=self.beat_events[-1].finished_at + heartbeat_rules.KEPT
            )


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
