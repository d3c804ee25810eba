"""Drain, then end what waits, then end what runs (SPEC QUEUE-11)."""

from __future__ import annotations

from goclaw_py.core.ids import RunId
from goclaw_py.core.outcomes import Outcome, Reason
from tests.unit.scheduler.shell import GROUP, TYPING, Shell, told

INTERRUPTED = (Outcome.INTERRUPTED, Reason.SHUTDOWN)


def busy() -> Shell:
    """One that runs, one that waits for its lane, one for its session, one that is typed."""
    shell = Shell({"main": 1})
    shell.submit("typed", sender="ann", policy=TYPING)
    shell.submit("runs", policy=GROUP)
    shell.submit_all("ready", "queued", session="two")
    return shell


def test_a_draining_scheduler_rejects_what_comes_and_says_why() -> None:
    shell = busy()
    before = shell.scheduler.draining
    shell.scheduler.drain()
    assert (before, shell.scheduler.draining) == (False, True)
    shell.submit("late")
    assert shell.ended == {"late": (Outcome.REJECTED, Reason.DRAINING)}


def test_what_was_taken_before_a_drain_goes_on() -> None:
    shell = busy()
    shell.scheduler.drain()
    shell.wait(1)
    shell.done_all("runs", "ready", "typed", "queued")
    assert sorted(shell.started) == ["queued", "ready", "runs", "typed"]
    shell.assert_nothing_left()


def test_release_waiting_interrupts_what_has_not_started_and_nothing_else() -> None:
    shell = busy()
    shell.scheduler.drain()
    shell.release_waiting()
    assert shell.ended == dict.fromkeys(["typed", "ready", "queued"], INTERRUPTED)
    assert shell.cancelled == {}
    shell.done("runs")
    assert shell.started == ["runs"]
    shell.assert_nothing_left()


def test_of_some_requests_only_those_that_wait_are_interrupted() -> None:
    """SPEC NODE-1: another node may have it."""
    shell = Shell({"main": 2})
    for name, session in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("b2", "b")):
        shell.submit(name, session)
    shell.release_waiting("a1", "a2", "a3", "nobody")
    assert shell.ended == dict.fromkeys(["a2", "a3"], INTERRUPTED)
    assert shell.cancelled == {}
    shell.submit("a4", "a")
    shell.done_all("a1", "b1", "a4", "b2")
    assert shell.started == ["a1", "b1", "a4", "b2"]
    shell.assert_nothing_left()


def test_interrupt_all_cancels_runs_and_nothing_starts_any_more() -> None:
    shell = busy()
    shell.scheduler.drain()
    shell.interrupt_all()
    assert shell.cancelled == {"runs": Reason.SHUTDOWN}
    shell.done("runs")
    assert shell.ended == dict.fromkeys(["typed", "ready", "queued", "runs"], INTERRUPTED)
    assert shell.started == ["runs"]
    shell.assert_nothing_left()


def test_a_run_may_still_ask_for_children_while_the_scheduler_drains() -> None:
    """SPEC QUEUE-11: what runs may end as it would, so what it needs is let in."""
    shell = Shell()
    shell.submit("parent")
    shell.scheduler.drain()
    assert told(shell.submit("child", "other", parent=RunId("parent"), awaited=True)) == [
        "start child"
    ]
    assert told(shell.submit("stranger", "third")) == ["end stranger: rejected, draining"]
