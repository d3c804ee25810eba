"""Children that could wait for the very run that waits for them."""

from __future__ import annotations

from goclaw_py.scheduler.views import RunState, WaitsFor
from tests.unit.scheduler.family import ask
from tests.unit.scheduler.shell import GROUP, Shell


def test_two_runs_that_ask_for_children_in_each_others_full_lane_both_go_on() -> None:
    """SPEC LANE-8: no deadlock is possible. The second child runs inside its parent's slot."""
    shell = Shell({"main": 1, "subagent": 1})
    shell.submit("chat", "one")
    shell.submit("agent", "two", lane="subagent")
    assert ask(shell, "a", "chat", lane="subagent") == []
    assert ask(shell, "b", "agent", lane="main") == ["start b"]
    assert shell.view("b").lane == "subagent"
    assert shell.occupants("subagent") == ["agent", "b"]
    shell.done("b")
    shell.done("agent")
    assert shell.state("a") is RunState.RUNNING
    shell.done("a")
    shell.done("chat")
    shell.assert_nothing_left()


def test_a_child_in_another_lane_queues_while_somebody_there_can_still_end() -> None:
    """SPEC LANE-8: only a circle lets a child into a slot that is not of its lane."""
    shell = Shell({"main": 1, "subagent": 2})
    shell.submit("chat", "one")
    shell.submit("agent", "two", lane="subagent")
    shell.submit("free", "three", lane="subagent")
    ask(shell, "a", "chat", lane="subagent")
    ask(shell, "b", "agent", lane="main")
    assert shell.started == ["chat", "agent", "free"]
    shell.done("free")
    assert shell.started[3:] == ["a"]
    shell.done("a")
    shell.done("chat")
    assert shell.started[4:] == ["b"]
    assert shell.view("b").lane == "main"


def test_a_circle_through_a_guest_that_waits_is_found() -> None:
    """SPEC LANE-8: who waits for his turn in a slot waits for the guest who is in it."""
    shell = Shell({"main": 1, "subagent": 1})
    shell.submit("chat", "one")
    shell.submit("agent", "two", lane="subagent")
    ask(shell, "guest", "chat", lane="main")
    ask(shell, "second", "chat", lane="main")
    ask(shell, "third", "chat", lane="main")
    assert ask(shell, "a", "guest", lane="subagent") == []
    assert ask(shell, "b", "agent", lane="main") == ["start b"]
    for name in ("b", "agent", "a", "guest", "second", "third", "chat"):
        shell.done(name)
    shell.assert_nothing_left()


def test_a_child_in_its_parents_own_busy_session_is_rejected() -> None:
    """SPEC LANE-8, QUEUE-1: it could start only after its parent had ended."""
    shell = Shell({"main": 9})
    shell.submit("run", "chat")
    rejected = ["end child: rejected, waits_for_itself"]
    assert ask(shell, "child", "run", session="chat") == rejected
    shell.done("run")
    shell.assert_nothing_left()


def test_a_child_in_its_parents_own_session_starts_if_there_is_room() -> None:
    """SPEC LANE-8, QUEUE-1."""
    shell = Shell({"main": 1})
    shell.submit("run", "group", policy=GROUP)
    assert ask(shell, "child", "run", session="group", policy=GROUP) == ["start child"]


def test_a_child_behind_a_message_that_waits_for_its_parents_session_is_rejected() -> None:
    """SPEC LANE-8: those before it in the line count too."""
    shell = Shell({"main": 1, "subagent": 9})
    shell.submit("run", "one")
    shell.submit("busy", "two", lane="subagent")
    shell.submit("for main", "two")
    rejected = ["end child: rejected, waits_for_itself"]
    assert ask(shell, "child", "run", session="two", lane="subagent") == rejected


def test_a_child_behind_a_message_that_can_start_queues() -> None:
    """SPEC LANE-8."""
    shell = Shell({"main": 2})
    shell.submit("run", "one")
    shell.submit("busy", "two", lane="subagent")
    shell.submit("next", "two", lane="subagent")
    assert ask(shell, "child", "run", session="two") == []
    assert shell.view("child").waits_for is WaitsFor.SESSION
    shell.done("busy")
    shell.done("next")
    assert shell.state("child") is RunState.RUNNING


def test_a_child_of_its_parents_agent_takes_no_slot_of_the_agent() -> None:
    """SPEC AGENT-3, LANE-8: one of the two works at a time."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("run")
    assert ask(shell, "child", "run") == ["start child"]
    shell.submit("other", "other")
    assert shell.state("other") is RunState.QUEUED
    shell.done("child")
    assert shell.state("other") is RunState.QUEUED
    shell.done("run")
    assert shell.state("other") is RunState.RUNNING
    shell.done("other")
    shell.assert_nothing_left()


def test_a_circle_through_two_agents_is_rejected() -> None:
    """SPEC AGENT-3, LANE-8."""
    shell = Shell({"main": 9}, agents={"a": 1, "b": 1})
    shell.submit("a run", "one", agent="a")
    shell.submit("b run", "two", agent="b")
    assert ask(shell, "a child", "a run", agent="b") == []
    rejected = ["end b child: rejected, waits_for_itself"]
    assert ask(shell, "b child", "b run", agent="a") == rejected
    shell.done("b run")
    assert shell.state("a child") is RunState.RUNNING
