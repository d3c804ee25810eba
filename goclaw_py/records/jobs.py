"""Jobs and their occurrences (SPEC section 6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from goclaw_py.core.ids import AgentName, JobId, NodeId, OccurrenceId, Owner, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.pagination import Cursor
from goclaw_py.schedule.jobs.execution_models import (
    JobStats,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    UnreportedOccurrence,
)
from goclaw_py.schedule.jobs.models import Job, JobState, Notify

MOST_COUNTED: Final = 10_000
"""The largest number of jobs that a search counts, so that its time has a limit."""


AHEAD_AT_ONCE: Final = 200


class JobOrder(StrEnum):
    """What the first jobs of a list have; of equal ones the next to run is first."""

    NAME = "name"
    """The first name (or slug, without one) by the code points of its letters, ignoring case."""
    LAST_RUN = "last_run"
    """The newest last run; those that never ran are last."""


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Selects jobs; a field that is None or empty selects all.

    Args:
        name: A part of the name or slug, ignoring case.
        kinds: Kinds of schedules: ``at``, ``every``, ``cron``.
        target: The chat that gets the results, in any thread.
        created_after: Created later than this.
        created_before: Created earlier than this.
        next_run_before: Next due earlier than this; a job without a next run is never selected.
        limit: At least 1.
        order: Another order than by next run. All jobs that match are read for it.
    """

    owner: Owner | None = None
    agent: AgentName | None = None
    name: str = ""
    states: tuple[JobState, ...] = ()
    kinds: tuple[str, ...] = ()
    notify: Notify | None = None
    target: Target | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    next_run_before: datetime | None = None
    limit: int = 50
    offset: int = 0
    order: JobOrder | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs, by next run (jobs without one last), then by creation, unless it is ordered.

    Args:
        total: The number of jobs on all pages, counted up to ``MOST_COUNTED``; always larger than
            the jobs up to this page if another page follows.
    """

    jobs: tuple[Job, ...]
    total: int


class JobStore(Protocol):
    """Jobs, occurrences, and the time zones of owners, as every service of jobs needs them.

    A change of a job sends ``Notice.CRON``. A job stored by another release that this one cannot
    read is shown with the fields that can be read, and the cause as its last error.
    """

    # ---------------------------------------------------------------- changes by people

    async def add_job(self, job: Job, *, most: int | None) -> None:
        """Store a new job.

        Raises ``SlugTaken``, and ``TooManyJobs`` if its owner has ``most`` active or paused jobs
        already; None is no limit.
        """

    async def find_jobs(self, text: str, *, owner: Owner | None = None) -> list[Job]:
        """Return at most ``FOUND`` jobs by slug, id, or the first 4 or more characters of the id.

        Ids are searched only if no slug matches; the job with the whole id is then the only one.
        Several mean that ``text`` is ambiguous.
        """

    async def jobs(self, query: JobQuery) -> JobPage:
        """Return the jobs that a query selects."""

    async def job_counts(self, query: JobQuery) -> dict[JobState, int]:
        """Return how many of these jobs are in each state; ``states`` and the page are ignored."""

    async def slugs(self, owner: Owner, prefix: str) -> frozenset[str]:
        """Return the slugs of an owner's jobs that start with ``prefix``."""

    async def change_job(self, job: Job, *, most: int | None = None) -> bool:
        """Store definition, maker, state, failures and next run of a job; increase its revision.

        ``job.revision`` is the revision that was read. Returns False and changes nothing if the
        job was changed or deleted since. A run in progress is not changed. A released occurrence
        ends if the job is no longer active or is due at another time; its end is that of its last
        run, or its claim if no run started.

        Raises:
            SlugTaken: Another job of the owner has the slug.
            TooManyJobs: The job becomes active or paused, and its owner has ``most`` such jobs.
            BadJob: This release cannot read the stored job, and would overwrite it.
        """

    async def delete_job(self, job_id: JobId, *, forget: bool) -> bool:
        """Delete a job, with ``forget`` also its log. Returns False if it is not stored.

        A run in progress finishes. A released occurrence ends, as in ``change_job``.
        """

    # ---------------------------------------------------------------- claims

    async def next_job_due(self) -> datetime | None:
        """Return the earliest due time of anything to claim; it may be in the past."""

    async def jobs_ahead(self, *, now: datetime, after: str = "") -> list[Job]:
        """Return repeating jobs whose next run a clock that was ahead may have planned.

        They are active, idle and due after ``now``, and have an interval that ends earlier, or were
        changed or ran at a time that is ahead as well. By id, from the one that follows ``after``
        on, and at most ``AHEAD_AT_ONCE``; none that cannot be read.
        """

    async def replan_job(self, job: Job, next_run_at: datetime) -> bool:
        """Plan a waiting job for another time, without counting a change by people.

        Returns False and changes nothing if it was changed or claimed since it was read. A released
        occurrence ends, as in ``change_job``.
        """

    async def crowd(self, *, until: datetime, most: int) -> int:
        """Count the active jobs without a run that are due by ``until``, up to ``most``."""

    async def claim_due(
        self,
        node: NodeId,
        *,
        now: datetime,
        ids: Sequence[OccurrenceId],
        until: datetime | None = None,
        messages_only: bool = False,
        without_runs: bool = False,
    ) -> list[OccurrenceClaim]:
        """Claim active jobs that are due and have no run, the longest due first.

        Each claim creates an occurrence with one of ``ids``, whose number is the most that is
        claimed, or continues the occurrence that an expired or stopped node released. Two nodes
        never claim the same job. A job that cannot be read is not returned: its occurrence fails
        and the job is disabled. Raises ``Fenced`` if ``node`` is not alive.

        With ``until``, jobs that are due by then are claimed too; the caller waits until they are
        due. With ``messages_only``, only jobs with a ``Message`` as payload. A claim counts
        if a run of it was lost; a caller that does its work ``without_runs`` may have done it in
        each lost claim, so each counts.
        """

    async def withdrawn(self, ids: Collection[OccurrenceId]) -> set[OccurrenceId]:
        """Return the claimed occurrences whose job was deleted, paused or rescheduled."""

    async def claim_now(
        self, node: NodeId, job_id: JobId, *, now: datetime, occurrence: OccurrenceId
    ) -> OccurrenceClaim | None:
        """Claim a job in any state for a manual run; None if a run is in progress.

        May be repeated after an unknown outcome. Raises ``UnknownJob``, ``Fenced``, and ``BadJob``
        if this release cannot read the job.
        """

    async def wait_for_sessions(
        self, sessions: Mapping[OccurrenceId, SessionKey], *, node: NodeId, now: datetime
    ) -> set[OccurrenceId]:
        """Let claimed occurrences wait whose session another live node owns or has a run in.

        Their jobs stay marked as running. Returns the occurrences that are no longer claimed by
        ``node``, because they wait now or were lost before. May be repeated after an unknown
        outcome. Sends ``Notice.CRON`` if one waits.
        """

    async def claim_waiting(
        self, node: NodeId, *, now: datetime, unheld: bool = True
    ) -> list[OccurrenceClaim]:
        """Claim the occurrences that wait for a session of ``node``, the first due first.

        With ``unheld`` also those whose session no node owns. One that waits for the answer to a
        question is left out. A claim has the fields of the first claim, with the attempts since.
        One that cannot be read ends as in ``claim_due``. Returns nothing for a node that is not
        alive.
        """

    async def end_occurrence(
        self, end: OccurrenceEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId | None
    ) -> None:
        """End an occurrence that has no run in progress, and add ``say`` to the outbox.

        If it has ended already, nothing changes and ``say`` is not stored. Raises ``Fenced`` if it
        is not claimed by ``node`` (None: is claimed by any node). ``RunEnd.occurrence`` does the
        same together with the end of a run.
        """

    async def give_back(
        self, ids: Collection[OccurrenceId], *, node: NodeId, status: OccurrenceStatus
    ) -> None:
        """Release occurrences, so that any node can claim them; no attempt is counted.

        ``status`` is ``INTERRUPTED`` for a shutdown, ``SKIPPED`` if it could not start here.
        """

    async def release_unclaimed(self, known: Collection[OccurrenceId], *, node: NodeId) -> None:
        """Release all claims of a node that are not in ``known``, except manual runs.

        This frees claims whose response from ``claim_due`` was lost; no node would run them while
        this one is alive. A manual run that had waited for its session waits again.
        """

    # ---------------------------------------------------------------- results

    async def log_of(
        self,
        job: JobId | None = None,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        """Return occurrences of a job (it may be deleted) or of all jobs, the newest first."""

    async def logged(self, occurrence: OccurrenceId) -> LoggedOccurrence | None:
        """Return an occurrence, or None if it is not stored."""

    async def job_stats(self, job: JobId | None, *, since: datetime) -> JobStats:
        """Return counts of the occurrences of a job, or of all jobs, that were due since then."""

    # ---------------------------------------------------------------- time zones

    async def zone_of(self, owner: Owner) -> str | None:
        """Return the time zone that an owner has chosen, or None (SPEC CMD-5)."""

    async def choose_zone(self, owner: Owner, zone: str | None) -> None:
        """Store the time zone of an owner; None removes it."""


class GatewayJobStore(JobStore, Protocol):
    """What only gateways need: occurrences that wait, deliveries of results, and retention."""

    async def job(self, job_id: JobId) -> Job | None:
        """Return a job, or None if it is not stored."""

    async def waiting_occurrences(
        self, *, asking_in: SessionKey | None = None
    ) -> list[OccurrenceClaim]:
        """Return the occurrences that wait and are not claimed, the first due first.

        With ``asking_in`` only those that wait for the answer to a question of a run in a session.
        """

    async def occurrences_elsewhere(self, nodes: Collection[NodeId]) -> list[OccurrenceClaim]:
        """Return the unfinished occurrences that none of these nodes has, and that do not wait."""

    async def was_notified_in(self, occurrence: OccurrenceId, target: Target) -> bool:
        """Return whether a message about an occurrence was for this chat, in any thread."""

    async def settle_results(self, *, now: datetime) -> list[UnreportedOccurrence]:
        """Store whether results of jobs were delivered; return undelivered ones (SPEC CRON-9).

        A job that is deleted after delivery is deleted now. A result with a message that became a
        dead letter in the last 24 hours ends as ``UNDELIVERED`` instead of ``OK``, and its job is
        kept. Returns at most 100 results, the oldest first; of each job only the newest, and none
        whose message an operator has dropped.
        """

    async def notify_result(
        self, occurrence: OccurrenceId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """Add messages about an undelivered result, once; False if it was reported before."""

    async def sweep_jobs(self, *, now: datetime) -> int:
        """Delete what ended more than 90 days ago; return the number of rows (SPEC DB-5).

        These are occurrences, and completed or failed jobs that neither ran nor changed since. At
        most 250 of each, the oldest first; repeat until it returns 0.
        """
