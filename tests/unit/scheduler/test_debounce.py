"""Bursts and their windows (SPEC QUEUE-6)."""

from __future__ import annotations

import pytest

from goclaw_py.model.ids import RunId, SessionKey
from goclaw_py.scheduler.debounce import CUT_WINDOW_S, MAX_WINDOWS, Debouncer
from goclaw_py.scheduler.models import Request

S = SessionKey("s")
WINDOW_S = 0.8


def entry(
    run_id: str = "a", session: str = "s", *, sender: str = "ann", cut: bool = False
) -> Request:
    return Request(RunId(run_id), SessionKey(session), sender=sender, cut=cut)


def test_a_burst_ends_when_its_window_is_over() -> None:
    collector = Debouncer()
    leader = entry()
    collector.begin(leader, WINDOW_S, now=10)
    assert collector.pop_due(10.7) is None
    assert collector.pop_due(10.8) is leader
    assert collector.pop_due(99) is None


def test_a_prolonged_burst_ends_a_window_after_its_last_message() -> None:
    collector = Debouncer()
    leader = entry()
    collector.begin(leader, WINDOW_S, now=0)
    burst = collector.find(S, "ann")
    assert burst is not None
    collector.extend(burst, now=0.5)
    assert collector.next_at() == pytest.approx(0.8)
    assert collector.pop_due(0.8) is None
    assert collector.next_at() == pytest.approx(1.3)
    assert collector.pop_due(1.3) is leader


def test_prolonging_costs_no_timer() -> None:
    collector = Debouncer()
    collector.begin(entry(), WINDOW_S, now=0)
    (burst,) = collector.all()
    for number in range(1000):
        collector.extend(burst, now=number / 1000)
    assert len(collector.timers) == 1


def test_a_burst_is_bounded_by_four_windows() -> None:
    collector = Debouncer()
    collector.begin(entry(), WINDOW_S, now=0)
    (burst,) = collector.all()
    for tenth in range(1, 32):
        collector.extend(burst, now=tenth / 10)
        assert collector.pop_due(tenth / 10) is None
    assert burst.ends_at == pytest.approx(MAX_WINDOWS * WINDOW_S)
    assert collector.pop_due(3.2) is burst.leader


def test_the_timer_is_never_later_than_the_end_of_a_burst() -> None:
    collector = Debouncer()
    collector.begin(entry(cut=True), CUT_WINDOW_S, now=0)
    (burst,) = collector.all()
    collector.extend(burst, now=0.9)
    assert collector.pop_due(1.0) is None
    collector.extend(burst, now=10)
    assert collector.pop_due(10.5) is None
    assert collector.next_at() == 11
    burst.leader.cut = False
    collector.extend(burst, now=10.6)
    assert collector.next_at() == pytest.approx(MAX_WINDOWS * CUT_WINDOW_S)
    assert collector.pop_due(10.6) is burst.leader
    assert collector.next_at() is None


def test_bursts_are_kept_apart_by_session_and_sender() -> None:
    collector = Debouncer()
    for session, sender in (("s", "ann"), ("s", "bob"), ("t", "ann")):
        collector.begin(entry(session=session, sender=sender), WINDOW_S, now=0)
    assert [burst.leader.sender for burst in collector.of(S)] == ["ann", "bob"]
    assert len(collector.all()) == 3
    bob = collector.find(S, "bob")
    assert bob is not None
    collector.close(bob)
    assert [burst.leader.sender for burst in collector.of(S)] == ["ann"]


def test_bursts_fall_due_in_the_order_of_their_ends() -> None:
    collector = Debouncer()
    late, early = entry("late", "s"), entry("early", "t")
    collector.begin(late, 2 * WINDOW_S, now=0)
    collector.begin(early, WINDOW_S, now=0.1)
    assert [collector.pop_due(5), collector.pop_due(5)] == [early, late]
