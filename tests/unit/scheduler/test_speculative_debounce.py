"""A message starts its run at once, which begins again if its sender writes more (SPEC QUEUE-6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.debounce import RestartLimit
from goclaw_py.scheduler.models import Debounce, Drop, Mode, QueuePolicy, Request
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import WINDOW_S, Shell, told

EAGER = QueuePolicy(debounce_s=WINDOW_S, debounce=Debounce.SPECULATIVE)
EAGER_GROUP = replace(EAGER, concurrency=3)
MERGED = (Outcome.INTERRUPTED, Reason.MERGED)


def say(shell: Shell, run_id: str, policy: QueuePolicy = EAGER, **fields: Any) -> list[str]:
    return told(shell.submit(run_id, **{"sender": "ann", "policy": policy, **fields}))


def test_a_message_starts_its_run_at_once_and_sets_no_timer() -> None:
    shell = Shell()
    assert say(shell, "a") == ["start a"]
    assert shell.scheduler.next_timer() is None


def test_a_further_message_cancels_the_run_and_both_are_answered_after_the_window() -> None:
    shell = Shell()
    say(shell, "a")
    shell.wait(0.5)
    assert say(shell, "b") == ["a again in b", "cancel a: merged"]
    assert told(shell.done("a")) == ["end a: interrupted, merged"]
    shell.wait(WINDOW_S)
    assert shell.working == ["b"]
    assert shell.view("b").messages == 2
    shell.done("b")
    shell.assert_nothing_left()


def test_a_burst_wastes_one_run_and_is_served_after_four_windows() -> None:
    """A steady typist: the messages after the limit are the next burst."""
    shell = Shell()
    for number in range(8):
        say(shell, str(number))
        if number == 1:
            shell.done("0")
        shell.wait(0.5)
    assert list(shell.cancelled) == ["0"]
    assert shell.started == ["0", "1"]
    assert shell.view("1").messages == 7
    assert shell.state("7") is RunState.QUEUED


def three_restarts(shell: Shell) -> None:
    for number in range(3):
        say(shell, f"first{number}")
        say(shell, f"second{number}")
        shell.done(f"first{number}")
        shell.wait(WINDOW_S)
        shell.done(f"second{number}")


def test_after_three_restarts_turns_wait_until_twenty_turns_have_recovered_one() -> None:
    shell = Shell()
    three_restarts(shell)
    assert list(shell.cancelled) == ["first0", "first1", "first2"]
    for number in range(3, 21):
        assert say(shell, str(number)) == []
        shell.wait(WINDOW_S)
        shell.done(str(number))
    assert say(shell, "last") == ["start last"]


def test_the_restarts_of_others_and_in_other_chats_do_not_count() -> None:
    shell = Shell()
    three_restarts(shell)
    assert say(shell, "b", sender="bob") == ["start b"]
    assert told(shell.submit("c", "other", sender="ann", policy=EAGER)) == ["start c"]


def test_senders_who_have_not_written_for_long_are_forgotten() -> None:
    limit = RestartLimit(restarts=1)
    for number in range(20_000):
        limit.count_restart(Request(RunId("r"), SessionKey(str(number)), sender="ann"))
    assert limit.count_turn(Request(RunId("r"), SessionKey("0"), sender="ann"))
    assert not limit.count_turn(Request(RunId("r"), SessionKey("19999"), sender="ann"))


@pytest.mark.parametrize(
    ("change", "pause_s", "second"),
    [
        pytest.param("effect", 0.1, "queued", id="a run that has had an effect"),
        pytest.param("", WINDOW_S + 0.01, "queued", id="a run whose window is over"),
        pytest.param("end", 0.1, "running", id="a run that has ended"),
        pytest.param("child", 0.1, "queued", id="a run that has made a child"),
    ],
)
def test_a_run_is_not_cancelled(change: str, pause_s: float, second: str) -> None:
    shell = Shell()
    say(shell, "a")
    shell.wait(pause_s)
    if change == "effect":
        shell.scheduler.had_effect(RunId("a"))
    elif change == "end":
        shell.done("a")
    elif change == "child":
        shell.submit("c", "other", parent="a")
    say(shell, "b")
    assert shell.cancelled == {}
    assert shell.state("b") == second


def test_a_message_that_does_not_fit_ends_the_burst_and_begins_another_one() -> None:
    shell = Shell()
    two = replace(EAGER, turn_messages=2)
    say(shell, "a", two, pieces=2)
    say(shell, "b", two)
    assert (shell.cancelled, shell.state("b")) == ({}, RunState.COLLECTING)
    shell.wait(WINDOW_S)
    assert shell.state("b") is RunState.QUEUED


def test_people_of_a_group_merge_their_own_messages_only() -> None:
    shell = Shell({"main": 9})
    say(shell, "a", EAGER_GROUP)
    say(shell, "b", EAGER_GROUP, sender="bob")
    assert shell.working == ["a", "b"]
    say(shell, "a2", EAGER_GROUP)
    assert shell.restarted == {"a": "a2"}
    assert shell.state("b") is RunState.RUNNING


def test_a_waiting_message_merges_without_a_restart_and_with_one_after_its_start() -> None:
    shell = Shell()
    say(shell, "a")
    shell.wait(5)
    say(shell, "b")
    say(shell, "c")
    assert shell.joined == {"c": "b"}
    shell.done("a")
    say(shell, "d")
    assert shell.restarted == {"b": "d"}
    assert shell.view("d").messages == 3


def test_a_split_text_is_complete_before_its_run_starts_at_once() -> None:
    shell = Shell()
    say(shell, "1", cut=True)
    assert shell.state("1") is RunState.COLLECTING
    assert say(shell, "2") == ["2 joins 1", "start 1"]
    assert say(shell, "more", cut=True) == ["1 again in more", "cancel 1: merged"]
    shell.done("1")
    assert say(shell, "rest") == ["rest joins more"]
    shell.wait(1)
    assert shell.working == ["more"]


@pytest.mark.parametrize("stop", ["oldest", "all", "run", "merged"])
def test_a_stop_ends_both_messages_while_the_first_run_is_still_ending(stop: str) -> None:
    """SPEC QUEUE-8: the run that ends for a further message is not one that was stopped."""
    shell = Shell()
    say(shell, "a")
    say(shell, "b")
    if stop == "oldest":
        done = shell.stop()
    elif stop == "all":
        done = shell.stop_all()
    else:
        done = shell.scheduler.stop_one(RunId("a" if stop == "run" else "b"), shell.now)
    assert (done.stopped, done.dropped, done.already_stopping) == ([], ["b"], False)
    assert told(shell.done("a")) == ["end a: interrupted, merged"]
    shell.assert_nothing_left()


def test_capacity_does_not_count_a_turn_that_waits_for_its_first_run_to_end() -> None:
    shell = Shell()
    one = replace(EAGER, capacity=1, drop=Drop.NEW)
    say(shell, "a", one)
    say(shell, "b", one)
    say(shell, "c", one, sender="bob")
    assert shell.ended == {}
    shell.done("a")
    assert shell.working == ["c"]


def test_an_interrupting_message_takes_the_burst_along() -> None:
    shell = Shell()
    say(shell, "a")
    say(shell, "b")
    say(shell, "now", replace(EAGER, mode=Mode.INTERRUPT))
    shell.done("a")
    assert shell.working == ["b"]
    assert shell.view("b").messages == 3
    assert say(shell, "c") == []


def test_a_run_that_ignores_its_cancellation_is_given_up_and_the_turn_runs() -> None:
    shell = Shell(grace_s=2)
    say(shell, "a")
    say(shell, "b")
    shell.wait(1)
    assert shell.state("b") is RunState.QUEUED
    shell.wait(1)
    assert shell.ended["a"] == (Outcome.ABANDONED, Reason.MERGED)
    assert shell.working == ["b"]


def test_a_shutdown_frees_both() -> None:
    shell = Shell()
    say(shell, "a")
    say(shell, "b")
    shell.interrupt_all()
    shell.done("a")
    assert shell.ended == {"b": (Outcome.INTERRUPTED, Reason.SHUTDOWN), "a": MERGED}
    shell.assert_nothing_left()
