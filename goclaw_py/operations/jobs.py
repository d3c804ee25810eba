"""The job service, as API, CLI, chats and tools see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from goclaw_py.core.ids import AgentName, JobId, OccurrenceId, Owner, RunId
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.targets import Maker
from goclaw_py.core.values import value
from goclaw_py.schedule.jobs.execution_models import JobStats, LoggedOccurrence, OccurrenceStatus
from goclaw_py.schedule.jobs.models import Job, JobState, JobTarget, Notify, Payload, WorkItem
from goclaw_py.schedule.jobs.policy import Profile
from goclaw_py.schedule.jobs.schedule import Schedule

if TYPE_CHECKING:
    # What is stored of runs knows agents, which know tools, which know this.
    from goclaw_py.records import JobPage, JobQuery


@value(frozen=True, slots=True)
class Requester:
    """The person, agent or program that makes a request.

    Args:
        owner: The owner whose jobs they may see and change; None: all, for operators.
        chat: The chat of the request, if any: the default target of new jobs.
        agent: The default agent of new jobs.
        creator: The person in the chat (``person_at``), "" if there is none.
        chained: The number of turns and runs in a row, up to this one, that no person or program
            has begun (SPEC AGENT-14).
    """

    owner: Owner | None
    maker: Maker = Maker.OPERATOR
    agent: AgentName | None = None
    chat: Target | None = None
    peer: PeerKind = PeerKind.DIRECT
    creator: str = ""
    chained: int = 0


@dataclass(frozen=True, slots=True)
class JobDraft:
    """A job to create. Values that are None or empty come from the settings.

    Args:
        slug: "" derives one from name or payload.
        payload: None is the profile's default prompt, if it has one.
        paused: Whether it is created paused.
        next_run_at: The first run, in place of the schedule's; for imports.
    """

    schedule: Schedule
    payload: Payload | None = None
    slug: str = ""
    name: str = ""
    zone: str = ""
    agent: AgentName | None = None
    target: JobTarget | None = None
    peer: PeerKind | None = None
    notify: Notify = Notify.ALWAYS
    session: str = ""
    policy: Mapping[str, object] = field(default_factory=dict)
    max_runs: int | None = None
    not_after: datetime | None = None
    wake_heartbeat: bool = False
    source: str = ""
    paused: bool = False
    next_run_at: datetime | None = None


class Keep(StrEnum):
    """The value of a field that an edit does not change."""

    KEEP = "keep"


KEEP = Keep.KEEP


@dataclass(frozen=True, slots=True)
class JobChange:
    """The changes of an edit.

    Args:
        policy: Keys to change; None resets a key to the settings.
        state: ``ACTIVE`` resumes, ``PAUSED`` pauses; other states are refused.
        revision: The revision that the job must have; None: any.
    """

    slug: str | Keep = KEEP
    name: str | Keep = KEEP
    schedule: Schedule | Keep = KEEP
    zone: str | Keep = KEEP
    payload: Payload | Keep = KEEP
    agent: AgentName | Keep = KEEP
    target: JobTarget | Keep = KEEP
    peer: PeerKind | Keep = KEEP
    notify: Notify | Keep = KEEP
    session: str | Keep = KEEP
    policy: Mapping[str, object] | Keep = KEEP
    max_runs: int | Keep | None = KEEP
    not_after: datetime | Keep | None = KEEP
    wake_heartbeat: bool | Keep = KEEP
    source: str | Keep = KEEP
    state: JobState | Keep = KEEP
    revision: int | None = None


class RunNow(StrEnum):
    """The reason why a manual run did not start (SPEC CRON-11)."""

    ALREADY_RUNNING = "already_running"
    AT_CAPACITY = "at_capacity"
    NO_WORK = "no_work"
    OFF = "off"
    """No process runs jobs: there is no gateway, or the scheduler is disabled."""


@dataclass(frozen=True, slots=True)
class StartedNow:
    """A manual run. ``run`` is None for a payload that needs no run: it has finished."""

    occurrence: OccurrenceId
    run: RunId | None
    session: str = ""


class JobService(Protocol):
    """Jobs, selected by id, unique prefix of an id, or slug.

    Each method may raise ``StoreUnavailable``; methods that take a job, ``UnknownJob`` and
    ``NotYours``. A slug is searched among the requester's own jobs first.
    """

    @property
    def profile(self) -> Profile:
        """The profile of the settings; its policy is the default of each job."""

    @property
    def enabled(self) -> bool:
        """Whether this gateway runs jobs (``scheduler.enabled``)."""

    @property
    def most(self) -> int:
        """The largest number of jobs of an owner."""

    def now(self) -> datetime:
        """Return the present instant, in UTC."""

    async def create(self, draft: JobDraft, by: Requester) -> Job:
        """Create a job. Raises ``JobError``."""

    async def edit(self, asked: str, change: JobChange, by: Requester) -> Job:
        """Change a job, and compute its next run if the schedule changed.

        A job whose schedule is over can be resumed only with a new schedule. Raises ``JobError``.
        """

    async def delete(self, asked: str, by: Requester) -> Job:
        """Delete a job and return it."""

    async def run_now(self, asked: str, by: Requester) -> StartedNow | RunNow:
        """Run a job in any state now (SPEC CRON-11)."""

    async def get(self, asked: str, by: Requester) -> Job:
        """Return a job."""

    async def search(self, query: JobQuery, by: Requester) -> JobPage:
        """Return the requester's jobs; only operators may select an owner in ``query``."""

    async def counts(self, query: JobQuery, by: Requester) -> dict[JobState, int]:
        """Return how many of the jobs of ``search`` are in each state, whatever its states."""

    async def log(
        self,
        asked: str | None,
        by: Requester,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        """Return the occurrences of a job, the newest first; by id also of a deleted job.

        ``asked=None`` selects all jobs, for operators.
        """

    async def logged(self, occurrence: OccurrenceId, by: Requester) -> LoggedOccurrence:
        """Return an occurrence. Raises ``UnknownJob`` if the requester has no such occurrence."""

    async def stats(self, asked: str | None, by: Requester, *, since: datetime) -> JobStats:
        """Return statistics of a job; None: of all jobs, for operators."""

    def upcoming(self, job: Job, count: int = 3) -> list[datetime]:
        """Return the next ``count`` runs of a job; empty unless it is active."""

    async def no_route(self, asked: str, by: Requester) -> str:
        """Return why the result of a job could not be delivered now, "" if it could."""

    async def preview(self, draft: JobDraft, by: Requester, count: int = 3) -> list[datetime]:
        """Return the first ``count`` runs that a new job would have. Raises ``JobError``."""

    async def zone(self, by: Requester) -> str:
        """Return the default time zone of the requester's new jobs."""

    async def choose_zone(self, zone: str | None, by: Requester) -> str:
        """Set the requester's default time zone; None resets it to the settings.

        Returns the new default. Existing jobs keep their zones. Raises ``UnknownZone``.
        """


class WorkSource(Protocol):
    """A source of work items for jobs. Any method may raise ``WorkSourceError``."""

    async def take(self, job: JobId) -> WorkItem | None:
        """Claim the next item exclusively for a run of a job; None: no work."""

    async def done(self, item: WorkItem, *, ok: bool, text: str) -> None:
        """Report the end of an item, with the result text."""

    async def give_back(self, item: WorkItem, reason: str) -> None:
        """Release an item that was neither done nor failed, so that it can be taken again."""
