"""Jobs: their definition and their state (SPEC CRON-0, CRON-11).

The rules of SPEC CRON-11:

States `active, paused, completed, failed, disabled`. Pause or delete during a run takes precedence;
so it does over a released occurrence that waits: that ends as it is, one that waits for its session
as `skipped` (`busy`), for an answer as `cancelled` (`stopped`); a manual run waits until its job is
deleted. An edit takes precedence over the run's own rescheduling (revision). A run uses the
definition at its claim. Pause clears the next run; resume computes it from now. `run now` works in
every state, changes neither state, counters nor next run, and answers with the run id or
`already_running | at_capacity | no_work | not_found`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from anyascii import anyascii

from goclaw_py.core.errors import BadJob
from goclaw_py.core.ids import MAIN_AGENT, AgentName, JobId, OccurrenceId, Owner, RunId, SessionKey
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import chat_session, job_session
from goclaw_py.core.targets import Maker
from goclaw_py.schedule.jobs.policy import JobPolicy, SessionKind, for_model, policy_with, spaced_by
from goclaw_py.schedule.jobs.schedule import Schedule, Timing, upcoming

OPERATOR: Final = Owner("operator")
"""The owner of jobs from the command line or HTTP."""

MAX_TEXT_CHARS: Final = 100_000
"""The longest prompt or message of a job."""
MAX_NAME_CHARS: Final = 200
NOT_IN_NAMES: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, line ends and lone surrogates, which names must not contain."""
NOT_IN_TEXTS: Final = re.compile(r"[\x00\ud800-\udfff]")
"""Characters that a database cannot store."""
SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_GERMAN: Final = {"ä": "ae", "ö": "oe", "ü": "ue"}
"""``anyascii`` drops the dots; German readers expect two letters."""


class JobState(StrEnum):
    """The state of a job."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    """It has run ``max_runs`` times, or its schedule is over."""
    FAILED = "failed"
    """It was to run once, and failed."""
    DISABLED = "disabled"
    """Disabled after failures in a row."""


OPEN: Final = (JobState.ACTIVE, JobState.PAUSED, JobState.DISABLED, JobState.FAILED)
"""Without finished jobs: a model's reminders are kept, and become many."""


class Notify(StrEnum):
    """When the result of a job is delivered (SPEC CRON-13)."""

    ALWAYS = "always"
    CONDITIONAL = "conditional"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for the agent. ``model`` replaces the agent's model; "" keeps it."""

    text: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class FixedMessage:
    """A text that is delivered as it is, without a model."""

    text: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run; operators only. Its output is the result."""

    argv: tuple[str, ...]


Payload = Prompt | FixedMessage | Program


class TargetKind(StrEnum):
    """The target of a job that names no chat."""

    LAST = "last"
    """The chat in which the owner last talked to the agent; for operators, any chat."""
    NONE = "none"


JobTarget = Target | TargetKind


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The definition of a job.

    Args:
        slug: Its name, unique within its owner; ``SLUG`` matches.
        name: Its name for people; may be empty.
        zone: The exact IANA name of a time zone.
        session: The session key, if its policy has ``SessionKind.KEY``.
        peer: Whether its target is a direct chat or a group.
        policy: Keys that differ from the policy of the settings.
        max_runs: It is completed after this many runs.
        not_after: It does not run after this instant.
        source: The name of its work source, "" for none.
    """

    slug: str
    schedule: Schedule
    zone: str
    payload: Payload
    name: str = ""
    agent: AgentName = MAIN_AGENT
    target: JobTarget = TargetKind.LAST
    peer: PeerKind = PeerKind.DIRECT
    notify: Notify = Notify.ALWAYS
    session: str = ""
    policy: Mapping[str, object] = field(default_factory=dict)
    max_runs: int | None = None
    not_after: datetime | None = None
    wake_heartbeat: bool = False
    source: str = ""

    @property
    def title(self) -> str:
        """Its name, or its slug."""
        return self.name or self.slug


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job.

    Args:
        revision: The number of changes by people.
        next_run_at: The next due time; None while it is not active or has none. While ``running``,
            the due time of that run.
        running: The claimed occurrence.
        failures: The number of failures in a row.
        runs: The number of occurrences that ended in a run.
        coalesced: The number of firings while it could not run.
        last_error: The error of the last run, "" if it succeeded.
        creator: The person who requested it in a chat (``person_at``), "" if none.
        chained: See ``Requester``: of the run that has scheduled it last.
    """

    id: JobId
    owner: Owner
    maker: Maker
    spec: JobSpec
    created_at: datetime
    updated_at: datetime
    state: JobState = JobState.ACTIVE
    revision: int = 1
    next_run_at: datetime | None = None
    running: OccurrenceId | None = None
    last_run_at: datetime | None = None
    last_status: str = ""
    last_error: str = ""
    failures: int = 0
    runs: int = 0
    coalesced: int = 0
    creator: str = ""
    chained: int = 0

    def policy(self, base: JobPolicy) -> JobPolicy:
        """Return its policy; ``base`` is that of the settings."""
        return policy_for(base, self.spec.policy, self.maker)

    def timing(self, base: JobPolicy) -> Timing:
        """Return when it runs."""
        return timing(self.spec, self.policy(base), self.id)

    def upcoming(self, base: JobPolicy, count: int = 3) -> list[datetime]:
        """Return its next ``count`` runs; none unless it is active."""
        if self.state is not JobState.ACTIVE or self.next_run_at is None or count < 1:
            return []
        following = upcoming(self.timing(base), after=self.next_run_at, count=count - 1)
        return [self.next_run_at, *following]


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A work item from a work source (SPEC CRON-18). All of it is user content."""

    id: str
    title: str
    body: str = ""
    url: str = ""


