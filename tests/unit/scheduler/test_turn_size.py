"""A turn has a largest size: what does not fit is the next one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.scheduler.models import Mode, QueuePolicy
from tests.unit.scheduler.shell import TYPING, Shell

TWO = QueuePolicy(debounce_s=0.8, turn_messages=2)
TEN_CHARS = QueuePolicy(debounce_s=0.8, turn_chars=10)


@pytest.mark.parametrize(
    ("policy", "chars"), [(TWO, 1), (TEN_CHARS, 5)], ids=["messages", "characters"]
)
@pytest.mark.parametrize("cut", [False, True], ids=["typed", "cut by the channel"])
def test_a_burst_that_is_too_large_becomes_several_turns(
    policy: QueuePolicy, chars: int, cut: bool
) -> None:
    """SPEC QUEUE-6."""
    shell = Shell()
    for name in "abcde":
        shell.submit(name, sender="ann", policy=policy, chars=chars, cut=cut and name != "e")
    shell.wait(2)
    for name in "ace":
        shell.done(name)
    assert shell.started == ["a", "c", "e"]
    assert shell.joined == {"b": "a", "d": "c"}


def test_a_message_that_is_longer_than_a_turn_is_one_of_its_own() -> None:
    """SPEC QUEUE-6."""
    shell = Shell()
    shell.submit("long", sender="ann", policy=TEN_CHARS, chars=99)
    shell.submit("short", sender="ann", policy=TEN_CHARS, chars=1)
    shell.wait(2)
    shell.done("long")
    assert shell.started == ["long", "short"]


def test_what_is_collected_is_no_more_than_a_turn_takes() -> None:
    """SPEC QUEUE-4, QUEUE-6."""
    shell = Shell()
    policy = replace(TWO, mode=Mode.COLLECT, debounce_s=0.0)
    for name in "abcd":
        shell.submit(name, sender=name, policy=policy)
    shell.done("a")
    assert shell.started == ["a", "b"]
    assert shell.joined == {"c": "b"}


def test_a_turn_takes_fifty_messages_unless_something_else_is_set() -> None:
    """SPEC QUEUE-6."""
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
