"""Records of occurrences: one time at which a job is due, with its claim, attempts and end.

Pure: the runtime carries these decisions out and the store writes them down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from goclaw_py.jobs.models import Job, JobState
from goclaw_py.model.ids import JobId, NodeId, OccurrenceId, Owner, RunId, SessionKey
from goclaw_py.model.messages import Target
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.run_events import Usage

MAX_CLAIMS: Final = 3
"""An occurrence that was claimed this often by processes that died is given up (SPEC CRON-5)."""

OUTPUT_BYTES: Final = 16 * 1024


class OccurrenceStatus(StrEnum):
    """The status of an occurrence (SPEC CRON-12)."""

    RUNNING = "running"
    WAITING = "waiting"
    """Its session is held by another node: the node that gets the session claims it again."""
    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"
    """Cut by a shutdown; it runs again after that."""
    LOST = "lost"
    """Cut by the end of its process; it may run again."""
    NO_ROUTE = "no_route"
    """It went well, but there is no chat that its result could go to."""
    UNDELIVERED = "undelivered"
    """It went well, but the channel will never take its result."""


class Why(StrEnum):
    """Why an occurrence ended in its status."""

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
    """A run of it that was cut had called tools that change something: it is not repeated."""
    NO_NOTIFY = "no_notify"
    """A conditional job whose reply did not begin with ``[NOTIFY]``: nobody is told."""
    NO_REPLY = "no_reply"
    """The reply was empty or said that there is nothing to say: nobody is told."""


UNTOLD: Final = frozenset({OccurrenceStatus.NO_ROUTE, OccurrenceStatus.UNDELIVERED})
"""A result that reached nobody, or somebody else than it was meant for."""

ENDED_BADLY: Final = frozenset(
    {OccurrenceStatus.FAILED, OccurrenceStatus.TIMED_OUT, OccurrenceStatus.LOST}
)
"""What counts as a failure of the job."""


@dataclass(frozen=True, slots=True)
class OccurrenceClaim:
    """An occurrence that this process may run.

    Args:
        job: As it was when it was claimed; the run uses this.
        due_at: ``scheduled_at``: when it was to run; for one by hand the time of the asking.
        claims: How often it was claimed, this time included, as far as its processes died.
        attempts: Runs that began for it before, in other processes.
        by_hand: Somebody asked for it; the schedule is none the wiser.
    """

    id: OccurrenceId
    job: Job
    due_at: datetime
    claimed_at: datetime
    claims: int = 1
    attempts: int = 0
    by_hand: bool = False
    interrupted: bool = False
    """Its last process was shut down while it ran."""
    called: tuple[str, ...] = ()
    """Tools that change something, which runs for it had called that were cut."""
    waited: bool = False
    """It was claimed before, to run, and has waited for its session since."""


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """How an occurrence changes its job.

    ``state`` and ``delete`` hold only if nobody has changed the job since it was claimed (its
    revision is the same). ``next_run_at`` also holds for a job that was changed, but left with the
    time of this run. The rest holds in any case.

    Args:
        next_run_at: When it is due again if it is active then; may be given with any ``state``, for
            a job that was changed so that it goes on. None: never.
        failed: What becomes of the number of failures in a row: True, one more than it is by then;
            False, back to 0; None keeps it.
        delete: The job is deleted (SPEC CRON-9), its log ``forgotten`` with it or not: at once, or
            ``when_delivered``: when the chat has everything that this occurrence says.
        ran: It counts as a run.
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
        update: None for one by hand, which changes nothing of the job.
        output: What it said, cut to ``OUTPUT_BYTES``.
        error: The cause of a failure.
        started_at: When its first attempt began.
        keep: How many log rows of the job are kept.
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
        slug: That of the job, which may be gone.
        runs: Its attempts, each with a run id of its own, the first one first.
        definition: What ran: ``jobs.job_json.job_json`` of the job at its claim.
        delivery: ``pending``, ``sent``, ``dead``, or "" if there was nothing to deliver.
        waits_for: The session that has to be free before its first run begins; None: it waits for
            no session. A store knows that of ``OccurrenceStatus.WAITING`` only.
        blocking_run, blocking_node: The run that works in that session now, and its node.
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
    by_hand: bool = False
    node: NodeId | None = None
    output: str = ""
    error: str = ""
    usage: Usage | None = None
    runs: tuple[RunId, ...] = ()
    delivery: str = ""
    definition: Mapping[str, object] = field(default_factory=dict)
    told_at: datetime | None = None
    """When a result that reached nobody was told elsewhere, or a newer one took its place."""
    waits_for: SessionKey | None = None
    blocking_run: RunId | None = None
    blocking_node: NodeId | None = None

    @property
    def cursor(self) -> Cursor:
        """Its place in a list."""
        return Cursor(self.scheduled_at, (self.id,))


@dataclass(frozen=True, slots=True)
class UnreportedOccurrence:
    """The newest result of a job, if it could not be delivered.

    Args:
        job: As it was when it was claimed.
        error: Why it reached nobody.
        refused_by: The chat that would not take it; None: there was none to send it to.
    """

    id: OccurrenceId
    job: Job
    due_at: datetime
    output: str
    error: str
    refused_by: Target | None = None


@dataclass(frozen=True, slots=True)
class JobStats:
    """What a job did since a date. Durations in seconds, over those that ran."""

    runs: int = 0
    ok: int = 0
    failed: int = 0
    skipped: int = 0
    mean_s: float | None = None
    p95_s: float | None = None
    cost_usd: Decimal | None = None

    @property
    def success_rate(self) -> float | None:
        """From 0 to 1, over those that ended well or badly; None if there is none."""
        return self.ok / (self.ok + self.failed) if self.ok + self.failed else None
