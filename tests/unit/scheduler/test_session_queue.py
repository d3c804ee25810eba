"""The queue of one session: one at a time, in order, bounded.

SPEC QUEUE-1, QUEUE-2, QUEUE-3, QUEUE-5, QUEUE-6, QUEUE-10, QUEUE-12.
"""

from __future__ import annotations

import pytest

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import INTERRUPT, Shell, small, told

DROPPED = (Outcome.DROPPED, Reason.NEWER_MESSAGE)


# ---------------------------------------------------------------------- one at a time


def test_a_direct_chat_runs_one_at_a_time_in_order() -> None:
    shell = Shell({"main": 9})
    shell.submit_all(*"abc")
    assert shell.started == ["a"]
    shell.done("a")
    assert shell.started == ["a", "b"]
    shell.done("b")
    assert shell.started == ["a", "b", "c"]


def test_a_stopped_run_keeps_its_slot_until_it_has_unwound() -> None:
    shell = Shell({"main": 9})
    shell.submit_all("a", "b")
    shell.stop()
    assert shell.state("a") is RunState.STOPPING
    assert shell.started == ["a"]
    assert told(shell.done("a")) == ["end a: cancelled, stopped", "start b"]


def test_a_finished_run_keeps_its_slots_until_its_outcome_is_stored() -> None:
    shell = Shell({"main": 1})
    shell.submit_all("a", "b")
    shell.submit("c", "other")
    assert told(shell.finish("a")) == ["end a: completed"]
    assert shell.state("a") is RunState.FINISHING
    assert shell.lane().active == 1
    assert told(shell.release("a")) == ["start c"]
    assert shell.state("b") is RunState.READY


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.COMPLETED])
def test_a_failed_run_does_not_hold_up_the_next(outcome: Outcome) -> None:
    shell = Shell()
    shell.submit_all("a", "b")
    shell.done("a", outcome)
    assert shell.ended == {"a": (outcome, None)}
    assert shell.started == ["a", "b"]


# ---------------------------------------------------------------------- interrupt


def test_an_interrupting_message_starts_when_what_it_cancelled_has_ended() -> None:
    shell = Shell({"main": 9})
    shell.submit_all("a", "waits")
    shell.submit("b", policy=INTERRUPT)
    assert shell.cancelled == {"a": Reason.NEWER_MESSAGE}
    assert shell.ended == {"waits": DROPPED}
    assert shell.started == ["a"]
    shell.done("a")
    assert shell.ended["a"] == (Outcome.CANCELLED, Reason.NEWER_MESSAGE)
    assert shell.started == ["a", "b"]


def test_a_long_text_that_the_channel_cut_interrupts_once() -> None:
    shell = Shell()
    shell.submit("old")
    effects = shell.submit("part 1", sender="ann", policy=INTERRUPT, cut=True)
    assert told(effects) == ["cancel old: newer_message"]
    shell.done("old")
    assert shell.started == ["old"]
    shell.wait(0.5)
    shell.submit("part 2", sender="ann", policy=INTERRUPT, cut=True)
    shell.wait(0.9)
    assert shell.started == ["old"]
    shell.submit("end", sender="ann", policy=INTERRUPT)
    assert shell.joined == {"part 2": "part 1", "end": "part 1"}
    assert shell.started == ["old", "part 1"]


# ---------------------------------------------------------------------- capacity


def test_the_default_capacity_is_ten_and_the_oldest_goes() -> None:
    shell = Shell()
    for number in range(13):
        shell.submit(str(number))
    assert shell.ended == dict.fromkeys(["1", "2"], (Outcome.DROPPED, Reason.QUEUE_DROPPED))
    shell.done("0")
    assert shell.started == ["0", "3"]


def test_drop_new_refuses_the_incoming_message() -> None:
    shell = Shell()
    shell.submit_all(*"abc", policy=small(1, Drop.NEW))
    assert shell.ended == {"c": (Outcome.REJECTED, Reason.QUEUE_FULL)}
    shell.done("a")
    assert shell.started == ["a", "b"]


# ---------------------------------------------------------------------- ids and memory


def test_an_unknown_run_can_be_finished_without_effect() -> None:
    shell = Shell()
    assert shell.finish("nobody") == []
    assert shell.release("nobody") == []
    assert shell.state("nobody") is RunState.DONE
