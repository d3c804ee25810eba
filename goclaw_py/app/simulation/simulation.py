"""Forecasts of jobs and heartbeats: the real services on a virtual clock (SPEC OPS-6).

Only three parts are replaced: the clock, the database (in memory), and the agents, whose runs take
the assumed time and cost, and always succeed without an alert. Checklists are the real ones, as
they are now. Nothing is sent or stored.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from goclaw_py.app.gateway_config import agent_limits, job_rules
from goclaw_py.app.progress import ProgressStep, Tell, untold
from goclaw_py.app.simulation.heartbeats import (
    ForecastHeartbeats,
    KnownHeartbeat,
    ObservedHeartbeats,
    SimulatedHeartbeatEvent,
    Totals,
    answer_ok,
    forecast_heartbeats,
    simulated_setup,
)
from goclaw_py.app.simulation.runs import SimulatedRuns
from goclaw_py.config.models import Settings
from goclaw_py.core.ids import AgentName, JobId, NodeId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.gateway.container import Container, GatewayDependencies
from goclaw_py.records import Node
from goclaw_py.runs.agent_loop import AgentLoop, AgentResult, Emit, RunRequest
from goclaw_py.runs.toolbox import NO_TOOLS, Toolbox, ToolContext
from goclaw_py.schedule.jobs.execution_models import OccurrenceEnd, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Job, Prompt, TargetKind
from goclaw_py.schedule.jobs.module import JobSetup
from goclaw_py.schedule.jobs.policy import SessionKind
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.store.memory import MemoryStore
from goclaw_py.testing.clock import LoopClock
from goclaw_py.testing.loop import VirtualLoop

MOST_RUNS = 10_000
"""A simulation ends after this many runs, which take some seconds.

Skipped occurrences of jobs count too, skipped heartbeat runs do not: see ``MOST_HEARTBEAT_RUNS``.
"""

MOST_DAYS = 3_660
_FEW_DAYS = 3
"""Up to this many days, progress is reported in hours."""
_LONGEST_S = MOST_DAYS * 86_400.0


@dataclass(frozen=True, slots=True)
class Assumed:
    """The assumed duration in seconds, and cost in US dollars if known, of a job's run."""

    seconds: float = 20.0
    usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """The input of a simulation: stored jobs and heartbeats, and assumptions about runs."""

    jobs: Sequence[Job]
    assumed: Mapping[JobId, Assumed]
    heartbeats: Sequence[KnownHeartbeat] = ()


@dataclass(frozen=True, slots=True)
class SimulatedOccurrence:
    """A simulated occurrence. ``due_at`` is by the schedule."""

    job: JobId
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime
    status: OccurrenceStatus
    why: Why | None


@dataclass(slots=True)
class ForecastJob(Totals):
    """The forecast for a job; unfinished runs do not count.

    Args:
        coalesced: The number of firings while it could not run.
    """

    job: Job
    runs: int = 0
    coalesced: int = 0


@dataclass(frozen=True, slots=True)
class Forecast:
    """The result of a simulation. ``until`` is earlier than requested after too many runs.

    Args:
        heartbeat_runs: All heartbeat runs of ``heartbeats``, in the order of their due times.
    """

    since: datetime
    until: datetime
    jobs: tuple[ForecastJob, ...]
    events: tuple[SimulatedOccurrence, ...]
    cut: bool = False
    heartbeats: tuple[ForecastHeartbeats, ...] = ()
    heartbeat_runs: tuple[SimulatedHeartbeatEvent, ...] = ()


def simulate(
    settings: Settings,
    given: SimulationInput,
    *,
    since: datetime,
    days: int,
    tell: Tell = untold,
) -> Forecast:
    """Simulate ``days`` days from ``since`` on.

    Paused and finished jobs do nothing, nor do heartbeats that are off or whose agents are not
    configured. Blocks: call it in a thread. Only errors are logged. ``tell`` is called with the
    days that are done. Raises ``ValueError`` for days out of range, and for invalid durations of
    runs.
    """
    if not 1 <= days <= MOST_DAYS:
        raise ValueError(f"days are from 1 to {MOST_DAYS}: {days}")
    taken = [one.seconds for one in given.assumed.values()]
    for seconds in (*taken, *(one.seconds for one in given.heartbeats)):
        if not 0 <= seconds < _LONGEST_S:
            raise ValueError(f"a run does not take {seconds} s")
    with _quiet(), TemporaryDirectory() as folder, asyncio.Runner(loop_factory=VirtualLoop) as loop:
        played = _Simulation(settings, given, since)
        return loop.run(played.run(days, Path(folder), tell))


