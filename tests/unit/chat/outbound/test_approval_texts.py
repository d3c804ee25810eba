"""Questions about tool calls with any arguments (SPEC AGENT-11)."""

from __future__ import annotations

import pytest

from goclaw_py.chat.outbound.approval_texts import question
from goclaw_py.core.approvals import NO_CONTEXT, ApprovalRequest


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"to": "Ann", "usd": 5}', "  to: Ann\n  usd: 5"),
        ("{", "{"),
        ("[1]", "[1]"),
        ('{"a": ' + "9" * 5000 + "}", '{"a": 9999'),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "  a: [[[["),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", '{"a": [[[['),
    ],
    ids=["readable", "no JSON", "no object", "a large number", "nested", "nested too deep"],
)
def test_any_arguments_can_be_asked_about(arguments: str, shown: str) -> None:
    asked = question(ApprovalRequest("c", "pay", arguments), NO_CONTEXT)
    assert asked.partition("pay\n")[2].startswith(shown)
    assert len(asked) < 600


def test_an_uncertain_call_without_context_is_asked_about_without_an_empty_paragraph() -> None:
    asked = question(ApprovalRequest("c", "pay", "{}", uncertain=True), NO_CONTEXT)
    assert asked.endswith("call took effect:\n\npay\n\nPlease check.")
