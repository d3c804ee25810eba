"""Runs that ask for other runs: in whose slot they work, how deep and how many.

SPEC LANE-1, LANE-4, LANE-8, QUEUE-2, QUEUE-3, QUEUE-6, QUEUE-8.
"""

from __future__ import annotations

import pytest

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.child_runs import DEFAULT_NESTING, NestingLimits
from goclaw_py.scheduler.views import RunState, WaitsFor
from tests.unit.scheduler.shell import Shell, ask, one_slot, told

CIRCLE = (Outcome.REJECTED, Reason.WAITS_FOR_ITSELF)


# ---------------------------------------------------------------------- guests


def test_a_child_that_is_waited_for_runs_inside_its_parents_slot() -> None:
    shell = one_slot()
    assert ask(shell, "child", "run") == ["start child"]
    assert shell.occupants() == ["run", "child"]
    assert shell.lane().active == 1
    shell.done("child")
    assert (shell.occupants(), shell.lane().active) == (["run"], 1)
    shell.done("run")
    shell.assert_nothing_left()


def test_children_run_inside_a_slot_one_at_a_time_first_come_first_served() -> None:
    shell = one_slot()
    for name in "abc":
        ask(shell, name, "run")
    assert shell.started == ["run", "a"]
    assert [shell.state(name) for name in "bc"] == [RunState.READY] * 2
    assert told(shell.done("a")) == ["end a: completed", "start b"]
    assert told(shell.done("b")) == ["end b: completed", "start c"]


def test_a_child_that_nobody_waits_for_queues_like_everybody() -> None:
    shell = one_slot()
    shell.submit("child", "sub", parent="run")
    assert shell.view("child").waits_for is WaitsFor.LANE
    shell.done("run")
    assert shell.state("child") is RunState.RUNNING
    shell.done("child")
    shell.assert_nothing_left()


# ---------------------------------------------------------------------- limits


def test_a_run_has_at_most_three_ancestors() -> None:
    shell = Shell({"main": 1})
    shell.submit("0")
    for depth in range(1, DEFAULT_NESTING.depth + 1):
        assert ask(shell, str(depth), str(depth - 1)) == [f"start {depth}"]
    assert ask(shell, "too deep", str(DEFAULT_NESTING.depth)) == [
        "end too deep: rejected, too_deep"
    ]
    assert DEFAULT_NESTING.depth == 3


def test_a_run_has_at_most_eight_live_children() -> None:
    """SPEC LANE-8: waiting ones count, ended ones do not."""
    shell = one_slot()
    for number in range(DEFAULT_NESTING.children):
        ask(shell, str(number), "run")
    refused = ["end ninth: rejected, too_many_children"]
    assert ask(shell, "ninth", "run") == refused
    shell.done("0")
    assert ask(shell, "another", "run") == []
    assert DEFAULT_NESTING.children == 8


def test_depth_and_number_of_children_are_settings() -> None:
    shell = Shell({"main": 1}, nesting=NestingLimits(depth=1, children=2))
    shell.submit("run")
    assert ask(shell, "a", "run") == ["start a"]
    assert ask(shell, "deep", "a") == ["end deep: rejected, too_deep"]
    assert ask(shell, "b", "run") == []
    assert ask(shell, "c", "run") == ["end c: rejected, too_many_children"]


@pytest.mark.parametrize("end", ["unknown", "stopping", "finishing", "done", "abandoned"])
def test_a_run_that_ends_or_has_ended_has_no_more_children(end: str) -> None:
    """SPEC LANE-8, QUEUE-8: they would outlive the stop."""
    shell = Shell()
    shell.submit("run")
    match end:
        case "stopping":
            shell.stop()
        case "finishing":
            shell.finish("run")
        case "done":
            shell.done("run")
        case "abandoned":
            shell.stop()
            shell.wait(10)
        case _:
            pass
    parent = "nobody" if end == "unknown" else "run"
    assert ask(shell, "child", parent) == ["end child: rejected, parent_ended"]


# ---------------------------------------------------------------------- how guests and hosts end


STOPPED = (Outcome.CANCELLED, Reason.STOPPED)
TIMED_OUT = (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT)


def test_a_guest_whose_host_ends_first_keeps_the_slot() -> None:
    shell = one_slot()
    ask(shell, "child", "run")
    shell.submit("next", "other")
    shell.done("run")
    assert (shell.working, shell.lane().active) == (["child"], 1)
    shell.done("child")
    assert shell.working == ["next"]
    shell.done("next")
    shell.assert_nothing_left()


def test_a_stop_reaches_guests_that_work_and_guests_that_wait() -> None:
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
    shell.done_all("grandchild", "child", "run")
    reason = Reason.RUN_TIMEOUT if limit == "run_timeout_s" else Reason.DEADLINE
    everybody = ["run", "child", "grandchild", "second"]
    assert shell.ended == dict.fromkeys(everybody, (Outcome.TIMED_OUT, reason))
    assert shell.working == ["not waited for"]
