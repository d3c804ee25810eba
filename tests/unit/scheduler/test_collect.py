"""Mode ``collect``: what queued up during a run becomes one turn."""

from __future__ import annotations

import pytest

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.scheduler import DuplicateRequest
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import Shell, told

COLLECT = QueuePolicy(mode=Mode.COLLECT)
COLLECT_GROUP = QueuePolicy(mode=Mode.COLLECT, concurrency=2)


def test_what_queued_up_during_a_run_becomes_one_follow_up_turn() -> None:
    """SPEC QUEUE-4."""
    shell = Shell()
    for name in "abcd":
        shell.submit(name, policy=COLLECT)
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
    for name in "abcd":
        shell.submit(name, policy=COLLECT)
    assert told(shell.done("a")) == ["end a: completed", "c joins b", "d joins b", "start b"]


def test_messages_of_several_senders_are_collected_into_one_turn() -> None:
    """SPEC QUEUE-4: in groups too."""
    shell = Shell()
    shell.submit("runs")
    for name in ("ann", "bob", "cat"):
        shell.submit(name, sender=name, policy=COLLECT)
    shell.done("runs")
    assert shell.joined == {"bob": "ann", "cat": "ann"}


def test_only_messages_in_the_mode_are_collected_and_none_overtakes_another() -> None:
    """SPEC QUEUE-3, QUEUE-4: the others keep their turns."""
    shell = Shell()
    shell.submit("runs")
    shell.submit("a", policy=COLLECT)
    shell.submit("b", policy=COLLECT)
    shell.submit("alone", policy=QueuePolicy())
    shell.submit("c", policy=COLLECT)
    shell.done("runs")
    assert shell.joined == {"b": "a"}
    assert shell.state("alone") is RunState.QUEUED
    shell.done("a")
    shell.done("alone")
    assert shell.started == ["runs", "a", "alone", "c"]


def test_a_turn_in_another_mode_collects_nothing() -> None:
    """SPEC QUEUE-4."""
    shell = Shell()
    shell.submit("runs")
    shell.submit("alone")
    shell.submit("a", policy=COLLECT)
    shell.submit("b", policy=COLLECT)
    shell.done("runs")
    assert shell.joined == {}
    shell.done("alone")
    assert shell.joined == {"b": "a"}


@pytest.mark.parametrize("other", [{"lane": "cron"}, {"agent": "other"}])
def test_a_turn_collects_nothing_of_another_lane_or_agent(other: dict[str, str]) -> None:
    """SPEC LANE-3, QUEUE-4."""
    shell = Shell()
    shell.submit("runs")
    shell.submit("a", policy=COLLECT)
    shell.submit("b", policy=COLLECT, **other)
    shell.done("runs")
    assert shell.joined == {}
    assert shell.state("b") is RunState.QUEUED


def test_a_turn_collects_nothing_of_another_session() -> None:
    """SPEC QUEUE-4."""
    shell = Shell({"main": 1})
    shell.submit("runs", "one")
    shell.submit("a", "one", policy=COLLECT)
    shell.submit("b", "two", policy=COLLECT)
    shell.done("runs")
    assert shell.joined == {}


def test_a_child_neither_collects_nor_is_collected() -> None:
    """SPEC LANE-8: its parent waits for its own answer."""
    shell = Shell({"main": 9})
    shell.submit("run", policy=COLLECT_GROUP)
    shell.submit("busy", policy=COLLECT_GROUP)
    shell.submit("child", policy=COLLECT_GROUP, parent="run")
    shell.submit("message", policy=COLLECT_GROUP)
    shell.submit("child 2", policy=COLLECT_GROUP, parent="run")
    shell.done("busy")
    assert shell.started[-1] == "child"
    shell.done("child")
    assert shell.started[-1] == "message"
    assert shell.joined == {}


def test_what_waits_for_the_lane_beside_a_collecting_turn_keeps_its_own() -> None:
    """SPEC QUEUE-1: it has a place of its own in the session already."""
    shell = Shell({"main": 1})
    shell.submit("blocks", "other")
    for name in "abcd":
        shell.submit(name, policy=COLLECT_GROUP)
    assert [shell.state(name) for name in "ab"] == [RunState.READY] * 2
    shell.done("blocks")
    assert shell.joined == {"c": "a", "d": "a"}
    assert shell.state("b") is RunState.READY


def test_capacity_counts_collected_messages_one_by_one() -> None:
    """SPEC QUEUE-5."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.COLLECT, capacity=2)
    for name in "abcd":
        shell.submit(name, policy=policy)
    assert shell.ended == {"b": (Outcome.DROPPED, Reason.QUEUE_DROPPED)}
    shell.done("a")
    assert shell.joined == {"d": "c"}


def test_a_full_queue_that_drops_new_messages_refuses_the_third() -> None:
    """SPEC QUEUE-5."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.COLLECT, capacity=2, drop=Drop.NEW)
    for name in "abcd":
        shell.submit(name, policy=policy)
    assert shell.ended == {"d": (Outcome.REJECTED, Reason.QUEUE_FULL)}


