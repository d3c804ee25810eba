"""A filter of runs with a value in each field, for the tests of whatever has filters of runs."""

from __future__ import annotations

from dataclasses import fields

from goclaw_py.core.ids import AgentName
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import RunFilter

EVERY_FILTER = RunFilter(AgentName("main"), Trigger.CRON, Outcome.FAILED, "telegram/default/7")


def values(only: RunFilter) -> dict[str, str]:
    """The fields by which a filter selects, and their values."""
    given = {one.name: getattr(only, one.name) for one in fields(only)}
    return {name: str(value) for name, value in given.items() if value is not None}
