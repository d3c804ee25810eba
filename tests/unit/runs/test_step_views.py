"""Steps as operators see them (SPEC OPS-8)."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from goclaw_py.core.run_events import NO_USAGE, ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import NewMessagesStep, ResponseStep, RunStep, ValueStep
from goclaw_py.runs.step_views import StepKind, StepView, step_view

USED = Usage(1, 10, 5)


def response(*parts: ModelResponsePart) -> bytes:
    return ModelMessagesTypeAdapter.dump_json([ModelResponse(parts=parts)])


@pytest.mark.parametrize(("step", "view"), [
    (ToolStarted("c", "pay", '{"to": 1}'), StepView(7, StepKind.CALL, "pay", '{"to": 1}')),
    (
        ToolEnded("c", "pay", ok=False, result="no"),
        StepView(7, StepKind.RESULT, "pay", "no", ok=False),
    ),
    (NewMessagesStep("and Bob"), StepView(7, StepKind.TAKEN, text="and Bob")),
    (ValueStep("order", "[1]"), StepView(7, StepKind.VALUE, "order", "[1]")),
    (None, StepView(7, StepKind.UNREADABLE)),
])  # fmt: skip
def test_a_step_has_number_kind_name_and_text(step: RunStep | None, view: StepView) -> None:
    assert step_view(7, step) == view


@pytest.mark.parametrize(("native", "text"), [
    (response(TextPart("Hello"), TextPart(" "), TextPart("Ann")), "Hello\nAnn"),
    (response(ThinkingPart("hm"), ToolCallPart("pay"), ToolCallPart("book")), "calls pay, book"),
    (response(TextPart("I pay"), ToolCallPart("pay")), "I pay\ncalls pay"),
    (response(TextPart("x" * 5000)), "x" * 1999 + "…"),
    (b"not JSON", ""),
    (b'{"parts": 1}', ""),
    (b'[1, {"parts": [2, {"part_kind": "text", "content": 3}]}]', ""),
])  # fmt: skip
def test_a_response_is_read_by_what_it_says_and_calls(native: bytes, text: str) -> None:
    shown = StepView(7, StepKind.RESPONSE, text=text, usage=USED)
    assert step_view(7, ResponseStep(native, USED)) == shown


def test_a_summary_is_told_from_an_answer() -> None:
    assert step_view(1, ResponseStep(b"[]", NO_USAGE, is_summary=True)).kind is StepKind.SUMMARY
