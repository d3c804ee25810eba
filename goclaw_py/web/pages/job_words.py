"""What the pages about jobs say of them: plans, reasons, results."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from goclaw_py.core.errors import JobError
from goclaw_py.core.jobs import Job, JobState, Message, Payload, Program, TargetKind
from goclaw_py.core.occurrence import Logged, Status, Why
from goclaw_py.core.schedule import describe
from goclaw_py.core.targets import target_text
from goclaw_py.core.text import cut_text
from goclaw_py.core.wording_times import at, local
from goclaw_py.ports.jobs import JobDesk

_SHOWN: Final = 160

STATES: Final[Mapping[JobState, str]] = {
    JobState.ACTIVE: "good",
    JobState.PAUSED: "idle",
    JobState.COMPLETED: "idle",
    JobState.FAILED: "bad",
    JobState.DISABLED: "bad",
}
"""What each state of a job means, by the names of colours."""

STATUSES: Final[Mapping[Status, str]] = {
    Status.RUNNING: "busy",
    Status.OK: "good",
    Status.FAILED: "bad",
    Status.TIMED_OUT: "bad",
    Status.CANCELLED: "idle",
    Status.SKIPPED: "idle",
    Status.INTERRUPTED: "idle",
    Status.LOST: "bad",
}
"""The same of each status of an occurrence."""

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
}


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job as a row.

    Args:
        plan: When it runs, in plain words.
        does: What it does, in one line.
        next_at, last_at: In its zone; "" if there is none.
        remark: Why it will not run, or what went wrong; "" if all is well.
    """

    job: Job
    meaning: str
    plan: str
    does: str
    next_at: str
    last_at: str
    remark: str


def line_of(desk: JobDesk, job: Job) -> JobLine:
    """What a list says of a job."""
    zone = job.spec.zone
    return JobLine(
        job,
        STATES[job.state],
        plan(job),
        does(job.spec.payload),
        at(job.next_run_at, zone) if job.next_run_at else "",
        at(job.last_run_at, zone) if job.last_run_at else "",
        remark(desk, job),
    )


def plan(job: Job) -> str:
    """When a job runs, in plain words."""
    try:
        return describe(job.spec.schedule, job.spec.zone)
    except JobError as error:
        # Another release has stored it, or one with other zones.
        return str(error)


def does(payload: Payload) -> str:
    """What a job does, in one line."""
    kind, text = kind_and_text(payload)
    return f"{kind}: {cut_text(' '.join(text.split()), _SHOWN)}"


def kind_and_text(payload: Payload) -> tuple[str, str]:
    """What a job does: the name of that, and its text."""
    match payload:
        case Program(argv):
            return "command", shlex.join(argv)
        case Message(text):
            return "message", text
        case _:
            return "prompt", payload.text


def remark(desk: JobDesk, job: Job) -> str:
    """Why a job will not run, or what went wrong; "" if there is nothing to say."""
    if found := obstacle(desk, job):
        return found
    if not job.failures:
        return ""
    return f"{_failures(job.failures)}{_cause(job)}"


def obstacle(desk: JobDesk, job: Job) -> str:
    """Why a job will not run, "" if it will."""
    match job.state:
        case JobState.PAUSED:
            return "It does not run while it is paused."
        case JobState.DISABLED:
            return f"It was switched off after {_failures(job.failures)}{_cause(job)}"
        case JobState.COMPLETED:
            return f"It is over: it has run {job.runs} time{'' if job.runs == 1 else 's'}."
        case JobState.FAILED:
            return f"It was to run once, and that failed{_cause(job)}"
        case JobState.ACTIVE:
            pass
    if not desk.enabled:
        return "It does not run: the scheduler is off (scheduler.enabled)."
    if job.next_run_at is None and job.running is None:
        return "It does not run: nothing lies ahead."
    return ""


def _failures(number: int) -> str:
    return f"{number} failures in a row" if number != 1 else "1 failure"


def _cause(job: Job) -> str:
    error = cut_text(" ".join(job.last_error.split()), _SHOWN)
    return f": {error}" if error else "."


def place(job: Job) -> str:
    """Where a job tells its results."""
    target = job.spec.target
    if not isinstance(target, TargetKind):
        return target_text(target)
    return "where it was spoken to last" if target is TargetKind.LAST else "nowhere"


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """An occurrence as a row.

    Args:
        took_s: How long it ran, in seconds; None if it did not, or still does.
        why: Why it ended so, "" where the status says it all.
    """

    row: Logged
    meaning: str
    due_at: str
    took_s: float | None
    why: str
    cost: str


def logged_line(row: Logged, zone: str) -> LoggedLine:
    """What the history of a job says of an occurrence."""
    why = _WHY[row.why] if row.why else ""
    return LoggedLine(
        row, STATUSES[row.status], local(row.scheduled_at, zone), took(row), why, cost(row)
    )


def took(row: Logged) -> float | None:
    """How long an occurrence ran, in seconds; None if it did not, or still does."""
    if row.started_at is None or row.finished_at is None:
        return None
    return max(0.0, (row.finished_at - row.started_at).total_seconds())


def cost(row: Logged) -> str:
    """What an occurrence cost: money, or tokens where the price is not known; "" for neither."""
    used = row.usage
    if used is None or (used.cost_usd is None and not used.tokens):
        return ""
    if used.cost_usd is None:
        return f"{used.tokens:,} tokens"
    return f"${used.cost_usd:.2f}" if used.cost_usd >= 1 else f"${used.cost_usd:.4f}"
