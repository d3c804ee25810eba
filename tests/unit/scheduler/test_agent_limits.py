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
