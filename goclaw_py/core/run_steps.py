"""The steps of a run: what a later run needs to continue it after a crash (SPEC AGENT-10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from goclaw_py.core.approvals import Decision
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage

MOST_STORED: Final = 1_000_000
"""The number of characters of a result, of a tool or a named step, that are stored."""


@dataclass(frozen=True, slots=True)
class ResponseStep:
    """A complete model response.

    Args:
        native: The response in the format of its agent loop (JSON).
        usage: What it alone has used.
        is_summary: Whether the model was asked for a summary of the conversation.
    """

    native: bytes
    usage: Usage
    is_summary: bool = False


@dataclass(frozen=True, slots=True)
class NewMessagesStep:
    """New messages of people that were added to a run (SPEC QUEUE-4), joined by newlines.

    ``rows`` are their inbox rows.
    """

    text: str
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueStep:
    """The result of a named step of an agent in Python code; ``value`` is JSON text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """The decision of a person about a tool call that waited for it (SPEC AGENT-11)."""

    call_id: str
    decision: Decision


RunStep = ResponseStep | ToolStarted | ToolEnded | NewMessagesStep | ValueStep | DecisionStep
