"""Rapid messages of one sender become one turn, of bounded size (SPEC QUEUE-4, QUEUE-6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.scheduler.debounce import CUT_WINDOW_S, MAX_WINDOWS, Debouncer
from goclaw_py.scheduler.models import Mode, QueuePolicy, Request
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import TYPING, Shell

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


def test_bursts_fall_due_in_the_order_of_their_ends() -> None:
    collector = Debouncer()
    late, early = entry("late", "s"), entry("early", "t")
    collector.begin(late, 2 * WINDOW_S, now=0)
    collector.begin(early, WINDOW_S, now=0.1)
    assert [collector.pop_due(5), collector.pop_due(5)] == [early, late]


def test_bursts_with_several_timers_fall_due_in_the_order_of_their_ends() -> None:
    collector = Debouncer()
    leader, early = entry(cut=True), entry("early", sender="bob")
    collector.begin(leader, 0.5, now=0)
    (burst,) = collector.all()
    collector.extend(burst, now=0.25)
    assert collector.pop_due(0.5) is None  # its next timer is set: at 1.25
    leader.cut = False
    collector.extend(burst, now=0.5)  # and one before that
    collector.begin(early, 0.5, now=0.8)
    collector.extend(burst, now=0.9)
    assert [collector.pop_due(1.5), collector.pop_due(1.5)] == [early, leader]


# ---------------------------------------------------------------------- in a scheduler


OFF = QueuePolicy()


def says(shell: Shell, run_id: str, session: str = "chat", *, sender: str = "ann") -> None:
    shell.submit(run_id, session, sender=sender, policy=TYPING)


def test_rapid_messages_of_one_sender_become_one_turn() -> None:
    shell = Shell()
    says(shell, "a")
    shell.wait(0.5)
    says(shell, "b")
    shell.wait(0.5)
    says(shell, "c")
    assert shell.state("a") is RunState.COLLECTING
    shell.wait(0.79)
    assert shell.started == []
    shell.wait(0.02)
    assert shell.started == ["a"]
    assert shell.joined == {"b": "a", "c": "a"}


def test_a_follow_up_to_a_running_session_queues_without_a_window() -> None:
    """SPEC QUEUE-6: only the first turn of a burst is delayed."""
    shell = Shell()
    says(shell, "a")
    shell.wait(1)
    says(shell, "b")
    assert shell.state("b") is RunState.QUEUED
    shell.done("a")
    assert shell.started == ["a", "b"]


# ---------------------------------------------------------------------- cut texts


def cut(shell: Shell, run_id: str, *, more: bool, policy: QueuePolicy = OFF) -> None:
    shell.submit(run_id, sender="ann", policy=policy, cut=more)


def test_pieces_of_a_cut_text_join_even_without_debounce() -> None:
    shell = Shell()
    cut(shell, "1", more=True)
    shell.wait(0.9)
    cut(shell, "2", more=True)
    shell.wait(0.9)
    assert shell.started == []
    cut(shell, "3", more=False)
    assert shell.joined == {"2": "1", "3": "1"}
    assert shell.started == ["1"]


def test_a_cut_text_whose_rest_never_comes_is_served_all_the_same() -> None:
    shell = Shell()
    cut(shell, "1", more=True)
    shell.wait(1)
    assert shell.started == ["1"]


# ---------------------------------------------------------------------- how much is one turn


TWO = QueuePolicy(debounce_s=0.8, turn_messages=2)
TEN_CHARS = QueuePolicy(debounce_s=0.8, turn_chars=10)


@pytest.mark.parametrize(
    ("policy", "chars"), [(TWO, 1), (TEN_CHARS, 5)], ids=["messages", "characters"]
)
@pytest.mark.parametrize("cut", [False, True], ids=["typed", "cut by the channel"])
def test_a_burst_that_is_too_large_becomes_several_turns(
    policy: QueuePolicy, chars: int, cut: bool
) -> None:
    shell = Shell()
    for name in "abcde":
        shell.submit(name, sender="ann", policy=policy, chars=chars, cut=cut and name != "e")
    shell.wait(2)
    shell.done_all(*"ace")
    assert shell.started == ["a", "c", "e"]
    assert shell.joined == {"b": "a", "d": "c"}


def test_a_turn_takes_fifty_messages_unless_something_else_is_set() -> None:
    shell = Shell()
    for number in range(60):
        shell.submit(str(number), sender="ann", policy=TYPING)
    shell.wait(2)
    shell.done("0")
    assert shell.started == ["0", "50"]


def test_nothing_overtakes_what_has_no_room_in_a_turn() -> None:
    shell = Shell()
    policy = replace(TEN_CHARS, mode=Mode.COLLECT, debounce_s=0.0)
    for name, chars in {"a": 1, "b": 6, "c": 6, "d": 1}.items():
        shell.submit(name, sender=name, policy=policy, chars=chars)
    shell.done_all("a", "b")
    assert shell.started == ["a", "b", "c"]
    assert shell.joined == {"d": "c"}
