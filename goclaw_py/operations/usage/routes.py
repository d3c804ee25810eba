"""Usage in the API (SPEC OPS-2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from goclaw_py.operations.control import Control
from goclaw_py.operations.usage.operations import UsageReports
from goclaw_py.runs.usage_report import (
    MAX_DAYS,
    MAX_HOURLY_DAYS,
    DayTimes,
    Grouping,
    UsageQuery,
    UsageReport,
    groupings,
    read_day,
)
from goclaw_py.web.api.serve import serve

By = Annotated[
    str,
    Query(
        max_length=100,
        description=f"{', '.join(Grouping)}: any, with commas between; empty: the sum alone.",
        examples=["agent,day"],
    ),
]
Day = Annotated[
    str | None,
    Query(
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        description="The last day, included. Default: today.",
        examples=["2026-01-31"],
    ),
]
Days = Annotated[
    int | None,
    Query(
        ge=1,
        le=MAX_DAYS,
        description="The number of days, instead of `since`. Default: 7 if neither is given.",
    ),
]
Zone = Annotated[
    str,
    Query(
        alias="tz",
        max_length=64,
        description="The time zone of the days. Days of budgets are in UTC.",
        examples=["Europe/Berlin"],
    ),
]


Hours = Annotated[
    bool, Query(description=f"Hours instead of days, of at most {MAX_HOURLY_DAYS} days.")
]


def usage_routes(control: Control) -> APIRouter:
    """Return the routes."""
    api = APIRouter()

    @serve(api, UsageReports.report)
    async def usage(
        by: By = "agent",
        since: Day = None,
        until: Day = None,
        days: Days = None,
        zone: Zone = "UTC",
    ) -> UsageReport:
        """Get the usage of ended runs on some days; each run counts once.

        `received` and `sent` are numbers of messages; they are null unless the groups are those of
        `agent`, `day` or both.
        """
        return await control.usage.report(_query(groupings(by), since, until, days, zone))

    @serve(api, UsageReports.times)
    async def times(
        since: Day = None,
        until: Day = None,
        days: Days = None,
        zone: Zone = "UTC",
        *,
        hours: Hours = False,
    ) -> list[DayTimes]:
        """Get for each day, or with `hours` each hour, runs, messages, and waiting times.

        `runs` have ended, `failed` of them without an answer that a person asked for.
        Times are of runs of chats, in seconds: median and 95th percentile.
        """
        query = _query((), since, until, days, zone)
        return await control.usage.times(replace(query, hours=hours))

    return api


def _query(
    by: tuple[Grouping, ...], since: str | None, until: str | None, days: int | None, zone: str
) -> UsageQuery:
    return UsageQuery(
        by=by,
        since=None if since is None else read_day("since", since),
        until=None if until is None else read_day("until", until),
        days=days,
        zone=zone,
    )
