"""What the API answers about heartbeats, and how the commands read it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, Item, parse
from goclaw_py.schedule.heartbeat.models import HeartbeatStarted, NoHeartbeat
from goclaw_py.schedule.heartbeat.status_texts import state_words, why
from goclaw_py.schedule.heartbeat.views import HeartbeatView


@dataclass(frozen=True, slots=True)
class AgentView:
    """An agent of the settings."""

    name: AgentName


def names_of(views: list[AgentView]) -> tuple[AgentName, ...]:
    """Return the names of agents."""
    return tuple(view.name for view in views)


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


def checklist_of(answer: ChecklistAnswer) -> Checklist:
    """Parse the response with a checklist."""
    return parse(answer.text)


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
