"""The page of usage over time: runs, messages, waiting times, tokens and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Final
from urllib.parse import urlencode

from starlette.routing import Route

from goclaw_py.core.errors import BadUsageQuery
from goclaw_py.core.time.zones import zone
from goclaw_py.runs.usage_report import (
    MAX_HOURLY_DAYS,
    DayTimes,
    Grouping,
    UsageQuery,
    UsageReport,
    UsageRow,
)
from goclaw_py.web.pages.charts import Chart, Series, bar_chart
from goclaw_py.web.pages.parameters import wrong_field
from goclaw_py.web.pages.rendering import seconds, usd
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query

RANGES: Final = {"1d": 1, "3d": 3, "7d": 7, "30d": 30, "90d": 90}
"""How many days are shown, the fewest by hour. Runs are kept for 90 days."""

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
        days, name = RANGES.get(query.get("range", ""), RANGES["7d"]), query.get("tz", "UTC")
        by = next((one for one in GROUPS if one == query.get("by")), Grouping.AGENT)
        try:
            asked = UsageQuery((by,), days=days, zone=name, hours=days <= MAX_HOURLY_DAYS)
        except BadUsageQuery as error:
            wanted = "a time zone, such as Europe/Berlin"
            raise wrong_field("tz", "Time zone", name, wanted) from error
        found, times = await asyncio.gather(control.usage.report(asked), control.usage.times(asked))
        rows = found.rows[:_SHOWN_GROUPS]
        since = _ends(times[0], name)["from"]
        # The same digits everywhere on the page, so that amounts can be compared.
        digits = 2 if (found.total.cost_usd or 0) >= 1 else 4
        return {
            "report": found,
            "rows": [(*_label(row, by), _runs(row, by, since), row.used) for row in rows],
            "since": since,
            "with_messages": all(row.used.received is not None for row in rows),
            "left_out": len(found.rows) - len(rows) + found.left_out,
            "by": by,
            "days": times,
            "charts": _charts(times, name, digits),
            "digits": digits,
            "hourly": asked.hours,
            "labels": [_when(one, name) for one in times],
            "days_as_times": [_ends(one, name) for one in times],
            "range": next(one for one, number in RANGES.items() if number == days),
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


def _runs(row: UsageRow, by: Grouping, since: str) -> str:
    """Return the address of what a row counts, "" if no page lists it."""
    value = row.group.get(by)
    match by:
        case _ if not value:
            return ""
        case Grouping.JOB:
            return f"/jobs/{value}"
        case Grouping.MODEL:
            return ""
        case _:
            return "/runs?" + urlencode({"from": since, by.value: value})


def _named(found: UsageReport, by: Grouping) -> list[str]:
    if by is not Grouping.SENDER:
        return []
    return [value for row in found.rows[:_SHOWN_GROUPS] if (value := row.group.get(by))]


def _charts(times: Sequence[DayTimes], zone_name: str, digits: int) -> list[Chart]:
    labels = [_when(one, zone_name) for one in times]

    def counts(title: str, total: str, *series: Series) -> Chart:
        return bar_chart(title, total, labels, series, _whole)

    def added(values: Iterable[int | None]) -> str:
        return f"{sum(value or 0 for value in values):,}"

    runs, failed = [one.runs for one in times], [one.failed for one in times]
    sent = [one.used.sent for one in times]
    received = [one.used.received for one in times]
    messages = [(one or 0) + (other or 0) for one, other in zip(received, sent, strict=True)]
    tokens = [one.used.tokens for one in times]
    costs = [one.used.cost_usd or Decimal(0) for one in times]
    return [
        counts(
            "Runs",
            f"{added(runs)}, {added(failed)} failed",
            Series("runs", "told", runs),
            Series("failed", "bad", failed),
        ),
        _waits("Time to first text", labels, [one.first_text_s for one in times]),
        _waits("Waiting time", labels, [one.wait_s for one in times]),
        counts(
            "Messages",
            f"{added(received)} in, {added(sent)} out",
            Series("in and out", "idle", messages),
            Series("out", "told", sent),
        ),
        counts("Tokens", added(tokens), Series("tokens", "told", tokens)),
        bar_chart(
            "Cost",
            usd(sum(costs, Decimal(0)), digits),
            labels,
            [Series("", "told", [float(cost) for cost in costs])],
            lambda value: usd(Decimal(value).quantize(Decimal("0.0001")), digits),
        ),
    ]


def _when(one: DayTimes, zone_name: str) -> str:
    """Return the label of a day or an hour in the chosen time zone."""
    if one.hour is None:
        return f"{one.day.day} {one.day:%b}"
    at = one.hour.astimezone(zone(zone_name))
    return f"{at.day} {at:%b %H:%M}"


def _ends(one: DayTimes, zone_name: str) -> dict[str, str]:
    """Return the parameters of the timeline with a day or an hour."""
    since = one.hour or datetime.combine(one.day, time(), zone(zone_name))
    until = since + timedelta(hours=1) if one.hour else since + timedelta(days=1)
    # Days are those of the zone, of 23 to 25 hours.
    ends = {"from": since.astimezone(UTC), "to": until.astimezone(UTC)}
    return {name: f"{at:%Y-%m-%d %H:%M:%S}" for name, at in ends.items()}


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _waits(title: str, labels: Sequence[str], pairs: Sequence[tuple[float, float] | None]) -> Chart:
    """Return a chart of medians in front of 95th percentiles."""
    newest = next(
        (
            (label, pair)
            for label, pair in zip(reversed(labels), reversed(pairs), strict=True)
            if pair
        ),
        None,
    )
    # Medians of days have no median of all their runs.
    value = f"{newest[0]}: median {seconds(newest[1][0])}" if newest else ""
    highs = Series("or less for 95 %", "idle", [pair and pair[1] for pair in pairs])
    medians = Series("or less for half", "told", [pair and pair[0] for pair in pairs])
    return bar_chart(title, value, labels, [highs, medians], seconds, is_time=True)
