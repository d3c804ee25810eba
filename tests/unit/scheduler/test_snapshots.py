"""Who is in the lanes and who waits, as people see it (SPEC LANE-7, QUEUE-2)."""

from __future__ import annotations

from goclaw_py.model.ids import MAIN_LANE, LaneName, RunId, SessionKey
from goclaw_py.model.outcomes import Outcome
from goclaw_py.scheduler.models import QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.snapshots import MAX_NAMED, MAX_WARNINGS, in_line, lane_uses, slow_waits
from goclaw_py.scheduler.timeouts import SLOW_WAIT_S
from goclaw_py.scheduler.views import RunState


def ask(name: str, *, session: str = "", lane: LaneName = MAIN_LANE) -> Request:
    return Request(RunId(name), SessionKey(session or f"s-{name}"), lane)


def busy(main: int, *names: str) -> RunScheduler:
    """Requests in the main lane, one every second."""
    scheduler = RunScheduler({MAIN_LANE: main})
    for now, name in enumerate(names):
        scheduler.submit(ask(name), now)
    return scheduler


def told(scheduler: RunScheduler, now: float) -> tuple[str, ...]:
    return slow_waits(scheduler.lanes(), scheduler.runs(now))


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
        "lane main is full (1 of 1) and 1 waits, the first for 7 s: b (s-b); in it: a (s-a); "
        "see: goclaw lanes"
    )
    scheduler.resize(MAIN_LANE, 2, 8)
    assert told(scheduler, 9) == ()


def test_a_shared_lane_with_room_is_not_called_full() -> None:
    """SPEC NODE-2: it waits for the database's answer."""
    scheduler = RunScheduler({MAIN_LANE: 2}, shared=[MAIN_LANE])
    scheduler.submit(ask("a"), 0)
    (sentence,) = told(scheduler, 7)
    assert sentence == (
        "lane main gets no place from the database (0 of 2 taken) and 1 waits, the first for 7 s: "
        "a (s-a); see: goclaw lanes"
    )
    scheduler.grant(MAIN_LANE, 1, 0, 7)
    scheduler.submit(ask("b"), 7)
    (sentence,) = told(scheduler, 14)
    assert "(1 of 2 taken) and 1 waits" in sentence
    assert "b (s-b); in it: a (s-a);" in sentence
    scheduler.grant(MAIN_LANE, 0, 1, 14)
    (sentence,) = told(scheduler, 14)
    assert "lane main is full (2 of 2)" in sentence
    assert "in it: a (s-a), 1 run of other nodes;" in sentence


def test_a_warning_is_short_however_many_are_in_the_lane() -> None:
    names = [f"r{number}" for number in range(40)]
    (sentence,) = told(busy(30, *names), 100)
    assert "and 10 wait," in sentence
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
    assert "in it: in (s-in);" in sentence
