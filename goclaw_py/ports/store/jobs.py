"""Jobs and their occurrences (SPEC section 6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from goclaw_py.jobs.execution_models import (
    JobStats,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    UnreportedOccurrence,
)
from goclaw_py.jobs.models import Job, JobState, Notify
from goclaw_py.model.ids import AgentName, JobId, NodeId, OccurrenceId, Owner, SessionKey
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.pagination import Cursor

MOST_COUNTED: Final = 10_000
"""How many jobs a search counts: to count all takes the longer, the more there are."""


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Which jobs; None asks for all.

    Args:
        name: A part of the name or slug, in any case.
        kinds: Of schedules: ``at``, ``every``, ``cron``.
        target: Jobs that tell their results there, whatever the thread.
        limit: At least 1.
    """

    owner: Owner | None = None
    agent: AgentName | None = None
    name: str = ""
    states: tuple[JobState, ...] = ()
    kinds: tuple[str, ...] = ()
    notify: Notify | None = None
    target: Target | None = None
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some of the jobs that were asked for.

    In the order of their next runs, those without one last, then of their creation.

    Args:
        total: How many there are in all, counted up to ``MOST_COUNTED``, but more than this page
            and those before it if others follow.
    """

    jobs: tuple[Job, ...]
    total: int


class JobStore(Protocol):
    """Jobs, occurrences, and the zones of owners.

    A change of a job sends ``Notice.CRON``. A job that this release cannot read, since another one
    has stored it, is shown as far as it can be read, with the cause as its last error.
    """

    # ---------------------------------------------------------------- what people do

    async def add_job(self, job: Job, *, most: int | None) -> None:
        """Store a new job. Raises ``SlugTaken``, and ``TooManyJobs`` if its owner has ``most``.

        Only jobs that are active or paused count. None: the owner may have any number.
        """

    async def job(self, job_id: JobId) -> Job | None:
        """One job."""

    async def find_jobs(self, text: str, *, owner: Owner | None = None) -> list[Job]:
        """Jobs with this slug; if there is none, those whose id begins with ``text``, of 4 or more.

        Of all owners, or of one. At most two, enough to see that it is ambiguous.
        """

    async def jobs(self, query: JobQuery) -> JobPage:
        """Jobs by what is asked of them."""

    async def slugs(self, owner: Owner, prefix: str) -> frozenset[str]:
        """The slugs of an owner's jobs that begin so."""

    async def change_job(self, job: Job, *, most: int | None = None) -> bool:
        """Store definition, maker, state, failures and next run of a job; count its revision up.

        ``job.revision`` is the one that was read. False, and nothing happens, if somebody else
        changed the job since, or deleted it. Raises ``SlugTaken``; ``TooManyJobs`` if the job did
        not count, is to count, and its owner has ``most``; and ``BadJob`` if this release cannot
        read what is stored, which would be lost. What a run has in hand stays. What was given
        back ends for good if the job is not active any more, or due at another time: when the
        last of its runs ended, or when it was claimed if none began.
        """

    async def delete_job(self, job_id: JobId, *, forget: bool) -> bool:
        """Delete a job, and its log if ``forget``. False: there was none.

        A run of it goes on. What was given back ends, as in ``change_job``.
        """

    # ---------------------------------------------------------------- when they are due

    async def next_job_due(self) -> datetime | None:
        """The earliest time for which something is to be claimed; it may be over."""

    async def crowd(self, *, until: datetime, most: int) -> int:
        """How many active jobs of which nothing runs are due by then, counted up to ``most``."""

    async def claim_due(
        self,
        node: NodeId,
        *,
        now: datetime,
        ids: Sequence[OccurrenceId],
        until: datetime | None = None,
        messages_only: bool = False,
    ) -> list[OccurrenceClaim]:
        """Claim due, active jobs of which nothing runs, the longest due first.

        With ``until`` also those that will be due by then: whoever claims them waits for it. With
        ``messages_only`` nothing but jobs whose payload is a ``Message``.

        Makes a row of the log for each, or takes the one that a process left which has died or was
        shut down; new rows get ``ids``, of which there are as many as are wanted. Two nodes never
        claim the same. A job that cannot be read is left out: its occurrence ends as failed, and it
        is switched off. Raises ``Fenced`` if ``node`` is not alive.
        """

    async def withdrawn(self, ids: Collection[OccurrenceId]) -> set[OccurrenceId]:
        """Those claimed occurrences whose job was deleted or paused, or has another time by now."""

    async def claim_now(
        self, node: NodeId, job_id: JobId, *, now: datetime, occurrence: OccurrenceId
    ) -> OccurrenceClaim | None:
        """Claim a job for a run by hand, in whatever state it is; None if one of it runs.

        May be repeated after an unknown outcome. Raises ``UnknownJob``, ``Fenced``, and ``BadJob``
        if this release cannot read the job.
        """

    async def wait_for_sessions(
        self, sessions: Mapping[OccurrenceId, SessionKey], *, node: NodeId, now: datetime
    ) -> set[OccurrenceId]:
        """Let claimed occurrences wait whose session another node holds: a live owner, or a run.

        Their jobs stay marked as running. Returns those that this node has no more, by this call or
        before it. May be repeated after an unknown outcome. Sends ``Notice.CRON`` if one waits.
        """

    async def claim_waiting(
        self, node: NodeId, *, now: datetime, unheld: bool = True
    ) -> list[OccurrenceClaim]:
        """Claim the occurrences that wait for a session of this node, the first due first.

        With ``unheld`` also those whose session no node holds. Each is as it was claimed at first,
        with the number of its attempts since. One that cannot be read ends as in ``claim_due``.
        Nothing for a node that is not alive.
        """

    async def waiting_occurrences(self) -> list[OccurrenceClaim]:
        """Those that wait for a session and are claimed by no node, the first due first."""

    async def end_occurrence(
        self, end: OccurrenceEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId | None
    ) -> None:
        """End an occurrence that had no run, or whose run has ended before, and say something.

        One that has ended already stays as it is, and what is said about it falls out. ``node`` has
        claimed it; None: no node has. Raises ``Fenced`` if that is not so; then nothing happens.
        ``RunEnd.occurrence`` does the same together with the end of a run.
        """

    async def give_back(
        self, ids: Collection[OccurrenceId], *, node: NodeId, status: OccurrenceStatus
    ) -> None:
        """Let occurrences be claimed again, by whoever comes first; no attempt is counted.

        ``INTERRUPTED`` for a shutdown, ``SKIPPED`` for one that could not begin here now.
        """

    async def release_unclaimed(self, known: Collection[OccurrenceId], *, node: NodeId) -> None:
        """Give back what a node has claimed but for what it knows of, and for those by hand.

        For when the answer to ``claim_due`` was lost: nobody would run it while the node lives. One
        by hand that has waited for its session waits again.
        """

    # ---------------------------------------------------------------- what became of them

    async def log_of(
        self,
        job: JobId | None = None,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        """Occurrences of a job, which may be deleted, or of all, the newest first."""

    async def logged(self, occurrence: OccurrenceId) -> LoggedOccurrence | None:
        """One occurrence."""

    async def told_in(self, occurrence: OccurrenceId, target: Target) -> bool:
        """Whether a message about an occurrence was for this chat, whatever the thread."""

    async def settle_results(self, *, now: datetime) -> list[UnreportedOccurrence]:
        """Note what became of the messages of jobs; the results that reached nobody (SPEC CRON-9).

        A job that is to be deleted when its result is delivered is deleted then. A result of which
        a message has died in the last 24 hours ends as ``UNDELIVERED`` instead of ``OK``, and its
        job is kept. Of each job only the newest result is told, and none that an operator has given
        up; at most 100, the oldest first.
        """

    async def tell_result(
        self, occurrence: OccurrenceId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """Store what is said of a result that reached nobody. False: somebody was told before."""

    async def job_stats(self, job: JobId | None, *, since: datetime) -> JobStats:
        """What a job, or all of them, did with what was due since then."""

    async def sweep_jobs(self, *, now: datetime) -> int:
        """Delete what ended more than 90 days ago; how much (SPEC DB-5).

        That is rows of the log, and jobs that are completed or failed and have neither run nor been
        changed since. At most 250 of each, the oldest; call it again until nothing goes.
        """

    # ---------------------------------------------------------------- where owners are

    async def zone_of(self, owner: Owner) -> str | None:
        """The zone that an owner has chosen (SPEC CMD-5)."""

    async def choose_zone(self, owner: Owner, zone: str | None) -> None:
        """Keep it; None forgets it."""
