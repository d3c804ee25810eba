"""Debian's cron, minute by minute, as its source has it: what ours is compared with.

It knows neither gaps nor repeated hours. Like the daemon it wakes up each minute, looks at the
clock on the wall, and compares it with the minute that it has worked off last (``virtual``).
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class NaiveCron:
    """One expression of five fields, numbers only, that is known to be right."""

    def __init__(self, expression: str) -> None:
        self.texts = expression.split()
        self.sets = [
            _expand(text, *limits) for text, limits in zip(self.texts, RANGES, strict=True)
        ]
        self.wildcard = self.texts[0].startswith("*") or self.texts[1].startswith("*")

    def matches(self, label: datetime) -> bool:
        minute, hour, _, month, _ = self.sets
        return (
            label.minute in minute
            and label.hour in hour
            and label.month in month
            and self.on_day(label.date())
        )

    def on_day(self, day: date) -> bool:
        length = calendar.monthrange(day.year, day.month)[1]
        weekday = day.isoweekday() % 7
        in_month = str(day.day) in self.sets[2].texts or (
            "L" in self.sets[2].texts and day.day == length
        )
        of_week = self.sets[4].texts
        nth = (day.day + 6) // 7
        in_week = any(
            f"{name}{suffix}" in of_week
            for name in ({weekday} | ({7} if not weekday else set()))
            for suffix in ("", f"#{nth}", *(["L"] if day.day > length - 7 else []))
        )
        if self.texts[2].startswith("*") or self.texts[4].startswith("*"):
            return in_month and in_week
        return in_month or in_week

    def firings(self, zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
        """Strictly after ``begin``, until ``end``; both are whole minutes of UTC."""
        virtual = _wall(begin, zone)
        now = begin
        while (now := now + MINUTE) <= end:
            clock = _wall(now, zone)
            ahead = (clock - virtual) // MINUTE
            if ahead > 180 or ahead <= -180:
                virtual = clock
                fires = self.matches(clock)
            elif ahead > 5:
                fires = self.wildcard and self.matches(clock)
                while virtual < clock:
                    virtual += MINUTE
                    fires = fires or (not self.wildcard and self.matches(virtual))
            elif ahead > 0:
                fires = False
                while virtual < clock:
                    virtual += MINUTE
                    fires = fires or self.matches(virtual)
            else:
                fires = self.wildcard and self.matches(clock)
            if fires:
                yield now


class _Set:
    """Terms of a field: numbers, and texts for those that are none."""

    def __init__(self) -> None:
        self.texts: set[str] = set()

    def __contains__(self, number: int) -> bool:
        return str(number) in self.texts


def _expand(text: str, low: int, high: int) -> _Set:
    found = _Set()
    for term in text.split(","):
        span, _, step = term.partition("/")
        if "#" in span or "L" in span:
            found.texts.add(span)
            continue
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        numbers = range(int(first), int(last or first) + 1, int(step or 1))
        found.texts.update(map(str, numbers))
    return found


def _wall(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def transitions(zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    """The instants at which the offset is another than a minute before; no two within a day."""
    day = timedelta(days=1)
    at, offset = begin, begin.astimezone(zone).utcoffset()
    while at < end:
        following = (at + day).astimezone(zone).utcoffset()
        if following != offset:
            minute = at
            while minute.astimezone(zone).utcoffset() == offset:
                minute += MINUTE
            yield minute
        at, offset = at + day, following


def utc(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)
