"""The bodies of ``/api/schedule`` (SPEC CRON-19): names as in JavaScript, times with milliseconds.

The reference is ``docs/guide/api.md``. Instants are ``2026-01-30T09:00:00.000Z``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_validator,
)
from pydantic.alias_generators import to_camel

from goclaw_py.core.targets import TARGET_FORM, target_text
from goclaw_py.schedule.cron.parser import MAX_CHARS
from goclaw_py.schedule.jobs.execution_models import UNTOLD
from goclaw_py.schedule.jobs.models import (
    MAX_TEXT_CHARS,
    Job,
    JobState,
    Prompt,
    TargetKind,
    session_for,
)
from goclaw_py.schedule.jobs.policy import Profile, SessionKind
from goclaw_py.schedule.jobs.schedule import MAX_INTERVAL, At, Cron, Every, Schedule, schedule_of
from goclaw_py.schedule.jobs.view_texts import kind_and_text
from goclaw_py.web.caco.texts import SCHEDULE_REQUIRED, least_interval

_MILLISECOND: Final = timedelta(milliseconds=1)
_MINUTE_MS: Final = 60_000
_MAX_MS: Final = MAX_INTERVAL // _MILLISECOND
_RESULTS: Final[Mapping[str, str]] = {
    "ok": "success",
    "failed": "error",
    **dict.fromkeys(UNTOLD, "success"),
}

_BODY: Final[dict[str, Any]] = {
    "slug": "daily-standup",
    "prompt": "Generate daily standup summary from git commits",
    "enabled": True,
    "schedule": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"},
    "sessionConfig": {"model": "openai:gpt-4o", "persistSession": True},
}
_VIEW: Final[dict[str, Any]] = {
    **_BODY,
    "target": "none",
    "payload": "prompt",
    "state": "active",
    "lastRun": "2026-01-29T08:00:15.123Z",
    "lastResult": "success",
    "lastError": None,
    "deliveryError": None,
    "sessionId": "agent:main:cron:019c0000-0000-7000-8000-000000000000",
    "nextRun": "2026-01-30T08:00:00.000Z",
}


_SHOWN_ONLY: Final = frozenset(
    {
        "payload",
        "state",
        "lastRun",
        "lastResult",
        "lastError",
        "deliveryError",
        "sessionId",
        "nextRun",
    }
)
"""Keys of GET that cannot be set."""


class Wire(BaseModel):
    """A body."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class StrictBody(Wire):
    """A request body, which refuses unknown keys, such as misspelt ones.

    The result of GET is accepted: its read-only keys are ignored, and null keys in a schedule.
    """

    model_config = ConfigDict(extra="forbid")


def _set_keys(body: object) -> object:
    """Return a body without read-only keys."""
    if not isinstance(body, dict):
        return body
    return {key: value for key, value in body.items() if key not in _SHOWN_ONLY}


def _given_keys(schedule: object) -> object:
    """Return a schedule without null keys, which belong to other kinds of schedules."""
    if not isinstance(schedule, dict):
        return schedule
    names = {to_camel(name) for name in ScheduleShape.model_fields}
    return {k: value for k, value in schedule.items() if value is not None or k not in names}


def _example(example: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})


Zone = Annotated[
    str | None, Field(max_length=64, description="an IANA name; null: that of the settings")
]


class CronSchedule(StrictBody):
    """A schedule by the local time of its zone."""

    type: Literal["cron"]
    expression: Annotated[str, Field(min_length=1, max_length=MAX_CHARS)]
    timezone: Zone = None


class IntervalSchedule(StrictBody):
    """A repeating schedule; exactly one of the two durations is given."""

    type: Literal["interval"]
    interval_minutes: Annotated[
        StrictInt | StrictFloat | None, Field(json_schema_extra={"exclusiveMinimum": 0})
    ] = None
    every_ms: Annotated[StrictInt | None, Field(json_schema_extra={"exclusiveMinimum": 0})] = None
    timezone: Zone = None


