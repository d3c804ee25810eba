"""What a lane counts and measures, and who is told about slow waits (SPEC LANE-7, QUEUE-12)."""

from __future__ import annotations

import pytest

from goclaw_py.common.histogram import BOUNDS_S
from goclaw_py.model.outcomes import Outcome
from tests.unit.scheduler.shell import TYPING, Shell

# ---------------------------------------------------------------------- a lane's numbers


def test_each_outcome_is_counted_once_where_it_belongs() -> None:
    shell = Shell({"main": 9})
    for name in ("completed", "failed", "stopped", "late", "deaf", "shut down"):
        shell.submit(name, name, run_timeout_s=5 if name == "late" else None)
    shell.done("completed")
    shell.done("failed", Outcome.FAILED)
    shell.stop("stopped")
    shell.done("stopped")
    shell.wait(5)
    shell.done("late")
    shell.stop("deaf")
    shell.wait(10)
    shell.interrupt_all()
    shell.done_all("shut down", "deaf")
    lane = shell.lane()
    assert (lane.started, lane.finished, lane.failed, lane.cancelled) == (6, 6, 1, 4)
    assert lane.run_times.count == 6


def test_a_wait_is_measured_from_the_place_in_the_line_to_the_start() -> None:
    """SPEC LANE-7: the time before, in session and agent, is not the lane's."""
    shell = Shell({"main": 1})
    shell.submit("a", "one")
    shell.submit_all("b", "b2", session="two")
    shell.wait(4)
    shell.done("a")
    shell.wait(1)
    shell.done("b")
    times = shell.lane().wait_times
    assert (times.count, times.total_s) == (3, 4)
    assert (times.quantile(0.6), times.quantile(1)) == (BOUNDS_S[0], 5)


# ---------------------------------------------------------------------- slow waits


def crowd(size: int = 1, waiting: int = 1) -> Shell:
    shell = Shell({"main": size})
    for number in range(size):
        shell.submit(f"run {number}", f"busy {number}")
    for number in range(waiting):
        shell.submit(f"wait {number}", f"session {number}")
    return shell


def test_a_slow_wait_names_who_waits_and_who_occupies_the_lane() -> None:
    shell = crowd(size=2)
    shell.wait(1.9)
    assert shell.slow == []
    shell.wait(0.1)
    assert shell.slow == [("wait 0", "main", ["run 0", "run 1"])]


def test_a_lane_is_told_about_at_most_every_ten_seconds() -> None:
    """SPEC LANE-7: a crowd is one warning, and then one for whoever is first by then."""
    shell = crowd(waiting=9)
    shell.wait(2)
    shell.done("run 0")
    shell.wait(1)
    shell.done("wait 0")
    shell.wait(8.9)
    assert [who for who, _, _ in shell.slow] == ["wait 0"]
    shell.wait(0.1)
    assert [who for who, _, _ in shell.slow] == ["wait 0", "wait 2"]


def test_a_lane_that_was_empty_in_between_keeps_its_ten_seconds() -> None:
    """SPEC LANE-7. An empty line made it forget when it had been told about."""
    shell = crowd()
    shell.wait(2.5)
    shell.done("run 0")
    shell.submit("next", "next")
    shell.wait(9.4)
    assert [who for who, _, _ in shell.slow] == ["wait 0"]
    shell.wait(0.1)
    assert [who for who, _, _ in shell.slow] == ["wait 0", "next"]


@pytest.mark.parametrize("how", ["start", "stop", "resize"])
def test_no_timer_is_left_when_nobody_waits(how: str) -> None:
    shell = crowd()
    assert shell.scheduler.next_timer() == 2
    match how:
        case "start":
            shell.done("run 0")
        case "stop":
            shell.stop("session 0")
        case _:
            shell.resize("main", 2)
    assert shell.scheduler.next_timer() is None


def test_memory_stays_flat_while_many_leave_a_long_line() -> None:
    """SPEC LANE-6: who has left is not kept until the lane moves."""
    shell = crowd(waiting=1)
    for number in range(2000):
        shell.submit(f"visitor {number}", f"visitor {number}", deadline_s=60)
        shell.stop(f"visitor {number}")
    line = shell.scheduler._machine.lanes[next(iter(shell.scheduler._machine.lanes))].line
    assert len(line) < 100
    shell.done("run 0")
    assert shell.working == ["wait 0"]


def test_sessions_and_all_that_belongs_to_them_are_evicted() -> None:
    """SPEC QUEUE-1. Elsewhere the map of sessions only grew."""
    shell = Shell({"main": 2}, agents={"main": 2})
    for number in range(1000):
        session = f"session {number}"
        shell.submit(f"{number} typed", session, sender="ann", policy=TYPING, deadline_s=60)
        shell.wait(0.8)
        shell.submit(f"{number} child", f"sub {number}", parent=f"{number} typed", awaited=True)
        shell.done(f"{number} child")
        shell.done(f"{number} typed")
    machine = shell.scheduler._machine
    assert (machine.sessions, machine.kin, machine.requests, machine.aliases) == ({}, {}, {}, {})
    assert len(machine.timers) < 200
    assert len(machine.collector.timers) < 200
