"""What a run continues from (SPEC AGENT-5)."""

from __future__ import annotations

import pytest

from goclaw_py.core.run_events import NO_USAGE, ToolStarted, Usage
from goclaw_py.core.run_steps import ResponseStep, RunStep
from goclaw_py.records.runs import RunStartResult

CALL = ToolStarted("c", "pay", "{}")


@pytest.mark.parametrize(("steps", "counted"), [
    (None, Usage(2)),
    ((), Usage(2)),
    ((CALL,), Usage(2)),
    # A model replays its responses, and counts them again.
    ((ResponseStep(b"[]", Usage(2)), CALL), NO_USAGE),
])  # fmt: skip
def test_what_was_used_before_is_counted_once(
    steps: tuple[RunStep, ...] | None, counted: Usage
) -> None:
    assert RunStartResult(cut_usage=Usage(2), steps=steps).uncounted == counted
