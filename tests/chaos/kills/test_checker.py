"""The checker finds every violation that is planted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from goclaw_py.agents.models.replay import UNKNOWN_RESULT
from goclaw_py.chat.outbound import texts
from tests.chaos.kills.checker import Facts, Rule, check
from tests.chaos.kills.history import Asked, History
from tests.chaos.kills.records import Stored
from tests.chaos.kills.report import unstored
from tests.chaos.kills.script import Task
from tests.support.again import SENT_AGAIN

TASK = Task(6, (("pay", "look"),), words=2, word_s=0, tool_s=0, insists=True)
PAY, LOOK = "6.0.0.1", "6.0.1.1"
ANSWER = "t6r0: so\n\nt6r1: so"


def ask(history: History, results: dict[str, str]) -> Asked:
    """The model is asked about the task, with the results of its calls."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": TASK.text}]
    if results:
        messages.append({"role": "assistant"})
    for call, result in results.items():
        messages.append({"role": "tool", "tool_call_id": call, "content": result})
    return history.request(0, 0, {"messages": messages})


def start(facts: Facts, call: str, *, stored: bool = True) -> str:
    """A call reaches the shop and ends; its result."""
    started = facts.history.start(facts.history.calls[call].tool, call)
    started.ended = True
    facts.stored.calls.add(call)
    if stored:
        facts.stored.results.setdefault(call, []).append(started.result)
    return started.result


def answered() -> Facts:
    """A message that was answered without an interruption."""
    history = History({TASK.number: TASK})
    facts = Facts(history, Stored(), {TASK.number: ("completed", 1)}, {TASK.user: [ANSWER]})
    first = ask(history, {})
    second = ask(history, {call: start(facts, call) for call in (PAY, LOOK)})
    facts.stored.responses.extend([first.id, second.id])
    return facts


def interrupted_in_a_payment() -> Facts:
    """A message whose payment was interrupted by a kill."""
    history = History({TASK.number: TASK})
    facts = Facts(history, Stored(), {TASK.number: ("completed", 2)}, {TASK.user: [ANSWER]})
    first = ask(history, {})
    start(facts, PAY, stored=False)
    second = ask(history, {PAY: UNKNOWN_RESULT, LOOK: start(facts, LOOK)})
    facts.stored.responses.extend([first.id, second.id])
    return facts


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert check(answered()) == []


def test_a_model_that_is_told_may_ask_for_a_payment_again() -> None:
    facts = interrupted_in_a_payment()
    assert [call.purpose for call in facts.history.requests[-1].calls] == ["6.0.0.again"]
    again = start(facts, "6.0.0.again.1")
    results = {PAY: UNKNOWN_RESULT, LOOK: facts.history.told[LOOK], "6.0.0.again.1": again}
    last = facts.history.request(
        0,
        0,
        {
            "messages": [
                {"role": "user", "content": TASK.text},
                {"role": "assistant"},
                {"role": "assistant"},
                *({"role": "tool", "tool_call_id": k, "content": v} for k, v in results.items()),
            ]
        },
    )
    facts.stored.responses.append(last.id)
    assert last.calls == []
    assert check(replace(facts, seen={TASK.user: [f"{ANSWER}\n\nt6r2: so"]})) == []


def test_a_response_that_was_not_stored_may_be_requested_again() -> None:
    facts = answered()
    facts.stored.responses.remove(facts.history.requests[-1].id)
    facts.history.requests[-1].delivered_at = 10.0
    facts.history.killed_at[0] = [5.0, 10.25, 11.0]
    results = {call: facts.history.told[call] for call in (PAY, LOOK)}
    facts.stored.responses.append(ask(facts.history, results).id)
    assert check(facts) == []
    assert unstored(facts) == [0.25]


def pay_again(facts: Facts) -> None:
    start(facts, PAY, stored=False)


def look_again(facts: Facts) -> None:
    start(facts, LOOK, stored=False)


def request_again(facts: Facts) -> None:
    facts.stored.responses.append(ask(facts.history, {}).id)


def forget_a_call(facts: Facts) -> None:
    facts.stored.calls.remove(PAY)


def forget_a_response(facts: Facts) -> None:
    facts.stored.responses.remove("response-6.0.1")


def tell_nothing(facts: Facts) -> None:
    del facts.history.told[PAY]


def tell_that_a_look_is_unknown(facts: Facts) -> None:
    facts.history.told[LOOK] = UNKNOWN_RESULT


def invent_a_result(facts: Facts) -> None:
    facts.history.told[PAY] = "paid"


@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        (pay_again, Rule.EFFECT_REPEATED),
        (look_again, Rule.EFFECT_REPEATED),
        (request_again, Rule.PAID_TWICE),
        (forget_a_call, Rule.NOT_STORED),
        (forget_a_response, Rule.NOT_STORED),
        (tell_nothing, Rule.NOT_TOLD),
        (tell_that_a_look_is_unknown, Rule.NOT_TOLD),
        (invent_a_result, Rule.WRONGLY_TOLD),
    ],
)
def test_a_planted_violation_is_found(plant: Callable[[Facts], None], rule: Rule) -> None:
    facts = answered()
    plant(facts)
    assert {breach.rule for breach in check(facts)} == {rule}


def test_an_uncertain_payment_that_is_repeated_is_found() -> None:
    facts = interrupted_in_a_payment()
    start(facts, PAY, stored=False)
    assert [breach.rule for breach in check(facts)] == [Rule.UNCERTAIN_REPEATED]


def test_a_payment_that_is_repeated_for_a_repeated_request_is_found() -> None:
    """Its call has another id then."""
    facts = answered()
    facts.stored.responses.append(ask(facts.history, {}).id)
    start(facts, "6.0.0.2", stored=False)
    rules = [breach.rule for breach in check(facts)]
    assert rules[:2] == [Rule.EFFECT_REPEATED, Rule.PAID_TWICE]


@pytest.mark.parametrize(
    ("outcome", "seen", "is_wrong"),
    [
        ("completed", [ANSWER], False),
        ("completed", [ANSWER, ANSWER + SENT_AGAIN], False),
        ("completed", [ANSWER + SENT_AGAIN], False),
        ("completed", [], True),
        ("completed", [ANSWER, ANSWER], True),
        ("completed", ["t6r0: so"], True),
        ("completed", ["t6r0: so\n\nt6r0: so\n\nt6r1: so"], True),
        ("completed", [ANSWER, texts.LOST], True),
        ("lost", [texts.LOST], False),
        ("lost", [texts.LOST + SENT_AGAIN], False),
        ("lost", [texts.LOST, texts.LOST + SENT_AGAIN], False),
        ("lost", [texts.LOST, texts.LOST], True),
        ("lost", [], True),
        ("lost", ["t6r0: so …", texts.LOST], False),
        ("lost", ["t6r0: so …"], True),
        ("failed", [texts.FAILED], True),
    ],
)
def test_each_message_has_one_answer(outcome: str, seen: list[str], is_wrong: bool) -> None:
    facts = replace(answered(), outcomes={TASK.number: (outcome, 1)}, seen={TASK.user: seen})
    assert {breach.rule for breach in check(facts)} == ({Rule.ANSWERED_ONCE} if is_wrong else set())


def test_what_is_left_is_told() -> None:
    assert [str(one) for one in check(replace(answered(), left="a draft"))] == [
        "left behind: a draft"
    ]
