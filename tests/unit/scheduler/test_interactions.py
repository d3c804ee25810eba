"""Rules that meet: each of these histories belongs to two or three rules at once."""

from __future__ import annotations

import pytest

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, INTERRUPT, TYPING, Shell, told

DROPPED = (Outcome.DROPPED, Reason.QUEUE_DROPPED)
DEADLINE = (Outcome.TIMED_OUT, Reason.DEADLINE)


# ---------------------------------------------------------------------- interrupt


def test_an_interrupting_message_can_be_dropped_as_the_oldest() -> None:
    """SPEC QUEUE-3, QUEUE-5: while it waits it is a waiting message like the others."""
    shell = Shell()
    shell.submit("a")
    shell.submit("now", policy=INTERRUPT)
    shell.submit("next", policy=QueuePolicy(capacity=1))
    assert shell.ended == {"now": DROPPED}
    shell.done("a")
    assert shell.working == ["next"]


def test_an_interrupting_message_that_expires_lets_those_behind_it_start() -> None:
    """SPEC QUEUE-3, QUEUE-9: what it cancelled stays cancelled."""
    shell = Shell({"main": 9})
    shell.submit("a", policy=GROUP)
    interrupt = QueuePolicy(mode=Mode.INTERRUPT, concurrency=3)
    shell.submit("now", policy=interrupt, deadline_s=1)
    shell.submit("next", policy=GROUP)
    shell.wait(1)
    assert shell.ended == {"now": DEADLINE}
    assert shell.working == ["a", "next"]
    assert shell.state("a") is RunState.STOPPING


def test_an_interrupting_message_from_nobody_in_two_pieces_starts_at_once() -> None:
    """SPEC QUEUE-1, QUEUE-6. Sessions that are no chats have no buffer; it waited in one."""
    shell = Shell()
    assert told(shell.submit("a", policy=INTERRUPT, cut=True)) == ["start a"]
    assert shell.scheduler.next_timer() is None


def test_the_pieces_of_an_interrupting_text_do_not_interrupt_what_came_between() -> None:
    """SPEC QUEUE-3, QUEUE-6: the text has interrupted once."""
    shell = Shell({"main": 9})
    shell.submit("old")
    shell.submit("1", sender="ann", policy=INTERRUPT, cut=True)
    shell.done("old")
    shell.submit("between", sender="bob")
    shell.submit("2", sender="ann", policy=INTERRUPT)
    assert list(shell.cancelled) == ["old"]
    assert shell.working == ["between"]
    shell.done("between")
    assert shell.working == ["1"]


def test_an_interrupting_text_whose_rest_never_comes_is_still_alone() -> None:
    """SPEC QUEUE-3, QUEUE-6."""
    shell = Shell({"main": 9})
    policy = QueuePolicy(mode=Mode.INTERRUPT, concurrency=3)
    shell.submit("1", sender="ann", policy=policy, cut=True)
    shell.submit("between", sender="bob", policy=GROUP)
    shell.wait(1)
    assert shell.state("1") is RunState.QUEUED
    shell.done("between")
    assert shell.working == ["1"]


def test_a_second_sender_interrupts_while_the_first_ones_text_is_incomplete() -> None:
    """SPEC QUEUE-3: buffers of other senders are left alone."""
    shell = Shell({"main": 9})
    shell.submit("1", sender="ann", policy=INTERRUPT, cut=True)
    shell.submit("bob", sender="bob", policy=INTERRUPT)
    assert shell.working == ["bob"]
    shell.submit("2", sender="ann", policy=INTERRUPT)
    shell.done("bob")
    assert shell.working == ["1"]


def test_a_switch_to_interrupt_takes_a_cut_text_of_another_mode_along() -> None:
    """SPEC QUEUE-3, QUEUE-6."""
    shell = Shell()
    shell.submit("run")
    shell.submit("1", sender="ann", policy=TYPING, cut=True)
    shell.submit("2", sender="ann", policy=INTERRUPT, cut=True)
    assert list(shell.cancelled) == ["run"]
    assert shell.state("1") is RunState.COLLECTING
    shell.submit("3", sender="ann", policy=INTERRUPT)
    shell.done("run")
    assert shell.joined == {"2": "1", "3": "1"}
    assert shell.working == ["1"]


def test_a_switch_back_to_queue_completes_a_text_that_had_interrupted() -> None:
    """SPEC QUEUE-3, QUEUE-6."""
    shell = Shell()
    shell.submit("1", sender="ann", policy=INTERRUPT, cut=True)
    assert told(shell.submit("2", sender="ann")) == ["2 joins 1", "start 1"]


def test_a_switch_to_interrupt_drops_the_queued_beginning_of_a_text() -> None:
    """SPEC QUEUE-3: what waits is dropped, and the rest is a message of its own."""
    shell = Shell()
    shell.submit("run")
    shell.submit("1", sender="ann", cut=True)
    shell.wait(2)
    shell.submit("2", sender="ann", policy=INTERRUPT)
    assert shell.ended == {"1": (Outcome.DROPPED, Reason.NEWER_MESSAGE)}
    shell.done("run")
    assert shell.working == ["2"]


