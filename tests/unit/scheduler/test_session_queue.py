"""The queue of one session: one at a time, in order, bounded."""

from __future__ import annotations

import pytest

from goclaw_py.model.ids import RunId, SessionKey
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.views import RunState, RunView
from tests.unit.scheduler.shell import (
    CHAT,
    GROUP,
    INTERRUPT,
    INTERRUPT_GROUP,
    TYPING,
    Shell,
    small,
    told,
)

DROPPED = (Outcome.DROPPED, Reason.NEWER_MESSAGE)


# ---------------------------------------------------------------------- one at a time


def test_a_direct_chat_runs_one_at_a_time_in_order() -> None:
    """SPEC QUEUE-1, QUEUE-3."""
    shell = Shell({"main": 9})
    for name in "abc":
        shell.submit(name)
    assert shell.started == ["a"]
    shell.done("a")
    assert shell.started == ["a", "b"]
    shell.done("b")
    assert shell.started == ["a", "b", "c"]


def test_a_group_runs_three_at_a_time() -> None:
    """SPEC QUEUE-1."""
    shell = Shell({"main": 9})
    for name in "abcd":
        shell.submit(name, policy=GROUP)
    assert shell.started == ["a", "b", "c"]
    shell.done("b")
    assert shell.started == ["a", "b", "c", "d"]


def test_a_message_that_raises_the_concurrency_lets_those_before_it_start() -> None:
    """SPEC QUEUE-1."""
    shell = Shell({"main": 9})
    shell.submit("a")
    shell.submit("b")
    shell.submit("c", policy=GROUP)
    assert shell.started == ["a", "b", "c"]


def test_a_stopped_run_keeps_its_slot_until_it_has_unwound() -> None:
    """SPEC QUEUE-2."""
    shell = Shell({"main": 9})
    shell.submit("a")
    shell.submit("b")
    shell.stop()
    assert shell.state("a") is RunState.STOPPING
    assert shell.started == ["a"]
    assert told(shell.done("a")) == ["end a: cancelled, stopped", "start b"]


def test_a_stopped_run_keeps_its_place_in_the_lane_until_it_has_unwound() -> None:
    """SPEC QUEUE-2."""
    shell = Shell({"main": 1})
    shell.submit("a", "one")
    shell.submit("b", "two")
    shell.stop("one")
    assert shell.lane().active == 1
    assert shell.started == ["a"]


def test_a_finished_run_keeps_its_slots_until_its_outcome_is_stored() -> None:
    """SPEC QUEUE-2."""
    shell = Shell({"main": 1})
    shell.submit("a")
    shell.submit("b")
    shell.submit("c", "other")
    assert told(shell.finish("a")) == ["end a: completed"]
    assert shell.state("a") is RunState.FINISHING
    assert shell.lane().active == 1
    assert told(shell.release("a")) == ["start c"]
    assert shell.state("b") is RunState.READY


def test_a_stop_that_comes_while_the_outcome_is_stored_changes_nothing() -> None:
    """SPEC QUEUE-10."""
    shell = Shell()
    shell.submit("a")
    shell.finish("a")
    assert shell.stop().effects == []
    assert shell.stop_all().effects == []
    shell.release("a")
    assert shell.ended == {"a": (Outcome.COMPLETED, None)}
    shell.assert_nothing_left()


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.COMPLETED])
def test_a_failed_run_does_not_hold_up_the_next(outcome: Outcome) -> None:
    """SPEC QUEUE-10."""
    shell = Shell()
    shell.submit("a")
    shell.submit("b")
    shell.done("a", outcome)
    assert shell.ended == {"a": (outcome, None)}
    assert shell.started == ["a", "b"]


# ---------------------------------------------------------------------- interrupt


def test_followup_is_the_same_as_queue() -> None:
    """SPEC QUEUE-3."""
    shell = Shell({"main": 9})
    for name in "ab":
        shell.submit(name, policy=QueuePolicy(mode=Mode.FOLLOWUP))
    assert shell.started == ["a"]
    assert shell.cancelled == {}


def test_an_interrupting_message_starts_when_what_it_cancelled_has_ended() -> None:
    """SPEC QUEUE-3."""
    shell = Shell({"main": 9})
    shell.submit("a")
    shell.submit("waits")
    shell.submit("b", policy=INTERRUPT)
    assert shell.cancelled == {"a": Reason.NEWER_MESSAGE}
    assert shell.ended == {"waits": DROPPED}
    assert shell.started == ["a"]
    shell.done("a")
    assert shell.ended["a"] == (Outcome.CANCELLED, Reason.NEWER_MESSAGE)
    assert shell.started == ["a", "b"]


def test_five_interrupting_messages_in_a_row_leave_one_run_and_never_two_at_once() -> None:
    """SPEC QUEUE-2, QUEUE-3."""
    shell = Shell({"main": 9})
    for number in range(5):
        shell.submit(str(number), policy=INTERRUPT)
    assert shell.started == ["0"]
    assert shell.ended == dict.fromkeys("123", DROPPED)
    shell.done("0")
    assert shell.started == ["0", "4"]


def test_an_interrupting_message_waits_for_all_three_runs_of_a_group() -> None:
    """SPEC QUEUE-3."""
    shell = Shell({"main": 9})
    for name in "abc":
        shell.submit(name, policy=GROUP)
    shell.submit("now", policy=INTERRUPT_GROUP)
    assert list(shell.cancelled) == ["a", "b", "c"]
    shell.done("b")
    shell.done("a")
    assert shell.started == ["a", "b", "c"]
    shell.done("c")
    assert shell.started == ["a", "b", "c", "now"]


