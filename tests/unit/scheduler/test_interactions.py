"""Rules that meet: each of these histories belongs to two or three rules at once.

SPEC AGENT-3, LANE-4, QUEUE-5, QUEUE-8, QUEUE-10.
"""

from __future__ import annotations

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, INTERRUPT, INTERRUPT_GROUP, TYPING, Shell, told

DROPPED = (Outcome.DROPPED, Reason.QUEUE_DROPPED)
DEADLINE = (Outcome.TIMED_OUT, Reason.DEADLINE)


# ---------------------------------------------------------------------- interrupt


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


# ---------------------------------------------------------------------- the order of what is told


def test_a_run_ends_before_the_next_one_starts() -> None:
    """SPEC QUEUE-2: the next one reads what the last one left."""
    shell = Shell()
    shell.submit_all("a", "b")
    assert told(shell.done("a")) == ["end a: completed", "start b"]


def test_those_who_wait_for_a_lane_come_before_those_who_move_up_to_it() -> None:
    shell = Shell({"main": 1}, agents={"main": 3})
    shell.submit("a", "one")
    shell.submit("waits", "two")
    shell.submit("moves up", "one")
    shell.finish("a")
    assert told(shell.release("a")) == ["start waits"]
    assert told(shell.done("waits")) == ["end waits: completed", "start moves up"]


def test_an_interruption_drops_then_cancels_then_joins() -> None:
    """SPEC QUEUE-3: what it replaces has ended before anything of it begins."""
    shell = Shell({"main": 9})
    shell.submit("typed", sender="ann", policy=TYPING)
    shell.submit_all("run 1", "run 2", "run 3", "waits 1", "waits 2", policy=GROUP)
    effects = shell.submit("now", sender="ann", policy=INTERRUPT)
    assert told(effects) == [
        "end waits 1: dropped, newer_message",
        "end waits 2: dropped, newer_message",
        "cancel run 1: newer_message",
        "cancel run 2: newer_message",
        "cancel run 3: newer_message",
        "now joins typed",
    ]


def test_stopall_ends_what_waits_before_it_cancels_and_starts_nothing_of_the_session() -> None:
    shell = Shell({"main": 2}, agents={"main": 3})
    shell.submit_all("run 1", "run 2", "ready", "queued", policy=GROUP)
    shell.submit("other", "other", lane="cron")
    assert told(shell.stop_all().effects) == [
        "end ready: cancelled, stopped_all",
        "end queued: cancelled, stopped_all",
        "cancel run 1: stopped_all",
        "cancel run 2: stopped_all",
        "start other",
    ]


def test_each_way_to_lose_a_message_has_a_reason_of_its_own() -> None:
    shell = Shell()
    shell.submit("run", "old")
    shell.submit_all("oldest", "newer", session="old", policy=QueuePolicy(capacity=1))
    shell.submit("too many", "old", policy=QueuePolicy(capacity=1, drop=Drop.NEW))
    shell.submit("now", "old", policy=INTERRUPT)
    shell.submit("late", "old", deadline_s=1)
    shell.wait(1)
    shell.close_lane("cron")
    shell.submit("job", "jobs", lane="cron")
    shell.scheduler.drain()
    shell.submit("after", "old")
    reasons = {name: reason for name, (_, reason) in shell.ended.items()}
    assert reasons == {
        "oldest": Reason.QUEUE_DROPPED,
        "too many": Reason.QUEUE_FULL,
        "newer": Reason.NEWER_MESSAGE,
        "late": Reason.DEADLINE,
        "job": Reason.LANE_CLOSED,
        "after": Reason.DRAINING,
    }


# -------------------------------------------------- mistakes that the scheduler once made


def test_a_run_whose_ended_parent_and_grandparent_share_a_session_can_end() -> None:
    """SPEC QUEUE-10. Its place among that session's kin was taken away twice."""
    shell = Shell({"main": 9})
    shell.submit("grandparent", policy=GROUP)
    shell.submit("parent", policy=GROUP, parent="grandparent")
    shell.submit("child", "sub", parent="parent")
    shell.done_all("parent", "child", "grandparent")
    shell.assert_nothing_left()


def test_sessions_that_gave_up_waiting_leave_a_busy_agents_line() -> None:
    """SPEC QUEUE-9. Memory must not grow while an agent is busy for hours."""
    shell = Shell(agents={"main": 1})
    shell.submit("busy", "first")
    for number in range(5):
        shell.submit(f"late {number}", f"visitor {number}", deadline_s=1)
    shell.wait(2)
    assert len(shell.ended) == 5
    (agent,) = shell.scheduler._machine.agents.values()
    assert agent.line == {}


def test_the_rest_of_a_cut_text_is_waited_for_when_the_burst_began_with_a_short_window() -> None:
    """SPEC QUEUE-6. The window of the burst's first message held for the cut pieces too."""
    shell = Shell()
    short = QueuePolicy(debounce_s=0.1)
    shell.submit("hello", sender="ann", policy=short)
    shell.wait(0.05)
    shell.submit("long text", sender="ann", policy=short, cut=True)
    shell.wait(0.9)
    assert shell.started == []
    shell.submit("rest", sender="ann", policy=short)
    shell.wait(0.1)
    assert shell.joined == {"long text": "hello", "rest": "hello"}
    assert shell.started == ["hello"]


def test_a_session_that_has_become_smaller_loses_its_turn_for_a_busy_agent() -> None:
    """SPEC AGENT-3. It kept a place from a time at which its message could have gone."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("busy", "zero")
    shell.submit("a1", "a", agent="other", policy=GROUP)
    shell.submit("a2", "a", policy=GROUP)
    shell.submit("a3", "a", policy=QueuePolicy(concurrency=1))
    shell.submit("b1", "b")
    shell.done_all("a1", "busy")
    assert shell.started[2:] == ["b1"]


def test_a_child_behind_one_that_waits_for_its_parents_lane_is_let_in() -> None:
    """SPEC LANE-8. It must only move up, not end, for the session to have room."""
    shell = Shell({"main": 1, "subagent": 1})
    shell.submit("parent", "one")
    shell.submit("stays", "group", lane="subagent", policy=GROUP)
    shell.submit("alone", "group", policy=INTERRUPT_GROUP)
    shell.submit("child", "group", policy=GROUP, lane="cron", parent="parent", awaited=True)
    assert shell.ended == {}
    shell.done("stays")
    assert shell.started == ["parent", "stays", "child"]