class AtSchedule(StrictBody):
    """Once."""

    type: Literal["at"]
    at: Annotated[str, Field(max_length=64, description="ISO 8601 with the offset from UTC")]
    timezone: Zone = None


AnySchedule = Annotated[
    CronSchedule | IntervalSchedule | AtSchedule,
    Field(discriminator="type"),
    BeforeValidator(_given_keys),
]


class SessionConfig(StrictBody):
    """How it runs. ``model``: null is the agent's own; ``persistSession``: it keeps its history."""

    model: Annotated[str | None, Field(max_length=256)] = None
    persist_session: StrictBool | None = None


class PatchBody(StrictBody):
    """The changes."""

    model_config = _example({"enabled": False})

    _shown = model_validator(mode="before")(_set_keys)

    slug: Annotated[str | None, Field(description="that of the path, if it is given")] = None
    prompt: Annotated[str | None, Field(max_length=MAX_TEXT_CHARS)] = None
    enabled: StrictBool | None = None
    schedule: AnySchedule | None = None
    session_config: SessionConfig | None = None
    target: Annotated[
        str | None,
        Field(max_length=512, description=f"where its results go: none, last, or {TARGET_FORM}"),
    ] = None


class PutBody(PatchBody):
    """A schedule. ``prompt`` may be missing only if the settings have a default prompt."""

    model_config = _example(_BODY)

    schedule: AnySchedule


class ScheduleShape(Wire):
    """A schedule in a response."""

    type: Literal["cron", "interval", "at"]
    expression: str | None = None
    interval_minutes: int | None = None
    every_ms: int | None = None
    at: str | None = None
    timezone: str


class ScheduleView(Wire):
    """A schedule with its state.

    ``payload`` is the kind of ``prompt``: a prompt, a message that is sent as it is, or a command.
    ``lastResult``: ``success``, ``error``, or another word for the end of the last run. A run whose
    result reached nobody is a ``success``; ``deliveryError`` then says why.
    ``sessionId`` is null if each run has its own session.
    """

    model_config = _example(_VIEW)

    slug: str
    prompt: str
    payload: Literal["prompt", "message", "command"]
    enabled: bool
    schedule: ScheduleShape
    session_config: SessionConfig
    target: str
    state: JobState
    last_run: str | None
    last_result: str | None
    last_error: str | None
    delivery_error: str | None
    session_id: str | None
    next_run: str | None


class Put(Wire):
    """The result of PUT."""

    model_config = _example(
        {"slug": "daily-standup", "nextRun": "2026-01-30T08:00:00.000Z", "created": True}
    )

    slug: str
    next_run: str | None
    created: bool


class Deleted(Wire):
    """The result of DELETE."""

    model_config = _example({"slug": "daily-standup", "deleted": True})

    slug: str
    deleted: Literal[True] = True


class Executed(Wire):
    """A manual run has started. ``runId`` is null if no agent was needed."""

    model_config = _example(
        {
            "slug": "daily-standup",
            "status": "executed",
            "runId": "019c0000-0000-7000-8000-000000000001",
            "sessionId": "agent:main:cron:019c0000-0000-7000-8000-000000000000",
        }
    )

    slug: str
    status: Literal["executed"] = "executed"
    run_id: str | None
    session_id: str | None


class MessageAccepted(Wire):
    """A message is stored. ``runId`` is null if another node owns its session."""

    model_config = _example(
        {
            "accepted": True,
            "sessionId": "agent:main:telegram:direct:42",
            "runId": "019c0000-0000-7000-8000-000000000001",
        }
    )

    accepted: Literal[True] = True
    session_id: str
    run_id: str | None


class CacoMessageBody(StrictBody):
    """The message; exactly one of the two is given."""

    model_config = _example({"prompt": "what did I miss?"})

    prompt: Annotated[str | None, Field(max_length=MAX_TEXT_CHARS)] = None
    message: Annotated[str | None, Field(max_length=MAX_TEXT_CHARS)] = None


