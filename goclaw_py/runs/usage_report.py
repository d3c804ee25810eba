"""What runs have used, added up for operators: by whom, for what, on which days.

The same rules hold for the settings of a question whether it comes from a terminal or over HTTP.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from typing import Final

from goclaw_py.common.timezones import zone
from goclaw_py.model.errors import BadUsageQuery, UnknownZone
from goclaw_py.model.run_events import Usage

MAX_DAYS: Final = 366
"""A question is about so many days at most; runs are kept for 90 (SPEC DB-5)."""

MAX_GROUPS: Final = 1000
"""An answer lists so many groups at most, those that cost most, and adds up the others."""

DEFAULT_DAYS: Final = 7

_FIRST: Final = date(1970, 1, 1)
_LAST: Final = date(9998, 12, 31)
"""Instants of days beyond these cannot be told in every zone."""

_DAY: Final = timedelta(days=1)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Grouping(StrEnum):
    """What usage is added up by.

    A run counts for whoever asked for it, itself or for a run above it, and for the job that it or
    a run above it works for. Each run counts once.
    """

    AGENT = "agent"
    JOB = "job"
    """By id; the name is the slug, as far as it is known."""
    SENDER = "sender"
    """``channel/account/id``, or ``api``; the name is that of somebody who was approved."""
    DAY = "day"
    """On which it started, as ``2026-01-31``."""
    MODEL = "model"
    TRIGGER = "trigger"
    LANE = "lane"


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A question about whole days: the last ``days``, or from ``since`` to ``until``.

    Both ends are meant. Without ``until`` today is the last day; without ``since`` there are
    ``days`` of them, ``DEFAULT_DAYS`` if that is not given either. Raises ``BadUsageQuery``.
    """

    by: tuple[Grouping, ...] = ()
    since: date | None = None
    until: date | None = None
    days: int | None = None
    zone: str = "UTC"
    """In which days begin. Those of budgets are in UTC (SPEC AGENT-5)."""

    def __post_init__(self) -> None:
        twice = [one for one in Grouping if self.by.count(one) > 1]
        if twice:
            raise BadUsageQuery("by", f"{twice[0].value} is given twice")
        if self.days is not None and self.since is not None:
            raise BadUsageQuery("days", "give days or since, not both")
        if self.days is not None and not 1 <= self.days <= MAX_DAYS:
            raise BadUsageQuery("days", f"from 1 to {MAX_DAYS}, not {self.days}")
        for key, day in (("since", self.since), ("until", self.until)):
            if day is not None and not _FIRST <= day <= _LAST:
                raise BadUsageQuery(key, f"a day from {_FIRST} to {_LAST}, not {day}")
        try:
            zone(self.zone)
        except UnknownZone as error:
            raise BadUsageQuery("tz", str(error)) from error
        if self.since is not None and self.until is not None:
            _check(self.since, self.until)


def groupings(text: str) -> tuple[Grouping, ...]:
    """Read names with commas between them; "" for none. Raises ``BadUsageQuery``."""
    names = [name.strip().lower() for name in text.split(",")] if text.strip() else []
    for name in names:
        if name not in set(Grouping):
            known = ", ".join(Grouping)
            raise BadUsageQuery("by", f"{name[:40]!r} is not one of {known}")
    return tuple(map(Grouping, names))


