"""Deadlines, time limits of runs, and when the scheduler wants to be called.

SPEC QUEUE-2, QUEUE-9, QUEUE-10, QUEUE-12.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.timer_heap import Timers
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, TYPING, Shell

DEADLINE = (Outcome.TIMED_OUT, Reason.DEADLINE)


def test_a_deadline_ends_a_request_that_waits_for_its_session() -> None:
    shell = Shell()
    shell.submit("runs")
    shell.submit("waits", deadline_s=5)
    shell.wait(4.9)
    assert shell.state("waits") is RunState.QUEUED
    shell.wait(0.1)
    assert shell.ended == {"waits": DEADLINE}
    shell.done("runs")
    assert shell.started == ["runs"]


def test_a_deadline_counts_from_submission_and_cancels_a_run() -> None:
    shell = Shell()
    shell.submit("first")
    shell.submit("a", deadline_s=5)
    shell.wait(3)
    shell.done("first")
    shell.wait(1.9)
    assert shell.cancelled == {}
    shell.wait(0.1)
    assert shell.cancelled == {"a": Reason.DEADLINE}
    shell.done("a")
    assert shell.ended["a"] == DEADLINE


def test_a_run_timeout_counts_from_the_start() -> None:
    shell = Shell()
    shell.submit("first")
    shell.submit("a", run_timeout_s=5)
    shell.wait(60)
    shell.done("first")
    shell.wait(4.9)
    assert shell.cancelled == {}
    shell.wait(0.1)
    assert shell.cancelled == {"a": Reason.RUN_TIMEOUT}


def test_the_next_timer_is_the_earliest_of_windows_and_limits() -> None:
    shell = Shell()
    shell.submit("typed", sender="ann", policy=TYPING)
    assert shell.scheduler.next_timer() == pytest.approx(0.8)
    shell.submit("runs", run_timeout_s=0.3)
    assert shell.scheduler.next_timer() == pytest.approx(0.3)
    shell.submit("other", "two", policy=GROUP, run_timeout_s=0.1)
    assert shell.scheduler.next_timer() == pytest.approx(0.1)


# ---------------------------------------------------------------------- timers as values


def test_an_item_is_due_at_its_time_and_not_before() -> None:
    timers: Timers[str] = Timers(lambda _: True)
    timers.add(5.0, "a")
    assert timers.next_at() == 5.0
    assert timers.pop_due(4.999) is None
    assert timers.pop_due(5.0) == "a"
    assert timers.pop_due(5.0) is None


@given(st.lists(st.integers(0, 5)))
def test_items_fall_due_by_time_and_equal_times_by_age(times: list[int]) -> None:
    timers: Timers[tuple[int, int]] = Timers(lambda _: True)
    for age, at in enumerate(times):
        timers.add(at, (at, age))
    popped = []
    while (item := timers.pop_due(99)) is not None:
        popped.append(item)
    assert popped == sorted((at, age) for age, at in enumerate(times))


def test_memory_follows_the_number_of_live_items() -> None:
    dead: set[int] = set()
    timers: Timers[int] = Timers(lambda item: item not in dead)
    timers.add(10**6, -1)
    for number in range(5000):
        timers.add(number + 1000, number)
        dead.add(number)
        timers.retire()
        assert len(timers) < 200
    assert timers.next_at() == 10**6


@given(st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=400))
def test_a_rebuilt_heap_still_gives_the_live_items_in_order(items: list[tuple[int, bool]]) -> None:
    dead: set[int] = set()
    timers: Timers[int] = Timers(lambda number: number not in dead)
    for number, (at, dies) in enumerate(items):
        timers.add(at, number)
        if dies:
            dead.add(number)
            timers.retire()
    popped = []
    while (number_due := timers.pop_due(1000)) is not None:
        popped.append(number_due)
    live = [(at, number) for number, (at, dies) in enumerate(items) if not dies]
    assert popped == [number for _, number in sorted(live)]
