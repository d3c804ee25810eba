"""Errors of jobs and heartbeats keep their class and what they carry on their way (SPEC OPS-2)."""

from __future__ import annotations

import pytest

from goclaw_py.core import errors
from goclaw_py.web.api.error_json import Refused, error_json, error_of
from goclaw_py.web.api.wire import dump

ALL = [
    errors.JobError("a"), errors.BadSchedule("a", "b"), errors.BadCron("* *", "five", "write 5"),
    errors.BadMoment("over", "r"), errors.PastMoment("over", "r"), errors.BadInterval("zero"),
    errors.UnknownZone("Mars", "Europe/Mars?"), errors.TooFrequent(1.5, 60, cron=True),
    errors.NeverFires("30 Feb"), errors.BadJob("turns", "must be 5"), errors.JobChanged("again"),
    errors.TooManyJobs("ann", 50), errors.SlugTaken("x"), errors.NotYours("1", "ann"),
    errors.UnknownJob("y" * 100, several="tea (0190), tea (0191)"), errors.HeartbeatError("plain"),
    errors.UnknownAgent("nobody"), errors.TooManyEvents("main", 20), errors.ChecklistChanged(),
    errors.BadChecklist("it is a folder"), errors.BadHours("start", "8:00", "two digits"),
]  # fmt: skip


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_trip(error: errors.GoclawError) -> None:
    back = error_of(422, error_json(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_no_class_is_forgotten() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    bases = (errors.JobError, errors.HeartbeatError)
    assert {type(error) for error in ALL} == {kind for kind in kinds if issubclass(kind, bases)}


@pytest.mark.parametrize("kind", ["", "Exception", "SystemExit", "__import__", "GoclawError"])
def test_a_class_that_is_no_error_of_jobs_is_not_made(kind: str) -> None:
    told = {"error": "told", "kind": kind, "facts": {"asked": "x", "__class__": "y"}}
    back = error_of(403, dump(dict, told))
    assert (type(back), str(back), vars(back)) == (Refused, "told", {})


class _Newer(errors.BadCron):
    """What only another release knows."""


def test_an_error_of_another_release_arrives_as_what_it_is_a_kind_of() -> None:
    back = error_of(422, error_json(_Newer("*", "no")))
    assert isinstance(back, errors.BadCron)
    assert (type(back), back.expression) == (errors.BadCron, "*")
