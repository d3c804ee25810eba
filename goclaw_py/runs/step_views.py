"""The steps of runs as operators see them (SPEC OPS-8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import DecisionStep, NewMessagesStep, ResponseStep, RunStep, ValueStep
from goclaw_py.core.text import truncate

_TEXT: Final = 2_000
"""The largest number of characters of a step that are shown."""


class StepKind(StrEnum):
    """What a step is."""

    RESPONSE = "response"
    """A model response."""
    SUMMARY = "summary"
    """A model response that summarizes the conversation."""
    CALL = "call"
    """The start of a tool call."""
    RESULT = "result"
    """The result of a tool call."""
    TAKEN = "taken"
    """Messages of people that joined the run."""
    DECISION = "decision"
    """The answer of a person to a question about a tool call."""
    VALUE = "value"
    """The result of a named step of an agent in Python."""
    UNREADABLE = "unreadable"
    """It is damaged, or another release wrote it."""


@dataclass(frozen=True, slots=True)
class StepView:
    """A step of a run.

    Args:
        number: Its number in the run, from 1.
        name: The name of the tool, or of the step of an agent in Python; else "".
        text: What was said or returned, or the arguments of a call; may be truncated.
        ok: Whether a tool call succeeded; None if the step is no result.
        usage: What the model response used; None if the step is no response.
    """

    number: int
    kind: StepKind
    name: str = ""
    text: str = ""
    ok: bool | None = None
    usage: Usage | None = None


def step_view(number: int, step: RunStep | None) -> StepView:
    """Return a step as operators see it; None is one that cannot be read."""
    match step:
        case ResponseStep(native, usage, is_summary):
            kind = StepKind.SUMMARY if is_summary else StepKind.RESPONSE
            view = StepView(number, kind, text=_texts(native), usage=usage)
        case ToolStarted():
            view = StepView(number, StepKind.CALL, step.name, _truncated(step.arguments))
        case ToolEnded():
            view = StepView(number, StepKind.RESULT, step.name, _truncated(step.result), step.ok)
        case NewMessagesStep(text):
            view = StepView(number, StepKind.TAKEN, text=_truncated(text))
        case ValueStep(name, value):
            view = StepView(number, StepKind.VALUE, name, _truncated(value))
        case DecisionStep(_, decision):
            view = StepView(number, StepKind.DECISION, text=decision)
        case _:
            view = StepView(number, StepKind.UNREADABLE)
    return view


def _texts(native: bytes) -> str:
    """Return the texts of a model response, or else the names of the tools that it calls."""
    try:
        parts = list(_parts(orjson.loads(native)))
    except orjson.JSONDecodeError:
        return ""
    texts = [part["content"] for part in parts if part.get("part_kind") == "text"]
    calls = [part["tool_name"] for part in parts if part.get("part_kind") == "tool-call"]
    lines = [text for text in texts if isinstance(text, str) and text.strip()]
    if calls:
        lines.append(f"calls {', '.join(map(str, calls))}")
    return _truncated("\n".join(lines))


def _parts(messages: object) -> Iterator[dict[str, Any]]:
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and {"content", "tool_name"} & part.keys():
                yield part


def _truncated(text: str) -> str:
    return truncate(text, _TEXT)
