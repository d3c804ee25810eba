"""What a simulation begins with: jobs and heartbeats as they stand, and what they took so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import typer

from goclaw_py.heartbeat.models import Beat, Heartbeat
from goclaw_py.model.errors import UnknownAgent, UnknownJob
from goclaw_py.model.ids import AgentName
from goclaw_py.model.run_events import Usage

if TYPE_CHECKING:
    from goclaw_py.app.simulation.heartbeats import KnownHeartbeat
    from goclaw_py.app.simulation.simulation import Assumed, Given
    from goclaw_py.jobs.models import Job
    from goclaw_py.ports.control import Control
    from goclaw_py.ports.heartbeat import HeartbeatDesk
    from goclaw_py.ports.jobs import JobDesk

_PAST = timedelta(days=30)
_MOST_JOBS = 1000
_MOST_BEATS = 1000


@dataclass(frozen=True, slots=True)
class Guess:
    """How long a run takes of which none is known, and what it costs."""

    seconds: float
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Known:
    """All that is simulated, as it is at ``now``."""

    given: Given
    now: datetime


async def known(control: Control, agents: Sequence[str], guess: Guess) -> Known:
    """The jobs, the heartbeats of these agents, and what their runs took so far."""
    from goclaw_py.app.simulation.simulation import Given  # noqa: PLC0415
    from goclaw_py.ports.jobs import Asker  # noqa: PLC0415
    from goclaw_py.ports.store import JobQuery  # noqa: PLC0415

    desk, by = control.jobs, Asker(owner=None)
    page = await desk.search(JobQuery(limit=_MOST_JOBS), by)
    assumed = {job.id: await _taken(desk, job, guess) for job in page.jobs}
    if page.total > len(page.jobs):
        typer.echo(f"only {len(page.jobs)} of {page.total} jobs are looked at", err=True)
    if page.jobs and not desk.enabled:
        typer.echo("jobs are switched off here; this is what they would do", err=True)
    now = desk.now()
    hearts = [await _heartbeat(control.heartbeats, AgentName(a), guess, now) for a in agents]
    return Known(Given(page.jobs, assumed, hearts), now)


async def _taken(desk: JobDesk, job: Job, guess: Guess) -> Assumed:
    from goclaw_py.app.simulation.simulation import Assumed  # noqa: PLC0415
    from goclaw_py.ports.jobs import Asker  # noqa: PLC0415

    try:
        stats = await desk.stats(job.id, Asker(owner=None), since=desk.now() - _PAST)
    except UnknownJob:
        # Deleted a moment ago.
        return Assumed(guess.seconds, guess.usd)
    took = guess.seconds if stats.mean_s is None else stats.mean_s
    cost = guess.usd
    if stats.cost_usd is not None and stats.runs:
        cost = stats.cost_usd / stats.runs
    return Assumed(took, cost)


async def _heartbeat(
    desk: HeartbeatDesk, agent: AgentName, guess: Guess, now: datetime
) -> KnownHeartbeat:
    from goclaw_py.app.simulation.heartbeats import KnownHeartbeat  # noqa: PLC0415

    try:
        view = await desk.view(agent)
        events = await desk.events(agent) if view.events else []
        log = [] if view.last is None else await desk.log(agent, limit=_MOST_BEATS)
    except UnknownAgent:
        # The gateway was started before the settings had this agent.
        seconds, usage = _beat_taken([], guess)
        return KnownHeartbeat(Heartbeat(agent, None), seconds=seconds, usage=usage)
    seconds, usage = _beat_taken([beat for beat in log if beat.claimed_at >= now - _PAST], guess)
    texts = tuple(event.text for event in events)
    return KnownHeartbeat(view.heartbeat, texts, view.today, seconds, usage)


def _beat_taken(log: Sequence[Beat], guess: Guess) -> tuple[float, Usage]:
    """How long a beat takes that comes to its agent, and what it uses, on average."""
    took = [
        (beat.finished_at - beat.started_at).total_seconds()
        for beat in log
        if beat.started_at is not None and beat.finished_at is not None
    ]
    used = [beat.usage for beat in log if beat.usage is not None]
    costs = [usage.cost_usd for usage in used if usage.cost_usd is not None]
    seconds = sum(took) / len(took) if took else guess.seconds
    tokens = sum(usage.tokens for usage in used) // len(used) if used else 0
    cost = sum(costs, Decimal(0)) / len(costs) if costs else guess.usd
    return seconds, Usage(requests=1, input_tokens=tokens, cost_usd=cost)
