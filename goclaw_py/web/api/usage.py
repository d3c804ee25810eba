"""``/api/usage``: what runs have used, added up (SPEC OPS-1)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from goclaw_py.ports.control import Control
from goclaw_py.runs.usage_report import (
    MAX_DAYS,
    Grouping,
    UsageQuery,
    UsageReport,
    groupings,
    read_day,
)
from goclaw_py.web.api.wire import dump

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


def usage_routes(control: Control) -> APIRouter:
    """The routes below ``/api/usage``."""
    api = APIRouter()

    @api.get("", response_model=UsageReport)
    async def usage(
        by: By = "agent",
        since: Day = None,
        until: Day = None,
        days: Days = None,
        zone: Zone = "UTC",
    ) -> Response:
        """What the runs of some days have used, as far as they have ended; each counts once."""
        query = UsageQuery(
            by=groupings(by),
            since=None if since is None else read_day("since", since),
            until=None if until is None else read_day("until", until),
            days=days,
            zone=zone,
        )
        report = dump(UsageReport, await control.usage(query))
        return Response(report, media_type="application/json")

    return api