class CacoError(Wire):
    """An error. ``code`` is for programs; ``detail`` says more than ``error``."""

    model_config = _example({"error": "Schedule not found: daily-standup"})

    error: str
    code: str | None = None
    detail: str | None = None


# ---------------------------------------------------------------------------- reading


class Wrong(Exception):
    """An invalid body; ``str()`` is the error text."""


def schedule_from(given: CronSchedule | IntervalSchedule | AtSchedule, least_s: float) -> Schedule:
    """Return the schedule. Raises ``Wrong`` and ``BadSchedule``."""
    match given:
        case CronSchedule(expression=expression):
            return Cron(expression)
        case AtSchedule(at=at):
            return schedule_of({"kind": "at", "at": at})
        case IntervalSchedule(interval_minutes=None, every_ms=None):
            raise Wrong(SCHEDULE_REQUIRED)
        case IntervalSchedule(interval_minutes=None, every_ms=int(every_ms)):
            return _every(every_ms, least_s)
        case IntervalSchedule(interval_minutes=int(minutes) | float(minutes), every_ms=None):
            # Also false for a NaN; far beyond what is allowed, so that it has milliseconds.
            if not -_MAX_MS <= minutes <= _MAX_MS:
                raise Wrong(f"schedule.intervalMinutes: may be at most {_MAX_MS // _MINUTE_MS}")
            every_ms = round(minutes * _MINUTE_MS)
            # Of 1.1 minutes there are not quite 66,000 milliseconds.
            if abs(every_ms - minutes * _MINUTE_MS) > 1e-3:
                raise Wrong("schedule.intervalMinutes: must be a whole number of milliseconds")
            return _every(every_ms, least_s)
    raise Wrong("schedule: give intervalMinutes or everyMs, not both")


def _every(every_ms: int, least_s: float) -> Schedule:
    if every_ms <= 0:
        raise Wrong(least_interval(least_s))
    return schedule_of({"kind": "every", "every_ms": every_ms})


# ---------------------------------------------------------------------------- writing


def moment(at: datetime | None) -> str | None:
    """Return an instant as JavaScript writes it."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def view_of(job: Job, profile: Profile) -> ScheduleView:
    """Return a job as a schedule, given the profile of the settings."""
    payload = job.spec.payload
    policy = job.policy(profile.policy)
    model = payload.model if isinstance(payload, Prompt) else ""
    kind, text = kind_and_text(payload)
    target = job.spec.target
    undelivered = job.last_status in UNTOLD
    return ScheduleView(
        slug=job.spec.slug,
        prompt=text,
        payload=kind,
        enabled=job.state is JobState.ACTIVE,
        schedule=_shape(job.spec.schedule, job.spec.zone),
        session_config=SessionConfig(
            model=model or None, persist_session=policy.session is not SessionKind.FRESH
        ),
        target=target.value if isinstance(target, TargetKind) else target_text(target),
        state=job.state,
        last_run=moment(job.last_run_at),
        last_result=_RESULTS.get(job.last_status, job.last_status) or None,
        last_error=None if undelivered else job.last_error or None,
        delivery_error=job.last_error or job.last_status if undelivered else None,
        session_id=session_for(job, policy, None),
        next_run=moment(job.next_run_at),
    )


def _shape(schedule: Schedule, zone: str) -> ScheduleShape:
    match schedule:
        case At(at):
            return ScheduleShape(type="at", at=moment(at), timezone=zone)
        case Cron(expression):
            return ScheduleShape(type="cron", expression=expression, timezone=zone)
        case Every(interval):
            every_ms = interval // _MILLISECOND
            if every_ms % _MINUTE_MS:
                return ScheduleShape(type="interval", every_ms=every_ms, timezone=zone)
            minutes = every_ms // _MINUTE_MS
            return ScheduleShape(type="interval", interval_minutes=minutes, timezone=zone)
