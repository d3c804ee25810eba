"""The steps of a run as bars on the time of the run.

Tool calls have a start and a duration. Responses of a model have no stored times: a model works
while no tool does, so the time between tool calls is theirs. The last one is not stored as a step:
it is the answer, is being made, or was cut short.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.operations.runs.operations import RunRecord
from goclaw_py.records import ToolCall
from goclaw_py.runs.step_views import StepKind, StepView

WIDTH: Final = 1000
"""The duration of the run, in units."""

_NARROWEST: Final = 4.0
_SHORTEST: Final = 0.01
"""The shortest part of the run for which the last response has a bar."""

_MODEL: Final = (StepKind.RESPONSE, StepKind.SUMMARY)


@dataclass(frozen=True, slots=True)
class StepBar:
    """A step of a run. A step without a time has no bar: its ``width`` is 0.

    Args:
        view: The stored step; None for the last response, and for a tool call without a step.
        lasted: None if it is unknown; so far, of a response that is being made.
        is_estimated: The time is that between the tool calls before and after it.
        tool: The tool call; None for other steps.
    """

    view: StepView | None
    tool: ToolCall | None = None
    x: float = 0.0
    width: float = 0.0
    lasted: timedelta | None = None
    is_estimated: bool = False


def step_bars(record: RunRecord, now: datetime) -> list[StepBar]:
    """Return the steps of a run in order, in units of its duration until now or its end.

    A result of a tool belongs to the bar of its call.
    """
    run = record.run
    end = run.finished_at or now
    whole = max(end - run.started_at, timedelta(milliseconds=1))
    calls = list(run.tools)
    bars: list[StepBar] = []

    def place(since: datetime, until: datetime) -> tuple[float, float]:
        width = min(max((until - since) / whole * WIDTH, _NARROWEST), WIDTH)
        x = min(max((since - run.started_at) / whole, 0.0), 1.0) * WIDTH
        return round(min(x, WIDTH - width), 1), round(width, 1)

    free_at = run.started_at  # since then no tool is running
    covered_to = run.started_at
    for view, tool in _paired(record.steps, calls):
        if tool is not None:
            since, until = tool.started_at, end if tool.seconds is None else _after(tool)
            lasted = None if tool.seconds is None else until - since
            free_at = max(free_at, until)
        elif view is not None and view.kind in _MODEL:
            later = [one.started_at for one in calls if one.started_at >= free_at]
            since, until = free_at, min(later, default=end)
            lasted = until - since
        else:
            bars.append(StepBar(view))
            continue
        covered_to = max(covered_to, until)
        bars.append(StepBar(view, tool, *place(since, until), lasted, tool is None))
    is_answer = end - covered_to > whole * _SHORTEST if bars else run.finished_at is None
    if is_answer:
        bars.append(
            StepBar(None, None, *place(covered_to, end), end - covered_to, is_estimated=True)
        )
    return bars


def _after(tool: ToolCall) -> datetime:
    return tool.started_at + timedelta(seconds=tool.seconds or 0.0)


def _paired(
    views: tuple[StepView, ...], calls: list[ToolCall]
) -> Iterator[tuple[StepView | None, ToolCall | None]]:
    """Yield steps with the tool call of each, then calls without a step.

    The call of a step is the first one of this name that has none yet.
    """
    left = list(calls)
    shown: list[str] = []  # tools whose calls have their results already
    for view in views:
        if view.kind is StepKind.RESULT and view.name in shown:
            shown.remove(view.name)
            continue
        named = (one for one in left if view.kind is StepKind.CALL and one.name == view.name)
        tool = next(named, None)
        if tool is not None:
            left.remove(tool)
            shown.append(tool.name)
        yield view, tool
    yield from ((None, tool) for tool in left)
