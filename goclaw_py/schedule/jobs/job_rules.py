"""Rules about jobs that all stores share.

PostgreSQL follows those of the second half in SQL; the contract tests compare the stores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from math import ceil
from typing import Final

from goclaw_py.core.ids import Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import owner_of
from goclaw_py.records import MOST_COUNTED, JobOrder, JobPage, JobQuery, OutboxState
from goclaw_py.schedule.jobs.execution_models import (
    ENDED_BADLY,
    JobStats,
    JobUpdate,
    LoggedOccurrence,
    OccurrenceEnd,
    OccurrenceStatus,
)
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.jobs.schedule import At, Every, schedule_json

COUNTED: Final = (JobState.ACTIVE, JobState.PAUSED)
"""The states that count for an owner's number of jobs (SPEC CRON-15)."""

FEWEST: Final = 4
"""The shortest prefix of an id that finds a job."""

TIMED: Final = (
    OccurrenceStatus.OK,
    OccurrenceStatus.FAILED,
    OccurrenceStatus.TIMED_OUT,
    OccurrenceStatus.CANCELLED,
)
"""Outcomes with a known end: the end of a lost run is unknown."""


KEPT: Final = timedelta(days=90)
"""How long finished occurrences and finished jobs are kept (SPEC DB-5)."""

DIED_WITHIN: Final = timedelta(hours=24)
"""An occurrence becomes undelivered only if its message failed within this time."""

MOST_UNTOLD: Final = 100
"""The number of undelivered results that are reported at once."""

MOST_SWEPT: Final = 250
"""The number of occurrences, and of jobs, that one sweep deletes."""

_SLUG_CHARS: Final = 64
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_NOT_YET: Final = datetime.min.replace(tzinfo=UTC)


def edited(known: Job, job: Job) -> Job:
    """Return the stored job with what an edit may change."""
    return replace(
        known,
        maker=job.maker,
        spec=job.spec,
        updated_at=job.updated_at,
        state=job.state,
        failures=job.failures,
        next_run_at=job.next_run_at,
        chained=job.chained,
        revision=known.revision + 1,
    )


def comes_to_count(before: JobState, after: JobState) -> bool:
    """Return whether this change makes a job count for its owner's number of jobs."""
    return after in COUNTED and before not in COUNTED


def words(slug: str, name: str) -> str:
    """Return the text in which a part of a name or slug is searched, ignoring case."""
    return f"{slug}\n{name}".casefold()


def free_slug(slug: str, used: Collection[str]) -> str:
    """Return the slug, with the smallest number appended that makes it free."""
    number, found = 1, slug
    while found in used:
        number += 1
        tail = f"-{number}"
        found = slug[: _SLUG_CHARS - len(tail)] + tail
    return found


def moved_owners(old: Target, new: str) -> dict[Owner, Owner]:
    """Return the new owners of a chat's jobs when it gets the id ``new``, by old owner."""
    return {
        owner_of(old, peer): owner_of(replace(old, chat=new), peer)
        for peer in (PeerKind.DIRECT, PeerKind.GROUP)
    }


def retargeted(job: Job, old: Target, new: str) -> Job:
    """Return a job with its target moved to the new chat, if it was the old one."""
    target = job.spec.target
    if not isinstance(target, Target) or target.whole_chat != old:
        return job
    return replace(job, spec=replace(job.spec, target=replace(target, chat=new)))


def delivery(states: Sequence[OutboxState]) -> str:
    """Return the delivery state of an occurrence's messages: see ``LoggedOccurrence.delivery``."""
    seen = Counter(states)
    if seen[OutboxState.WAITING] or seen[OutboxState.SENDING]:
        return "waiting"
    if seen[OutboxState.FAILED] or seen[OutboxState.DROPPED]:
        return "failed"
    return "sent" if seen else ""


# ---------------------------------------------------------------------------- finding


def matches(job: Job, query: JobQuery) -> bool:
    """Return whether a query selects a job."""
    target = job.spec.target
    chat = target.whole_chat if isinstance(target, Target) else None
    wanted: Iterable[tuple[object, object]] = (
        (query.owner, job.owner),
        (query.agent, job.spec.agent),
        (query.notify, job.spec.notify),
        (query.target and query.target.whole_chat, chat),
    )
    due_at, due_before = job.next_run_at, query.next_run_before
    return (
        all(asked is None or asked == has for asked, has in wanted)
        and query.name.casefold() in words(job.spec.slug, job.spec.name)
        and (not query.states or job.state in query.states)
        and (not query.kinds or schedule_json(job.spec.schedule)["kind"] in query.kinds)
        and (query.created_after is None or job.created_at > query.created_after)
        and (query.created_before is None or job.created_at < query.created_before)
        and (due_before is None or (due_at is not None and due_at < due_before))
    )


def page(jobs: Iterable[Job], query: JobQuery) -> JobPage:
    """Return the page of the jobs that a query selects."""
    found = [job for job in jobs if matches(job, query)]
    found.sort(key=lambda job: (job.next_run_at or _NEVER, job.created_at, job.id))
    if query.order is JobOrder.NAME:
        found.sort(key=lambda job: job.spec.title.casefold())
    elif query.order is JobOrder.LAST_RUN:
        found.sort(key=lambda job: job.last_run_at or _NOT_YET, reverse=True)
    there = found[query.offset : query.offset + query.limit + 1]
    total = min(len(found), MOST_COUNTED)
    if there:
        total = max(total, query.offset + len(there))
    return JobPage(tuple(there[: query.limit]), total)