def read_day(key: str, text: str) -> date:
    """Read a date such as ``2026-01-31``. Raises ``BadUsageQuery`` for any other form."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise BadUsageQuery(key, f"a date such as 2026-01-31, not {text[:40]!r}")


@dataclass(frozen=True, slots=True)
class DaySpan:
    """Days without a gap between them. ``starts`` are their begins, and the end of the last one."""

    days: tuple[date, ...]
    starts: tuple[datetime, ...]

    def day_of(self, at: datetime) -> date | None:
        """The day of an instant; None if it is of none of them."""
        place = bisect_right(self.starts, at)
        return self.days[place - 1] if 0 < place <= len(self.days) else None


def span_of(query: UsageQuery, now: datetime) -> DaySpan:
    """The days that a question is about. Raises ``BadUsageQuery``."""
    until = query.until or now.astimezone(zone(query.zone)).date()
    days = DEFAULT_DAYS if query.days is None else query.days
    since = query.since or max(_FIRST, until - (days - 1) * _DAY)
    _check(since, until)
    all_days = tuple(since + n * _DAY for n in range((until - since).days + 1))
    return DaySpan(all_days, tuple(_start(day, query.zone) for day in (*all_days, until + _DAY)))


def _start(day: date, name: str) -> datetime:
    """When a day begins. One that clocks skip begins where the next one does, and is empty."""
    # The first pass of a repeated midnight; of one in a gap the instant of the change.
    return datetime.combine(day, time(), zone(name)).astimezone(UTC)


def _check(since: date, until: date) -> None:
    if since > until:
        raise BadUsageQuery("since", f"{since} is after the last day, {until}")
    if (until - since).days >= MAX_DAYS:
        raise BadUsageQuery("since", f"{since} to {until} is more than {MAX_DAYS} days")


@dataclass(frozen=True, slots=True)
class Used:
    """What some runs have used that have ended.

    Args:
        turns: Requests to models.
        cached_tokens: Those of the input that were read from a provider's cache.
        cost_usd: None if no run has a known price.
        unpriced: So many of the runs have used tokens whose price is not known.
    """

    runs: int = 0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal | None = None
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Those that went in and those that came out."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Used) -> Used:
        """Both together. A price that is not known counts as nothing beside one that is."""
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Used(
            runs=self.runs + other.runs,
            turns=self.turns + other.turns,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(known, Decimal(0)) if known else None,
            unpriced=self.unpriced + other.unpriced,
        )


NOTHING_USED: Final = Used()


def used_by(usage: Usage | None) -> Used:
    """What one run has used that has ended; None where its loop tells nothing."""
    if usage is None:
        return Used(runs=1)
    return Used(
        runs=1,
        turns=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost_usd=usage.cost_usd,
        unpriced=int(usage.cost_usd is None and usage.tokens > 0),
    )


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What the runs of one group have used.

    Args:
        group: Its value of each grouping; None is "nobody" or "nothing", such as the job of a chat.
        names: What people call some of these values, where that is something else.
    """

    group: dict[Grouping, str | None]
    used: Used
    names: dict[Grouping, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UsageTable:
    """Groups, those that cost most first; ``total`` is of all, also of those left out."""

    rows: tuple[UsageRow, ...]
    total: Used
    left_out: int = 0
    """How many groups are not among the rows."""


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The answer to a question: its days, and the groups in the order to be shown.

    Args:
        others: Those that are left out, together; None if none is.
    """

    by: tuple[Grouping, ...]
    since: date
    until: date
    zone: str
    rows: tuple[UsageRow, ...]
    total: Used
    left_out: int = 0
    others: Used | None = None


def report(query: UsageQuery, span: DaySpan, table: UsageTable) -> UsageReport:
    """Put an answer together. Where days are asked for, they come in their order."""
    rows = table.rows
    if Grouping.DAY in query.by:
        rows = tuple(sorted(rows, key=lambda row: row.group[Grouping.DAY] or ""))
    return UsageReport(
        by=query.by,
        since=span.days[0],
        until=span.days[-1],
        zone=query.zone,
        rows=rows,
        total=table.total,
        left_out=table.left_out,
        others=_rest(table) if table.left_out else None,
    )


def _rest(table: UsageTable) -> Used:
    """The total without the rows."""
    listed = total_of(row.used for row in table.rows)
    whole, cost = table.total, table.total.cost_usd
    return Used(
        runs=whole.runs - listed.runs,
        turns=whole.turns - listed.turns,
        input_tokens=whole.input_tokens - listed.input_tokens,
        output_tokens=whole.output_tokens - listed.output_tokens,
        cached_tokens=whole.cached_tokens - listed.cached_tokens,
        cost_usd=None if cost is None else cost - (listed.cost_usd or Decimal(0)),
        unpriced=whole.unpriced - listed.unpriced,
    )


def total_of(parts: Iterable[Used]) -> Used:
    """All together."""
    return reduce(Used.plus, parts, NOTHING_USED)


def costliest(rows: Iterable[UsageRow], limit: int) -> list[UsageRow]:
    """The first groups: by cost, then tokens, then runs, then their values, none before any."""

    def place(row: UsageRow) -> tuple[Decimal, int, int, list[tuple[bool, str]]]:
        values = [row.group[one] for one in Grouping if one in row.group]
        cost = Decimal(-1) if row.used.cost_usd is None else row.used.cost_usd
        named = [(value is not None, value or "") for value in values]
        return -cost, -row.used.tokens, -row.used.runs, named

    return sorted(rows, key=place)[:limit]