@contextmanager
def _quiet() -> Iterator[None]:
    """Log only errors of this thread: warnings would be about the simulation."""
    here = threading.get_ident()

    def is_real(record: logging.LogRecord) -> bool:
        # The thread that logs, also where records do not name it.
        return threading.get_ident() != here or record.levelno >= logging.ERROR

    handlers = list(logging.getLogger().handlers)
    if logging.lastResort is not None:
        handlers.append(logging.lastResort)
    for handler in handlers:
        handler.addFilter(is_real)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_real)


class _Watched(ObservedHeartbeats):
    """Records the ends of occurrences and heartbeat runs."""

    def __init__(self, jobs: Sequence[Job], assumed: Mapping[JobId, Assumed]) -> None:
        super().__init__()
        self._assumed = assumed
        self.seen = {job.id: ForecastJob(job) for job in jobs}
        self.job_events: list[SimulatedOccurrence] = []

    async def end_occurrence(
        self, end: OccurrenceEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId | None
    ) -> None:
        # Before the end is stored: a job that is deleted with it may take its log along.
        self._note(self._db.cron.logs[end.id].scheduled_at, end)
        await super().end_occurrence(end, say, node=node)

    def _note(self, due_at: datetime, end: OccurrenceEnd) -> None:
        found = self.seen[end.job]
        found.coalesced += 0 if end.update is None else end.update.coalesced
        if end.status is OccurrenceStatus.SKIPPED:
            found.skipped[end.why or Why.BUSY] += 1
        elif end.started_at is not None:
            found.runs += 1
            found.add_run(due_at, end.started_at, end.finished_at)
            if isinstance(found.job.spec.payload, Prompt):
                found.model_calls += 1
                found.add_cost(self._assumed.get(end.job, Assumed()).usd)
        self.job_events.append(
            SimulatedOccurrence(
                end.job, due_at, end.started_at, end.finished_at, end.status, end.why
            )
        )
        self.look_if_full()

    def look_if_full(self) -> None:
        """See ``MOST_RUNS``."""
        super().look_if_full()
        if len(self.job_events) + self.heartbeat_runs_asked >= MOST_RUNS:
            self.full.set()