def is_called(job: Job, name: str) -> bool:
    """Return whether this is the slug or the name of a job, ignoring case."""
    return name.casefold() in (job.spec.slug, job.spec.name.casefold())


def policy_for(base: JobPolicy, own: Mapping[str, object], maker: Maker) -> JobPolicy:
    """Return a job's policy with its ``own`` keys. Raises ``BadJob``.

    Only operators may let a job run more often than the settings allow (SPEC CRON-15).
    """
    policy = policy_with(base, own)
    policy = spaced_by(policy, 0.0 if maker is Maker.OPERATOR else base.min_interval)
    return for_model(policy) if maker is Maker.MODEL else policy


def may_schedule(job: Job, policy: JobPolicy, *, item: bool) -> bool:
    """Return whether a scheduled run gets the tools that change its owner's jobs.

    Never with a work ``item``: text of strangers could create jobs that outlive the run, and in a
    job of an operator it could change all jobs of operators. A program calls no tools.
    """
    return policy.tools_in_runs and not item and not isinstance(job.spec.payload, Program)


def timing(spec: JobSpec, policy: JobPolicy, job: JobId | None = None) -> Timing:
    """Return when a job with this definition runs."""
    return Timing(
        schedule=spec.schedule,
        zone=spec.zone,
        anchor=policy.anchor,
        first_run=policy.first_run,
        spread=job,
        jitter=policy.jitter,
        stagger=policy.stagger,
        not_after=spec.not_after,
    )


def session_for(job: Job, policy: JobPolicy, run: RunId | None) -> SessionKey | None:
    """Return the session that a job runs in (CRON-14, IO-7); None if each run has its own.

    With ``run``, that of this run.
    """
    spec = job.spec
    match policy.session:
        case SessionKind.MAIN if isinstance(spec.target, Target):
            return chat_session(spec.agent, spec.target, spec.peer)
        case SessionKind.KEY:
            return SessionKey(spec.session)
        case SessionKind.FRESH:
            return None if run is None else job_session(spec.agent, job.id, run)
        case _:
            return job_session(spec.agent, job.id)


def slug_for(text: str, used: frozenset[str] | set[str] = frozenset()) -> str:
    """Return a slug that is not ``used``, from a name or the first words of a prompt.

    Other scripts are transliterated: ``Grüße 日本`` becomes ``gruesse-ri-ben``. A text without
    letters and digits gives ``job``.
    """
    letters = unicodedata.normalize("NFC", text).lower()
    latin = "".join(char if char.isascii() else _latin(char) for char in letters)
    plain = re.sub(r"[^a-z0-9]+", "-", latin.lower())[:200].strip("-")
    words = plain.split("-")
    slug = ""
    for word in words:
        if len(slug) + len(word) + 1 > 40:
            break
        slug = f"{slug}-{word}" if slug else word
    slug = slug or plain[:40].strip("-") or "job"
    number, found = 1, slug
    while found in used:
        number += 1
        found = f"{slug}-{number}"
    return found


def _latin(char: str) -> str:
    if unicodedata.category(char)[0] not in "LMN":
        return "-"
    latin = _GERMAN.get(char) or anyascii(char)
    return f"-{latin}-" if latin[:1].isupper() else latin  # one ideograph is one word


def checked(spec: JobSpec) -> JobSpec:
    """Return the definition without surplus blanks. Raises ``BadJob`` if it is not valid.

    ``schedule.jobs.schedule`` checks its schedule.
    """
    name = " ".join(spec.name.split())
    if not SLUG.fullmatch(spec.slug):
        raise BadJob(
            "slug", "must be 1 to 64 characters of a-z 0-9 _ -, and begin with a letter or digit"
        )
    if len(name) > MAX_NAME_CHARS:
        raise BadJob("name", f"may have at most {MAX_NAME_CHARS} characters")
    _check_names(replace(spec, name=name))
    _check_payload(spec.payload)
    if spec.max_runs is not None and not 1 <= spec.max_runs <= 1_000_000_000:
        raise BadJob("max_runs", "must be at least 1")
    if bool(spec.session) != (spec.policy.get("session") == SessionKind.KEY):
        raise BadJob(
            "session", 'a session key needs the policy session = "key", and that policy needs a key'
        )
    policy_with(JobPolicy(), spec.policy)
    return replace(spec, name=name)


def _check_names(spec: JobSpec) -> None:
    names: dict[str, str | None] = {
        "name": spec.name,
        "session": spec.session,
        "zone": spec.zone,
        "agent": spec.agent,
        "source": spec.source,
    }
    if isinstance(spec.payload, Prompt):
        names["model"] = spec.payload.model
    if isinstance(spec.target, Target):
        target = spec.target
        parts = (target.channel, target.account, target.chat, target.thread or "")
        names["target"] = "".join(parts)
    for key, name in names.items():
        if name and NOT_IN_NAMES.search(name):
            raise BadJob(key, "must not contain control characters")


def _check_payload(payload: Payload) -> None:
    match payload:
        case Prompt(text) | FixedMessage(text):
            key = "prompt" if isinstance(payload, Prompt) else "message"
            if not text.strip():
                raise BadJob(key, "must not be empty")
            if len(text) > MAX_TEXT_CHARS:
                raise BadJob(key, f"may have at most {MAX_TEXT_CHARS:,} characters")
            if NOT_IN_TEXTS.search(text):
                raise BadJob(key, "must not contain NUL characters or unpaired surrogates")
        case Program(argv):
            if not argv or not argv[0] or any(map(NOT_IN_TEXTS.search, argv)):
                raise BadJob("command", "must be a program and its arguments")
