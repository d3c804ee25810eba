"""The heartbeats of a simulation: their state, and the results of their runs (SPEC OPS-6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum

from goclaw_py.app.gateway_config import heartbeat_setup
from goclaw_py.chat.outbound.ok_token import HEARTBEAT_OK
from goclaw_py.config.models import Settings
from goclaw_py.core.ids import AgentName, NodeId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.run_events import NO_USAGE, Usage
from goclaw_py.records import RunEnd
from goclaw_py.runs.agent_loop import AgentResult
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatRunEnd, HeartbeatRunStatus, Skip
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.store import heartbeat_rules
from goclaw_py.store.memory import MemoryStore

MOST_HEARTBEAT_RUNS = 100_000
"""A simulation ends after this many heartbeat runs, even if most are skipped."""

ASKS_ONCE = Usage(requests=1)
"""The assumed usage of a heartbeat run without history."""

_TIDY_EVERY = 500


@dataclass(frozen=True, slots=True)
class KnownHeartbeat:
    """A heartbeat, with assumptions about its runs that ask the agent.

    Args:
        events: The waiting events.
        today: The usage of its runs on this UTC day; None: none.
        seconds: The duration of a run.
        usage: The usage of a run.
    """

    heartbeat: Heartbeat
    events: tuple[str, ...] = ()
    today: Usage | None = None
    seconds: float = 20.0
    usage: Usage = ASKS_ONCE

    @property
    def agent(self) -> AgentName:
        """The agent of the heartbeat."""
        return self.heartbeat.agent


@dataclass(frozen=True, slots=True)
class SimulatedHeartbeatEvent:
    """A simulated heartbeat run.

    Args:
        due_at: When it was due by the grid, or requested.
        started_at: None: the agent was not asked.
        model_calls: The number of runs that ask a model.
    """

    agent: AgentName
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime
    status: HeartbeatRunStatus
    skip: Skip | None = None
    model_calls: int = 0
    usd: Decimal | None = None


@dataclass(slots=True, kw_only=True)
class Totals:
    """The sums of the runs of a job or a heartbeat.

    Args:
        skipped: The number of skipped runs, by reason.
        model_calls: The number of runs that ask a model.
        usd: None if no cost is known.
        waited_s: The longest time from due to start.
    """

    skipped: Counter[StrEnum] = field(default_factory=Counter)
    model_calls: int = 0
    usd: Decimal | None = None
    worked_s: float = 0.0
    waited_s: float = 0.0

    def add_run(self, due_at: datetime, started_at: datetime, finished_at: datetime) -> None:
        """Add the times of a run."""
        self.worked_s += (finished_at - started_at).total_seconds()
        self.waited_s = max(self.waited_s, (started_at - due_at).total_seconds())

    def add_cost(self, usd: Decimal | None) -> None:
        """Add the cost of a run, if it is known."""
        if usd is not None:
            self.usd = (self.usd or Decimal(0)) + usd


@dataclass(slots=True)
class ForecastHeartbeats(Totals):
    """The forecast for the heartbeat of an agent; unfinished runs do not count.

    Args:
        is_on: Whether the heartbeat is on.
        heartbeat_runs: The number of runs, including skipped ones.
        failed: The number of runs that asked a model and failed.
    """

    agent: AgentName
    is_on: bool = True
    heartbeat_runs: int = 0
    failed: int = 0

    def count(self, heartbeat_run: SimulatedHeartbeatEvent) -> None:
        """Count a run."""
        self.heartbeat_runs += 1
        if heartbeat_run.skip is not None:
            self.skipped[heartbeat_run.skip] += 1
        self.failed += heartbeat_run.status is HeartbeatRunStatus.FAILED
        self.model_calls += heartbeat_run.model_calls
        self.add_cost(heartbeat_run.usd)
        if heartbeat_run.started_at is not None:
            self.add_run(heartbeat_run.due_at, heartbeat_run.started_at, heartbeat_run.finished_at)


def simulated_setup(settings: Settings, known: Iterable[KnownHeartbeat]) -> HeartbeatSetup:
    """Return the settings of the given heartbeats, with the real checklists."""
    setup = heartbeat_setup(settings)
    names = {one.agent for one in known} & setup.policies.keys()
    return replace(
        setup,
        policies={agent: one for agent, one in setup.policies.items() if agent in names},
        plans={agent: one for agent, one in setup.plans.items() if agent in names},
    )


async def answer_ok(known: KnownHeartbeat) -> AgentResult:
    """Answer a heartbeat run after its assumed duration, at its assumed cost."""
    await asyncio.sleep(known.seconds)
    return AgentResult(HEARTBEAT_OK, usage=known.usage)


def forecast_heartbeats(
    setup: HeartbeatSetup,
    known: Iterable[KnownHeartbeat],
    heartbeat_runs: Iterable[SimulatedHeartbeatEvent],
) -> tuple[ForecastHeartbeats, ...]:
    """Return the forecast of each heartbeat, in the given order."""
    found = {}
    for one in known:
        if (plan := setup.plans.get(one.agent)) is not None:
            heart = replace(one.heartbeat, interval=plan.interval)
            found[one.agent] = ForecastHeartbeats(one.agent, heart.is_on)
    for heartbeat_run in heartbeat_runs:
        found[heartbeat_run.agent].count(heartbeat_run)
    return tuple(found.values())


class ObservedHeartbeats(MemoryStore):
    """A store that records heartbeat runs, and keeps few of their rows."""

    def __init__(self) -> None:
        super().__init__()
        self.heartbeat_events: list[SimulatedHeartbeatEvent] = []
        self.heartbeat_runs_asked = 0
        """The number of heartbeat runs that asked their agents."""
        self.full = asyncio.Event()
        """Set when there are more runs than can be shown."""
        self._used: dict[tuple[AgentName, date], Usage] = {}
        self._tidy_at = _TIDY_EVERY

    def enter_heartbeat(self, known: KnownHeartbeat, now: datetime) -> None:
        """Add a heartbeat as it is stored, without its run in progress."""
        agent = known.agent
        self._db.heartbeat_runs.heartbeats[agent] = replace(
            known.heartbeat, heartbeat_run=None, node=None
        )
        for text in known.events:
            self._db.heartbeat_runs.enter_event(agent, text, now)
        if known.today is not None:
            self._used[agent, _day(now)] = known.today

    # ------------------------------------------------------------------ results

    async def heartbeat_usage(self, agent: AgentName, *, since: datetime) -> Usage | None:
        """Return the usage of the UTC day that begins at ``since``, the only period used here."""
        return self._used.get((agent, _day(since)))

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """Record the heartbeat run of a run."""
        if end.heartbeat_run is not None:
            self._note_heartbeat_run(end.heartbeat_run, end.usage)
        await super().finish_run(end, node=node)
        await self._tidy()

    async def end_heartbeat_run(
        self, end: HeartbeatRunEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId
    ) -> None:
        """Record the heartbeat run."""
        self._note_heartbeat_run(end)
        await super().end_heartbeat_run(end, say, node=node)
        await self._tidy()

    def _note_heartbeat_run(self, end: HeartbeatRunEnd, usage: Usage | None = None) -> None:
        row = self._db.heartbeat_runs.rows[end.id]
        if row.finished_at is not None:
            return
        self.heartbeat_events.append(
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
        self.heartbeat_runs_asked += end.started_at is not None
        if usage is not None:
            day = end.agent, _day(row.claimed_at)
            self._used[day] = self._used.get(day, NO_USAGE).plus(usage)
        self.look_if_full()

    def look_if_full(self) -> None:
        """See ``full``."""
        if len(self.heartbeat_events) >= MOST_HEARTBEAT_RUNS:
            self.full.set()

    async def _tidy(self) -> None:
        if len(self.heartbeat_events) >= self._tidy_at:
            # The log of an agent is slow where it holds thousands of runs that used something.
            self._tidy_at = len(self.heartbeat_events) + _TIDY_EVERY
            later = self.heartbeat_events[-1].finished_at + heartbeat_rules.KEPT
            while await self.sweep_heartbeat_runs(now=later):
                pass


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
