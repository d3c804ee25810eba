"""Lanes serve first come, first served, within their size and the limits of agents; sizes change.

SPEC AGENT-3, LANE-1, LANE-2, LANE-4, LANE-5, LANE-6, LANE-9, QUEUE-7.
"""

from __future__ import annotations

import pytest

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, TYPING, Shell, told


def test_the_default_lanes_are_main_subagent_delegate_and_cron() -> None:
    sizes = {lane.name: lane.concurrency for lane in RunScheduler().lanes()}
    assert sizes == {"main": 2, "subagent": 4, "delegate": 100, "cron": 1}


def test_a_configured_lane_changes_its_size_and_leaves_the_others() -> None:
    sizes = {lane.name: lane.concurrency for lane in Shell({"main": 7, "own": 3}).scheduler.lanes()}
    assert sizes == {"main": 7, "subagent": 4, "delegate": 100, "cron": 1, "own": 3}


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_lane_never_holds_more_runs_than_its_size(size: int) -> None:
    shell = Shell({"main": size})
    for number in range(8):
        shell.submit(str(number), f"session {number}")
    for number in range(8):
        assert len(shell.started) == min(size + number, 8)
        assert shell.lane().active == min(size, 8 - number)
        shell.done(str(number))
    shell.assert_nothing_left()


def test_sessions_are_taken_stopped_and_shown_while_every_lane_is_full() -> None:
    shell = Shell({"main": 1})
    shell.submit("blocks", "other")
    shell.submit_all("a", "b")
    assert shell.stop().dropped == ["a"]
    assert shell.stop().dropped == ["b"]
    assert [run.id for run in shell.scheduler.runs(shell.now)] == ["blocks"]


def test_a_closed_lane_rejects_who_waits_and_who_comes_and_lets_runs_go_on() -> None:
    shell = Shell({"main": 1})
    shell.submit("runs", "one")
    shell.submit_all("ready", "queued", session="two")
    shell.submit("typing", "three", sender="ann", policy=TYPING)
    shell.close_lane("main")
    shell.submit("late", "four")
    rejected = (Outcome.REJECTED, Reason.LANE_CLOSED)
    assert shell.ended == dict.fromkeys(["typing", "ready", "queued", "late"], rejected)
    assert shell.state("runs") is RunState.RUNNING
    shell.done("runs")
    assert shell.started == ["runs"]
    shell.assert_nothing_left()


def test_the_documented_defaults_do_not_deadlock() -> None:
    """SPEC LANE-4: two places in the lane, three in the group, 800 ms of debounce."""
    shell = Shell()
    policy = type(TYPING)(debounce_s=0.8, concurrency=3)
    for number in range(9):
        shell.submit(str(number), f"group {number % 2}", sender=f"person {number}", policy=policy)
    shell.wait(5)
    while len(shell.ended) < 9:
        working = [name for name in shell.started if name not in shell.ended]
        assert len(working) == min(2, 9 - len(shell.ended))
        shell.done(working[0])
    shell.assert_nothing_left()


# ---------------------------------------------------------------------- agents


def test_an_agent_never_works_on_more_than_its_limit() -> None:
    shell = Shell({"main": 9}, agents={"main": 2})
    for number in range(5):
        shell.submit(str(number), f"session {number}")
    assert shell.started == ["0", "1"]
    shell.done("0")
    assert shell.started == ["0", "1", "2"]


def test_sessions_share_a_busy_agent_in_turns() -> None:
    """SPEC AGENT-3: one who writes much does not lock out the others."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("busy", "zero")
    shell.submit_all("a1", "a2", "a3", session="a", policy=GROUP)
    shell.submit_all("b1", "b2", session="b", policy=GROUP)
    shell.submit("c1", "c")
    for _ in range(6):
        shell.done(shell.started[-1])
    assert shell.started == ["busy", "a1", "b1", "c1", "a2", "b2", "a3"]


def test_the_limit_of_an_agent_changes_while_it_works() -> None:
    """SPEC OPS-11: a run continues, whatever the new limit is."""
    shell = Shell({"main": 9}, agents={"main": 3})
    for number in range(6):
        shell.submit(str(number), f"session {number}")
    shell.limit_agent("main", 1)
    shell.done_all("0", "1")
    assert shell.started == ["0", "1", "2"]
    shell.done("2")
    assert shell.started[3:] == ["3"]
    shell.limit_agent("main", None)
    assert shell.started[3:] == ["3", "4", "5"]
    for name, limit in (("main", 0), ("stranger", 2)):
        with pytest.raises(ValueError, match=r"max_concurrent|stranger"):
            shell.limit_agent(name, limit)


# ---------------------------------------------------------------------- sizes that change


def full(size: int, waiting: int) -> Shell:
    """A lane with so many that run, and so many that wait for it."""
    shell = Shell({"main": size})
    for number in range(size + waiting):
        shell.submit(str(number), f"session {number}")
    return shell


# ---------------------------------------------------------------------- lanes on demand


def test_a_lane_made_on_demand_takes_requests_and_bounds_them() -> None:
    shell = Shell()
    made = shell.get_or_create("own", 1)
    assert (made.name, made.concurrency, made.active) == ("own", 1, 0)
    shell.submit("a", "one", lane="own")
    shell.submit("b", "two", lane="own")
    assert shell.working == ["a"]
    assert shell.lane("main").active == 0


# ---------------------------------------------------------------------- resize


def test_a_lane_that_grows_starts_those_who_wait_in_their_order() -> None:
    shell = full(1, waiting=3)
    assert told(shell.resize("main", 3)) == ["start 1", "start 2"]
    assert (shell.lane().concurrency, shell.lane().active, shell.lane().waiting) == (3, 3, 1)


def test_a_lane_that_shrank_starts_nobody_until_it_is_below_its_size() -> None:
    shell = full(3, waiting=1)
    shell.resize("main", 1)
    shell.done_all("0", "1")
    assert shell.working == ["2"]
    shell.done("2")
    assert shell.working == ["3"]


# ---------------------------------------------------------------------- sessions


def test_a_session_that_may_run_more_at_once_starts_those_who_wait() -> None:
    shell = Shell({"main": 9})
    shell.submit_all(*"abcd")
    assert told(shell.set_concurrency(3)) == ["start b", "start c"]


def test_a_throttled_session_cancels_nobody_and_starts_nobody_before_it_has_room() -> None:
    shell = Shell({"main": 9})
    shell.submit_all(*"abcd", policy=GROUP)
    assert shell.set_concurrency(1) == []
    shell.done_all("a", "b")
    assert shell.working == ["c"]
    shell.done("c")
    assert shell.working == ["d"]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, 2.0, True, None, "3", float("nan")])
def test_a_size_that_is_none_changes_nothing(wrong: int) -> None:
    shell = full(2, waiting=1)
    for change in (
        lambda: shell.resize("main", wrong),
        lambda: shell.set_concurrency(wrong, "session 0"),
        lambda: shell.get_or_create("own", wrong),
    ):
        with pytest.raises(ValueError, match="concurrency is a whole number, at least 1"):
            change()
    assert (shell.lane().concurrency, shell.lane().waiting) == (2, 1)
    assert "own" not in [lane.name for lane in shell.scheduler.lanes()]