class _SimulatedAgent:
    """An agent whose runs take the assumed time and cost."""

    def __init__(self, heartbeats: Mapping[AgentName, KnownHeartbeat]) -> None:
        self._heartbeats = heartbeats

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Wait for the duration of a run."""
        del emit
        return await answer_ok(self._heartbeats[request.agent])

    async def warm_up(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


class _NoTools:
    def toolbox(self, here: ToolContext) -> Toolbox:
        del here
        return NO_TOOLS


class _Simulation:
    def __init__(
        self,
        settings: Settings,
        given: SimulationInput,
        since: datetime,
    ) -> None:
        self._settings = settings
        self._jobs = given.jobs
        self._assumed = given.assumed
        self._heartbeats = given.heartbeats
        self._setup = simulated_setup(settings, given.heartbeats)
        self._since = since

    async def run(self, days: int, folder: Path, tell: Tell = untold) -> Forecast:
        """Simulate, with ``folder`` as workspace."""
        store = _Watched(self._jobs, self._assumed)
        clock = LoopClock(self._since)
        until = self._since + timedelta(days=days)
        node = Node(NodeId("simulation"), "", 0, "", self._since, until + timedelta(days=1))
        await store.join(node)
        for job in self._jobs:
            await store.add_job(self._without_effects(job), most=len(self._jobs) + 1)
        for one in self._heartbeats:
            if one.agent in self._setup.plans:
                store.enter_heartbeat(one, self._since)
        container = self._container(store, clock, node.id, folder)
        for loop in (container.job_module.loop, container.heartbeats.loop):
            loop.look_s = timedelta(days=1).total_seconds()
        store.on_notice(lambda _: container.look_for_due())
        await _until_full(container, store, days, tell)
        return self._forecast(store, min(clock.now(), until))

    def _without_effects(self, job: Job) -> Job:
        """Return a job that sends nothing and takes no work items."""
        spec = job.spec
        target = spec.target
        kind = spec.policy.get("session", job_rules(self._settings).base.session)
        if kind != SessionKind.MAIN:
            # Nothing is sent, so no chat must be looked up.
            target = TargetKind.NONE
        # Nobody reads their log, and to keep it costs as much as to run them.
        policy = {**spec.policy, "history_keep": 1}
        spec = replace(spec, target=target, source="", policy=policy)
        return replace(job, spec=spec, running=None)

    def _takes(self, job: Job) -> float:
        return self._assumed.get(job.id, Assumed()).seconds

    def _container(
        self, store: MemoryStore, clock: LoopClock, node: NodeId, folder: Path
    ) -> Container:
        settings = self._settings
        names = [AgentName(name) for name in settings.agents]
        names += [job.spec.agent for job in self._jobs if job.spec.agent not in names]
        heartbeat_gateway = {one.agent: one for one in self._heartbeats}
        pretender: AgentLoop = _SimulatedAgent(heartbeat_gateway)
        limits = agent_limits(settings)
        rules = replace(job_rules(settings), enabled=True)
        deps = GatewayDependencies(
            channels={},
            rules={},
            agents=dict.fromkeys(names, pretender),
            workspaces=dict.fromkeys(names, folder),
            context_windows=dict.fromkeys(names, 1_000_000),
            tool_factory=_NoTools(),
            jobs=JobSetup(
                rules=rules,
                limits=limits,
                runs=partial(SimulatedRuns, takes=self._takes),
            ),
            heartbeats=self._setup,
        )
        scheduler = RunScheduler(settings.lane_sizes, agents=limits)
        return Container(store, clock, scheduler, deps, lambda: node)

    def _forecast(self, store: _Watched, until: datetime) -> Forecast:
        # Files are read in threads: what is due together may end in any order.
        heartbeat_runs = sorted(
            store.heartbeat_events,
            key=lambda heartbeat_run: (heartbeat_run.due_at, heartbeat_run.agent),
        )
        return Forecast(
            self._since,
            until,
            tuple(store.seen.values()),
            tuple(store.job_events),
            store.full.is_set(),
            forecast_heartbeats(self._setup, self._heartbeats, heartbeat_runs),
            tuple(heartbeat_runs),
        )


async def _until_full(container: Container, store: _Watched, days: int, tell: Tell) -> None:
    """Run for some days, or until there are enough runs."""
    running = [
        asyncio.create_task(container.job_module.loop.run()),
        asyncio.create_task(container.heartbeats.run()),
        asyncio.create_task(_tell(tell, days)),
    ]
    limit_s = timedelta(days=days).total_seconds()
    full = asyncio.create_task(store.full.wait())
    try:
        await asyncio.wait({full, *running}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Also at Ctrl-C: otherwise the end of each run would start the next one.
        container.job_module.loop.close()
        container.heartbeats.loop.close()
        container.dispatcher.interrupt()
        for task in (*running, full):
            task.cancel()
        await asyncio.wait({*running, full})
    for task in running:
        if not task.cancelled():
            task.result()


async def _tell(tell: Tell, days: int) -> None:
    """Report the progress until cancelled."""
    for hour in range(24 * days + 1):
        if hour % 24 == 0 or days <= _FEW_DAYS:
            step = (hour, 24 * days, "hours") if days <= _FEW_DAYS else (hour // 24, days, "days")
            tell(ProgressStep("simulating", *step))
        await asyncio.sleep(timedelta(hours=1).total_seconds())
    await asyncio.get_running_loop().create_future()
