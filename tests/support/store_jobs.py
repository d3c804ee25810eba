"""Short ways to say which jobs tests put into a store, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

from goclaw_py.core.ids import CRON_LANE, JobId, NodeId, OccurrenceId, Owner, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.targets import Maker
from goclaw_py.records import NewRun, RunEnd
from goclaw_py.schedule.jobs.embedded.job_scheduler import JobStorage
from goclaw_py.schedule.jobs.execution_models import (
    JobUpdate,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
)
from goclaw_py.schedule.jobs.models import Job, JobSpec, Prompt
from goclaw_py.schedule.jobs.schedule import Every
from tests.support.stores import AGENT, T0, A, at

OWNER = Owner("telegram:direct:100")
HOURLY = Every(timedelta(hours=1))
_numbers = count(1)


def a_spec(slug: str) -> JobSpec:
    return JobSpec(slug, HOURLY, "Europe/Berlin", Prompt("Say hello."), agent=AGENT)


def a_job(
    slug: str, *, due_at: datetime | None = T0, owner: Owner = OWNER, spec: JobSpec | None = None
) -> Job:
    """An active job; its id is ``job-<slug>``."""
    return Job(
        JobId(f"job-{slug}"), owner, Maker.PERSON, spec or a_spec(slug), T0, T0, next_run_at=due_at
    )


async def added(store: JobStorage, *jobs: Job) -> Sequence[Job]:
    for job in jobs:
        await store.add_job(job, most=1000)
    return jobs


def fresh(number: int) -> list[OccurrenceId]:
    """Ids that no other call gives."""
    return [OccurrenceId(f"occurrence {next(_numbers):06}") for _ in range(number)]


async def claim(
    store: JobStorage, *, node: NodeId = A, now: datetime = T0, limit: int = 100
) -> list[OccurrenceClaim]:
    return await store.claim_due(node, now=now, ids=fresh(limit))


async def claim_one(store: JobStorage, *, node: NodeId = A, now: datetime = T0) -> OccurrenceClaim:
    (claimed,) = await claim(store, node=node, now=now)
    return claimed


async def claim_manual(
    store: JobStorage, job: Job, *, now: datetime = T0
) -> OccurrenceClaim | None:
    (occurrence,) = fresh(1)
    return await store.claim_now(A, job.id, now=now, occurrence=occurrence)


def ended(
    claimed: OccurrenceClaim,
    status: OccurrenceStatus = OccurrenceStatus.OK,
    *,
    now: datetime | None = None,
    update: JobUpdate | None = None,
) -> OccurrenceEnd:
    """An end that lets the job run again an hour after it was due; one by hand changes nothing."""
    again = JobUpdate(claimed.due_at + timedelta(hours=1), ran=True)
    return OccurrenceEnd(
        claimed.id,
        claimed.job.id,
        claimed.job.revision,
        status,
        now or claimed.claimed_at,
        None if claimed.manual else update or again,
        started_at=claimed.claimed_at,
    )


def run_for(name: str, claimed: OccurrenceClaim, *, started_at: datetime = T0) -> NewRun:
    return NewRun(
        id=RunId(name),
        session=SessionKey(f"agent:default:cron:{claimed.job.id}"),
        agent=AGENT,
        trigger=Trigger.CRON,
        lane=CRON_LANE,
        inbox=(),
        target=None,
        started_at=started_at,
        occurrence=claimed.id,
    )


def run_end(
    name: str, last: OccurrenceEnd | None = None, outcome: Outcome = Outcome.COMPLETED
) -> RunEnd:
    return RunEnd(RunId(name), outcome, at(9), occurrence=last)


async def with_id(store: JobStorage, job: JobId) -> Job | None:
    """A job; no slug may be the beginning of its id."""
    return next((found for found in await store.find_jobs(job) if found.id == job), None)


async def stored_job(store: JobStorage, job: Job) -> Job:
    found = await with_id(store, job.id)
    assert found is not None
    return found


def renamed(job: Job, slug: str) -> Job:
    return replace(job, spec=replace(job.spec, slug=slug))


async def by_hand(store: JobStorage, job: Job, *, now: datetime = T0) -> OccurrenceClaim:
    claimed = await claim_manual(store, job, now=now)
    assert claimed is not None
    return claimed


async def claimed_job(store: JobStorage, job: Job | None = None) -> OccurrenceClaim:
    """One that is due, added and claimed by node A."""
    await added(store, job or a_job("tea"))
    return await claim_one(store)


async def row_of(store: JobStorage, claimed: OccurrenceClaim) -> LoggedOccurrence:
    found = await store.logged(claimed.id)
    assert found is not None
    return found
