"""Timers as values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.scheduler.timer_heap import Timers


def test_an_empty_heap_has_nothing_due() -> None:
    timers: Timers[str] = Timers(lambda _: True)
    assert timers.next_at() is None
    assert timers.pop_due(1e9) is None
    assert len(timers) == 0


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


def test_dead_items_are_skipped() -> None:
    alive = {"b"}
    timers: Timers[str] = Timers(alive.__contains__)
    timers.add(1, "a")
    timers.add(2, "b")
    assert timers.next_at() == 2
    assert timers.pop_due(1) is None
    assert timers.pop_due(2) == "b"


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
