"""``max_concurrent`` of an agent, over all its sessions."""

from __future__ import annotations

from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, Shell


def test_an_agent_never_works_on_more_than_its_limit() -> None:
    """SPEC AGENT-3."""
    shell = Shell({"main": 9}, agents={"main": 2})
    for number in range(5):
        shell.submit(str(number), f"session {number}")
    assert shell.started == ["0", "1"]
    shell.done("0")
    assert shell.started == ["0", "1", "2"]


def test_an_agent_without_a_limit_has_none() -> None:
    """SPEC AGENT-3."""
    shell = Shell({"main": 99}, agents={"other": 1})
    for number in range(20):
        shell.submit(str(number), f"session {number}")
    assert len(shell.started) == 20


def test_sessions_share_a_busy_agent_in_turns() -> None:
    """SPEC AGENT-3: one who writes much does not lock out the others."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("busy", "zero")
    for name in ("a1", "a2", "a3"):
        shell.submit(name, "a", policy=GROUP)
    for name in ("b1", "b2"):
        shell.submit(name, "b", policy=GROUP)
    shell.submit("c1", "c")
    for _ in range(6):
        shell.done(shell.started[-1])
    assert shell.started == ["busy", "a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_session_that_must_wait_for_itself_lets_others_have_the_agent() -> None:
    """SPEC AGENT-3, QUEUE-1."""
    shell = Shell({"main": 9}, agents={"main": 2})
    for name in ("a1", "a2", "a3"):
        shell.submit(name, "a")
    shell.submit("b1", "b")
    assert shell.started == ["a1", "b1"]


def test_a_full_agent_takes_no_place_in_the_lanes_line() -> None:
    """SPEC LANE-4."""
    shell = Shell({"main": 2}, agents={"slow": 1})
    shell.submit("runs", "one", agent="slow")
    shell.submit("waits", "two", agent="slow")
    shell.submit("free", "three")
    assert shell.started == ["runs", "free"]
    assert shell.state("waits") is RunState.QUEUED


def test_who_waits_for_the_lane_holds_the_agent_already() -> None:
    """SPEC LANE-4."""
    shell = Shell({"main": 1}, agents={"main": 2})
    shell.submit("runs", "one")
    shell.submit("ready", "two")
    shell.submit("queued", "three")
    assert shell.state("ready") is RunState.READY
    assert shell.state("queued") is RunState.QUEUED
    shell.done("runs")
    assert shell.state("queued") is RunState.READY


def test_a_stopping_run_keeps_its_agent_until_it_has_unwound() -> None:
    """SPEC QUEUE-2."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("a", "one")
    shell.submit("b", "two")
    shell.stop("one")
    assert shell.started == ["a"]
    shell.done("a")
    assert shell.started == ["a", "b"]


def test_a_session_that_left_a_busy_agents_line_and_came_back_stands_at_its_end() -> None:
    """SPEC AGENT-3."""
    shell = Shell({"main": 9}, agents={"main": 1})
    shell.submit("busy", "zero")
    shell.submit("a1", "a")
    shell.submit("b1", "b")
    shell.stop("a")
    shell.submit("a2", "a")
    shell.done("busy")
    assert shell.started == ["busy", "b1"]
