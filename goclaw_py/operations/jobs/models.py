"""Requests about jobs, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from goclaw_py.core.ids import AgentName, OccurrenceId, Owner, RunId
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import Maker
from goclaw_py.core.values import value
from goclaw_py.schedule.jobs.models import JobState, JobTarget, Notify, Payload
from goclaw_py.schedule.jobs.policy import Profile
from goclaw_py.schedule.jobs.schedule import Schedule


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


class Unchanged(StrEnum):
    """The value of a field that an edit does not change."""

    UNCHANGED = "keep"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True)
class JobChange:
    """The changes of an edit.

    Args:
        policy: Keys to change; None resets a key to the settings.
        state: ``ACTIVE`` resumes, ``PAUSED`` pauses; other states are refused.
        revision: The revision that the job must have; None: any.
    """

    slug: str | Unchanged = UNCHANGED
    name: str | Unchanged = UNCHANGED
    schedule: Schedule | Unchanged = UNCHANGED
    zone: str | Unchanged = UNCHANGED
    payload: Payload | Unchanged = UNCHANGED
    agent: AgentName | Unchanged = UNCHANGED
    target: JobTarget | Unchanged = UNCHANGED
    peer: PeerKind | Unchanged = UNCHANGED
    notify: Notify | Unchanged = UNCHANGED
    session: str | Unchanged = UNCHANGED
    policy: Mapping[str, object] | Unchanged = UNCHANGED
    max_runs: int | Unchanged | None = UNCHANGED
    not_after: datetime | Unchanged | None = UNCHANGED
    wake_heartbeat: bool | Unchanged = UNCHANGED
    source: str | Unchanged = UNCHANGED
    state: JobState | Unchanged = UNCHANGED
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


@dataclass(frozen=True, slots=True)
class JobSettingsView:
    """The settings of all jobs, and the gateway's present time."""

    profile: Profile
    """Its policy is the default of each job."""
    enabled: bool
    """Whether this gateway runs jobs (``scheduler.enabled``)."""
    most: int
    """The largest number of jobs of an owner."""
    now: datetime
