"""Usage of runs and numbers of messages, summed up for operators: by agent, person, job or day.

Terminal and HTTP use the same rules for queries.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from math import ceil
from typing import Final

from goclaw_py.core.errors import BadUsageQuery, UnknownZone
from goclaw_py.core.ids import AgentName
from goclaw_py.core.run_events import Usage
from goclaw_py.core.time.zones import zone

MAX_DAYS: Final = 366
"""The largest number of days in a query; runs are kept for 90 (SPEC DB-5)."""

MAX_HOURLY_DAYS: Final = 3
"""The largest number of days whose times are given by hour."""

MAX_GROUPS: Final = 1000
"""The largest number of groups in a report, the costliest first; others are summed up."""

DEFAULT_DAYS: Final = 7

_FIRST: Final = date(1970, 1, 1)
_LAST: Final = date(9998, 12, 31)
"""Later instants do not exist in every time zone."""

_DAY: Final = timedelta(days=1)
_HOUR: Final = timedelta(hours=1)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Grouping(StrEnum):
    """What usage is grouped by.

    A run counts for the person and the job of the topmost run above it. Each run counts once.
    """

    AGENT = "agent"
    JOB = "job"
    """By id; the name is that of the job, of a deleted one its slug, as far as known."""
    SENDER = "sender"
    """``channel/account/id``, or ``api``; the name is that of an approved person."""
    DAY = "day"
    """The day of its start, as ``2026-01-31``."""
    MODEL = "model"
    TRIGGER = "trigger"
    LANE = "lane"


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A query about whole days: the last ``days``, or from ``since`` to ``until``, inclusive.

    Without ``until``, today is the last day; without ``since``, the number of days is ``days`` or
    ``DEFAULT_DAYS``. Raises ``BadUsageQuery``.
    """

    by: tuple[Grouping, ...] = ()
    since: date | None = None
    until: date | None = None
    days: int | None = None
    zone: str = "UTC"
    """The time zone of days. Those of budgets are in UTC (SPEC AGENT-5)."""
    hours: bool = False
    """Times by hour instead of by day, of at most ``MAX_HOURLY_DAYS``; reports ignore it."""

    def __post_init__(self) -> None:
        twice = [one for one in Grouping if self.by.count(one) > 1]
        if twice:
            raise BadUsageQuery("by", f"{twice[0].value} is given twice")
        if self.days is not None and self.since is not None:
            raise BadUsageQuery("days", "give days or since, not both")
        if self.days is not None and not 1 <= self.days <= MAX_DAYS:
            raise BadUsageQuery("days", f"must be from 1 to {MAX_DAYS}, not {self.days}")
        for key, day in (("since", self.since), ("until", self.until)):
            if day is not None and not _FIRST <= day <= _LAST:
                raise BadUsageQuery(key, f"must be a day from {_FIRST} to {_LAST}, not {day}")
        try:
            zone(self.zone)
        except UnknownZone as error:
            raise BadUsageQuery("tz", str(error)) from error
        if self.since is not None and self.until is not None:
            _check(self.since, self.until)


def groupings(text: str) -> tuple[Grouping, ...]:
    """Parse names separated by commas; "" for none. Raises ``BadUsageQuery``."""
    names = [name.strip().lower() for name in text.split(",")] if text.strip() else []
    for name in names:
        if name not in set(Grouping):
            known = ", ".join(Grouping)
            raise BadUsageQuery("by", f"{name[:40]!r} is not one of {known}")
    return tuple(map(Grouping, names))


