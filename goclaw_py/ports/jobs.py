"""The job service, as API, CLI, chats and tools see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from goclaw_py.jobs.execution_models import JobStats, LoggedOccurrence, OccurrenceStatus
from goclaw_py.jobs.models import Job, JobState, JobTarget, Notify, Payload, WorkItem
from goclaw_py.jobs.policy import Profile
from goclaw_py.jobs.schedule import Schedule
from goclaw_py.model.ids import AgentName, JobId, OccurrenceId, Owner, RunId
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.model.owners import Maker
from goclaw_py.model.pagination import Cursor

if TYPE_CHECKING:
    # What is stored of runs knows agents, which know tools, which know this.
    from goclaw_py.ports.store import JobPage, JobQuery


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks for something.

    Args:
        owner: Whose jobs they may see and change; None: everybody's, for operators.
        chat: Where they ask, if that is a chat: what they make tells its results there.
        agent: For what they make and do not say for which agent.
        creator: Which person in a chat asks (``person_at``), "" if none does.
    """

    owner: Owner | None
    maker: Maker = Maker.OPERATOR
    agent: AgentName | None = None
    chat: Target | None = None
    peer: PeerKind = PeerKind.DIRECT
    creator: str = ""


@dataclass(frozen=True, slots=True)
class JobDraft:
    """A job to create. Values that are None or empty come from the settings.

    Args:
        slug: "" makes one from name or payload.
        payload: None is the default prompt of the profile, if that has one.
        paused: It is not active from the start.
        next_run_at: The first run, instead of what the schedule says; for imports.
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
    """The value of what an edit leaves as it is."""

    KEEP = "keep"


KEEP = Keep.KEEP


@dataclass(frozen=True, slots=True)
class JobChange:
    """What an edit changes.

    Args:
        policy: Keys to change; None takes a key back to that of the settings.
        state: ``ACTIVE`` resumes, ``PAUSED`` pauses; the others cannot be chosen.
        revision: The change is refused unless the job is at this one; None: whatever it is.
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
    """Why a job was not run by hand (SPEC CRON-11)."""

    ALREADY_RUNNING = "already_running"
    AT_CAPACITY = "at_capacity"
    NO_WORK = "no_work"
    OFF = "off"
    """No process runs jobs: there is no gateway, or the scheduler is switched off."""


@dataclass(frozen=True, slots=True)
class StartedNow:
    """A run by hand. ``run`` is None for a payload that needs none: it is done by now."""

    occurrence: OccurrenceId
    run: RunId | None
    session: str = ""


class JobService(Protocol):
    """Jobs, by id, unique beginning of an id, or slug.

    Each method may raise ``StoreUnavailable``; those that take a job ``UnknownJob``, and
    ``NotYours`` if it is not the asker's. A slug is looked for among the asker's own first.
    """

    @property
    def profile(self) -> Profile:
        """What the settings make of all jobs: the policy in it is the base of each."""

    @property
    def enabled(self) -> bool:
        """Whether jobs run at all here (``scheduler.enabled``)."""

    @property
    def most(self) -> int:
        """How many jobs an owner may have."""

    def now(self) -> datetime:
        """The present instant, in UTC."""

    async def create(self, draft: JobDraft, by: Requester) -> Job:
        """Make a job. Raises ``JobError``."""

    async def edit(self, asked: str, change: JobChange, by: Requester) -> Job:
        """Change a job; its next run is computed anew if when it runs has changed.

        To resume one that is completed, failed or disabled by a schedule that is over needs a new
        schedule. Raises ``JobError``.
        """

    async def delete(self, asked: str, by: Requester) -> Job:
        """Delete a job; returns what it was."""

    async def run_now(self, asked: str, by: Requester) -> StartedNow | RunNow:
        """Run it now, in whatever state it is (SPEC CRON-11)."""

    async def get(self, asked: str, by: Requester) -> Job:
        """One job."""

    async def search(self, query: JobQuery, by: Requester) -> JobPage:
        """The asker's jobs; the owner in ``query`` is for operators."""

    async def log(
        self,
        asked: str | None,
        by: Requester,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        """What became of the times a job was due, the newest first. By id also of a deleted job.

        None: of all jobs, for operators.
        """

    async def logged(self, occurrence: OccurrenceId, by: Requester) -> LoggedOccurrence:
        """One occurrence. Raises ``UnknownJob`` if there is none of the asker's."""

    async def stats(self, asked: str | None, by: Requester, *, since: datetime) -> JobStats:
        """What a job did; None: all jobs, for operators."""

    def upcoming(self, job: Job, count: int = 3) -> list[datetime]:
        """The next times at which a job runs; empty unless it is active."""

    async def no_route(self, asked: str, by: Requester) -> str:
        """Why the result of a job would reach nobody now; "" if nothing speaks against it."""

    async def preview(self, draft: JobDraft, by: Requester, count: int = 3) -> list[datetime]:
        """When a job that is not made yet would run. Raises ``JobError``."""

    async def zone(self, by: Requester) -> str:
        """The zone of what the asker makes without naming one."""

    async def choose_zone(self, zone: str | None, by: Requester) -> str:
        """Choose it for the asker; None goes back to that of the settings. Raises ``UnknownZone``.

        Returns the zone that holds now. Jobs that exist keep theirs.
        """


class WorkSource(Protocol):
    """Gives work to jobs, one item at a time. Any method may raise ``WorkSourceError``."""

    async def take(self, job: JobId) -> WorkItem | None:
        """Claim the next item for a run of a job, so that nobody else gets it; None: no work."""

    async def done(self, item: WorkItem, *, ok: bool, text: str) -> None:
        """Report how the work on an item ended, with what was said."""

    async def give_back(self, item: WorkItem, reason: str) -> None:
        """Let the item be taken again: it was neither done nor has it failed."""