def test_messages_behind_an_interrupting_one_start_after_it() -> None:
    """SPEC QUEUE-3."""
    shell = Shell({"main": 9})
    shell.submit("a", policy=GROUP)
    shell.submit("now", policy=INTERRUPT_GROUP)
    shell.submit("next", policy=GROUP)
    assert shell.started == ["a"]
    shell.done("a")
    assert shell.started == ["a", "now", "next"]


def test_an_interrupting_message_drops_what_waits_for_the_lane() -> None:
    """SPEC QUEUE-3."""
    shell = Shell({"main": 1})
    shell.submit("blocks", "other")
    shell.submit("ready")
    shell.submit("now", policy=INTERRUPT)
    assert shell.ended == {"ready": DROPPED}
    shell.done("blocks")
    assert shell.started == ["blocks", "now"]


def test_an_interrupting_message_takes_its_senders_debounce_buffer_along() -> None:
    """SPEC QUEUE-3."""
    shell = Shell()
    shell.submit("typed", sender="ann", policy=TYPING)
    shell.submit("now", sender="ann", policy=INTERRUPT)
    assert shell.joined == {"now": "typed"}
    assert shell.started == ["typed"]
    shell.wait(2)
    assert shell.started == ["typed"]


def test_an_interrupting_message_leaves_the_buffers_of_other_senders() -> None:
    """SPEC QUEUE-3."""
    shell = Shell()
    shell.submit("typed", sender="bob", policy=TYPING)
    shell.submit("now", sender="ann", policy=INTERRUPT)
    assert shell.started == ["now"]
    assert shell.state("typed") is RunState.COLLECTING


def test_an_interrupting_message_starts_at_once_in_an_idle_session() -> None:
    """SPEC QUEUE-3, QUEUE-6."""
    shell = Shell()
    policy = QueuePolicy(mode=Mode.INTERRUPT, debounce_s=0.8)
    assert told(shell.submit("a", sender="ann", policy=policy)) == ["start a"]


def test_a_long_text_that_the_channel_cut_interrupts_once() -> None:
    """SPEC QUEUE-3, QUEUE-6."""
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
    """SPEC QUEUE-5."""
    shell = Shell()
    for number in range(13):
        shell.submit(str(number))
    assert shell.ended == dict.fromkeys(["1", "2"], (Outcome.DROPPED, Reason.QUEUE_DROPPED))
    shell.done("0")
    assert shell.started == ["0", "3"]


def test_drop_new_refuses_the_incoming_message() -> None:
    """SPEC QUEUE-5."""
    shell = Shell()
    for name in "abc":
        shell.submit(name, policy=small(1, Drop.NEW))
    assert shell.ended == {"c": (Outcome.REJECTED, Reason.QUEUE_FULL)}
    shell.done("a")
    assert shell.started == ["a", "b"]


def test_a_burst_that_ends_in_a_full_queue_is_subject_to_capacity() -> None:
    """SPEC QUEUE-5, QUEUE-6."""
    shell = Shell()
    policy = QueuePolicy(debounce_s=0.8, capacity=1, drop=Drop.NEW)
    shell.submit("typed", sender="ann", policy=policy)
    shell.submit("runs", policy=policy)
    shell.submit("waits", policy=policy)
    shell.wait(1)
    assert shell.ended == {"typed": (Outcome.REJECTED, Reason.QUEUE_FULL)}


# ---------------------------------------------------------------------- ids and memory


def test_an_id_may_be_used_again_after_its_end() -> None:
    """SPEC QUEUE-10."""
    scheduler = RunScheduler()
    for _ in range(2):
        request = Request(RunId("a"), SessionKey(CHAT))
        assert told(scheduler.submit(request, 0)) == ["start a"]
        scheduler.finished(RunId("a"), Outcome.COMPLETED, 0)


def test_an_unknown_run_can_be_finished_without_effect() -> None:
    """SPEC QUEUE-10."""
    shell = Shell()
    assert shell.finish("nobody") == []
    assert shell.release("nobody") == []
    assert shell.state("nobody") is RunState.DONE


def test_runs_are_shown_in_order_of_submission_with_their_age_in_the_state() -> None:
    """SPEC OPS-4."""
    shell = Shell({"main": 1})
    shell.submit("a")
    shell.wait(3)
    shell.submit("b", sender="ann", policy=TYPING)
    shell.submit("c", "other")
    shell.wait(2)
    runs = shell.scheduler.runs(shell.now)
    assert [(run.id, run.state, run.for_s) for run in runs] == [
        ("a", RunState.RUNNING, 5),
        ("b", RunState.QUEUED, 2),
        ("c", RunState.READY, 2),
    ]
    assert isinstance(runs[0], RunView)
    assert (runs[2].session, runs[2].agent, runs[2].lane) == ("other", "main", "main")


def test_the_same_history_has_the_same_effects() -> None:
    """SPEC QUEUE-12."""
    histories = []
    for _ in range(2):
        shell = Shell({"main": 2})
        for number in range(30):
            shell.submit(str(number), f"s{number % 7}", sender=f"p{number % 3}", policy=TYPING)
            shell.wait(0.3)
        shell.stop_all("s3")
        shell.interrupt_all()
        histories.append((shell.started, shell.ended, shell.joined, shell.cancelled))
    assert histories[0] == histories[1]