def test_a_collected_burst_brings_its_own_messages_along() -> None:
    """SPEC QUEUE-4, QUEUE-6, QUEUE-10: each of them is part of the one turn."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.COLLECT, debounce_s=0.8)
    shell.submit("runs")
    shell.submit("bob", sender="bob", policy=policy)
    shell.submit("ann", sender="ann", policy=policy)
    shell.submit("ann too", sender="ann", policy=policy)
    shell.done("runs")
    assert shell.joined == {"ann too": "ann", "ann": "bob"}
    assert shell.view("bob").messages == 3
    with pytest.raises(DuplicateRequest):
        shell.submit("ann too")
    shell.done("bob")
    shell.assert_nothing_left()


def test_the_deadline_of_a_collected_message_ends_with_its_wait() -> None:
    """SPEC QUEUE-9: the turn has one outcome, and it is not this message's."""
    shell = Shell()
    shell.submit("runs")
    shell.submit("a", policy=COLLECT)
    shell.submit("b", policy=COLLECT, deadline_s=5)
    shell.done("runs")
    shell.wait(10)
    assert (shell.cancelled, shell.state("a")) == ({}, RunState.RUNNING)
    shell.done("a")
    shell.assert_nothing_left()


def test_a_collected_message_that_expires_while_it_waits_is_not_part_of_the_turn() -> None:
    """SPEC QUEUE-9."""
    shell = Shell()
    shell.submit("runs")
    shell.submit("a", policy=COLLECT)
    shell.submit("b", policy=COLLECT, deadline_s=5)
    shell.wait(5)
    assert shell.ended == {"b": (Outcome.TIMED_OUT, Reason.DEADLINE)}
    shell.done("runs")
    assert shell.joined == {}


def test_an_interrupting_message_drops_what_was_to_be_collected() -> None:
    """SPEC QUEUE-3, QUEUE-4."""
    shell = Shell()
    for name in "abc":
        shell.submit(name, policy=COLLECT)
    effects = shell.submit("now", policy=QueuePolicy(mode=Mode.INTERRUPT))
    assert told(effects) == [
        "end b: dropped, newer_message",
        "end c: dropped, newer_message",
        "cancel a: newer_message",
    ]


def test_messages_behind_an_interrupting_one_are_collected_after_it() -> None:
    """SPEC QUEUE-3, QUEUE-4."""
    shell = Shell()
    shell.submit("a", policy=COLLECT)
    shell.submit("now", policy=QueuePolicy(mode=Mode.INTERRUPT))
    shell.submit("b", policy=COLLECT)
    shell.submit("c", policy=COLLECT)
    shell.done("a")
    assert shell.joined == {}
    shell.done("now")
    assert shell.joined == {"c": "b"}


def test_a_burst_that_was_interrupted_into_a_turn_collects_what_came_behind_it() -> None:
    """SPEC QUEUE-3, QUEUE-4, QUEUE-6."""
    shell = Shell()
    typing = QueuePolicy(mode=Mode.COLLECT, debounce_s=0.8)
    shell.submit("typed", sender="ann", policy=typing)
    shell.submit("runs", sender="bob", policy=QueuePolicy())
    shell.submit("now", sender="ann", policy=QueuePolicy(mode=Mode.INTERRUPT))
    shell.submit("more", sender="bob", policy=COLLECT)
    shell.done("runs")
    assert shell.started == ["runs", "typed"]
    assert shell.joined == {"now": "typed", "more": "typed"}


def test_stopping_a_collected_turn_ends_it_once() -> None:
    """SPEC QUEUE-8, QUEUE-10."""
    shell = Shell()
    for name in "abc":
        shell.submit(name, policy=COLLECT)
    shell.done("a")
    stop = shell.stop_all()
    assert (stop.stopped, stop.dropped) == (["b"], [])
    shell.done("b")
    assert shell.ended["b"] == (Outcome.CANCELLED, Reason.STOPPED_ALL)
    assert "c" not in shell.ended
    shell.assert_nothing_left()


def test_a_collected_turn_lets_a_limited_agent_serve_the_next_session() -> None:
    """SPEC AGENT-3, QUEUE-4: a line that was emptied by a turn keeps no place for later."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("busy", "one")
    shell.submit("a", "two", policy=COLLECT)
    shell.submit("b", "two", policy=COLLECT)
    shell.submit("c", "three")
    shell.done("busy")
    assert shell.joined == {"b": "a"}
    shell.done("a")
    assert shell.started == ["busy", "a", "c"]
    shell.done("c")
    shell.assert_nothing_left()
