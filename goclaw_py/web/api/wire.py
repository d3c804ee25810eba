"""Paths, bodies and events of the API, for the server and its client.

Imports no web framework, to keep the client light.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Final, Generic, TypeVar, get_args

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from goclaw_py.chat.terminals import ChatEvent, OpenButtons, TerminalMessage
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.run_events import (
    ButtonsUsed,
    LineReceived,
    PressAnswered,
    RunEnded,
    RunStarted,
    RunText,
    RunTool,
    RunWaiting,
)
from goclaw_py.runs.events.live import LiveEvent
from goclaw_py.schedule.jobs.models import MAX_TEXT_CHARS
from goclaw_py.scheduler.views import MAX_LANE_SIZE

T = TypeVar("T")

MAX_BODY_BYTES = 12 * MAX_TEXT_CHARS + 64 * 1024
"""Room for the longest text: JSON may need twelve bytes for a character."""

MAX_LIMIT = 1_000
MAX_UPLOADS = 100
"""The largest number of files in a message, whatever the settings say."""
PING_S = 15.0
"""Seconds between pings of an idle event stream."""

ATTACHED = b": attached\n\n"
"""The first line of a chat's event stream: from here on no event is missed."""
PING = b": ping\n\n"

Key = Annotated[str, Field(min_length=1, max_length=512)]
Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
ShortText = Annotated[str, Field(max_length=256)]
Name = Annotated[str, Field(min_length=1, max_length=256)]
MAX_ROW_ID = 2**63 - 1
RowId = Annotated[int, Field(strict=True, ge=0, le=MAX_ROW_ID)]
RowIds = Annotated[list[RowId], Field(max_length=MAX_LIMIT)]
Flag = Annotated[bool, Field(strict=True)]
OneLine = Annotated[Name, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]
"""Text without control characters, because it is shown in terminals."""

_WRITTEN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}")


def _written(given: object) -> object:
    """Refuse the numbers that pydantic would read as seconds since 1970."""
    if isinstance(given, datetime) or (isinstance(given, str) and _WRITTEN.match(given)):
        return given
    raise ValueError("must be a time with a zone, such as 2026-01-02T03:00:00Z")


def _in_utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError("no calendar has this time in UTC") from None


Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_written, json_schema_input_type=AwareDatetime),
    AfterValidator(_in_utc),
]
"""A time as RFC 3339 writes it, read in UTC."""


class Body(BaseModel):
    """A body that refuses unknown keys, such as misspelt ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class ApiError:
    """The body of every response with an error."""

    error: str


class ResizeBody(Body):
    """The number of slots of a lane."""

    concurrency: Annotated[int, Field(strict=True, ge=1, le=MAX_LANE_SIZE)]


class FileBody(Body):
    """An uploaded file, with its name for people."""

    ref: Name
    name: ShortText = ""


class SayBody(Body):
    """A line from a terminal; a repeated ``message_id`` is ignored.

    ``agent``: the agent that answers, null for that of the settings. ``files``: uploaded files.
    """

    message_id: OneLine
    text: Text
    agent: Name | None = None
    files: Annotated[list[FileBody], Field(max_length=MAX_UPLOADS)] = []


class PressBody(Body):
    """A press of a button below the message with this receipt."""

    press_id: OneLine
    receipt: Name
    data: Annotated[str, Field(min_length=1, max_length=64)]
    agent: Name | None = None


class ConfirmBody(Body):
    """The receipt of a message that was shown."""

    receipt: Name


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return an adapter that reads and writes a type as JSON."""
    return TypeAdapter(kind)


def dump(kind: Any, value: object) -> bytes:
    """Return a value as JSON bytes."""
    return adapter(kind).dump_json(value)


def read(kind: type[T], raw: bytes) -> T:
    """Parse a value from JSON bytes. Raises ``Unreadable``."""
    hashable: Any = kind
    try:
        value: T = adapter(hashable).validate_json(raw)
    except ValidationError as error:
        raise Unreadable(
            "the answer of the gateway cannot be read; check that both run the same release"
        ) from error
    return value


class Unreadable(GoclawError):
    """The response has another format."""


# ---------------------------------------------------------------------------- events

CHAT_EVENTS: Mapping[str, type[ChatEvent]] = {
    "run_started": RunStarted,
    "run_text": RunText,
    "run_tool": RunTool,
    "run_waiting": RunWaiting,
    "run_ended": RunEnded,
    "said": TerminalMessage,
    "open_buttons": OpenButtons,
    "line_received": LineReceived,
    "buttons_used": ButtonsUsed,
    "press_answered": PressAnswered,
}
"""The events of a chat, by the names of server-sent events."""

LIVE_EVENTS: Mapping[str, type[LiveEvent]] = {
    kind.__dataclass_fields__["kind"].default: kind for kind in get_args(LiveEvent)
}
"""The events of runs, by the value of ``kind``."""

_NAMES: Mapping[type, str] = {
    kind: name for names in (CHAT_EVENTS, LIVE_EVENTS) for name, kind in names.items()
}


def encode_event(event: ChatEvent | LiveEvent) -> bytes:
    """Return an event as a server-sent event."""
    kind = type(event)
    place: str = getattr(event, "id", "")
    line = f"id: {place}\n" if place else ""
    return b"%sevent: %s\ndata: %s\n\n" % (line.encode(), _NAMES[kind].encode(), dump(kind, event))


class EventReader(Generic[T]):
    """Parses server-sent events from the bytes of a stream.

    Parses what ``encode_event`` writes: one data line per event. Comments and other events are
    skipped. Lines end only at a newline: JSON may contain U+2028 and other characters at which
    ``str.splitlines`` splits.
    """

    def __init__(self, kinds: Mapping[str, type[T]]) -> None:
        self._kinds = kinds
        self._rest = b""
        self._name = b""
        self._data = b""

    def feed(self, chunk: bytes) -> Iterator[T]:
        """Take a piece of the stream and yield the events that it completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            field, _, value = line.partition(b": ")
            if field == b"event":
                self._name = value
            elif field == b"data":
                self._data = value
            elif not line:
                kind = self._kinds.get(self._name.decode())
                data, self._name, self._data = self._data, b"", b""
                if kind is not None:
                    yield read(kind, data)
