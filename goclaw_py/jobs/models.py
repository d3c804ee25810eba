"""Jobs: their definition and their state (SPEC CRON-0, CRON-11)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from anyascii import anyascii

from goclaw_py.jobs.policy import JobPolicy, SessionKind, for_model, policy_with, spaced_by
from goclaw_py.jobs.schedule import Schedule, Timing
from goclaw_py.model.errors import BadJob
from goclaw_py.model.ids import MAIN_AGENT, AgentName, JobId, OccurrenceId, Owner, RunId, SessionKey
from goclaw_py.model.messages import PeerKind, Target
from goclaw_py.model.owners import Maker
from goclaw_py.model.session_keys import chat_session, job_session

OPERATOR: Final = Owner("operator")
"""Owns what was made from the command line or over HTTP."""

MAX_TEXT_CHARS: Final = 100_000
"""The longest prompt or message of a job."""
MAX_NAME_CHARS: Final = 200
NOT_IN_NAMES: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, ends of lines and halves of characters, of which no name has any."""
NOT_IN_TEXTS: Final = re.compile(r"[\x00\ud800-\udfff]")
"""What no database holds: a text with it would not be stored as it was given."""
SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_GERMAN: Final = {"ä": "ae", "ö": "oe", "ü": "ue"}
"""`anyascii` drops the dots; German readers expect the two letters."""


class JobState(StrEnum):
    """The state of a job."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    """It has run as often as it was to."""
    FAILED = "failed"
    """It was to run once, and that failed."""
    DISABLED = "disabled"
    """Switched off after failures in a row."""


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
    """This is delivered as it stands, without any model."""

    text: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run; operators only. Its output is the result."""

    argv: tuple[str, ...]


Payload = Prompt | FixedMessage | Program


class TargetKind(StrEnum):
    """Where a job delivers its results, unless it names a chat."""

    LAST = "last"
    """Where its owner's chat spoke to its agent last; for those of operators: where anybody did."""
    NONE = "none"


JobTarget = Target | TargetKind


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The definition of a job.

    Args:
        slug: Its name within those of its owner; ``SLUG`` matches.
        name: What people call it; may be empty.
        zone: The exact IANA name of a zone.
        session: The key of its conversation if its policy says ``SessionKind.KEY``.
        peer: With whom the chat is that it tells its results.
        policy: Keys that differ from the policy of the settings.
        max_runs: It is completed after so many runs.
        not_after: It does not run after this.
        source: The name of the work source that it takes its work from, "" for none.
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
        """What people read: its name, or its slug."""
        return self.name or self.slug


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job.

    Args:
        revision: Counts the changes that people made.
        next_run_at: None while it is not active, and if nothing lies ahead. While ``running`` it is
            still the time of that run.
        running: The occurrence that is claimed.
        failures: How many runs in a row have failed.
        runs: How many occurrences have ended in a run.
        coalesced: How many firings came while it could not run.
        last_error: Why the last run failed, "" if it did not.
        creator: Who asked for it in a chat (``person_at``), "" if nobody there has.
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

    def policy(self, base: JobPolicy) -> JobPolicy:
        """How it behaves, where ``base`` is what the settings say."""
        return policy_for(base, self.spec.policy, self.maker)

    def timing(self, base: JobPolicy) -> Timing:
        """When it runs."""
        return timing(self.spec, self.policy(base), self.id)


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Something to be done, from a work source (SPEC CRON-18). All of it is user content."""

    id: str
    title: str
    body: str = ""
    url: str = ""


def policy_for(base: JobPolicy, own: Mapping[str, object], maker: Maker) -> JobPolicy:
    """The policy of a job with these keys of its ``own``. Raises ``BadJob``.

    Only operators let a job be more frequent than the settings do (SPEC CRON-15).
    """
    policy = policy_with(base, own)
    policy = spaced_by(policy, 0.0 if maker is Maker.OPERATOR else base.min_interval_s)
    return for_model(policy) if maker is Maker.MODEL else policy


def may_schedule(job: Job, policy: JobPolicy, *, item: bool) -> bool:
    """Whether a scheduled run gets the tools that make, change and delete its owner's jobs.

    Never with a work ``item``: what strangers write would make jobs that outlive the run, and in a
    job of an operator it would reach those of all operators. Nor a program, which calls no tools.
    """
    return policy.tools_in_runs and not item and not isinstance(job.spec.payload, Program)


def timing(spec: JobSpec, policy: JobPolicy, job: JobId | None = None) -> Timing:
    """When a job with this definition runs."""
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
    """The conversation that a job runs in (SPEC CRON-14, IO-7); None if each run has its own.

    With ``run`` that of this run.
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


def slug_for(text: str, taken: frozenset[str] | set[str] = frozenset()) -> str:
    """Make a slug that is not ``taken`` from a name or the first words of a prompt.

    Letters of other scripts are transliterated: `Grüße 日本` becomes `gruesse-ri-ben`.
    A text without letters and digits gives `job`.
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
    while found in taken:
        number += 1
        found = f"{slug}-{number}"
    return found


def _latin(char: str) -> str:
    if unicodedata.category(char)[0] not in "LMN":
        return "-"
    latin = _GERMAN.get(char) or anyascii(char)
    return f"-{latin}-" if latin[:1].isupper() else latin  # one ideograph is one word


def checked(spec: JobSpec) -> JobSpec:
    """The definition without needless blanks. Raises ``BadJob`` for what no job may have.

    Its schedule is checked by ``jobs.schedule``.
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
