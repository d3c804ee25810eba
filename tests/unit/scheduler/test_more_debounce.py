"""Rapid messages of one sender become one turn (SPEC QUEUE-4, QUEUE-6, QUEUE-8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import TYPING, Shell

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


def test_a_steady_typist_is_served_after_four_windows() -> None:
    shell = Shell()
    for number in range(6):
        says(shell, str(number))
        shell.wait(0.6)
    assert shell.now > 3.2
    assert shell.started == ["0"]
    assert len(shell.joined) == 5


def test_a_steady_typist_is_collected_again_while_a_run_works() -> None:
    """SPEC QUEUE-6: else each run would take what came in the moment that the one before took."""
    shell = Shell()
    for number in range(10):
        says(shell, str(number))
        if number == 6:
            shell.done("0")
        shell.wait(0.6)
    assert shell.started == ["0"]
    assert shell.state("6") is RunState.COLLECTING
    assert [name for name, into in shell.joined.items() if into == "6"] == ["7", "8", "9"]


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


def test_a_message_that_is_longer_than_a_turn_is_one_of_its_own() -> None:
    shell = Shell()
    shell.submit("long", sender="ann", policy=TEN_CHARS, chars=99)
    shell.submit("short", sender="ann", policy=TEN_CHARS, chars=1)
    shell.wait(2)
    shell.done("long")
    assert shell.started == ["long", "short"]


def test_a_turn_takes_fifty_messages_unless_something_else_is_set() -> None:
    shell = Shell()
    for number in range(60):
        shell.submit(str(number), sender="ann", policy=TYPING)
    shell.wait(2)
    shell.done("0")
    assert shell.started == ["0", "50"]


def test_what_was_too_much_for_a_turn_is_collected_like_the_turn_before() -> None:
    """SPEC QUEUE-6: as many turns, however short the runs are and however slowly messages come."""
    shell = Shell()
    for name in "abcdefgh":
        shell.submit(name, sender="ann", policy=replace(TWO, turn_messages=4))
        shell.wait(0.1)
        if shell.started:
            shell.done("a")
    shell.wait(2)
    assert shell.started == ["a", "e"]
    assert [name for name, into in shell.joined.items() if into == "e"] == ["f", "g", "h"]


def test_nothing_overtakes_what_has_no_room_in_a_turn() -> None:
    shell = Shell()
    policy = replace(TEN_CHARS, mode=Mode.COLLECT, debounce_s=0.0)
    for name, chars in {"a": 1, "b": 6, "c": 6, "d": 1}.items():
        shell.submit(name, sender=name, policy=policy, chars=chars)
    shell.done_all("a", "b")
    assert shell.started == ["a", "b", "c"]
    assert shell.joined == {"d": "c"}
