"""Decisions about jobs that both implementations of the store share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from goclaw_py.core.ids import OccurrenceId, Owner
from goclaw_py.core.jobs import Job, JobState, owner_of
from goclaw_py.core.messages import OutboundMessage, PeerKind, Target
from goclaw_py.core.occurrence import OccurrenceEnd, Status
from goclaw_py.ports.store import OutboxState

COUNTED: Final = (JobState.ACTIVE, JobState.PAUSED)
"""States of the jobs that count for how many an owner may have (SPEC CRON-15)."""

FEWEST: Final = 4
"""So many characters of an id are needed to find a job by them."""

TIMED: Final = (Status.OK, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED)
"""Ends whose time is known: nobody saw when a lost run stopped."""

_SLUG_CHARS: Final = 64


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


def marked(
    messages: Iterable[OutboundMessage], occurrence: OccurrenceId | None
) -> tuple[OutboundMessage, ...]:
    """The messages, each as one of the occurrence that they tell of."""
    if occurrence is None:
        return tuple(messages)
    return tuple(
        message if message.occurrence else replace(message, occurrence=occurrence)
        for message in messages
    )


def delivery(states: Sequence[OutboxState]) -> str:
    """What became of the messages of an occurrence, together: see ``Logged.delivery``."""
    seen = Counter(states)
    if seen[OutboxState.PENDING] or seen[OutboxState.SENDING]:
        return "pending"
    if seen[OutboxState.DEAD] or seen[OutboxState.DROPPED]:
        return "dead"
    return "sent" if seen else ""


def decides(job: Job, end: OccurrenceEnd, scheduled_at: datetime, *, by_hand: bool) -> bool:
    """Whether the end of an occurrence says when its job runs next, and in which state it is.

    Not if somebody has changed the job since the claim; but a change that left the time of this
    very run, such as another name, said nothing about the next one, and the job would run twice.
    """
    if end.update is None:
        return False
    return job.revision == end.revision or (not by_hand and job.next_run_at == scheduled_at)


def after(job: Job, end: OccurrenceEnd, *, decided: bool) -> Job:
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
        failures=job.failures if update.failures is None else update.failures,
        runs=job.runs + update.ran,
        coalesced=job.coalesced + update.coalesced,
    )
    return replace(job, state=update.state, next_run_at=update.next_run_at) if decided else job


def _last_run_at(job: Job, end: OccurrenceEnd) -> datetime | None:
    if end.status is Status.SKIPPED:
        return job.last_run_at
    return end.started_at or end.finished_at
