"""Decisions about jobs that both implementations of the store share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from goclaw_py.jobs.execution_models import JobUpdate, OccurrenceEnd, OccurrenceStatus
from goclaw_py.jobs.models import Job, JobState
from goclaw_py.model.ids import Owner
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.model.owners import owner_of
from goclaw_py.ports.store import OutboxState

COUNTED: Final = (JobState.ACTIVE, JobState.PAUSED)
"""States of the jobs that count for how many an owner may have (SPEC CRON-15)."""

FEWEST: Final = 4
"""So many characters of an id are needed to find a job by them."""

TIMED: Final = (
    OccurrenceStatus.OK,
    OccurrenceStatus.FAILED,
    OccurrenceStatus.TIMED_OUT,
    OccurrenceStatus.CANCELLED,
)
"""Ends whose time is known: nobody saw when a lost run stopped."""

OVER: Final = (JobState.COMPLETED, JobState.FAILED)
"""States of the jobs for which nothing lies ahead; they are deleted when ``KEPT`` is over."""

KEPT: Final = timedelta(days=90)
"""How long ended rows of the log are kept, and jobs that are over (SPEC DB-5)."""

DIED_WITHIN: Final = timedelta(hours=24)
"""How long after its death a message still makes its occurrence an undelivered one."""

MOST_UNTOLD: Final = 100
"""So many results that reached nobody are told at once."""

MOST_SWEPT: Final = 250
"""So many rows of the log, and so many jobs, one sweep deletes."""

_SLUG_CHARS: Final = 64


def comes_to_count(before: JobState, after: JobState) -> bool:
    """Whether a job that changes so counts for how many its owner may have, and has not before."""
    return after in COUNTED and before not in COUNTED


def words(slug: str, name: str) -> str:
    """What is searched for a part of a job's name or slug, in any case."""
    return f"{slug}\n{name}".casefold()


def free_slug(slug: str, taken: Collection[str]) -> str:
    """The slug, or with the least number behind it that makes it one that is not taken."""
    number, found = 1, slug
    while found in taken:
        number += 1
        tail = f"-{number}"
        found = slug[: _SLUG_CHARS - len(tail)] + tail
    return found


def moved_owners(old: Target, new: str) -> dict[Owner, Owner]:
    """Who owns what the owners of a chat had when that gets the id ``new``."""
    return {
        owner_of(old, peer): owner_of(replace(old, chat=new), peer)
        for peer in (PeerKind.DIRECT, PeerKind.GROUP)
    }


def retargeted(job: Job, old: Target, new: str) -> Job:
    """The job, telling its results in the new chat if it did so in the old one."""
    target = job.spec.target
    if not isinstance(target, Target) or replace(target, thread=None) != old:
        return job
    return replace(job, spec=replace(job.spec, target=replace(target, chat=new)))


def delivery(states: Sequence[OutboxState]) -> str:
    """What became of the messages of an occurrence, together: see ``LoggedOccurrence.delivery``."""
    seen = Counter(states)
    if seen[OutboxState.PENDING] or seen[OutboxState.SENDING]:
        return "pending"
    if seen[OutboxState.DEAD] or seen[OutboxState.DROPPED]:
        return "dead"
    return "sent" if seen else ""


class Taken(StrEnum):
    """How much a job takes of what an end says about it, besides the counts."""

    ALL = "all"
    TIME = "time"
    NOTHING = "nothing"


def taken(job: Job, end: OccurrenceEnd, scheduled_at: datetime, *, by_hand: bool) -> Taken:
    """How much a job takes of when it runs next, of its state, and of its deletion.

    ``ALL`` if nobody has changed it since the claim. ``NOTHING`` if somebody has given it another
    time or state: an edit wins (SPEC CRON-11). ``TIME`` if somebody has changed something else,
    such as its name, its text or how often it runs, and has left it active at the time of this very
    run: that said nothing about the next run, and the job would run twice. But the old definition
    decided what the end says of its state and its deletion: the job stays active and is due at the
    next time that the end names. Only if that names none, the job takes the state, for it would
    wait for ever; it is never deleted, for nobody has seen its new text at work.
    """
    if end.update is None:
        return Taken.NOTHING
    if job.revision == end.revision:
        return Taken.ALL
    left = job.state is JobState.ACTIVE and job.next_run_at == scheduled_at
    return Taken.TIME if left and not by_hand else Taken.NOTHING


def state_of(update: JobUpdate) -> JobState:
    """The state that an end asks for. Without a next time nothing is active: it would not end."""
    if update.state is JobState.ACTIVE and update.next_run_at is None:
        return JobState.COMPLETED
    return update.state


def after(job: Job, end: OccurrenceEnd, how: Taken) -> Job:
    """The job when one of its occurrences has ended."""
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
    if how is Taken.NOTHING:
        return job
    state = state_of(update)
    if how is Taken.TIME and update.next_run_at is not None:
        state = JobState.ACTIVE
    next_run_at = update.next_run_at if state is JobState.ACTIVE else None
    return replace(job, state=state, next_run_at=next_run_at)


def _failures(job: Job, update: JobUpdate) -> int:
    """Counted from what the row has now: somebody may have resumed the job during its run."""
    if update.failed is None:
        return job.failures
    return job.failures + 1 if update.failed else 0


def _last_run_at(job: Job, end: OccurrenceEnd) -> datetime | None:
    if end.status is OccurrenceStatus.SKIPPED:
        return job.last_run_at
    return end.started_at or end.finished_at
