"""Texts about a job for operators: its schedule, its task, and why it will not run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final, Literal

from goclaw_py.core.errors import JobError
from goclaw_py.core.text import count, first_words
from goclaw_py.core.time.durations import LONGEST, text_of
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import FixedMessage, Job, JobState, Payload, Program, Prompt
from goclaw_py.schedule.jobs.policy import DURATIONS
from goclaw_py.schedule.jobs.schedule import describe

REASON_CHARS: Final = 160


def plan(job: Job) -> str:
    """When a job runs, in plain words."""
    try:
        return describe(job.spec.schedule, job.spec.zone)
    except JobError as error:
        # Another release, or one with other time zone data, may have stored the schedule.
        return str(error)


def kind_and_text(payload: Payload) -> tuple[Literal["prompt", "message", "command"], str]:
    """Return the kind of a job's task, such as ``prompt``, and its text."""
    match payload:
        case Prompt(text):
            return "prompt", text
        case FixedMessage(text):
            return "message", text
        case Program(argv):
            return "command", shlex.join(argv)


def policy_text(key: str, value: object) -> str:
    """Return a value of a policy as people write it: ``30m``, ``true``; "none" for no limit."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(policy_text(key, one) for one in value) or "none"
    if isinstance(value, int | float) and key in DURATIONS:
        # A stored value of another release may be of any size.
        whole = value == round(value, 3) and 0 < value < LONGEST.total_seconds()
        return text_of(timedelta(seconds=value)) if whole else f"{value:g}s"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def obstacle(job: Job, *, is_enabled: bool, reason_chars: int = REASON_CHARS) -> str:
    """Return why a job will not run, as a clause; "" if it will.

    ``is_enabled``: whether the settings let jobs run. ``reason_chars``: the longest error shown.
    """
    match job.state:
        case JobState.PAUSED:
            return "paused"
        case JobState.DISABLED:
            return f"disabled after {failures(job.failures)}{_cause(job, reason_chars)}"
        case JobState.COMPLETED:
            return f"finished after {count(job.runs, 'run')}"
        case JobState.FAILED:
            return f"failed{_cause(job, reason_chars) or ': see its past runs'}"
        case JobState.ACTIVE:
            pass
    if not is_enabled:
        return "jobs are turned off (scheduler.enabled)"
    if job.next_run_at is None and job.running is None:
        return "no upcoming run"
    return ""


def trouble(job: Job, *, reason_chars: int = REASON_CHARS) -> str:
    """Return the recent failures of a job, as a clause; "" if there are none."""
    return f"{failures(job.failures)}{_cause(job, reason_chars)}" if job.failures else ""


def failures(number: int) -> str:
    """Return a number of failures in words."""
    return f"{count(number, 'failure')} in a row" if number > 1 else count(number, "failure")


def _cause(job: Job, most: int) -> str:
    error = first_words(job.last_error, most)
    return f": {error}" if error else ""


_WHY: Final[Mapping[Why, str]] = {
    Why.NO_WORK: "there was no work for it",
    Why.BUSY: "its session or its agent was busy",
    Why.AT_CAPACITY: "the limit of concurrent jobs was reached",
    Why.MISSED: "no gateway was running when it was due",
    Why.TOO_FREQUENT: "the previous run was too recent",
    Why.BUDGET: "its budget was used up",
    Why.DISABLED: "it was disabled",
    Why.STOPPED: "someone stopped it",
    Why.OUTAGE: "the provider of its model was unavailable",
    Why.EFFECTS: "its run was interrupted after it had called tools that change something",
    Why.APPROVAL: "it has asked a person about a tool call",
    Why.NO_NOTIFY: "no message was sent: its reply did not begin with [NOTIFY]",
    Why.NO_REPLY: "no message was sent: it had nothing to say",
}


def why_words(why: Why) -> str:
    """Return the reason of an occurrence's result, as a clause."""
    return _WHY.get(why, why.value)


def waits(row: LoggedOccurrence) -> str:
    """Return what an occurrence waits for, as a clause; "" if it waits for no session or answer."""
    if row.status is OccurrenceStatus.WAITING and row.why is Why.APPROVAL:
        return "waits for an answer to a question about a tool call"
    if row.waits_for is None:
        return ""
    blocking = f" (run {row.blocking_run} on node {row.blocking_node})" if row.blocking_run else ""
    return f"waits for session {row.waits_for}{blocking}"
