"""The answers of the schedule tools: schedules as JSON, and error texts (SPEC AGENT-6)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, assert_never

from goclaw_py.core.errors import (
    BadCron,
    BadJob,
    BadSchedule,
    JobError,
    NeverFires,
    NotYours,
    PastMoment,
    StoreUnavailable,
    TooFrequent,
    ToolFailed,
    TooManyJobs,
    UnknownJob,
    UnknownZone,
)
from goclaw_py.core.text import truncate
from goclaw_py.core.time.datetimes import local_text
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import JobPage
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.schedule.jobs.models import FixedMessage, Job, JobState, Payload, Program, Prompt
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule

GOAL_CHARS: Final = 120
_SHOWN_CHARS: Final = 80

_LAST: Final[Mapping[str, str]] = {
    OccurrenceStatus.OK: "success",
    OccurrenceStatus.FAILED: "failed",
    OccurrenceStatus.TIMED_OUT: "failed",
    OccurrenceStatus.LOST: "failed",
    OccurrenceStatus.CANCELLED: "cancelled",
}
"""The names of run statuses for models; others are used unchanged."""

_ARGUMENTS: Final[Mapping[str, str]] = {"prompt": "goal", "message": "goal", "state": "status"}
"""The argument names of job fields, where they differ."""


def entry(job: Job) -> dict[str, object]:
    """Return a schedule in the form of a search result."""
    spec = job.spec
    return {
        "schedule_id": job.id,
        "slug": spec.slug,
        "name": spec.name or None,
        "goal": truncate(_goal(spec.payload), GOAL_CHARS),
        "cadence": cadence_text(spec.schedule, spec.zone),
        "status": job.state.value,
        "notification": spec.notify.value,
        "next_run_at": _utc(job.next_run_at),
        "next_run_local": _local(job.next_run_at, spec.zone),
        "last_run_at": _utc(job.last_run_at),
        "last_run_status": _LAST.get(job.last_status, job.last_status) or None,
    }


def made(job: Job, service: JobService) -> dict[str, object]:
    """Return a schedule with its next three run times, to verify it (SPEC CRON-2)."""
    return entry(job) | {
        "next_runs_local": [
            _local(moment, job.spec.zone) for moment in job.upcoming(service.rules.base)
        ]
    }


def found(page: JobPage, *, offset: int, limit: int, now: datetime) -> dict[str, object]:
    """Return a page of schedules, with a hint for the next page; ``now`` is local."""
    remaining = max(page.total - offset - len(page.jobs), 0)
    hint = None
    if remaining:
        more = "1 more result" if remaining == 1 else f"{remaining} more results"
        hint = f"{more} available. Use offset={offset + limit} to see the next page."
    return {
        "schedules": [entry(job) for job in page.jobs],
        "total": page.total,
        "offset": offset,
        "limit": limit,
        "remaining": remaining,
        "hint": hint,
        "now": now.isoformat(timespec="seconds"),
        "timezone": str(now.tzinfo),
    }


def written(result: Mapping[str, object]) -> str:
    """Return a result as JSON text for the model."""
    return json.dumps(result, ensure_ascii=False)


def cadence_text(schedule: Schedule, zone_name: str) -> str:
    """Return a cadence in the format of the arguments."""
    match schedule:
        case At(at):
            return f"once: {_utc(at)}"
        case Every(interval):
            return f"interval: {interval.total_seconds():g}s"
        case Cron(expression):
            return f"cron: {expression} ({zone_name})"
        case _:
            assert_never(schedule)


def _goal(payload: Payload) -> str:
    match payload:
        case Prompt(text) | FixedMessage(text):
            return text
        case Program(argv):
            # Its arguments are only for operators.
            return f"[runs the program {argv[0]}]"
        case _:
            assert_never(payload)


def _utc(moment: datetime | None) -> str | None:
    """Such as ``2026-02-25T02:30:00Z``."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _local(moment: datetime | None, zone_name: str) -> str | None:
    """Such as ``2026-02-25 08:00:00 IST``."""
    return None if moment is None else local_text(moment, zone_name)


def over(state: JobState) -> ToolFailed:
    """Return the error for resuming a finished or disabled schedule."""
    return ToolFailed(
        f"invalid schedule cadence: to resume a {state.value} schedule, also "
        "give a new cadence_type and cadence_value"
    )


@contextmanager
def in_words() -> Iterator[None]:
    """Convert errors of the job service to ``ToolFailed``, with texts for the model."""
    try:
        yield
    except JobError as error:
        raise ToolFailed(_words(error)) from error
    except StoreUnavailable as error:
        raise ToolFailed(
            "schedule store error: the database cannot be reached; try again later"
        ) from error


def _words(error: JobError) -> str:
    match error:
        case BadCron():
            advice = f" ({error.hint})" if error.hint else ""
            expression = truncate(error.expression, _SHOWN_CHARS)
            return f"invalid cron expression: {expression}: {error.reason}{advice}"
        case BadSchedule():
            return f"invalid schedule cadence: {_reason(error)}"
        case UnknownJob(asked=asked, several=several) if several:
            what = truncate(asked, _SHOWN_CHARS)
            return f"several schedules fit {what}: {several}; give the schedule_id"
        case UnknownJob(asked=asked):
            return f"schedule not found: {truncate(asked, _SHOWN_CHARS)}"
        case NotYours(asked=asked, owner=owner):
            return f"unauthorized: schedule {asked} does not belong to user {owner}"
        case TooManyJobs(owner=owner, most=most):
            return f"user {owner} has reached the maximum number of schedules ({most})"
        case BadJob(key=key, allowed=allowed):
            return f"{_ARGUMENTS.get(key, key)}: {allowed}"
        case _:
            return str(error)


def _reason(error: BadSchedule) -> str:
    match error:
        case UnknownZone(zone=name, hint=hint):
            advice = f" ({hint})" if hint else ""
            return f"invalid timezone: {truncate(name, _SHOWN_CHARS)}{advice}"
        case TooFrequent(gap_s=gap, minimum_s=least, cron=True):
            return f"cron fires every {gap:g}s, minimum is {least:g}s"
        case TooFrequent(gap_s=gap, minimum_s=least):
            return f"interval {gap:g}s is below minimum {least:g}s"
        case NeverFires():
            return "schedule would never fire"
        case PastMoment():
            return f"one-off time must be in the future: {error}"
        case _:
            return error.reason
