"""Questions about tool calls with any arguments (SPEC AGENT-11)."""

from __future__ import annotations

import json

import pytest

from goclaw_py.chat.outbound.approval_texts import (
    answered,
    arguments,
    question,
    waits_elsewhere,
    without_question,
)
from goclaw_py.core.approvals import NO_CONTEXT, ApprovalRequest, Decision
from goclaw_py.core.text import utf16_len

SHORTENED = "(Shortened. All of it is on the page Approvals.)"

HUGE = '{"a": ' + "9" * 5000 + "}"
DEEP = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"to": "Ann", "usd": 5}', "  to: Ann\n  usd: 5"),
        ("{", "{"),
        ("[1]", "[1]"),
        (HUGE, '{"a": 9999'),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "  a: [[[["),
        (DEEP, '{"a": [[[['),
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
        (HUGE, [("Arguments", HUGE)]),
        (DEEP, [("Arguments", DEEP)]),
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


PATH = "/srv/" + "folder/" * 90 + "decisions.md"
LINES = "\n".join(f"line {number}" for number in range(40))


@pytest.mark.parametrize(
    ("given", "shown", "is_whole"),
    [
        ({"path": "a.md", "text": "# Decisions\n\n1. Ship on Thursday.\n"},
         ["  path: a.md", "  text:", "  │ # Decisions", "  │", "  │ 1. Ship on Thursday."], True),
        ({"code": "if a:\n    b()"}, ["  code:", "  │ if a:", "  │     b()"], True),
        ({"note": "x\n\nFrom: Ann\nBefore: allowed 9 times"},
         ["  note:", "  │ x", "  │", "  │ From: Ann", "  │ Before: allowed 9 times"], True),
        ({"path": PATH}, [f"  path: {PATH[:150]}…{PATH[-149:]}", SHORTENED], False),
        ({"text": LINES},
         ["  text:", *(f"  │ line {number}" for number in range(9)), "  │ … 28 more lines …",
          *(f"  │ line {number}" for number in range(37, 40)), SHORTENED], False),
    ],
    ids=["lines", "indented", "hostile", "a long path", "many lines"],
)  # fmt: skip
def test_a_call_can_be_judged_by_its_question(
    given: dict[str, str], shown: list[str], *, is_whole: bool
) -> None:
    asked = question(ApprovalRequest("c", "write_file", json.dumps(given)), NO_CONTEXT)
    assert asked.split("\n")[3:] == shown
    assert asked.endswith(SHORTENED) is not is_whole


@pytest.mark.parametrize("many", [1, 16, 99])
@pytest.mark.parametrize("value", ["🦊" * 9000, "🦊 fox\n" * 900, "x" * 299])
def test_any_question_fits_into_one_message(many: int, value: str) -> None:
    """Telegram's limit: 4,096 UTF-16 units; who asks, for what, and the answer stand below it."""
    given = json.dumps({f"n{number}": value for number in range(many)})
    asked = question(ApprovalRequest("c", "pay", given), NO_CONTEXT)
    assert utf16_len(asked) < 3000


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Decision.ONCE, "✅ The owner allowed it."),
        (Decision.DENY, "🚫 The owner did not allow it."),
        (Decision.EXPIRED, "⌛ The owner did not answer in time, so it was not done."),
        (Decision.STOPPED, "⏹ Stopped."),
    ],
)
def test_who_waits_is_told_the_decision(decision: Decision, said: str) -> None:
    request = ApprovalRequest("c", "pay", '{"to": "{who}"}')
    waits = waits_elsewhere([request], "", asks_owners=True)
    assert answered(waits, decision, "Ann") == f"{waits}\n\n{said}"
    asked = question(request, NO_CONTEXT)
    assert "Ann" in answered(asked, decision, "Ann") or decision.value in ("expired", "stopped")


@pytest.mark.parametrize(
    ("facts", "is_own"),
    [
        ("From: Ann", True),
        ("Request: x\nBefore: denied 1 time", True),
        ("From: the operator\nChat: conversation “Trip”\nRequest: x", False),
        ("From: bob (guest)\nChat: direct chat (web)", False),
        ("From: Bob\nChat: group “Crew”", False),
        ("Chat: conversation “Trip”\nJob: report", False),
    ],
)
def test_only_a_question_of_the_conversation_is_left_out_of_its_answer(
    facts: str, *, is_own: bool
) -> None:
    text = f"🔐 May I call this tool?\n\npay\n  to: Bob\n\n{facts}\n\n🚫 Denied by Ann."
    own = "May I call pay (to: Bob)? 🚫 Denied by Ann."
    assert without_question(text) == (own if is_own else text)


@pytest.mark.parametrize(
    ("given", "call"),
    [
        ("{}", "pay"),
        ('{"to": "Bob", "amount": 5}', "pay (to: Bob, amount: 5)"),
        ('{"path": "a.txt", "text": "b: 1\\nc: 2"}', "pay (path: a.txt)"),
    ],
)
def test_an_answered_question_is_one_line_with_the_call(given: str, call: str) -> None:
    for uncertain, line in ((False, f"May I call {call}? "), (True, f"Did {call} take effect? ")):
        asked = question(ApprovalRequest("c", "pay", given, uncertain=uncertain), NO_CONTEXT)
        said = answered(asked, Decision.SKIP, "Ann")
        assert without_question(said) == f"{line}⏭ Skipped by Ann."
