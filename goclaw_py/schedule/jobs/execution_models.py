"""Occurrences: a time at which a job is due, with its claim, attempts and end.

Pure: other modules carry out the decisions and store them.

The rules of SPEC CRON-10:

One run per job at a time; what comes due meanwhile is coalesced (counted). Busy (the job's session
has a waiting or running run, or its agent is at `max_concurrent`): `on_busy = queue` (default) |
`skip` | `delay:<seconds>`. If another node holds the session, the occurrence waits (`waiting`), in
one row, for the node that holds the session, which decides by `on_busy`, or that gets it; it
begins within 300 ms after the session has become free. It is not missed meanwhile. So does the
occurrence of a run that has asked a person (AGENT-11, reason `approval`): no node has it, the job
still counts as running, and with the last answer it waits for its session only. It then goes on
whatever `on_busy`, `misfire`, `not_after` and the minimum interval say, as a new run of the same
occurrence; no attempt and no claim is counted. An `at` job is never skipped for being busy: it
would not come again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from goclaw_py.core.ids import JobId, NodeId, OccurrenceId, Owner, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import OpenEnum
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import Usage
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.models import ran_s

MAX_CLAIMS: Final = 3
"""An occurrence fails after this many claims whose runs killed their processes (CRON-5)."""

OUTPUT_BYTES: Final = 16 * 1024


class OccurrenceStatus(StrEnum):
    """The status of an occurrence (SPEC CRON-12)."""

    RUNNING = "running"
    WAITING = "waiting"
    """No node has it: another one owns its session, or it waits for an answer (``APPROVAL``)."""
    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"
    """Interrupted by a shutdown; it runs again."""
    LOST = "lost"
    """Its process died; it may run again."""
    NO_ROUTE = "no_route"
    """It succeeded, but there is no chat for its result."""
    UNDELIVERED = "undelivered"
    """It succeeded, but the channel will never accept its result."""


class Why(OpenEnum):
    """The reason of an occurrence's status."""

    NO_WORK = "no_work"
    BUSY = "busy"
    AT_CAPACITY = "at_capacity"
    MISSED = "missed"
    TOO_FREQUENT = "too_frequent"
    BUDGET = "budget"
    DISABLED = "disabled"
    STOPPED = "stopped"
    OUTAGE = "outage"
    EFFECTS = "effects"
    """An interrupted run had called tools with side effects, so it is not repeated."""
    NO_NOTIFY = "no_notify"
    """The reply of a conditional job did not begin with ``[NOTIFY]``; it is not sent."""
    NO_REPLY = "no_reply"
    """The reply was empty or ``NO_REPLY``; it is not sent."""
    APPROVAL = "approval"
    """Its run has asked a person about a tool call; it waits for the answer."""


UNTOLD: Final = frozenset({OccurrenceStatus.NO_ROUTE, OccurrenceStatus.UNDELIVERED})
"""Results that were not delivered to their target."""

ENDED_BADLY: Final = frozenset(
    {OccurrenceStatus.FAILED, OccurrenceStatus.TIMED_OUT, OccurrenceStatus.LOST}
)
"""Results that count as failures of the job."""

WAKING: Final = frozenset(
    {OccurrenceStatus.OK, OccurrenceStatus.FAILED, OccurrenceStatus.TIMED_OUT}
)
"""Results after which ``wake_heartbeat`` requests a heartbeat run (SPEC CRON-20)."""


@dataclass(frozen=True, slots=True)
class OccurrenceClaim:
    """An occurrence that this process may execute.

    Args:
        job: The job as it was claimed; the run uses this version.
        due_at: When it was due, with delays; see ``scheduled_at``.
        claims: One more than the number of its runs that were lost with their processes; in the
            library, which stores no runs, than the number of its claims that were.
        attempts: The number of runs that other processes started for it.
        manual: Whether it is a manual run, which does not change the schedule.
    """

    id: OccurrenceId
    job: Job
    due_at: datetime
    claimed_at: datetime
    claims: int = 1
    attempts: int = 0
    manual: bool = False
    interrupted: bool = False
    """Its last process was shut down during its run."""
    called: tuple[str, ...] = ()
    """Tools with side effects called by its interrupted runs that cannot be continued."""
    stopped: bool = False
    """It was stopped on request in a process that died, or lost its lease, before that was done."""
    waited: bool = False
    """It was claimed before, and has waited for its session or an answer since."""
    began_at: datetime | None = None
    """The start of its first run, if it has had one before it ``waited``."""


