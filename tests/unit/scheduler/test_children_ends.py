"""How runs end that work inside the slot of another one, or lend theirs."""

from __future__ import annotations

import pytest

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.views import RunState, WaitsFor
from tests.unit.scheduler.family import ask, one_slot
from tests.unit.scheduler.shell import INTERRUPT, Shell, told

STOPPED = (Outcome.CANCELLED, Reason.STOPPED)
TIMED_OUT = (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)


def test_a_guest_whose_host_ends_first_keeps_the_slot() -> None:
    """SPEC LANE-1, LANE-8."""
    shell = one_slot()
    ask(shell, "child", "run")
    shell.submit("next", "other")
    shell.done("run")
    assert (shell.working, shell.lane().active) == (["child"], 1)
    shell.done("child")
    assert shell.working == ["next"]
    shell.done("next")
    shell.assert_nothing_left()


def test_a_guest_whose_host_ends_first_becomes_the_guest_of_the_hosts_host() -> None:
    """SPEC LANE-8."""
    shell = one_slot()
    ask(shell, "child", "run")
    ask(shell, "grandchild", "child")
    ask(shell, "second", "run")
    shell.done("child")
    assert shell.working == ["run", "grandchild"]
    shell.done("grandchild")
    assert shell.working == ["run", "second"]
    shell.done("second")
    shell.done("run")
    shell.assert_nothing_left()


def test_those_who_waited_for_a_slot_queue_for_the_lane_when_its_owner_has_ended() -> None:
    """SPEC LANE-4, LANE-8."""
    shell = one_slot()
    ask(shell, "child", "run")
    ask(shell, "second", "run")
    shell.submit("other", "other")
    shell.done("run")
    assert shell.view("second").waits_for is WaitsFor.LANE
    assert shell.lane().waiting == 2
    shell.done("child")
    shell.done("other")
    assert shell.working == ["second"]


def test_those_who_waited_for_a_guests_slot_wait_for_his_hosts_when_he_has_ended() -> None:
    """SPEC LANE-8."""
    shell = one_slot()
    ask(shell, "child", "run")
    ask(shell, "first", "child")
    ask(shell, "second", "child")
    shell.done("child")
    assert shell.working == ["run", "first"]
    shell.done("first")
    assert shell.working == ["run", "second"]


def test_a_child_that_becomes_ready_after_its_host_has_ended_needs_a_slot_of_the_lane() -> None:
    """SPEC LANE-1. It started in the slot of a run that was gone: one too many in the lane."""
    shell = one_slot()
    shell.submit("busy", "two", lane="cron")
    ask(shell, "child", "run", session="two")
    shell.done("run")
    shell.submit("next", "three")
    shell.done("busy")
    assert shell.working == ["next"]
    assert shell.view("child").waits_for is WaitsFor.LANE
    shell.done("next")
    shell.done("child")
    shell.assert_nothing_left()


def test_a_child_that_becomes_ready_after_its_host_has_ended_may_have_another_above() -> None:
    """SPEC LANE-8."""
    shell = one_slot()
    ask(shell, "child", "run")
    shell.submit("busy", "two", lane="cron")
    ask(shell, "grandchild", "child", session="two")
    shell.done("child")
    shell.done("busy")
    assert shell.occupants() == ["run", "grandchild"]
    assert shell.lane().active == 1


def test_a_stop_reaches_guests_that_work_and_guests_that_wait() -> None:
    """SPEC LANE-8, QUEUE-8."""
    shell = one_slot()
    ask(shell, "a", "run")
    ask(shell, "b", "run")
    assert told(shell.stop().effects) == [
        "end b: cancelled, stopped",
        "cancel run: stopped",
        "cancel a: stopped",
    ]
    shell.submit("next", "other")
    shell.done("run")
    assert (shell.state("next"), shell.lane().active) == (RunState.READY, 1)
    shell.done("a")
    assert shell.ended == dict.fromkeys(["run", "a", "b"], STOPPED)
    assert shell.working == ["next"]


