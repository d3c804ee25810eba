"""Who is in the lanes and who waits, as people see it (SPEC LANE-7, QUEUE-2)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.core.containers import BOUNDS_S
from goclaw_py.core.ids import MAIN_LANE, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.scheduler.models import QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.snapshots import MAX_NAMED, MAX_WARNINGS, in_line, lane_uses, slow_waits
from goclaw_py.scheduler.timeouts import SLOW_WAIT_S
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import TYPING, Shell


def ask(name: str, *, session: str = "", lane: LaneName = MAIN_LANE) -> Request:
    return Request(RunId(name), SessionKey(session or f"s-{name}"), lane)


def busy(main: int, *names: str) -> RunScheduler:
    """Requests in the main lane, one every second."""
    scheduler = RunScheduler({MAIN_LANE: main})
    for now, name in enumerate(names):
        scheduler.submit(ask(name), now)
    return scheduler


def told(scheduler: RunScheduler, now: float) -> tuple[str, ...]:
    return tuple(map(str, slow_waits(scheduler.lanes(), scheduler.runs(now))))


def test_a_lane_shows_who_is_in_it_and_its_line_in_order() -> None:
    scheduler = busy(2, "a", "b", "c", "d", "e")
    main, *others = lane_uses(scheduler.lanes(), scheduler.runs(9))
    assert [run.id for run in main.inside] == ["a", "b"]
    assert [run.id for run in main.waiting] == ["c", "d", "e"]
    assert [run.for_s for run in main.waiting] == [7, 6, 5]
    assert not any(use.inside or use.waiting for use in others)


def test_the_line_is_the_order_in_which_they_start() -> None:
    """Not that of their submission: a session lets its second message in later."""
    scheduler = RunScheduler({MAIN_LANE: 1})
    scheduler.submit(ask("a", session="x"), 0)
    scheduler.submit(ask("b", session="x"), 1)
    scheduler.submit(ask("c"), 2)
    scheduler.submit(ask("d"), 3)
    scheduler.finished(RunId("a"), Outcome.COMPLETED, 4)
    (use, *_) = lane_uses(scheduler.lanes(), scheduler.runs(5))
    shown = [run.id for run in (*use.inside, *use.waiting)]
    order = []
    while not scheduler.idle:
        (first,) = scheduler.occupants(MAIN_LANE)
        order.append(first)
        scheduler.finished(first, Outcome.COMPLETED, 6)
    assert shown == order == ["c", "d", "b"]


def test_a_lane_does_not_show_what_waits_for_something_else() -> None:
    scheduler = RunScheduler({MAIN_LANE: 2})
    scheduler.submit(ask("a", session="x"), 0)
    scheduler.submit(ask("b", session="x"), 0)
    (main, *_) = lane_uses(scheduler.lanes(), scheduler.runs(1))
    assert ([run.id for run in main.inside], main.waiting) == (["a"], ())


def test_a_sessions_line_has_the_nearest_to_its_start_first() -> None:
    scheduler = RunScheduler({MAIN_LANE: 1})
    scheduler.submit(ask("in"), 0)
    policy = QueuePolicy(debounce_s=5)
    for now, name in enumerate(("ready", "second", "third")):
        scheduler.submit(ask(name, session="x"), now)
    typing = Request(RunId("typing"), SessionKey("y"), sender="ann", policy=policy)
    scheduler.submit(typing, 3)
    line = in_line(scheduler.runs(4))
    assert [run.id for run in line] == ["ready", "second", "third", "typing"]
    waits_for = [str(run.waits_for) for run in line]
    assert waits_for == ["lane", "session", "session", "sender"]


def test_a_slow_wait_is_told_with_who_waits_and_who_is_in_the_lane_until_it_is_over() -> None:
    scheduler = busy(1, "a", "b")
    assert told(scheduler, 1 + SLOW_WAIT_S) == ()
    assert told(scheduler, 1.01 + SLOW_WAIT_S) != ()
    (sentence,) = told(scheduler, 8)
    assert sentence == (
        "Lane main is full (1 of 1) and 1 run waits, the first for 7 s: s-b; in it: s-a"
    )
    scheduler.resize(MAIN_LANE, 2, 8)
    assert told(scheduler, 9) == ()


def test_a_slow_wait_is_told_with_the_names_that_are_known() -> None:
    scheduler = busy(1, "a", "b")
    names = {"s-a": "job backup"}
    (warning,) = slow_waits(scheduler.lanes(), scheduler.runs(8), names.get)
    assert str(warning).endswith(": s-b; in it: job backup")


def test_a_slow_wait_names_a_session_without_a_name_as_lists_do_and_each_once() -> None:
    scheduler = RunScheduler({MAIN_LANE: 2})
    travel = SessionKey("agent:main:console:direct:travel")
    for name in ("a", "b", "c"):
        scheduler.submit(replace(ask(name, session=travel), policy=QueuePolicy(concurrency=3)), 0)
    (sentence,) = told(scheduler, 8)
    assert sentence.endswith(": console travel; in it: console travel (2 runs)")


def test_a_shared_lane_with_room_is_not_called_full() -> None:
    """SPEC NODE-2: it waits for the database's answer."""
    scheduler = RunScheduler({MAIN_LANE: 2}, shared=[MAIN_LANE])
    scheduler.submit(ask("a"), 0)
    (sentence,) = told(scheduler, 7)
    assert sentence == (
        "Lane main gets no slot from the database (0 of 2 taken) and 1 run waits, "
        "the first for 7 s: s-a"
    )
    scheduler.grant(MAIN_LANE, 1, 0, 7)
    scheduler.submit(ask("b"), 7)
    (sentence,) = told(scheduler, 14)
    assert "(1 of 2 taken) and 1 run waits" in sentence
    assert "s-b; in it: s-a" in sentence
    scheduler.grant(MAIN_LANE, 0, 1, 14)
    (sentence,) = told(scheduler, 14)
    assert "Lane main is full (2 of 2)" in sentence
    assert "in it: s-a, 1 run of other nodes" in sentence


