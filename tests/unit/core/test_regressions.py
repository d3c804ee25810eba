"""Mistakes that the scheduler once made."""

from __future__ import annotations

from goclaw_py.core.requests import QueuePolicy
from tests.unit.core.shell import GROUP, TYPING, Shell


def test_a_run_whose_ended_parent_and_grandparent_share_a_session_can_end() -> None:
    """SPEC QUEUE-10. Its place among that session's kin was taken away twice."""
    shell = Shell({"main": 9})
    shell.submit("grandparent", policy=GROUP)
    shell.submit("parent", policy=GROUP, parent="grandparent")
    shell.submit("child", "sub", parent="parent")
    shell.done("parent")
    shell.done("child")
    shell.done("grandparent")
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


def test_a_request_behind_one_of_another_agent_moves_up_with_it() -> None:
    """SPEC AGENT-3. It stood in the line of an agent that it did not ask for."""
    shell = Shell({"main": 9}, agents={"ann": 1})
    shell.submit("ann busy", "one", agent="ann")
    shell.submit("for ann", "shared", agent="ann", policy=GROUP)
    shell.submit("for all", "shared", agent="free", policy=GROUP)
    shell.done("ann busy")
    assert shell.started == ["ann busy", "for ann", "for all"]


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


def test_a_session_keeps_its_turn_when_only_its_first_message_gives_up() -> None:
    """SPEC AGENT-3."""
    shell = Shell(agents={"main": 1})
    shell.submit("busy", "first")
    shell.submit("gives up", "early", deadline_s=1)
    shell.submit("stays", "early")
    shell.submit("other", "late")
    shell.wait(2)
    shell.done("busy")
    assert shell.started == ["busy", "stays"]


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


def test_a_burst_past_its_bound_is_served_as_soon_as_its_cut_text_is_whole() -> None:
    """SPEC QUEUE-6. Its timer stood where the rest of the text had been waited for."""
    shell = Shell()
    shell.submit("0", sender="ann", policy=TYPING, cut=True)
    for number in range(1, 9):
        shell.wait(0.5)
        shell.submit(str(number), sender="ann", policy=TYPING, cut=True)
    shell.wait(0.1)
    shell.submit("end", sender="ann", policy=TYPING)
    shell.wait(0)
    assert shell.started == ["0"]