def test_an_interruption_frees_agents_for_other_sessions_in_the_same_step() -> None:
    """SPEC AGENT-3, QUEUE-3."""
    shell = Shell({"main": 1}, agents={"main": 2})
    shell.submit("blocks", "other")
    shell.submit("ready", "chat")
    shell.submit("waits", "third")
    assert shell.state("waits") is RunState.QUEUED
    shell.submit("now", "chat", policy=INTERRUPT)
    assert (shell.state("waits"), shell.state("now")) == (RunState.READY, RunState.QUEUED)


def test_an_interruption_in_the_session_of_a_child_cuts_the_child_only() -> None:
    """SPEC LANE-8, QUEUE-3: its parent learns the outcome and goes on."""
    shell = Shell({"main": 9})
    shell.submit("run", "one")
    shell.submit("child", "two", parent="run", awaited=True)
    shell.submit("now", "two", policy=INTERRUPT)
    assert shell.cancelled == {"child": Reason.NEWER_MESSAGE}
    assert shell.state("run") is RunState.RUNNING


# ---------------------------------------------------------------------- limits that meet


def test_a_message_dropped_from_a_full_queue_had_its_deadline_taken_along() -> None:
    """SPEC QUEUE-5, QUEUE-9, QUEUE-10: one outcome."""
    shell = Shell(agents={"main": 1})
    shell.submit("busy", "other")
    policy = QueuePolicy(capacity=1)
    shell.submit("a", policy=policy, deadline_s=5)
    shell.submit("b", policy=policy, deadline_s=9)
    assert shell.ended == {"a": DROPPED}
    shell.wait(5)
    assert shell.ended == {"a": DROPPED}
    shell.wait(4)
    assert shell.ended["b"] == DEADLINE
    shell.done("busy")
    shell.assert_nothing_left()


def test_a_session_keeps_its_place_in_an_agents_line_when_its_oldest_is_dropped() -> None:
    """SPEC AGENT-3, QUEUE-5."""
    shell = Shell({"main": 9}, agents={"main": 1})
    policy = QueuePolicy(capacity=1)
    shell.submit("busy", "zero")
    shell.submit("a", "one", policy=policy)
    shell.submit("b", "two", policy=policy)
    shell.submit("a2", "one", policy=policy)
    shell.done("busy")
    assert shell.working == ["a2"]


