"""Deadlines, time limits of runs, and when the scheduler wants to be called.

SPEC QUEUE-2, QUEUE-9, QUEUE-10, QUEUE-12.
"""

from __future__ import annotations

import pytest

from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import GROUP, TYPING, Shell

DEADLINE = (Outcome.TIMED_OUT, Reason.DEADLINE)


def test_a_deadline_ends_a_request_that_waits_for_its_session() -> None:
    shell = Shell()
    shell.submit("runs")
    shell.submit("waits", deadline_s=5)
    shell.wait(4.9)
    assert shell.state("waits") is RunState.QUEUED
    shell.wait(0.1)
    assert shell.ended == {"waits": DEADLINE}
    shell.done("runs")
    assert shell.started == ["runs"]


def test_a_deadline_counts_from_submission_and_cancels_a_run() -> None:
    shell = Shell()
    shell.submit("first")
    shell.submit("a", deadline_s=5)
    shell.wait(3)
    shell.done("first")
    shell.wait(1.9)
    assert shell.cancelled == {}
    shell.wait(0.1)
    assert shell.cancelled == {"a": Reason.DEADLINE}
    shell.done("a")
    assert shell.ended["a"] == DEADLINE


def test_a_run_timeout_counts_from_the_start() -> None:
    shell = Shell()
    shell.submit("first")
    shell.submit("a", run_timeout_s=5)
    shell.wait(60)
    shell.done("first")
    shell.wait(4.9)
    assert shell.cancelled == {}
    shell.wait(0.1)
    assert shell.cancelled == {"a": Reason.RUN_TIMEOUT}


def test_the_first_thing_that_stops_a_run_decides_its_outcome() -> None:
    shell = Shell()
    shell.submit("a", deadline_s=5, run_timeout_s=3)
    shell.stop()
    shell.wait(6)
    shell.done("a")
    assert shell.ended == {"a": (Outcome.CANCELLED, Reason.STOPPED)}


def test_the_next_timer_is_the_earliest_of_windows_and_limits() -> None:
    shell = Shell()
    shell.submit("typed", sender="ann", policy=TYPING)
    assert shell.scheduler.next_timer() == pytest.approx(0.8)
    shell.submit("runs", run_timeout_s=0.3)
    assert shell.scheduler.next_timer() == pytest.approx(0.3)
    shell.submit("other", "two", policy=GROUP, run_timeout_s=0.1)
    assert shell.scheduler.next_timer() == pytest.approx(0.1)
