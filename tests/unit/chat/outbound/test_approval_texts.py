"""Questions about tool calls with any arguments (SPEC AGENT-11)."""

from __future__ import annotations

import json

import pytest

from goclaw_py.chat.outbound.approval_texts import arguments, question
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


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ('{"to": "Ann\\nBob", "usd": 5}', [("to", "Ann\nBob"), ("usd", "5")]),
        ('{"a\u202eb": "x"}', [("ab", "x")]),
        ("{}", []),
        ("{", [("Arguments", "{")]),
        ("[1]", [("Arguments", "[1]")]),
        ('{"a": ' + "9" * 5000 + "}", [("Arguments", '{"a": ' + "9" * 1994)]),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", [("Arguments", '{"a": ' + "[" * 1994)]),
    ],
    ids=["lines", "a hostile name", "none", "no JSON", "no object", "a large number", "too deep"],
)
def test_a_page_shows_arguments_as_names_and_values(
    given: str, values: list[tuple[str, str]]
) -> None:
    assert arguments(given) == values


def test_a_page_shows_some_of_very_many_arguments() -> None:
    shown = arguments(json.dumps({f"n{number}": number for number in range(99)}))
    assert len(shown) == 16
    assert shown[-1] == ("…", "and 84 more")


def test_an_uncertain_call_without_context_is_asked_about_without_an_empty_paragraph() -> None:
    asked = question(ApprovalRequest("c", "pay", "{}", uncertain=True), NO_CONTEXT)
    assert asked.endswith("call took effect:\n\npay\n\nPlease check.")