def test_an_evicted_session_leaves_no_place_in_an_agents_line() -> None:
    """SPEC AGENT-3, QUEUE-1: when it comes back it stands at the end."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("busy", "zero")
    shell.submit("gone", "one", deadline_s=1)
    shell.submit("b", "two")
    shell.wait(1)
    shell.submit("back", "one")
    shell.done("busy")
    assert shell.working == ["b"]


def test_a_stale_place_in_an_agents_line_is_passed_over() -> None:
    """SPEC AGENT-3: its session has come to want another agent, and is then gone."""
    shell = Shell({"main": 9}, agents={"a": 1, "b": 1})
    shell.submit("busy a", "zero", agent="a")
    shell.submit("busy b", "one", agent="b")
    shell.submit("for a", "two", agent="a", deadline_s=1)
    shell.submit("for b", "two", agent="b", deadline_s=2)
    shell.wait(2)
    shell.submit("third", "three", agent="a")
    shell.done("busy a")
    assert shell.working == ["busy b", "third"]
    for name in ("busy b", "third"):
        shell.done(name)
    shell.assert_nothing_left()


def test_a_session_that_shrank_to_another_agents_request_waits_for_that_agent() -> None:
    """SPEC AGENT-3, QUEUE-7."""
    shell = Shell({"main": 9}, agents={"a": 1})
    shell.submit("busy", "zero", agent="a")
    shell.submit("run", "one", policy=GROUP)
    shell.submit("for a", "one", agent="a", policy=GROUP)
    shell.set_concurrency(1, "one")
    shell.done("busy")
    assert shell.state("for a") is RunState.QUEUED
    shell.done("run")
    assert shell.state("for a") is RunState.RUNNING


def test_a_burst_that_finds_its_queue_full_and_its_agent_busy_replaces_the_oldest() -> None:
    """SPEC AGENT-3, QUEUE-5, QUEUE-6."""
    shell = Shell(agents={"main": 1})
    policy = QueuePolicy(capacity=1, debounce_s=0.8)
    shell.submit("busy", "other")
    shell.submit("typed", sender="ann", policy=policy)
    shell.submit("more", sender="ann", policy=policy)
    shell.submit("job", policy=policy)
    shell.wait(1)
    assert shell.ended == {"job": DROPPED}
    shell.done("busy")
    assert shell.working == ["typed"]


def test_the_deadline_of_a_message_that_joined_a_burst_does_not_count() -> None:
    """SPEC QUEUE-6, QUEUE-9: a turn has one deadline, that of its first message."""
    shell = Shell()
    shell.submit("a", sender="ann", policy=TYPING, deadline_s=9)
    shell.submit("b", sender="ann", policy=TYPING, deadline_s=2)
    shell.wait(8.9)
    assert (shell.working, shell.cancelled) == (["a"], {})
    shell.wait(0.1)
    assert shell.cancelled == {"a": Reason.DEADLINE}


def test_a_turn_that_expires_ends_for_all_its_messages() -> None:
    """SPEC QUEUE-6, QUEUE-9."""
    shell = Shell()
    shell.submit("run")
    shell.submit("a", sender="ann", policy=TYPING, deadline_s=2)
    shell.submit("b", sender="ann", policy=TYPING)
    shell.wait(2)
    assert shell.ended == {"a": DEADLINE}
    assert told(shell.submit("b", "other")) == ["start b"]


def test_a_full_queue_that_drops_new_messages_still_lets_a_burst_grow() -> None:
    """SPEC QUEUE-5, QUEUE-6: what joins takes no place."""
    shell = Shell()
    policy = QueuePolicy(capacity=1, drop=Drop.NEW, debounce_s=0.8)
    shell.submit("run")
    shell.submit("a", sender="ann", policy=policy)
    shell.submit("b", sender="ann", policy=policy)
    assert (shell.joined, shell.ended) == ({"b": "a"}, {})


def test_a_policy_with_less_capacity_drops_one_message_for_one() -> None:
    """SPEC QUEUE-5: those who wait came under the old policy."""
    shell = Shell()
    for name in "abcd":
        shell.submit(name)
    shell.submit("e", policy=QueuePolicy(capacity=1))
    assert list(shell.ended) == ["b"]


def test_a_message_that_lowers_the_concurrency_lets_runs_go_on() -> None:
    """SPEC QUEUE-1, QUEUE-7."""
    shell = Shell({"main": 9})
    shell.submit("a", policy=GROUP)
    shell.submit("b", policy=GROUP)
    shell.submit("c")
    shell.done("a")
    assert shell.state("c") is RunState.QUEUED
    shell.done("b")
    assert shell.working == ["c"]


# ---------------------------------------------------------------------- stops that meet


def test_a_stop_that_meets_a_deadline_in_the_same_instant_ends_it_once() -> None:
    """SPEC QUEUE-10."""
    shell = Shell()
    shell.submit("run")
    shell.submit("a", deadline_s=5)
    shell.now = 5
    shell.stop_all()
    shell.wait(0)
    assert shell.ended == {"a": (Outcome.CANCELLED, Reason.STOPPED_ALL)}


def test_an_abandoned_run_does_not_keep_its_session_from_being_stopped_again() -> None:
    """SPEC QUEUE-2, QUEUE-8."""
    shell = Shell()
    shell.submit("deaf")
    shell.submit("next")
    shell.stop()
    shell.wait(10)
    assert shell.stop().stopped == ["next"]


@pytest.mark.parametrize("stored", [False, True])
def test_a_child_that_outlives_its_parent_is_stopped_with_the_session(stored: bool) -> None:
    """SPEC QUEUE-8: also while the parent's outcome is being stored."""
    shell = Shell()
    shell.submit("run")
    shell.submit("child", "sub", parent="run")
    shell.finish("run")
    if stored:
        shell.release("run")
    assert shell.stop_all().stopped == ["child"]


def test_a_closed_lane_lets_a_stopped_run_in_it_unwind() -> None:
    """SPEC LANE-6, QUEUE-2."""
    shell = Shell({"main": 1})
    shell.submit("a")
    shell.stop()
    shell.close_lane("main")
    shell.wait(10)
    assert shell.ended == {"a": (Outcome.ABANDONED, Reason.STOPPED)}
    shell.done("a")
    shell.assert_nothing_left()


def test_a_lane_closed_while_someone_types_rejects_the_whole_burst() -> None:
    """SPEC LANE-6, QUEUE-6."""
    shell = Shell()
    shell.submit("a", sender="ann", policy=TYPING)
    shell.submit("b", sender="ann", policy=TYPING)
    shell.close_lane("main")
    assert shell.ended == {"a": (Outcome.REJECTED, Reason.LANE_CLOSED)}
    shell.wait(5)
    shell.assert_nothing_left()


# ---------------------------------------------------------------------- lanes in one session


def test_runs_of_several_lanes_share_the_places_of_their_session() -> None:
    """SPEC LANE-3, QUEUE-1."""
    shell = Shell()
    shell.submit("chat")
    shell.submit("job", lane="cron")
    assert shell.state("job") is RunState.QUEUED
    assert shell.lane("cron").waiting == 0


def test_a_burst_stays_in_the_lane_of_its_first_message() -> None:
    """SPEC LANE-3, QUEUE-6: what is typed within the window is one turn."""
    shell = Shell()
    shell.submit("a", sender="ann", policy=TYPING)
    shell.submit("b", sender="ann", policy=TYPING, lane="cron")
    shell.wait(1)
    assert (shell.joined, shell.view("a").lane) == ({"b": "a"}, "main")
