"""The page of usage over time: runs, waiting times, tokens and cost, by agent, person, model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from starlette.exceptions import HTTPException
from starlette.routing import Route

from goclaw_py.model.errors import BadUsageQuery
from goclaw_py.runs.usage_report import DayTimes, Grouping, UsageQuery, UsageReport, UsageRow, Used
from goclaw_py.web.pages import charts
from goclaw_py.web.pages.charts import Chart, Series
from goclaw_py.web.pages.rendering import seconds, usd
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query

RANGES: Final = {"7d": 7, "30d": 30, "90d": 90}
"""How many days are shown. Runs are kept for 90 days."""

GROUPS: Final = (
    Grouping.AGENT,
    Grouping.SENDER,
    Grouping.MODEL,
    Grouping.JOB,
    Grouping.TRIGGER,
)
_SHOWN_GROUPS: Final = 100
_FILTERS: Final = ("range", "by", "tz")


def routes(service: PageServices) -> list[Route]:
    """Return the page."""
    control = service.control

    async def look(query: Query) -> Facts:
        days, zone = RANGES.get(query.get("range", ""), RANGES["7d"]), query.get("tz", "UTC")
        by = next((one for one in GROUPS if one == query.get("by")), Grouping.AGENT)
        try:
            asked = UsageQuery((by,), days=days, zone=zone)
            daily = UsageQuery((Grouping.DAY,), days=days, zone=zone)
        except BadUsageQuery as error:
            raise HTTPException(422, str(error)) from error
        found, used, times = await asyncio.gather(
            control.usage(asked), control.usage(daily), control.run_times(daily)
        )
        by_day = {row.group.get(Grouping.DAY): row.used for row in used.rows}
        shown = [(day, by_day.get(day.day.isoformat(), Used())) for day in times]
        rows = found.rows[:_SHOWN_GROUPS]
        return {
            "report": found,
            "rows": [(_label(row, by), row.used) for row in rows],
            "left_out": len(found.rows) - len(rows) + found.left_out,
            "by": by,
            "days": shown,
            "charts": _charts(shown),
            "range": next(name for name, number in RANGES.items() if number == days),
            "ranges": tuple(RANGES),
            "groups": GROUPS,
            "filters": {name: query[name] for name in _FILTERS if name in query},
            "named": _named(found, by),
        }

    return service.routes(Page("/usage", "usage", "Usage", look, _FILTERS, every_s=30.0))


def _label(row: UsageRow, by: Grouping) -> tuple[str, str]:
    """Return the value of a group, and the key of its display name, "" if it has none."""
    value = row.group.get(by) or ""
    match by:
        case Grouping.SENDER:
            return value or "nobody", value
        case Grouping.JOB:
            return row.names.get(by) or value or "no job", ""
        case _:
            return value or "unknown", ""


def _named(found: UsageReport, by: Grouping) -> list[str]:
    if by is not Grouping.SENDER:
        return []
    return [value for row in found.rows[:_SHOWN_GROUPS] if (value := row.group.get(by))]


def _charts(days: Sequence[tuple[DayTimes, Used]]) -> list[Chart]:
    labels = [day.day.isoformat() for day, _ in days]

    def whole(value: float) -> str:
        return f"{value:,.0f}"

    return [
        charts.bar_chart(
            "Runs, and failed ones",
            labels,
            [
                Series("runs", "good", [day.runs for day, _ in days]),
                Series("failed", "bad", [day.failed for day, _ in days]),
            ],
            whole,
        ),
        _times(
            "From a message to the first text: 95 % within, and median",
            labels,
            [day.first_text_s for day, _ in days],
        ),
        _times(
            "Waiting for a run to start: 95 % within, and median",
            labels,
            [day.wait_s for day, _ in days],
        ),
        charts.bar_chart(
            "Tokens", labels, [Series("", "good", [used.tokens for _, used in days])], whole
        ),
        charts.bar_chart(
            "Cost",
            labels,
            [Series("", "good", [float(used.cost_usd or 0) for _, used in days])],
            lambda value: usd(Decimal(value).quantize(Decimal("0.0001"))),
        ),
    ]


def _times(title: str, labels: Sequence[str], pairs: Sequence[tuple[float, float] | None]) -> Chart:
    """Return a chart of medians in front of 95th percentiles."""
    highs = Series("or less for 95 %", "idle", [pair and pair[1] for pair in pairs])
    medians = Series("or less for half", "good", [pair and pair[0] for pair in pairs])
    return charts.bar_chart(title, labels, [highs, medians], seconds)