def stats(rows: Iterable[LoggedOccurrence]) -> JobStats:
    """Return the statistics of occurrences; those that have not ended do not count."""
    over = [row for row in rows if row.finished_at is not None]
    ran = [row for row in over if row.status is not OccurrenceStatus.SKIPPED]
    lasted = sorted(
        max((row.finished_at - row.started_at) / timedelta(seconds=1), 0.0)
        for row in ran
        if row.status in TIMED and row.started_at and row.finished_at
    )
    costs = [row.usage.cost_usd for row in over if row.usage]
    known = [cost for cost in costs if cost is not None]
    return JobStats(
        runs=len(ran),
        ok=sum(row.status is OccurrenceStatus.OK for row in ran),
        failed=sum(row.status in ENDED_BADLY for row in ran),
        skipped=len(over) - len(ran),
        mean_s=sum(lasted) / len(lasted) if lasted else None,
        p95_s=lasted[ceil(0.95 * len(lasted)) - 1] if lasted else None,
        cost_usd=sum(known, Decimal(0)) if known else None,
    )


# ---------------------------------------------------------------------------- claims and ends


def is_free(job: Job) -> bool:
    """Return whether a job may be claimed once it is due."""
    return job.state is JobState.ACTIVE and job.running is None


def is_wanted(job: Job | None, row: LoggedOccurrence) -> bool:
    """Return whether the job of an occurrence is still due at its time; None: it was deleted."""
    if job is None:
        return False
    return job.state is JobState.ACTIVE and job.next_run_at == row.scheduled_at


def may_be_ahead(job: Job, last: LoggedOccurrence | None, now: datetime) -> bool:
    """Return whether a clock that was ahead may have planned the next run of a job.

    ``last`` is its occurrence that was due last. See ``JobStore.jobs_ahead``.
    """
    due_at, schedule = job.next_run_at, job.spec.schedule
    if due_at is None or due_at <= now or isinstance(schedule, At) or not is_free(job):
        return False
    if isinstance(schedule, Every) and due_at > now + schedule.interval:
        return True
    ended_at = None if last is None else last.finished_at
    changes = (job.updated_at, job.last_run_at, ended_at)
    return any(at is not None and at > now for at in changes)


def released(job: Job, row: LoggedOccurrence) -> Job:
    """Return a job after the release of an occurrence, which has its new status already.

    The job shows the result of one that has ended, unless it has run since.
    """
    is_last = job.last_run_at is None or row.claimed_at >= job.last_run_at
    if row.finished_at is not None and (job.running == row.id or is_last):
        began_at = row.started_at or row.claimed_at
        last = job.last_run_at if row.status is OccurrenceStatus.SKIPPED else began_at
        job = replace(job, last_run_at=last, last_status=row.status.value, last_error="")
    return replace(job, running=None if job.running == row.id else job.running)


class AppliedEnd(StrEnum):
    """How much of an occurrence's end is applied to its job, besides the counters."""

    ALL = "all"
    TIME = "time"
    NOTHING = "nothing"


def applied(job: Job, end: OccurrenceEnd, scheduled_at: datetime, *, manual: bool) -> AppliedEnd:
    """Return how much of an end is applied to next run, state and deletion of the job.

    - ``ALL`` if the job was not changed since the claim.
    - ``NOTHING`` if its time or state was changed: an edit wins (SPEC CRON-11).
    - ``TIME`` if something else was changed (name, text, schedule) and it is still active with the
      time of this run. Without a new time it would run twice. State and deletion in the end came
      from the old definition, so the job stays active with the next time of the end. If there is no
      next time, the state is applied, because the job would wait forever; it is not deleted,
      because its new text has never run.
    """
    if end.update is None:
        return AppliedEnd.NOTHING
    if job.revision == end.revision:
        return AppliedEnd.ALL
    left = job.state is JobState.ACTIVE and job.next_run_at == scheduled_at
    return AppliedEnd.TIME if left and not manual else AppliedEnd.NOTHING


def state_of(update: JobUpdate) -> JobState:
    """Return the state that an end requests. A job without a next time is not active."""
    if update.state is JobState.ACTIVE and update.next_run_at is None:
        return JobState.COMPLETED
    return update.state


def after(job: Job, end: OccurrenceEnd, how: AppliedEnd) -> Job:
    """Return the job after the end of an occurrence."""
    job = replace(
        job,
        running=None if job.running == end.id else job.running,
        last_run_at=_last_run_at(job, end),
        last_status=end.status.value,
        last_error=end.error,
    )
    update = end.update
    if update is None:
        return job
    job = replace(
        job,
        failures=_failures(job, update),
        runs=job.runs + update.ran,
        coalesced=job.coalesced + update.coalesced,
    )
    if how is AppliedEnd.NOTHING:
        return job
    state = state_of(update)
    if how is AppliedEnd.TIME and update.next_run_at is not None:
        state = JobState.ACTIVE
    next_run_at = update.next_run_at if state is JobState.ACTIVE else None
    return replace(job, state=state, next_run_at=next_run_at)


def _failures(job: Job, update: JobUpdate) -> int:
    """Count from the stored value: the job may have been resumed during its run."""
    if update.failed is None:
        return job.failures
    return job.failures + 1 if update.failed else 0


def _last_run_at(job: Job, end: OccurrenceEnd) -> datetime | None:
    if end.status is OccurrenceStatus.SKIPPED:
        return job.last_run_at
    return end.started_at or end.finished_at
