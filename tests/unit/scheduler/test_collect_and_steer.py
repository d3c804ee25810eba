"""Mode ``collect`` makes one turn of what queued up; ``steer`` offers it to the run at work.

SPEC QUEUE-3, QUEUE-4, QUEUE-6, QUEUE-10.
"""

from __future__ import annotations

import pytest

from goclaw_py.core.outcomes import Outcome
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


# ---------------------------------------------------------------------- steer


STEER = QueuePolicy(mode=Mode.STEER)
STEER_GROUP = QueuePolicy(mode=Mode.STEER, concurrency=2)


def test_a_message_for_a_busy_session_is_queued_and_offered_to_its_run() -> None:
    shell = Shell()
    shell.submit("run")
    assert told(shell.submit("more", policy=STEER)) == ["offer more to run"]
    assert shell.state("more") is RunState.QUEUED


def test_a_message_that_the_run_took_in_is_part_of_it() -> None:
    shell = Shell()
    shell.submit("run")
    shell.submit("more", policy=STEER)
    assert told(shell.take_in("more", "run")) == ["more joins run"]
    assert shell.view("run").messages == 2
    shell.done("run")
    assert shell.started == ["run"]
    assert shell.ended == {"run": (Outcome.COMPLETED, None)}
    shell.assert_nothing_left()


def test_a_message_is_not_offered_past_one_that_waits_for_a_turn_of_its_own() -> None:
    """SPEC QUEUE-4: a run that took it in would answer it before an older one."""
    shell = Shell()
    shell.submit("run", policy=STEER)
    shell.submit("own turn")
    shell.submit("later", policy=STEER)
    assert shell.offered == []
    shell.done("run")
    shell.submit("latest", policy=STEER)
    assert shell.offered == [("later", "own turn"), ("latest", "own turn")]


def test_a_run_that_takes_in_a_message_takes_in_what_had_joined_it() -> None:
    shell = Shell()
    policy = QueuePolicy(mode=Mode.STEER, debounce_s=0.8)
    shell.submit("run")
    shell.submit_all("a", "a2", sender="ann", policy=policy)
    shell.take_in("a", "run")
    assert shell.joined == {"a2": "a", "a": "run"}
    assert shell.view("run").messages == 3
    for name in ("a", "a2"):
        with pytest.raises(DuplicateRequest):
            shell.submit(name)
    shell.done("run")
    shell.assert_nothing_left()


def test_a_run_takes_in_no_message_of_another_session_and_nothing_unknown() -> None:
    shell = Shell()
    shell.submit("run", "one")
    shell.submit("other run", "two")
    shell.submit("more", "two", policy=STEER)
    assert shell.take_in("more", "run") == []
    assert shell.take_in("nobody", "run") == []
    assert shell.take_in("more", "nobody") == []
    assert shell.take_in("other run", "run") == []
    assert shell.state("more") is RunState.QUEUED


def test_a_run_that_starts_is_offered_what_waits_behind_it() -> None:
    """SPEC QUEUE-4: whether the message came before or after the run got its slot is chance."""
    shell = Shell({"main": 1})
    shell.submit("busy", "elsewhere")
    shell.submit_all("first", "second", policy=STEER)
    shell.submit("third", policy=QueuePolicy())
    assert shell.offered == []
    assert told(shell.done("busy")) == [
        "end busy: completed",
        "start first",
        "offer second to first",
    ]
    assert told(shell.take_in("second", "first")) == ["second joins first"]
