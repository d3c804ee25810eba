"""Drain, then end what waits, then end what runs."""

from __future__ import annotations

from goclaw_py.model.ids import LaneName, RunId
from goclaw_py.model.outcomes import Outcome, Reason
from tests.unit.scheduler.shell import GROUP, TYPING, Shell, told

INTERRUPTED = (Outcome.INTERRUPTED, Reason.SHUTDOWN)


def busy() -> Shell:
    """One that runs, one that waits for its lane, one for its session, one that is typed."""
    shell = Shell({"main": 1})
    shell.submit("typed", sender="ann", policy=TYPING)
    shell.submit("runs", policy=GROUP)
    shell.submit("ready", "two")
    shell.submit("queued", "two")
    return shell


def test_a_draining_scheduler_rejects_what_comes_and_says_why() -> None:
    """SPEC QUEUE-11."""
    shell = busy()
    before = shell.scheduler.draining
    shell.scheduler.drain()
    assert (before, shell.scheduler.draining) == (False, True)
    shell.submit("late")
    assert shell.ended == {"late": (Outcome.REJECTED, Reason.DRAINING)}


def test_what_was_taken_before_a_drain_goes_on() -> None:
    """SPEC QUEUE-11."""
    shell = busy()
    shell.scheduler.drain()
    shell.wait(1)
    for name in ("runs", "ready", "typed", "queued"):
        shell.done(name)
    assert sorted(shell.started) == ["queued", "ready", "runs", "typed"]
    shell.assert_nothing_left()


def test_release_waiting_interrupts_what_has_not_started_and_nothing_else() -> None:
    """SPEC QUEUE-11."""
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
    for name in ("a1", "b1", "a4", "b2"):
        shell.done(name)
    assert shell.started == ["a1", "b1", "a4", "b2"]
    shell.assert_nothing_left()


def test_interrupt_all_cancels_runs_and_nothing_starts_any_more() -> None:
    """SPEC QUEUE-11."""
    shell = busy()
    shell.scheduler.drain()
    shell.interrupt_all()
    assert shell.cancelled == {"runs": Reason.SHUTDOWN}
    shell.done("runs")
    assert shell.ended == dict.fromkeys(["typed", "ready", "queued", "runs"], INTERRUPTED)
    assert shell.started == ["runs"]
    shell.assert_nothing_left()


def test_a_run_that_ignores_the_shutdown_is_given_up_after_the_grace_period() -> None:
    """SPEC QUEUE-2, QUEUE-11: a shutdown has a time limit."""
    shell = busy()
    shell.scheduler.drain()
    shell.interrupt_all()
    shell.wait(10)
    assert shell.ended["runs"] == (Outcome.ABANDONED, Reason.SHUTDOWN)
    assert shell.lane().active == 0
    shell.done("runs")
    shell.assert_nothing_left()


def test_a_run_that_was_stopped_before_the_shutdown_does_not_run_again() -> None:
    """SPEC QUEUE-11: cancelled stays cancelled, only interrupted runs go back."""
    shell = busy()
    shell.stop()
    shell.interrupt_all()
    shell.done("runs")
    assert shell.ended["runs"] == (Outcome.CANCELLED, Reason.STOPPED)


def test_interrupting_twice_cancels_once() -> None:
    """SPEC QUEUE-11: a second signal cuts the wait short."""
    shell = busy()
    shell.interrupt_all()
    assert shell.interrupt_all() == []


def test_interrupt_all_reaches_every_lane_and_session() -> None:
    """SPEC QUEUE-11."""
    shell = Shell()
    for name in ("main", "subagent", "delegate", "cron"):
        shell.submit(name, f"session {name}", lane=LaneName(name))
    shell.interrupt_all()
    assert set(shell.cancelled) == {"main", "subagent", "delegate", "cron"}


def test_an_idle_scheduler_has_nothing_to_interrupt() -> None:
    """SPEC QUEUE-11."""
    shell = Shell()
    assert shell.release_waiting() == []
    assert shell.interrupt_all() == []
    assert shell.scheduler.idle


def test_a_run_may_still_ask_for_children_while_the_scheduler_drains() -> None:
    """SPEC QUEUE-11: what runs may end as it would, so what it needs is let in."""
    shell = Shell()
    shell.submit("parent")
    shell.scheduler.drain()
    assert told(shell.submit("child", "other", parent=RunId("parent"), awaited=True)) == [
        "start child"
    ]
    assert told(shell.submit("stranger", "third")) == ["end stranger: rejected, draining"]
