"""The input of a forecast: current jobs and heartbeats, with averages of their past runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from goclaw_py.app.progress import ProgressStep
from goclaw_py.cli.progress import report, say
from goclaw_py.core.errors import UnknownAgent, UnknownJob
from goclaw_py.core.ids import AgentName, JobId
from goclaw_py.core.run_events import Usage
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import JobQuery
from goclaw_py.schedule.forecast_models import Assumed, ForecastInput, KnownHeartbeat
from goclaw_py.schedule.heartbeat.checklist_files import ChecklistFiles, ChecklistProblem
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatRun
from goclaw_py.schedule.jobs.models import Job

if TYPE_CHECKING:
    from goclaw_py.config.models import Settings
    from goclaw_py.operations.control import Control
    from goclaw_py.operations.heartbeats.operations import HeartbeatService

_PAST = timedelta(days=30)
_MOST_JOBS = 1000
_MOST_HEARTBEAT_RUNS = 1000


@dataclass(frozen=True, slots=True)
class Guess:
    """Assumed duration and cost of a run, where no past run is stored."""

    seconds: float
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class SimulationState:
    """The input of the forecast, as of ``now``."""

    given: ForecastInput
    now: datetime


async def known(control: Control, settings: Settings, guess: Guess) -> SimulationState:
    """Read the jobs, the heartbeats of the settings, and averages of their past runs.

    Checklists are those of this machine.
    """
    service, by = control.jobs, Requester(owner=None)
    page = await service.search(JobQuery(limit=_MOST_JOBS), by)
    jobs_here = await service.scheduler()
    assumed: dict[JobId, Assumed] = {}
    for number, job in enumerate(page.jobs):
        report(ProgressStep("reading past runs", number, len(page.jobs), "jobs"))
        assumed[job.id] = await _job_duration(service, job, guess, jobs_here.now)
    if page.total > len(page.jobs):
        say(f"simulating only {len(page.jobs)} of {page.total} jobs")
    if page.jobs and not jobs_here.enabled:
        say("jobs are turned off (scheduler.enabled = false); simulating as if enabled")
    now = jobs_here.now
    agents = list(map(AgentName, settings.agents))
    files = ChecklistFiles({agent: settings.workspace(agent) for agent in agents})
    hearts = []
    for agent in agents:
        found = await files.read(agent)
        checklist = found.skip if isinstance(found, ChecklistProblem) else found
        heart = await _heartbeat(control.heartbeats, agent, guess, now)
        hearts.append(replace(heart, checklist=checklist))
    return SimulationState(ForecastInput(page.jobs, assumed, hearts), now)


async def _job_duration(service: JobService, job: Job, guess: Guess, now: datetime) -> Assumed:

    try:
        stats = await service.stats(job.id, Requester(owner=None), since=now - _PAST)
    except UnknownJob:
        # The job was deleted meanwhile.
        return Assumed(guess.seconds, guess.usd)
    took = guess.seconds if stats.mean_s is None else stats.mean_s
    cost = guess.usd
    if stats.cost_usd is not None and stats.runs:
        cost = stats.cost_usd / stats.runs
    return Assumed(took, cost)


async def _heartbeat(
    service: HeartbeatService, agent: AgentName, guess: Guess, now: datetime
) -> KnownHeartbeat:

    try:
        view = await service.view(agent)
        events = await service.events(agent) if view.events else []
        log = [] if view.last is None else await service.log(agent, limit=_MOST_HEARTBEAT_RUNS)
    except UnknownAgent:
        # The agent was added to the settings after the gateway started.
        seconds, usage = _heartbeat_run_duration([], guess)
        return KnownHeartbeat(Heartbeat(agent, None), seconds=seconds, usage=usage)
    seconds, usage = _heartbeat_run_duration(
        [heartbeat_run for heartbeat_run in log if heartbeat_run.claimed_at >= now - _PAST], guess
    )
    texts = tuple(event.text for event in events)
    return KnownHeartbeat(
        view.heartbeat, events=texts, today=view.today, seconds=seconds, usage=usage
    )


def _heartbeat_run_duration(log: Sequence[HeartbeatRun], guess: Guess) -> tuple[float, Usage]:
    """Return the average duration and usage of heartbeat runs that asked the model."""
    took = [
        (heartbeat_run.finished_at - heartbeat_run.started_at).total_seconds()
        for heartbeat_run in log
        if heartbeat_run.started_at is not None and heartbeat_run.finished_at is not None
    ]
    used = [heartbeat_run.usage for heartbeat_run in log if heartbeat_run.usage is not None]
    costs = [usage.cost_usd for usage in used if usage.cost_usd is not None]
    seconds = sum(took) / len(took) if took else guess.seconds
    tokens = sum(usage.tokens for usage in used) // len(used) if used else 0
    cost = sum(costs, Decimal(0)) / len(costs) if costs else guess.usd
    return seconds, Usage(requests=1, input_tokens=tokens, cost_usd=cost)
