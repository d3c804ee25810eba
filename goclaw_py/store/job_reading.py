"""Job definitions of another release that this one cannot read.

They are shown as far as they can be read, with the cause as their last error. They never run, and
are not overwritten, so that the other release can still read them; they can be deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeVar

from goclaw_py.core.errors import BadJob, JobError
from goclaw_py.core.ids import JobId, OccurrenceId
from goclaw_py.schedule.jobs.execution_models import JobUpdate, OccurrenceEnd, OccurrenceStatus
from goclaw_py.schedule.jobs.job_json import job_of, spec_json, spec_of
from goclaw_py.schedule.jobs.models import FixedMessage, Job, JobSpec, JobState
from goclaw_py.schedule.jobs.policy import JobPolicy, policy_with
from goclaw_py.schedule.jobs.schedule import At

log = logging.getLogger(__name__)

Value = TypeVar("Value")

_BROKEN: Final = (JobError, ValueError, TypeError, ArithmeticError)
"""Errors of reading: our own, and Python's for values of another shape."""


def read_spec(stored: object) -> JobSpec:
    """Parse the output of ``spec_json``, including the policy. Raises ``BadJob``."""
    return _read(lambda: spec_of(_an_object(stored)), lambda spec: spec)


def read_job(stored: object) -> Job:
    """Parse the output of ``job_json``, including the policy. Raises ``BadJob``."""
    return _read(lambda: job_of(_an_object(stored)), lambda job: job.spec)


def _read(read: Callable[[], Value], spec_in: Callable[[Value], JobSpec]) -> Value:
    try:
        value = read()
        policy_with(JobPolicy(), spec_in(value).policy)
    except _BROKEN as error:
        raise unreadable(error) from error
    return value


def unreadable(error: Exception) -> BadJob:
    """Return the error that a definition cannot be read."""
    cause = str(error) if isinstance(error, JobError) else f"{type(error).__name__}: {error}"
    return BadJob("definition", f"this release cannot read it ({cause})")


def flaw(job: Job) -> BadJob | None:
    """Return why this release cannot read a job that was never JSON; None if it can."""
    try:
        policy_with(JobPolicy(), job.spec.policy)
    except _BROKEN as error:
        return unreadable(error)
    return None


def shown(job: Job) -> Job:
    """Return a job that was never JSON as people see it."""
    found = flaw(job)
    if found is None:
        return job
    spec = replace(job.spec, policy=_known_policy(job.spec.policy))
    return replace(job, spec=spec, last_error=str(found))


def salvaged(stored: object, *, slug: str, created_at: datetime) -> JobSpec:
    """Return the readable fields of a definition.

    Without a readable schedule it was due once, at its creation; without a payload its message is
    empty.
    """
    bare = spec_json(JobSpec(slug, At(created_at), "UTC", FixedMessage("")))
    found = dict(bare)
    for key, value in stored.items() if isinstance(stored, Mapping) else ():
        part = _known_policy(value) if key == "policy" and isinstance(value, Mapping) else value
        try:
            spec_of({**bare, key: part})
        except _BROKEN:
            continue
        found[key] = part
    return replace(spec_of(found), slug=slug)


def _known_policy(policy: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in policy.items() if _is_known(key, value)}


def _is_known(key: str, value: object) -> bool:
    try:
        policy_with(JobPolicy(), {key: tuple(value) if isinstance(value, list) else value})
    except _BROKEN:
        return False
    return True


def switched_off(
    occurrence: OccurrenceId, job: JobId, revision: int, *, cause: BadJob, now: datetime
) -> OccurrenceEnd:
    """Return the end of an occurrence whose job cannot be read."""
    return OccurrenceEnd(
        occurrence,
        job,
        revision,
        OccurrenceStatus.FAILED,
        now,
        JobUpdate(None, JobState.DISABLED, failed=True),
        error=str(cause),
        keep=JobPolicy().history_keep,
    )


def log_unreadable(end: OccurrenceEnd) -> None:
    """Log that a job was disabled."""
    facts = {"job": end.job, "occurrence": end.id, "error": end.error}
    log.warning("unreadable_job_disabled", extra=facts)


def _an_object(stored: object) -> Mapping[str, object]:
    if not isinstance(stored, Mapping):
        raise BadJob("definition", "must be an object")
    return stored
