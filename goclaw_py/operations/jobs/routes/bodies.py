"""Bodies and responses of the API of jobs, for requests and for its description."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from goclaw_py.core.messages import PeerKind
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.answers import FOUND
from goclaw_py.operations.jobs.models import JobChange, JobDraft
from goclaw_py.schedule.cron.parser import MAX_CHARS
from goclaw_py.schedule.jobs.job_json import read_fields
from goclaw_py.schedule.jobs.models import MAX_NAME_CHARS, JobState, Notify, TargetKind
from goclaw_py.web.api.wire import Body, Instant, ShortText, Text

MAX_TIMES: Final = 100
"""The largest number of next runs in a response."""


class AtBody(Body):
    """Once."""

    kind: Literal["at"]
    at: ShortText


class EveryBody(Body):
    """A repeating schedule. ``origin`` is a point of the grid, for the anchor ``grid``."""

    kind: Literal["every"]
    every_ms: StrictInt
    origin: ShortText | None = None


class CronBody(Body):
    """A schedule by local time."""

    kind: Literal["cron"]
    expression: Annotated[str, Field(max_length=MAX_CHARS)]


class PromptBody(Body):
    """A prompt for the agent; ``model`` replaces the agent's own."""

    kind: Literal["prompt"]
    text: Text
    model: ShortText = ""


class MessageBody(Body):
    """A text that is delivered as it is."""

    kind: Literal["message"]
    text: Text


class CommandBody(Body):
    """A program to run."""

    kind: Literal["command"]
    argv: Annotated[list[Text], Field(min_length=1, max_length=1000)]


class TargetBody(Body):
    """A chat."""

    channel: ShortText
    account: ShortText
    chat: ShortText
    thread: ShortText | None = None


ScheduleBody = Annotated[AtBody | EveryBody | CronBody, Field(discriminator="kind")]
PayloadBody = Annotated[PromptBody | MessageBody | CommandBody, Field(discriminator="kind")]
Value = str | int | float | bool | list[float | str] | None
Policy = Annotated[dict[str, Value], Field(max_length=64)]
_CRON: Final[dict[str, Any]] = {"kind": "cron", "expression": "0 9 * * 1-5"}
_CHANGE: Final[dict[str, Any]] = {
    "schedule": {"kind": "every", "every_ms": 600_000},
    "state": "active",
}


def _of_a_change(schema: dict[str, Any]) -> None:
    """Remove defaults from a schema: missing keys have no value."""
    for described in schema["properties"].values():
        described.pop("default", None)
    schema["examples"] = [_CHANGE]


class DraftBody(Body):
    """A new job. Missing keys come from the settings."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "slug": "standup",
                    "schedule": _CRON,
                    "zone": "Europe/Berlin",
                    "payload": {"kind": "prompt", "text": "What is new?"},
                }
            ]
        }
    )

    schedule: ScheduleBody
    payload: PayloadBody | None = None
    slug: ShortText = ""
    name: Annotated[str, Field(max_length=10 * MAX_NAME_CHARS)] = ""
    zone: ShortText = ""
    agent: ShortText | None = None
    target: TargetKind | TargetBody | None = None
    peer: PeerKind | None = None
    notify: Notify = Notify.ALWAYS
    session: ShortText = ""
    policy: Policy = Field(default_factory=dict)
    max_runs: StrictInt | None = None
    not_after: Instant | None = None
    wake_heartbeat: StrictBool = False
    source: ShortText = ""
    paused: StrictBool = False
    next_run_at: Instant | None = None


class ChangeBody(Body):
    """The changes of an edit; missing keys stay as they are.

    In ``policy``, null resets a key to the settings. ``state`` is ``active`` or ``paused``. With
    ``revision``, the edit fails if the job has another revision.
    """

    model_config = ConfigDict(json_schema_extra=_of_a_change)

    schedule: ScheduleBody = CronBody(kind="cron", expression="")
    payload: PayloadBody = MessageBody(kind="message", text="")
    slug: ShortText = ""
    name: Annotated[str, Field(max_length=10 * MAX_NAME_CHARS)] = ""
    zone: ShortText = ""
    agent: ShortText = ""
    target: TargetKind | TargetBody = TargetKind.LAST
    peer: PeerKind = PeerKind.DIRECT
    notify: Notify = Notify.ALWAYS
    session: ShortText = ""
    policy: Policy = Field(default_factory=dict)
    max_runs: StrictInt | None = None
    not_after: Instant | None = None
    wake_heartbeat: StrictBool = False
    source: ShortText = ""
    state: JobState = JobState.ACTIVE
    revision: StrictInt | None = None


class SpecView(BaseModel):
    """The definition of a job."""

    slug: str
    name: str
    agent: str
    schedule: ScheduleBody
    zone: str
    payload: PayloadBody
    target: TargetKind | TargetBody
    peer: PeerKind
    notify: Notify
    session: str
    policy: dict[str, Value]
    max_runs: int | None
    not_after: datetime | None
    wake_heartbeat: bool
    source: str


class JobView(BaseModel):
    """A job, as ``schedule.jobs.job_json`` writes it."""

    id: str
    owner: str
    maker: Maker
    spec: SpecView
    created_at: datetime
    updated_at: datetime
    state: JobState
    revision: int
    next_run_at: datetime | None
    running: str | None
    last_run_at: datetime | None
    last_status: str
    last_error: str
    failures: int
    runs: int
    coalesced: int


class PageView(BaseModel):
    """A page of jobs, and their total number."""

    jobs: list[JobView]
    total: int


@dataclass(frozen=True, slots=True)
class ZoneBody:
    """A time zone to choose; null resets it to the settings."""

    zone: Annotated[str | None, Field(max_length=256)]


def draft_of(body: DraftBody) -> JobDraft:
    """Parse a draft. Raises ``BadSchedule`` and ``BadJob``."""
    given = body.model_dump(mode="json", exclude_unset=True)
    given = {key: value for key, value in given.items() if value is not None or key not in FOUND}
    return JobDraft(**read_fields(JobDraft, given))


def change_of(body: ChangeBody) -> JobChange:
    """Parse a change. Raises the errors of ``draft_of``."""
    given = body.model_dump(mode="json", exclude_unset=True, exclude={"revision"})
    return JobChange(**read_fields(JobChange, given), revision=body.revision)