def test_a_warning_is_short_however_many_are_in_the_lane() -> None:
    names = [f"r{number}" for number in range(40)]
    (sentence,) = told(busy(30, *names), 100)
    assert "and 10 runs wait," in sentence
    assert f"and {30 - MAX_NAMED} more" not in sentence
    assert f"{30 - MAX_NAMED} more" in sentence
    assert len(sentence) < 300


def test_only_the_slowest_lanes_are_told_the_slowest_first() -> None:
    scheduler = RunScheduler({LaneName(f"l{number}"): 1 for number in range(MAX_WARNINGS + 3)})
    for number in range(MAX_WARNINGS + 3):
        lane = LaneName(f"l{number}")
        scheduler.submit(ask(f"in{number}", lane=lane), number)
        scheduler.submit(ask(f"out{number}", lane=lane), number)
    warnings = told(scheduler, 100)
    assert [sentence.split()[1] for sentence in warnings] == [f"l{n}" for n in range(MAX_WARNINGS)]


def test_an_abandoned_run_is_shown_in_its_lane_but_not_blamed() -> None:
    scheduler = RunScheduler({MAIN_LANE: 1}, cancel_grace_s=1)
    for name in ("lost", "in", "out"):
        scheduler.submit(ask(name), 0)
    scheduler.stop_oldest(SessionKey("s-lost"), 0)
    scheduler.tick(1)
    (main, *_) = lane_uses(scheduler.lanes(), scheduler.runs(2))
    assert [run.state for run in main.inside] == [RunState.ABANDONED, RunState.RUNNING]
    assert main.lane.active == 1
    (sentence,) = told(scheduler, 9)
    assert sentence.endswith("in it: s-in")


# -------------------------------------------------- what a lane counts and measures


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
    assert (lane.started, lane.finished, lane.failed, lane.cancelled) == (6, 6, 1, 3)
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
