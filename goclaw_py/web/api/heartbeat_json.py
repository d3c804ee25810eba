"""The JSON of heartbeats, for the server and its client.

Imports no web framework.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, ConfigDict, Field, StrictBool

from goclaw_py.core.errors import HeartbeatError
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.time.durations import read as read_interval
from goclaw_py.operations.heartbeat import HeartbeatStarted, NoHeartbeat
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, Item
from goclaw_py.schedule.heartbeat.status_texts import state_words, why
from goclaw_py.schedule.heartbeat.views import HeartbeatView
from goclaw_py.web.api.wire import Body, ShortText, Text

# ---------------------------------------------------------------------------- bodies


class EventBody(Body):
    """An event for an agent's next heartbeat run; with ``now``, that run is requested now."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "The build is red."}]})

    text: Text
    now: StrictBool = False


class SwitchBody(Body):
    """Whether a heartbeat is on; null: the settings decide."""

    on: StrictBool | None


class MuteBody(Body):
    """How long a heartbeat is muted: ``until`` a time, or ``for`` a duration such as ``2h``.

    ``{"until": null}`` unmutes it.
    """

    model_config = ConfigDict(
        # A null in an example is dropped on the way into OpenAPI, and {} is no such body.
        json_schema_extra={"examples": [{"for": "2h"}, {"until": "2030-01-01T09:00:00+01:00"}]}
    )

    until: AwareDatetime | None = None
    for_: Annotated[ShortText | None, Field(alias="for")] = None


Seen = Annotated[str | None, Field(max_length=64)]


class ChecklistBody(Body):
    """The whole HEARTBEAT.md.

    With the ``version`` that was read, it is written only if the file has not changed since.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "- [ ] look at the mail"}]})

    text: Text
    version: Seen = None


class DoneBody(Body):
    """The ``version`` of the checklist in which the number was read."""

    version: Seen = None


class ItemBody(Body):
    """A new item, without bullet and box."""

    text: Text


def muted_until(body: MuteBody, now: datetime) -> datetime | None:
    """Return the end of a mute in UTC, None to unmute.

    Raises ``HeartbeatError`` for a body with neither or both, and for a past time, and
    ``BadInterval``.
    """
    if len(body.model_fields_set) != 1:
        raise HeartbeatError(
            'set either until (a time) or for (a duration such as 2h); {"until": null} ends a mute'
        )
    if "for_" in body.model_fields_set:
        if body.for_ is None:
            raise HeartbeatError(
                "for: must be a duration such as 30m, 2h or 1d; to end a mute, set until to null"
            )
        return now + read_interval(body.for_)
    if body.until is None:
        return None
    try:
        until = body.until.astimezone(UTC)
    except OverflowError:
        raise HeartbeatError("until: no calendar has this time in UTC") from None
    if until <= now:
        raise HeartbeatError(
            f"until: {until.isoformat()} is in the past; to end a mute, set until to null"
        )
    return until


# ---------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class AgentView:
    """An agent of the settings."""

    name: AgentName


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer(HeartbeatView):
    """The state of a heartbeat, with descriptions.

    Args:
        on: Whether it is on, by people's choice or else by the settings.
        state: Its state in words, with interval, hours and mute.
        why: A line about the last heartbeat run, and one about the next.
    """

    on: bool = False
    state: str = ""
    why: tuple[str, str] = ("", "")


def answer_of(view: HeartbeatView) -> HeartbeatAnswer:
    """Return the view with its descriptions."""
    known: dict[str, Any] = {each.name: getattr(view, each.name) for each in fields(HeartbeatView)}
    said = state_words(view)
    return HeartbeatAnswer(**known, on=view.heartbeat.is_on, state=said, why=why(view))


@dataclass(frozen=True, slots=True)
class ChecklistAnswer:
    """A HEARTBEAT.md: the whole file, and its open items.

    Args:
        version: The version of the file. A change with it fails if the file was changed since.
    """

    text: str
    items: tuple[Item, ...] = ()
    version: str = ""


def checklist_answer(found: Checklist) -> ChecklistAnswer:
    """Return the response for a checklist."""
    return ChecklistAnswer(found.text, found.items, found.version)


@dataclass(frozen=True, slots=True)
class RanHeartbeat:
    """The result of a requested heartbeat run: its id, or why it did not start."""

    heartbeat_run: HeartbeatRunId | None = None
    refused: NoHeartbeat | None = None


def ran_heartbeat_run(result: HeartbeatStarted | NoHeartbeat) -> RanHeartbeat:
    """Return the response for a requested heartbeat run."""
    return (
        RanHeartbeat(refused=result)
        if isinstance(result, NoHeartbeat)
        else RanHeartbeat(result.heartbeat_run)
    )


def begun_of(answer: RanHeartbeat) -> HeartbeatStarted | NoHeartbeat:
    """Parse the response for a requested heartbeat run."""
    return (
        answer.refused or NoHeartbeat.OFF
        if answer.heartbeat_run is None
        else HeartbeatStarted(answer.heartbeat_run)
    )
