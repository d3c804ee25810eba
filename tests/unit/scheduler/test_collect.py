"""Mode ``collect``: what queued up during a run becomes one turn (SPEC QUEUE-4, QUEUE-5)."""

from __future__ import annotations

import pytest

from goclaw_py.model.outcomes import Outcome
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.scheduler.scheduler import DuplicateRequest
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import Shell, told

COLLECT = QueuePolicy(mode=Mode.COLLECT)
COLLECT_GROUP = QueuePolicy(mode=Mode.COLLECT, concurrency=2)


def test_what_queued_up_during_a_run_becomes_one_follow_up_turn() -> None:
    shell = Shell()
    shell.submit_all(*"abcd", policy=COLLECT)
    assert [shell.state(name) for name in "bcd"] == [RunState.QUEUED] * 3
    shell.done("a")
    assert shell.started == ["a", "b"]
    assert shell.joined == {"c": "b", "d": "b"}
    shell.done("b")
    assert shell.ended == dict.fromkeys("ab", (Outcome.COMPLETED, None))
    shell.assert_nothing_left()


def test_the_parts_of_a_collected_turn_are_told_in_order_and_before_its_start() -> None:
    """SPEC QUEUE-4: the shell knows the whole turn when it starts it."""
    shell = Shell()
    shell.submit_all(*"abcd", policy=COLLECT)
    assert told(shell.done("a")) == ["end a: completed", "c joins b", "d joins b", "start b"]


def test_only_messages_in_the_mode_are_collected_and_none_overtakes_another() -> None:
    """SPEC QUEUE-3, QUEUE-4: the others keep their turns."""
    shell = Shell()
    shell.submit("runs")
    shell.submit_all("a", "b", policy=COLLECT)
    shell.submit("alone", policy=QueuePolicy())
    shell.submit("c", policy=COLLECT)
    shell.done("runs")
    assert shell.joined == {"b": "a"}
    assert shell.state("alone") is RunState.QUEUED
    shell.done_all("a", "alone")
    assert shell.started == ["runs", "a", "alone", "c"]


def test_a_collected_burst_brings_its_own_messages_along() -> None:
    """SPEC QUEUE-4, QUEUE-6, QUEUE-10: each of them is part of the one turn."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.COLLECT, debounce_s=0.8)
    shell.submit("runs")
    shell.submit("bob", sender="bob", policy=policy)
    shell.submit_all("ann", "ann too", sender="ann", policy=policy)
    shell.done("runs")
    assert shell.joined == {"ann too": "ann", "ann": "bob"}
    assert shell.view("bob").messages == 3
    with pytest.raises(DuplicateRequest):
        shell.submit("ann too")
    shell.done("bob")
    shell.assert_nothing_left()