@pytest.mark.parametrize("limit", ["run_timeout_s", "deadline_s"])
def test_a_run_that_times_out_takes_with_it_those_it_waits_for(limit: str) -> None:
    """SPEC LANE-8, QUEUE-9: nobody needs their answers any more."""
    shell = one_slot(**{limit: 5})
    ask(shell, "child", "run")
    ask(shell, "grandchild", "child")
    ask(shell, "second", "run")
    shell.submit("not waited for", "other", lane="subagent", parent="run")
    shell.wait(5)
    assert list(shell.cancelled) == ["run", "child", "grandchild"]
    for name in ("grandchild", "child", "run"):
        shell.done(name)
    reason = Reason.RUN_TIMEOUT if limit == "run_timeout_s" else Reason.DEADLINE
    everybody = ["run", "child", "grandchild", "second"]
    assert shell.ended == dict.fromkeys(everybody, (Outcome.TIMED_OUT, reason))
    assert shell.working == ["not waited for"]


def test_an_interrupting_message_takes_children_that_are_waited_for() -> None:
    """SPEC LANE-8, QUEUE-3."""
    shell = one_slot()
    ask(shell, "child", "run")
    shell.submit("now", policy=INTERRUPT)
    assert set(shell.cancelled) == {"run", "child"}
    shell.done("run")
    assert shell.state("now") is RunState.READY
    shell.done("child")
    assert shell.state("now") is RunState.RUNNING


def test_only_the_child_that_timed_out_is_cut() -> None:
    """SPEC QUEUE-9: each request has its own cancellation."""
    shell = one_slot()
    ask(shell, "slow", "run", run_timeout_s=5)
    ask(shell, "next", "run")
    shell.wait(5)
    assert shell.cancelled == {"slow": Reason.RUN_TIMEOUT}
    assert shell.state("next") is RunState.READY
    shell.done("slow")
    assert shell.ended == {"slow": TIMED_OUT}
    assert shell.working == ["run", "next"]


def test_a_child_that_waits_for_its_turn_is_stopped_and_the_next_takes_it() -> None:
    """SPEC LANE-6, LANE-8."""
    shell = one_slot()
    ask(shell, "a", "run")
    ask(shell, "b", "run", deadline_s=5)
    ask(shell, "c", "run")
    shell.wait(5)
    assert shell.ended == {"b": (Outcome.TIMED_OUT, Reason.DEADLINE)}
    shell.done("a")
    assert shell.working == ["run", "c"]


def test_a_stopped_guest_keeps_its_place_until_it_has_unwound() -> None:
    """SPEC LANE-8, QUEUE-2."""
    shell = one_slot()
    ask(shell, "a", "run")
    ask(shell, "b", "run")
    shell.stop("session of a")
    assert shell.state("b") is RunState.READY
    shell.done("a")
    assert shell.state("b") is RunState.RUNNING


def test_a_guest_that_is_abandoned_makes_room_for_the_next() -> None:
    """SPEC LANE-8, QUEUE-2."""
    shell = one_slot()
    ask(shell, "deaf", "run")
    ask(shell, "next", "run")
    shell.stop("session of deaf")
    shell.wait(10)
    assert shell.ended == {"deaf": (Outcome.ABANDONED, Reason.STOPPED)}
    assert shell.occupants() == ["run", "next"]
    assert shell.lane().active == 1


def test_a_host_that_is_abandoned_with_its_guest_gives_the_slot_back_once() -> None:
    """SPEC LANE-8, QUEUE-2."""
    shell = one_slot()
    ask(shell, "child", "run")
    shell.submit("next", "other")
    shell.stop()
    shell.wait(10)
    assert shell.lane().active == 1
    assert shell.occupants() == ["next"]
    for name in ("run", "child", "next"):
        shell.done(name)
    shell.assert_nothing_left()


def test_a_shutdown_interrupts_hosts_and_guests() -> None:
    """SPEC LANE-8, QUEUE-11."""
    shell = one_slot()
    ask(shell, "a", "run")
    ask(shell, "b", "run")
    shell.interrupt_all()
    shell.done("run")
    shell.done("a")
    interrupted = (Outcome.INTERRUPTED, Reason.SHUTDOWN)
    assert shell.ended == dict.fromkeys(["run", "a", "b"], interrupted)
    shell.assert_nothing_left()


def test_stopall_of_a_session_reaches_children_of_children_that_ended() -> None:
    """SPEC QUEUE-8."""
    shell = Shell({"main": 9})
    shell.submit("run")
    shell.submit("child", "sub 1", parent="run")
    shell.submit("grandchild", "sub 2", parent="child")
    shell.done("child")
    stop = shell.stop_all()
    assert stop.stopped == ["run", "grandchild"]