def read_day(key: str, text: str) -> date:
    """Parse a date such as ``2026-01-31``. Raises ``BadUsageQuery`` for other forms."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise BadUsageQuery(key, f"must be a date such as 2026-01-31, not {text[:40]!r}")


@dataclass(frozen=True, slots=True)
class DaySpan:
    """Consecutive days, or hours. ``starts`` are their starts, and the end of the last one.

    ``days`` names them: dates, or the starts of hours.
    """

    days: tuple[date, ...]
    starts: tuple[datetime, ...]

    def day_of(self, at: datetime) -> date | None:
        """Return the day of an instant; None if it is outside."""
        place = bisect_right(self.starts, at)
        return self.days[place - 1] if 0 < place <= len(self.days) else None


def span_of(query: UsageQuery, now: datetime) -> DaySpan:
    """Return the days of a query. Raises ``BadUsageQuery``."""
    until = query.until or now.astimezone(zone(query.zone)).date()
    days = DEFAULT_DAYS if query.days is None else query.days
    since = query.since or max(_FIRST, until - (days - 1) * _DAY)
    _check(since, until)
    all_days = tuple(since + n * _DAY for n in range((until - since).days + 1))
    return DaySpan(all_days, tuple(_start(day, query.zone) for day in (*all_days, until + _DAY)))


def hours_of(span: DaySpan, now: datetime) -> DaySpan:
    """Return the hours of some days, up to that of ``now``. Raises ``BadUsageQuery``."""
    if len(span.days) > MAX_HOURLY_DAYS:
        raise BadUsageQuery("hours", f"at most {MAX_HOURLY_DAYS} days, not {len(span.days)}")
    first, end = span.starts[0], min(span.starts[-1], now)
    hours = max(1, ceil((end - first) / _HOUR))
    starts = tuple(first + n * _HOUR for n in range(hours + 1))
    return DaySpan(starts[:-1], starts)


def _start(day: date, name: str) -> datetime:
    """Return the start of a day. A day that clocks skip starts with the next one, and is empty."""
    # The first pass of a repeated midnight; of one in a gap the instant of the change.
    return datetime.combine(day, time(), zone(name)).astimezone(UTC)


def _check(since: date, until: date) -> None:
    if since > until:
        raise BadUsageQuery("since", f"{since} is after the last day, {until}")
    if (until - since).days >= MAX_DAYS:
        raise BadUsageQuery("since", f"{since} to {until} is more than {MAX_DAYS} days")


@dataclass(frozen=True, slots=True)
class Used:
    """The usage of some ended runs.

    Args:
        turns: Model requests.
        cached_tokens: Input tokens read from a provider's cache.
        cost_usd: None if no run has a known price.
        unpriced: The number of runs with tokens of unknown price.
        received: Messages from people and programs, commands included, at the time when they came;
            also those without a run. None if messages are not counted for this group.
        sent: Messages that channels have delivered, at that time; None as above.
    """

    runs: int = 0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal | None = None
    unpriced: int = 0
    received: int | None = None
    sent: int | None = None

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Used) -> Used:
        """Return the sum. An unknown price counts as zero beside a known one."""
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Used(
            runs=self.runs + other.runs,
            turns=self.turns + other.turns,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(known, Decimal(0)) if known else None,
            unpriced=self.unpriced + other.unpriced,
            received=_plus(self.received, other.received),
            sent=_plus(self.sent, other.sent),
        )


def _plus(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


NOTHING_USED: Final = Used()


def used_by(usage: Usage | None) -> Used:
    """Return the usage of an ended run; None if its loop reports none."""
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


MessageCounts = Mapping[tuple[date, AgentName | None], tuple[int, int]]
"""The messages received and sent on a day, by agent; None: they belong to no session."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of the runs of one group.

    Args:
        group: Its value of each grouping; None is "nobody" or "nothing", such as the job of a chat.
        names: Names for people of these values, where they differ.
    """

    group: dict[Grouping, str | None]
    used: Used
    names: dict[Grouping, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UsageTable:
    """Groups, the costliest first; ``total`` includes those that are left out."""

    rows: tuple[UsageRow, ...]
    total: Used
    left_out: int = 0
    """The number of groups that are left out."""


@dataclass(frozen=True, slots=True)
class DayTimes:
    """The ended runs that started on a day or in an hour, with usage and waiting times.

    The times, in seconds, are median and 95th percentile; None without such a run.

    Args:
        failed: Runs without an answer that no person asked for.
        wait_s: From the message, or from when a job or heartbeat was due, to the start of the run.
        first_text_s: From the message to the first text of the reply; of runs of chats.
        hour: The start of the hour; None if it is a whole day.
    """

    day: date
    runs: int = 0
    failed: int = 0
    wait_s: tuple[float, float] | None = None
    first_text_s: tuple[float, float] | None = None
    used: Used = NOTHING_USED
    hour: datetime | None = None


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The answer to a query: its days, and the groups in display order.

    Args:
        others: The sum of the groups that are left out; None if there are none.
    """

    by: tuple[Grouping, ...]
    since: date
    until: date
    zone: str
    rows: tuple[UsageRow, ...]
    total: Used
    left_out: int = 0
    others: Used | None = None


