"""Errors about jobs on their way over the wire: their class and what it carries survive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from goclaw_py.model.errors import (
    BadCron,
    BadInterval,
    BadJob,
    BadMoment,
    BadSchedule,
    JobChanged,
    JobError,
    NeverFires,
    NotYours,
    PastMoment,
    SlugTaken,
    TooFrequent,
    TooManyJobs,
    UnknownJob,
    UnknownZone,
)

STATUS_OF: Final[tuple[tuple[type[JobError], int], ...]] = (
    (UnknownJob, 404),
    (NotYours, 403),
    (JobChanged, 409),
    (SlugTaken, 409),
    (TooManyJobs, 409),
    (JobError, 422),
)
"""The HTTP status of each; the first that fits."""

Fact = str | bool | int | float

_FACTS: Final[Mapping[type[JobError], tuple[str, ...]]] = {
    JobError: (),
    BadSchedule: ("reason",),
    BadCron: ("reason", "expression", "hint"),
    BadMoment: ("reason",),
    PastMoment: ("reason",),
    BadInterval: ("reason",),
    UnknownZone: ("reason", "zone", "hint"),
    TooFrequent: ("reason", "gap_s", "minimum_s", "cron"),
    NeverFires: ("reason",),
    BadJob: ("key", "allowed"),
    TooManyJobs: ("owner", "most"),
    SlugTaken: ("slug",),
    UnknownJob: ("asked", "several"),
    NotYours: ("asked", "owner"),
    JobChanged: (),
}
"""What each of them carries beside its sentence."""

_KINDS: Final[Mapping[str, type[JobError]]] = {kind.__name__: kind for kind in _FACTS}


@dataclass(frozen=True, slots=True)
class JobFault:
    """A ``JobError``: its sentence, the name of its class, and what this carries."""

    error: str
    kind: str
    facts: dict[str, Fact] = field(default_factory=dict)


def fault_of(error: JobError) -> JobFault:
    """The error as it goes over the wire; of a class that is not known here as its base."""
    kind = next(kind for kind in type(error).__mro__ if kind in _FACTS)
    facts = {name: getattr(error, name) for name in _FACTS[kind]}
    return JobFault(str(error), kind.__name__, facts)


def error_of(fault: JobFault) -> JobError:
    """The error that was meant. Facts that are missing or not known are left out."""
    kind = _KINDS.get(fault.kind, JobError)
    error = kind.__new__(kind, fault.error)
    for name in _FACTS[kind]:
        if name in fault.facts:
            setattr(error, name, fault.facts[name])
    return error
