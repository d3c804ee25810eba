"""Mistakes that the scheduler once made (SPEC AGENT-3)."""

from __future__ import annotations

from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, INTERRUPT, INTERRUPT_GROUP, TYPING, Shell


def test_a_run_whose_ended_parent_and_grandparent_share_a_session_can_end() -> None:
    """SPEC QUEUE-10. Its place among that session's kin was taken away twice."""
    shell = Shell({"main": 9})
    shell.submit("grandparent", policy=GROUP)
    shell.submit("parent", policy=GROUP, parent="grandparent")
    shell.submit("child", "sub", parent="parent")
    shell.done_all("parent", "child", "grandparent")
    shell.assert_nothing_left()


def test_an_agents_turn_is_never_given_to_a_request_of_another_agent() -> None:
    """SPEC AGENT-3. A session that stood in one agent's line could hold other agents' requests."""
    shell = Shell({"main": 9}, agents={"ann": 1, "bob": 1})
    shell.submit("ann busy", "one", agent="ann")
    shell.submit("bob busy", "two", agent="bob")
    shell.submit("for ann", "shared", agent="ann")
    shell.submit("for bob", "shared", agent="bob")
    shell.stop("shared")
    shell.done("ann busy")
    assert shell.started == ["ann busy", "bob busy"]
    shell.done("bob busy")
    assert shell.started[2:] == ["for bob"]


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


def test_bursts_that_end_in_one_late_tick_go_in_the_order_of_their_ends() -> None:
    """SPEC LANE-4. One that had been prolonged went where it would have ended before."""
    shell = Shell({"main": 9})
    shell.submit("long", "one", sender="ann", policy=TYPING)
    shell.wait(0.5)
    shell.submit("short", "two", sender="ann", policy=TYPING)
    shell.submit("more", "one", sender="ann", policy=QueuePolicy(debounce_s=2))
    shell.submit("end", "one", sender="ann", policy=TYPING, cut=True)
    shell.now = 5
    shell.wait(0)
    assert shell.started == ["short", "long"]


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


def test_who_stands_behind_messages_that_a_turn_collects_moves_up_at_once() -> None:
    """SPEC QUEUE-4, LANE-4. It waited for a free agent until something else ended."""
    shell = Shell({"main": 1}, agents={"ann": 1})
    together = QueuePolicy(mode=Mode.COLLECT, concurrency=3)
    shell.submit("other", "elsewhere")
    shell.submit_all("first", "second", agent="ann", policy=together)
    shell.submit("behind", lane="cron", policy=GROUP)
    shell.done("other")
    assert shell.joined == {"second": "first"}
    assert shell.started == ["other", "first", "behind"]


def test_stopping_a_run_that_has_ended_leaves_its_children_alone() -> None:
    """SPEC QUEUE-8. Its outcome was being stored; it waited for nobody any more."""
    shell = Shell({"main": 9})
    shell.submit("parent")
    shell.submit("child", "sub", parent="parent", awaited=True)
    shell.finish("parent")
    shell.submit("newer", policy=INTERRUPT)
    assert shell.state("child") is RunState.RUNNING


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
