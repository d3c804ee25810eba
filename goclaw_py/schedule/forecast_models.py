"""What a forecast gets and returns (SPEC OPS-6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import AgentName, JobId, LaneName
from goclaw_py.core.run_events import Usage
from goclaw_py.core.values import value
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatConfig, HeartbeatRunStatus, Skip
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Job, Prompt
from goclaw_py.schedule.jobs.policy import JobPolicy

ASKS_ONCE: Final = Usage(requests=1)
"""The assumed usage of a heartbeat run without history."""


@dataclass(frozen=True, slots=True)
class ForecastRules:
    """What the settings say.

    Args:
        base: The policy of jobs.
        lanes: The sizes of lanes.
        limits: The number of concurrent runs of an agent, where the settings limit it.
        policies: The heartbeat policies of agents; others have no heartbeats.
        plans: Their heartbeats as configured.
        heartbeat_timeout_s: The timeout of a heartbeat run; None: none.
    """

    base: JobPolicy
    lanes: Mapping[LaneName, int]
    limits: Mapping[AgentName, int] = field(default_factory=dict)
    policies: Mapping[AgentName, HeartbeatPolicy] = field(default_factory=dict)
    plans: Mapping[AgentName, HeartbeatConfig] = field(default_factory=dict)
    heartbeat_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Assumed:
    """The assumed duration in seconds, and cost in US dollars if known, of a job's run."""

    seconds: float = 20.0
    usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class KnownHeartbeat:
    """A heartbeat, with assumptions about its runs that ask the agent.

    Args:
        checklist: The checklist, or why it cannot be read.
        events: The waiting events.
        today: The usage of its runs on this UTC day; None: none.
        seconds: The duration of a run.
        usage: The usage of a run.
    """

    heartbeat: Heartbeat
    checklist: Checklist | Skip = Skip.NO_FILE
    events: tuple[str, ...] = ()
    today: Usage | None = None
    seconds: float = 20.0
    usage: Usage = ASKS_ONCE

    @property
    def agent(self) -> AgentName:
        """The agent of the heartbeat."""
        return self.heartbeat.agent


@dataclass(frozen=True, slots=True)
class ForecastInput:
    """The input of a forecast: stored jobs and heartbeats, and assumptions about runs."""

    jobs: Sequence[Job]
    assumed: Mapping[JobId, Assumed]
    heartbeats: Sequence[KnownHeartbeat] = ()


@value(frozen=True, slots=True)
class ForecastOccurrence:
    """A future occurrence. ``started_at`` is None if it is skipped."""

    job: JobId
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime
    status: OccurrenceStatus
    why: Why | None


@value(frozen=True, slots=True)
class ForecastHeartbeatRun:
    """A future heartbeat run.

    Args:
        due_at: When it is due by the grid, or requested.
        started_at: None: the agent is not asked.
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
class ForecastJob(Totals):
    """The forecast for a job; unfinished runs do not count.

    Args:
        coalesced: The number of firings while it could not run.
    """

    job: Job
    runs: int = 0
    coalesced: int = 0

    def count(self, one: ForecastOccurrence, usd: Decimal | None) -> None:
        """Count an occurrence, whose run costs this."""
        if one.status is OccurrenceStatus.SKIPPED:
            self.skipped[one.why or Why.BUSY] += 1
        elif one.started_at is not None:
            self.runs += 1
            self.add_run(one.due_at, one.started_at, one.finished_at)
            if isinstance(self.job.spec.payload, Prompt):
                self.model_calls += 1
                self.add_cost(usd)


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

    def count(self, one: ForecastHeartbeatRun) -> None:
        """Count a run."""
        self.heartbeat_runs += 1
        if one.skip is not None:
            self.skipped[one.skip] += 1
        self.failed += one.status is HeartbeatRunStatus.FAILED
        self.model_calls += one.model_calls
        self.add_cost(one.usd)
        if one.started_at is not None:
            self.add_run(one.due_at, one.started_at, one.finished_at)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The result of a forecast. ``until`` is earlier than requested after too many runs.

    Args:
        heartbeat_runs: All heartbeat runs of ``heartbeats``, in the order of their due times.
    """

    since: datetime
    until: datetime
    jobs: tuple[ForecastJob, ...]
    events: tuple[ForecastOccurrence, ...]
    cut: bool = False
    heartbeats: tuple[ForecastHeartbeats, ...] = ()
    heartbeat_runs: tuple[ForecastHeartbeatRun, ...] = ()