def report(
    query: UsageQuery, span: DaySpan, table: UsageTable, messages: MessageCounts
) -> UsageReport:
    """Return the report of a query; days are in order.

    Messages are counted by agent and day: for other groups only their total is known.
    """
    rows, total = table.rows, _with_messages(table.total, messages.values())
    if set(query.by) <= {Grouping.AGENT, Grouping.DAY}:
        rows = _counted(query.by, table, messages)
    if Grouping.DAY in query.by:
        rows = tuple(sorted(rows, key=lambda row: row.group[Grouping.DAY] or ""))
    return UsageReport(
        by=query.by,
        since=span.days[0],
        until=span.days[-1],
        zone=query.zone,
        rows=rows,
        total=total,
        left_out=table.left_out,
        others=_rest(rows, total) if table.left_out else None,
    )


def _counted(
    by: tuple[Grouping, ...], table: UsageTable, messages: MessageCounts
) -> tuple[UsageRow, ...]:
    """Return the groups with their messages, and then those that have messages but no run."""
    counts: dict[tuple[str | None, ...], list[tuple[int, int]]] = {}
    for (day, agent), count in messages.items():
        group = tuple(agent if one is Grouping.AGENT else day.isoformat() for one in by)
        counts.setdefault(group, []).append(count)
    rows = [
        replace(row, used=_with_messages(row.used, counts.pop(tuple(row.group.values()), [])))
        for row in table.rows
    ]
    if not table.left_out:
        rows += [
            UsageRow(dict(zip(by, group, strict=True)), _with_messages(NOTHING_USED, found))
            for group, found in sorted(counts.items(), key=lambda item: str(item[0]))
        ]
    return tuple(rows)


def _with_messages(used: Used, counts: Iterable[tuple[int, int]]) -> Used:
    pairs = list(counts)
    received, sent = (sum(pair[place] for pair in pairs) for place in (0, 1))
    return replace(used, received=received, sent=sent)


def with_messages(days: Iterable[DayTimes], messages: MessageCounts) -> list[DayTimes]:
    """Return days with the messages of each."""
    counts: dict[date, list[tuple[int, int]]] = {}
    for (day, _), count in messages.items():
        counts.setdefault(day, []).append(count)
    return [replace(one, used=_with_messages(one.used, counts.get(one.day, []))) for one in days]


def _rest(rows: Sequence[UsageRow], whole: Used) -> Used:
    """Return the total minus the rows."""
    listed = total_of(row.used for row in rows)
    cost = whole.cost_usd
    is_counted = listed.received is not None
    return Used(
        runs=whole.runs - listed.runs,
        turns=whole.turns - listed.turns,
        input_tokens=whole.input_tokens - listed.input_tokens,
        output_tokens=whole.output_tokens - listed.output_tokens,
        cached_tokens=whole.cached_tokens - listed.cached_tokens,
        cost_usd=None if cost is None else cost - (listed.cost_usd or Decimal(0)),
        unpriced=whole.unpriced - listed.unpriced,
        received=(whole.received or 0) - (listed.received or 0) if is_counted else None,
        sent=(whole.sent or 0) - (listed.sent or 0) if is_counted else None,
    )


def total_of(parts: Iterable[Used]) -> Used:
    """Return the sum."""
    return reduce(Used.plus, parts, NOTHING_USED)


def costliest(rows: Iterable[UsageRow], limit: int) -> list[UsageRow]:
    """Return the first groups by cost, then tokens, then runs, then values, None first."""

    def place(row: UsageRow) -> tuple[Decimal, int, int, list[tuple[bool, str]]]:
        values = [row.group[one] for one in Grouping if one in row.group]
        cost = Decimal(-1) if row.used.cost_usd is None else row.used.cost_usd
        named = [(value is not None, value or "") for value in values]
        return -cost, -row.used.tokens, -row.used.runs, named

    return sorted(rows, key=place)[:limit]


def percentiles(values: Iterable[float]) -> tuple[float, float] | None:
    """Return median and 95th percentile, interpolated as PostgreSQL does; None without values."""
    known = sorted(values)
    if not known:
        return None
    return _percentile(known, 0.5), _percentile(known, 0.95)


def _percentile(known: Sequence[float], share: float) -> float:
    place = (len(known) - 1) * share
    below = int(place)
    above = min(below + 1, len(known) - 1)
    return known[below] + (known[above] - known[below]) * (place - below)
