"""How runs end that work inside the slot of another one, or lend theirs."""

from __future__ import annotations

import pytest

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.views import RunState, WaitsFor
from tests.unit.scheduler.family import ask, one_slot
from tests.unit.scheduler.shell import told

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
