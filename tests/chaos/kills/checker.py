"""What must be so after kills, and what was not. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from goclaw_py.agents.models.replay import UNKNOWN_RESULT
from goclaw_py.chat.outbound import texts
from tests.chaos.breach import grouped
from tests.chaos.kills.history import Asked, History, Start
from tests.chaos.kills.records import Stored
from tests.chaos.kills.script import Task
from tests.support.again import SENT_AGAIN


class Rule(StrEnum):
    """The ways to violate what AGENT-10 promises."""

    EFFECT_REPEATED = "finished effects repeated"
    PAID_TWICE = "requests paid twice"
    UNCERTAIN_REPEATED = "uncertain calls repeated unasked"
    NOT_TOLD = "unknown outcomes not told"
    WRONGLY_TOLD = "results told that no call gave"
    NOT_STORED = "calls begun before they were stored"
    ANSWERED_ONCE = "messages not answered once"
    LEFT_BEHIND = "left behind"


@dataclass(frozen=True, slots=True)
class Breach:
    """One violation."""

    rule: Rule
    words: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.words}"


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is known afterwards.

    Args:
        outcomes: Outcomes and attempts of messages, by their tasks.
        seen: The texts of the bot that each user sees.
        left: What was not done, in words; "" is nothing.
    """

    history: History
    stored: Stored
    outcomes: Mapping[int, tuple[str, int]]
    seen: Mapping[int, Sequence[str]]
    left: str = ""


def check(facts: Facts) -> list[Breach]:
    """All violations."""
    rules = (_effects, _requests, _calls, _told, _answers)
    found = [breach for rule in rules for breach in rule(facts)]
    return [*found, Breach(Rule.LEFT_BEHIND, facts.left)] if facts.left else found


def _effects(facts: Facts) -> Iterator[Breach]:
    """A call whose result is stored is not repeated; a payment never is."""
    history, results = facts.history, facts.stored.results
    by_purpose = grouped(history.starts, lambda start: history.calls[start.call].purpose)
    for purpose, starts in by_purpose.items():
        stored = [start for start in starts if start.result in results.get(start.call, ())]
        again = starts[starts.index(stored[0]) + 1 :] if stored else []
        if again:
            yield Breach(Rule.EFFECT_REPEATED, f"{starts[0].tool} {purpose}: {_list(starts)}")
        elif starts[0].tool == "pay" and len(starts) > 1:
            yield Breach(Rule.UNCERTAIN_REPEATED, f"{purpose}: {_list(starts)}")


def _requests(facts: Facts) -> Iterator[Breach]:
    """A stored response is not requested again."""
    stored = frozenset(facts.stored.responses)
    for asked in grouped(facts.history.requests, _place).values():
        for earlier, later in pairwise(asked):
            if earlier.id in stored:
                yield Breach(Rule.PAID_TWICE, f"{earlier.id} is stored; then came {later.id}")


def _calls(facts: Facts) -> Iterator[Breach]:
    """The response that asks for a call and the start of the call are stored before it begins."""
    responses = frozenset(facts.stored.responses)
    asked = {call.id: one.id for one in facts.history.requests for call in one.calls}
    for start in facts.history.starts:
        if start.call not in facts.stored.calls or asked[start.call] not in responses:
            yield Breach(Rule.NOT_STORED, f"{start.tool} {start.call}")


def _told(facts: Facts) -> Iterator[Breach]:
    """The model learns the result of each call of an answered message, or that it is unknown."""
    history, stored = facts.history, facts.stored
    given = {start.result for start in history.starts if start.ended}
    for call in sorted(stored.calls):
        task, tool = int(call.partition(".")[0]), history.calls[call].tool
        if facts.outcomes.get(task, ("", 0))[0] != "completed":
            continue
        told = history.told.get(call)
        is_unknown = told is not None and UNKNOWN_RESULT in told
        if told is None or (is_unknown and tool != "pay"):
            yield Breach(Rule.NOT_TOLD, f"{tool} {call}: {told}")
        elif not is_unknown and (told not in given or told not in stored.results[call]):
            yield Breach(Rule.WRONGLY_TOLD, f"{tool} {call}: {told}")


def _answers(facts: Facts) -> Iterator[Breach]:
    """Each message has one answer with the text of all responses, or one that says it is lost."""
    by_user = grouped(facts.history.tasks.values(), lambda task: task.user)
    places = grouped(facts.history.requests, lambda asked: asked.task.number)
    for user, tasks in by_user.items():
        shown = facts.seen.get(user, ())
        seen = _once(shown)
        lost = 0
        for task in tasks:
            outcome = facts.outcomes.get(task.number, ("none", 0))[0]
            lost += outcome == "lost"
            last = max((asked.place for asked in places.get(task.number, ())), default=-1)
            wrong = _wrong_answer(task, outcome, last, seen)
            if wrong:
                yield Breach(Rule.ANSWERED_ONCE, f"task {task.number}, {outcome}: {wrong} {seen}")
        # All have the same text: one that was sent again may be the first that arrived.
        notices = [text for text in shown if texts.LOST in text]
        if not sum(not text.endswith(SENT_AGAIN) for text in notices) <= lost <= len(notices):
            yield Breach(Rule.ANSWERED_ONCE, f"user {user}: {lost} lost, but told {shown}")


def _once(seen: Sequence[str]) -> Sequence[str]:
    """What is left without messages that say that they were sent again (IO-5)."""
    first = {text.removesuffix(SENT_AGAIN) for text in seen if not text.endswith(SENT_AGAIN)}
    again = {text.removesuffix(SENT_AGAIN) for text in seen if text.endswith(SENT_AGAIN)} - first
    return [text for text in seen if not text.endswith(SENT_AGAIN)] + sorted(again)


def _wrong_answer(task: Task, outcome: str, last: int, seen: Sequence[str]) -> str:
    if outcome not in ("completed", "lost"):
        return "ended otherwise"
    said = [found for text in seen if (found := re.findall(rf"\bt{task.number}r(\d+):", text))]
    if len(said) > 1:
        return "stands in several messages"
    if outcome == "completed" and said != [[str(place) for place in range(last + 1)]]:
        return "has not the text of each response once"
    return ""


def _place(asked: Asked) -> tuple[int, int]:
    return asked.task.number, asked.place


def _list(starts: Sequence[Start]) -> str:
    return ", ".join(f"{start.result} ({'ended' if start.ended else 'cut'})" for start in starts)
