"""The bodies of ``/api/jobs``: checked by their shape, with the keys of ``jobs.job_json``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictBool, StrictInt

from goclaw_py.jobs.cron.parser import MAX_CHARS
from goclaw_py.jobs.models import MAX_NAME_CHARS, MAX_TEXT_CHARS, JobState, Notify, TargetKind
from goclaw_py.model.messages import PeerKind
from goclaw_py.model.owners import Maker

Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
ShortText = Annotated[str, Field(max_length=256)]


class Body(BaseModel):
    """A body without keys that nobody reads: a misspelt one must not be lost in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AtBody(Body):
    """Once."""

    kind: Literal["at"]
    at: ShortText


class EveryBody(Body):
    """Again and again. ``origin`` is a point of the grid, for that anchor."""

    kind: Literal["every"]
    every_ms: StrictInt
    origin: ShortText | None = None


class CronBody(Body):
    """By the clock on the wall."""

    kind: Literal["cron"]
    expression: Annotated[str, Field(max_length=MAX_CHARS)]


class PromptBody(Body):
    """The agent works on this; ``model`` instead of its own."""

    kind: Literal["prompt"]
    text: Text
    model: ShortText = ""


class MessageBody(Body):
    """This is delivered as it stands."""

    kind: Literal["message"]
    text: Text


class CommandBody(Body):
    """This program runs."""

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
Value = str | int | float | bool | list[float] | None
Policy = Annotated[dict[str, Value], Field(max_length=64)]
_CRON: Final[dict[str, Any]] = {"kind": "cron", "expression": "0 9 * * 1-5"}
_CHANGE: Final[dict[str, Any]] = {
    "schedule": {"kind": "every", "every_ms": 600_000},
    "state": "active",
}


def _of_a_change(schema: dict[str, Any]) -> None:
    """What is missing has no value at all, so no default is to be shown."""
    for described in schema["properties"].values():
        described.pop("default", None)
    schema["examples"] = [_CHANGE]


class DraftBody(Body):
    """A job that somebody wants. What is missing is found by the settings."""

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
    not_after: AwareDatetime | None = None
    wake_heartbeat: StrictBool = False
    source: ShortText = ""
    paused: StrictBool = False
    next_run_at: AwareDatetime | None = None


class ChangeBody(Body):
    """What an edit changes; what is missing stays as it is.

    In ``policy`` null takes a key back to that of the settings. ``state`` is ``active`` or
    ``paused``. The edit is refused unless the job is at ``revision``, if that is given.
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
    not_after: AwareDatetime | None = None
    wake_heartbeat: StrictBool = False
    source: ShortText = ""
    state: JobState = JobState.ACTIVE
    revision: StrictInt | None = None


class SpecView(BaseModel):
    """What people have decided of a job."""

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
    """A job, as ``jobs.job_json`` writes it."""

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
    """Some of the jobs that were asked for, and how many there are in all."""

    jobs: list[JobView]
    total: int
