"""The page of usage over time: runs, messages, waiting times, tokens and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from starlette.exceptions import HTTPException
from starlette.routing import Route

from goclaw_py.core.errors import BadUsageQuery
from goclaw_py.runs.usage_report import DayTimes, Grouping, UsageQuery, UsageReport, UsageRow
from goclaw_py.web.pages.charts import Chart, Series, bar_chart
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

    async def load(query: Query) -> Facts:
        days, zone = RANGES.get(query.get("range", ""), RANGES["7d"]), query.get("tz", "UTC")
        by = next((one for one in GROUPS if one == query.get("by")), Grouping.AGENT)
        try:
            asked = UsageQuery((by,), days=days, zone=zone)
        except BadUsageQuery as error:
            raise HTTPException(422, str(error)) from error
        found, times = await asyncio.gather(control.usage.report(asked), control.usage.times(asked))
        rows = found.rows[:_SHOWN_GROUPS]
        return {
            "report": found,
            "rows": [(_label(row, by), row.used) for row in rows],
            "with_messages": all(row.used.received is not None for row in rows),
            "left_out": len(found.rows) - len(rows) + found.left_out,
            "by": by,
            "days": times,
            "charts": _charts(times),
            "range": next(name for name, number in RANGES.items() if number == days),
            "ranges": tuple(RANGES),
            "groups": GROUPS,
            "filters": {name: query[name] for name in _FILTERS if name in query},
            "named": _named(found, by),
        }

    page = Page(
        *("/usage", "usage", "Usage", load, _FILTERS, 30.0),
        is_cached=True,
        part="usage/page.html",
        frame="usage/frame.html",
    )
    return service.routes(page)


def _label(row: UsageRow, by: Grouping) -> tuple[str, str]:
    """Return the value of a group, and the key of its display name, "" if it has none."""
    value = row.group.get(by) or ""
    match by:
        case Grouping.SENDER:
            return value or "nobody", value
        case Grouping.JOB:
            return row.names.get(by) or value or "no job", ""
        case Grouping.AGENT:
            return value or "no agent", ""
        case _:
            return value or "unknown", ""


def _named(found: UsageReport, by: Grouping) -> list[str]:
    if by is not Grouping.SENDER:
        return []
    return [value for row in found.rows[:_SHOWN_GROUPS] if (value := row.group.get(by))]


def _charts(days: Sequence[DayTimes]) -> list[Chart]:
    labels = [day.day.isoformat() for day in days]

    def whole(value: float) -> str:
        return f"{value:,.0f}"

    return [
        bar_chart(
            "Runs, and failed ones",
            labels,
            [
                Series("runs", "good", [day.runs for day in days]),
                Series("failed", "bad", [day.failed for day in days]),
            ],
            whole,
        ),
        _times(
            "From a message to the first text: 95 % within, and median",
            labels,
            [day.first_text_s for day in days],
        ),
        _times(
            "Waiting for a run to start: 95 % within, and median",
            labels,
            [day.wait_s for day in days],
        ),
        bar_chart(
            "Messages received",
            labels,
            [Series("", "good", [day.used.received for day in days])],
            whole,
        ),
        bar_chart(
            "Messages sent", labels, [Series("", "good", [day.used.sent for day in days])], whole
        ),
        bar_chart("Tokens", labels, [Series("", "good", [day.used.tokens for day in days])], whole),
        bar_chart(
            "Cost",
            labels,
            [Series("", "good", [float(day.used.cost_usd or 0) for day in days])],
            lambda value: usd(Decimal(value).quantize(Decimal("0.0001"))),
        ),
    ]


def _times(title: str, labels: Sequence[str], pairs: Sequence[tuple[float, float] | None]) -> Chart:
    """Return a chart of medians in front of 95th percentiles."""
    highs = Series("or less for 95 %", "idle", [pair and pair[1] for pair in pairs])
    medians = Series("or less for half", "good", [pair and pair[0] for pair in pairs])
    return bar_chart(title, labels, [highs, medians], seconds)
