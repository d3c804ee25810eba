"""A filter of runs with a value in each field, for the tests of whatever has filters of runs."""

from __future__ import annotations

from dataclasses import fields

from goclaw_py.core.ids import AgentName
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import RunFilter, StoredRun

EVERY_FILTER = RunFilter(AgentName("main"), Trigger.CRON, Outcome.FAILED, "telegram/default/7")


def has(run: StoredRun, name: str, value: object) -> bool:
    """Whether a field of a filter with this value selects a run: the rule of the tests.

    A field that selects otherwise than by equality, as a minimum does, has its case here.
    """
    return value in (None, getattr(run, name))


def values(only: RunFilter) -> dict[str, str]:
    """The fields by which a filter selects, and their values."""
    given = {one.name: getattr(only, one.name) for one in fields(only)}
    return {name: str(value) for name, value in given.items() if value is not None}