@dataclass(frozen=True, slots=True)
class StoppableJob:
    """An occurrence in progress, as a stop finds it.

    Args:
        run: The id under which it can be stopped: its last run, or its occurrence without one.
        creator: The person who requested the job (``person_at``), "" if none.
        title: The title of the job.
        was_stopped: A stop has met it before. ``is_stopping``: and its run has not ended.
    """

    run: RunId
    occurrence: OccurrenceId
    creator: str
    title: str
    was_stopped: bool = False
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """How an occurrence changes its job.

    ``state`` and ``delete`` apply only if the job was not changed since the claim (its revision is
    the same). ``next_run_at`` also applies to a job that was changed but is still due at this time.
    The other fields always apply.

    Args:
        next_run_at: The next due time if the job is active then. It may be set with any ``state``,
            for a job that was changed and so continues. None: never.
        failed: True increases the number of failures in a row, False resets it, None keeps it.
        delete: Whether the job is deleted (SPEC CRON-9), with its log if ``forgotten``: at once, or
            ``when_delivered``, when everything that this occurrence says has been delivered.
        ran: Whether it counts as a run.
    """

    next_run_at: datetime | None
    state: JobState = JobState.ACTIVE
    failed: bool | None = None
    coalesced: int = 0
    ran: bool = False
    delete: bool = False
    forget: bool = False
    when_delivered: bool = False


@dataclass(frozen=True, slots=True)
class OccurrenceEnd:
    """The end of an occurrence, with the change of its job.

    Args:
        update: The change; None for a manual run.
        output: Its result, truncated to ``OUTPUT_BYTES``.
        error: The cause of a failure.
        started_at: The start of its first attempt.
        keep: The number of occurrences of the job that are kept.
    """

    id: OccurrenceId
    job: JobId
    revision: int
    status: OccurrenceStatus
    finished_at: datetime
    update: JobUpdate | None
    why: Why | None = None
    output: str = ""
    error: str = ""
    attempts: int = 0
    started_at: datetime | None = None
    usage: Usage | None = None
    keep: int = 200


@dataclass(frozen=True, slots=True)
class LoggedOccurrence:
    """A row of ``job_runs``.

    Args:
        slug: The slug of the job, which may be deleted.
        runs: The run ids of its attempts, in order.
        definition: The job as it was claimed, as ``schedule.jobs.job_json.job_json``.
        delivery: ``waiting``, ``sent``, ``failed``, or "" if there was nothing to deliver.
        waits_for: The session that it waits for; None if it waits for none. A store sets it only
            for ``OccurrenceStatus.WAITING``.

    blocking_run, blocking_node: The run in that session, and its node.
    """

    id: OccurrenceId
    job: JobId
    slug: str
    owner: Owner
    scheduled_at: datetime
    claimed_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    status: OccurrenceStatus
    why: Why | None = None
    attempts: int = 0
    claims: int = 1
    manual: bool = False
    node: NodeId | None = None
    output: str = ""
    error: str = ""
    usage: Usage | None = None
    runs: tuple[RunId, ...] = ()
    delivery: str = ""
    definition: Mapping[str, object] = field(default_factory=dict)
    told_at: datetime | None = None
    """When an undelivered result was reported elsewhere, or a newer one replaced it."""
    waits_for: SessionKey | None = None
    blocking_run: RunId | None = None
    blocking_node: NodeId | None = None

    @property
    def cursor(self) -> Cursor:
        """The position in a list of occurrences."""
        return Cursor(self.scheduled_at, (self.id,))

    @property
    def duration_s(self) -> float | None:
        """How long it ran, in seconds; None if it did not start or still runs."""
        return ran_s(self.started_at, self.finished_at)


@dataclass(frozen=True, slots=True)
class UnreportedOccurrence:
    """The newest result of a job, if it could not be delivered.

    Args:
        job: The job as it was claimed.
        error: Why it was not delivered.
        refused_by: The chat that refused it; None if there was no chat.
    """

    id: OccurrenceId
    job: Job
    due_at: datetime
    output: str
    error: str
    refused_by: Target | None = None


@dataclass(frozen=True, slots=True)
class JobStats:
    """Statistics of a job since a date. Durations in seconds, over occurrences that ran."""

    runs: int = 0
    ok: int = 0
    failed: int = 0
    skipped: int = 0
    mean_s: float | None = None
    p95_s: float | None = None
    cost_usd: Decimal | None = None

    @property
    def success_rate(self) -> float | None:
        """From 0 to 1, over occurrences that succeeded or failed; None if there is none."""
        return self.ok / (self.ok + self.failed) if self.ok + self.failed else None
