"""What operators read about a job is the same in a shell and on a page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.jobs.models import FixedMessage, Job, JobState, Program, Prompt
from goclaw_py.jobs.schedule import Cron
from goclaw_py.jobs.view_texts import kind_and_text, obstacle, plan, trouble
from tests.unit.jobs.occurring import a_job

JOB = a_job()


@pytest.mark.parametrize(("job", "said"), [
    (JOB, ""),
    (replace(JOB, state=JobState.PAUSED), "paused"),
    (replace(JOB, state=JobState.DISABLED, failures=3, last_error="boom\n  again"),
     "disabled after 3 failures in a row: boom again"),
    (replace(JOB, state=JobState.DISABLED, failures=1), "disabled after 1 failure"),
    (replace(JOB, state=JobState.COMPLETED, runs=1), "finished after 1 run"),
    (replace(JOB, state=JobState.FAILED, last_error="no  way " * 900),
     f"failed: {'no way ' * 22}no wa…"),
    (replace(JOB, state=JobState.FAILED), "failed: see its past runs"),
    (replace(JOB, next_run_at=None), "no upcoming run"),
])  # fmt: skip
def test_why_a_job_will_not_run_is_one_clause(job: Job, said: str) -> None:
    assert obstacle(job, is_enabled=True) == said


def test_a_scheduler_that_is_off_stops_what_is_active_and_explains_nothing_else() -> None:
    off = "jobs are turned off (scheduler.enabled)"
    assert obstacle(JOB, is_enabled=False) == off
    assert obstacle(replace(JOB, state=JobState.PAUSED), is_enabled=False) == "paused"


def test_trouble_is_told_while_there_is_some() -> None:
    assert trouble(JOB) == ""
    assert trouble(replace(JOB, failures=2, last_error="no")) == "2 failures in a row: no"


def test_a_schedule_that_cannot_be_read_is_told_and_breaks_nothing() -> None:
    broken = replace(JOB, spec=replace(JOB.spec, schedule=Cron("every full moon")))
    assert "every full moon" in plan(broken)


def test_a_payload_has_a_kind_and_a_text() -> None:
    assert kind_and_text(Prompt("look")) == ("prompt", "look")
    assert kind_and_text(FixedMessage("hi")) == ("message", "hi")
    assert kind_and_text(Program(("ls", "a b"))) == ("command", "ls 'a b'")
