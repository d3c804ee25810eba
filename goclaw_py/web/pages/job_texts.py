"""What the pages about jobs say of them: plans, reasons, results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from goclaw_py.common.text import first_words
from goclaw_py.common.time_texts import at, local
from goclaw_py.jobs.execution_models import LoggedOccurrence, OccurrenceStatus
from goclaw_py.jobs.models import Job, JobState, Payload, TargetKind
from goclaw_py.jobs.view_texts import (
    kind_and_text,
    obstacle,
    plan,
    took_s,
    trouble,
    waits,
    why_words,
)
from goclaw_py.model.targets import target_text
from goclaw_py.ports.jobs import JobService

_SHOWN: Final = 160

STATES: Final[Mapping[JobState, str]] = {
    JobState.ACTIVE: "good",
    JobState.PAUSED: "idle",
    JobState.COMPLETED: "idle",
    JobState.FAILED: "bad",
    JobState.DISABLED: "bad",
}
"""What each state of a job means, by the names of colours."""

STATUSES: Final[Mapping[OccurrenceStatus, str]] = {
    OccurrenceStatus.RUNNING: "busy",
    OccurrenceStatus.WAITING: "busy",
    OccurrenceStatus.OK: "good",
    OccurrenceStatus.FAILED: "bad",
    OccurrenceStatus.TIMED_OUT: "bad",
    OccurrenceStatus.CANCELLED: "idle",
    OccurrenceStatus.SKIPPED: "idle",
    OccurrenceStatus.INTERRUPTED: "idle",
    OccurrenceStatus.LOST: "bad",
    OccurrenceStatus.NO_ROUTE: "bad",
    OccurrenceStatus.UNDELIVERED: "bad",
}
"""The same of each status of an occurrence."""


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


def line_of(service: JobService, job: Job) -> JobLine:
    """What a list says of a job."""
    zone = job.spec.zone
    return JobLine(
        job,
        STATES[job.state],
        plan(job),
        does(job.spec.payload),
        at(job.next_run_at, zone) if job.next_run_at else "",
        at(job.last_run_at, zone) if job.last_run_at else "",
        remark(service, job),
    )


def does(payload: Payload) -> str:
    """What a job does, in one line."""
    kind, text = kind_and_text(payload)
    return f"{kind}: {first_words(text, _SHOWN)}"


def remark(service: JobService, job: Job) -> str:
    """Why a job will not run, or what went wrong; "" if there is nothing to say."""
    if found := obstacle(job, is_enabled=service.enabled):
        return sentence(f"it will not run: {found}")
    return sentence(trouble(job))


def sentence(clause: str) -> str:
    """A clause as a sentence; "" as it is."""
    ends = ("", ".", "!", "?", "\u2026")
    return clause[:1].upper() + clause[1:] + ("" if clause[-1:] in ends else ".")


def place(job: Job) -> str:
    """Where a job tells its results."""
    target = job.spec.target
    if not isinstance(target, TargetKind):
        return target_text(target)
    return "the chat that was used last" if target is TargetKind.LAST else "nowhere"


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """An occurrence as a row.

    Args:
        took_s: How long it ran, in seconds; None if it did not, or still does.
        why: Why it ended so, "" where the status says it all.
    """

    row: LoggedOccurrence
    meaning: str
    due_at: str
    took_s: float | None
    why: str
    cost: str


def logged_line(row: LoggedOccurrence, zone: str) -> LoggedLine:
    """What the history of a job says of an occurrence."""
    why = why_words(row.why) if row.why else waits(row)
    return LoggedLine(
        row, STATUSES[row.status], local(row.scheduled_at, zone), took_s(row), why, cost(row)
    )


def cost(row: LoggedOccurrence) -> str:
    """What an occurrence cost: money, or tokens where the price is not known; "" for neither."""
    used = row.usage
    if used is None or (used.cost_usd is None and not used.tokens):
        return ""
    if used.cost_usd is None:
        return f"{used.tokens:,} tokens"
    return f"${used.cost_usd:.2f}" if used.cost_usd >= 1 else f"${used.cost_usd:.4f}"
