"""What the API answers about jobs, and what the commands send and read.

Jobs are as in ``schedule.jobs.job_json``. Drafts and changes have the keys of its ``spec``: missing
keys of a draft come from the settings, those of a change stay.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from goclaw_py.core.ids import OccurrenceId, RunId
from goclaw_py.operations.jobs.models import UNCHANGED, JobChange, JobDraft, RunNow, StartedNow
from goclaw_py.records import JobPage
from goclaw_py.schedule.jobs.job_json import job_of, plain
from goclaw_py.schedule.jobs.models import JobState

FOUND: Final = ("payload", "agent", "target", "peer")
"""Keys of a draft that come from the settings if they are None."""


def draft_json(draft: JobDraft) -> dict[str, object]:
    """Return a draft as ``DraftBody``."""
    given = {each.name: plain(getattr(draft, each.name)) for each in fields(draft)}
    return {key: value for key, value in given.items() if value is not None or key not in FOUND}


def change_json(change: JobChange) -> dict[str, object]:
    """Return a change as ``ChangeBody``."""
    given = {each.name: getattr(change, each.name) for each in fields(change)}
    return {key: plain(value) for key, value in given.items() if value is not UNCHANGED}


def page_of(answer: dict[str, Any]) -> JobPage:
    """Parse the response with a page of jobs."""
    return JobPage(tuple(map(job_of, answer["jobs"])), answer["total"])


@dataclass(frozen=True, slots=True)
class Times:
    """The runs that a job would have, in order."""

    times: list[datetime]


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs are in each state."""

    counts: dict[JobState, int]


@dataclass(frozen=True, slots=True)
class RouteView:
    """Why the result of a job could not be delivered now; "" if it could."""

    problem: str


@dataclass(frozen=True, slots=True)
class ZoneView:
    """A time zone."""

    zone: str


@dataclass(frozen=True, slots=True)
class RanNow:
    """The result of a manual run: its occurrence, or why it did not start."""

    occurrence: OccurrenceId | None = None
    run: RunId | None = None
    session: str = ""
    refused: RunNow | None = None


def ran_now(result: StartedNow | RunNow) -> RanNow:
    """Return the response for a manual run."""
    if isinstance(result, RunNow):
        return RanNow(refused=result)
    return RanNow(result.occurrence, result.run, result.session)


def started_now(answer: RanNow) -> StartedNow | RunNow:
    """Parse the response for a manual run."""
    if answer.occurrence is None:
        return answer.refused or RunNow.OFF
    return StartedNow(answer.occurrence, answer.run, answer.session)
