"""What operators read about a job: when it runs, what it does, why it will not run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from goclaw_py.common.text import count, first_words
from goclaw_py.jobs.execution_models import Logged, Why
from goclaw_py.jobs.models import Job, JobState, Message, Payload, Program, Prompt
from goclaw_py.jobs.schedule import describe
from goclaw_py.model.errors import JobError

REASON_CHARS: Final = 160


def plan(job: Job) -> str:
    """When a job runs, in plain words."""
    try:
        return describe(job.spec.schedule, job.spec.zone)
    except JobError as error:
        # Another release has stored it, or one with other zones.
        return str(error)


def kind_and_text(payload: Payload) -> tuple[str, str]:
    """What a job does: the name of that and its text."""
    match payload:
        case Prompt(text):
            return "prompt", text
        case Message(text):
            return "message", text
        case Program(argv):
            return "command", shlex.join(argv)


def obstacle(job: Job, *, is_enabled: bool, reason_chars: int = REASON_CHARS) -> str:
    """Why a job will not run, as a clause; "" if it will.

    ``is_enabled``: whether the settings let anything run by the clock. Of its last error so many
    characters are told.
    """
    match job.state:
        case JobState.PAUSED:
            return "paused"
        case JobState.DISABLED:
            return f"disabled after {failures(job.failures)}{_cause(job, reason_chars)}"
        case JobState.COMPLETED:
            return f"over: it has run {count(job.runs, 'time')}"
        case JobState.FAILED:
            return f"failed{_cause(job, reason_chars) or ': see its runs'}"
        case JobState.ACTIVE:
            pass
    if not is_enabled:
        return "the scheduler is off (scheduler.enabled)"
    if job.next_run_at is None and job.running is None:
        return "nothing lies ahead"
    return ""


def trouble(job: Job, *, reason_chars: int = REASON_CHARS) -> str:
    """What went wrong with a job lately, as a clause; "" if nothing did."""
    return f"{failures(job.failures)}{_cause(job, reason_chars)}" if job.failures else ""


def failures(number: int) -> str:
    """So many failures in a row."""
    return f"{count(number, 'failure')} in a row" if number > 1 else count(number, "failure")


def _cause(job: Job, most: int) -> str:
    error = first_words(job.last_error, most)
    return f": {error}" if error else ""


def took_s(row: Logged) -> float | None:
    """How long an occurrence ran, in seconds; None if it did not, or still does."""
    if row.started_at is None or row.finished_at is None:
        return None
    return max(0.0, (row.finished_at - row.started_at).total_seconds())


_WHY: Final[Mapping[Why, str]] = {
    Why.NO_WORK: "there was no work for it",
    Why.BUSY: "its session or its agent was busy",
    Why.AT_CAPACITY: "as many jobs ran as may at once",
    Why.MISSED: "nobody was there when it was due",
    Why.TOO_FREQUENT: "the run before was too short a time ago",
    Why.BUDGET: "it had used up what it may",
    Why.DISABLED: "it was switched off",
    Why.STOPPED: "somebody stopped it",
    Why.OUTAGE: "the provider of its model was away",
    Why.EFFECTS: "its run was cut off after it had called tools that change something",
    Why.NO_NOTIFY: "nobody was told: its reply did not begin with [NOTIFY]",
    Why.NO_REPLY: "nobody was told: it had nothing to say",
}


def why_words(why: Why) -> str:
    """Why an occurrence ended so, as a clause."""
    return _WHY[why]


def waits(row: Logged) -> str:
    """What an occurrence waits for, as a clause; "" if it waits for no session."""
    if row.waits_for is None:
        return ""
    blocking = f" (run {row.blocking_run} on node {row.blocking_node})" if row.blocking_run else ""
    return f"waits for session {row.waits_for}{blocking}"
