"""Occurrences in a line, for tests of what is decided about them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from goclaw_py.core.ids import JobId, OccurrenceId, Owner
from goclaw_py.core.targets import Maker
from goclaw_py.schedule.jobs.decisions import Finish, settled
from goclaw_py.schedule.jobs.execution_models import JobUpdate, OccurrenceClaim
from goclaw_py.schedule.jobs.models import Job, JobSpec, Prompt
from goclaw_py.schedule.jobs.policy import JobPolicy
from goclaw_py.schedule.jobs.schedule import At, Every, Schedule

NOON = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)
PLAIN = JobPolicy()
HOURLY = Every(timedelta(hours=1), NOON)
"""Its grid is that of the full hours."""
ONCE = At(NOON)


def after_s(seconds: float) -> datetime:
    """So long after noon, when the job was due."""
    return NOON + timedelta(seconds=seconds)


def a_job(schedule: Schedule = HOURLY, maker: Maker = Maker.OPERATOR, **facts: Any) -> Job:
    """A job that is due at noon. Facts of its definition and of its state may be mixed."""
    of_spec = {key: facts.pop(key) for key in list(facts) if key in JobSpec.__dataclass_fields__}
    spec = JobSpec("water", schedule, "UTC", Prompt("water them"))
    job = Job(JobId("j"), Owner("o"), maker, replace(spec, **of_spec), NOON, NOON)
    return replace(job, **{"next_run_at": NOON, **facts})


def claimed(job: Job | None = None, **facts: Any) -> OccurrenceClaim:
    """Its occurrence at noon, claimed in time unless told otherwise."""
    one = OccurrenceClaim(OccurrenceId("o1"), job or a_job(), due_at=NOON, claimed_at=NOON)
    return replace(one, **facts)


def update(
    job: Job, end: Finish, base: JobPolicy = PLAIN, *, took_s: float = 60.0, **facts: Any
) -> JobUpdate:
    """What an end makes of the job whose run began at noon and took so long."""
    one = claimed(job, **facts)
    made = settled(one, base, end, started_at=NOON, now=after_s(took_s))
    assert made is not None
    return made
