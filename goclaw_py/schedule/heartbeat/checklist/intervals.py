"""The intervals of checklist items (SPEC HB-3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import takewhile
from typing import Final
from zoneinfo import ZoneInfo

from goclaw_py.core.errors import BadInterval
from goclaw_py.core.time import durations
from goclaw_py.core.time.datetimes import instant_of
from goclaw_py.core.time.zones import label_of

FORMS: Final = (
    "every 2h, every 30 minutes, hourly, daily, weekly, daily 09:00, weekdays 9:00, "
    "weekends 10:00, monday, thursday 18:30"
)
"""Examples of what ``read_interval`` accepts."""

_LIKE_AN_INTERVAL: Final = re.compile(
    r"(?:every|each|daily|hourly|weekly|monthly|weekdays?|weekends?|(?:mon|tues|wednes|thurs|"
    r"fri|satur|sun)days?)\b(?:[^:\n]|:(?=[0-9])){0,40}:\s",
    re.IGNORECASE,
)

FRESH: Final = timedelta(minutes=30)
"""The usual time between two runs.

A new item may have been written since the last run, so a time of day within this time counts.
"""

_MOST_SLACK: Final = timedelta(minutes=5)
_NONE: Final = timedelta()
_DAY: Final = timedelta(days=1)
_LONG_AGO: Final = datetime(1, 1, 2, tzinfo=UTC)

# A colon ends it, but for one within a time.
_HEAD: Final = re.compile(
    r"((?:[a-z0-9,& ]|(?<=[0-9]):(?=[0-9]{2})){1,100}):(?![0-9])", re.ASCII | re.IGNORECASE
)
_TOKEN: Final = re.compile(r"[a-z]+|[0-9]+(?::[0-9]+)?|[,&]")
_TIME: Final = re.compile(r"[0-9]{1,2}:[0-9]{2}")
_LINKS: Final = frozenset({",", "&", "and", "at", "on"})
_WORDS: Final = {"hourly": timedelta(hours=1), "daily": _DAY, "weekly": 7 * _DAY}
_UNITS: Final = {
    name: length
    for names, length in (
        ("s sec secs second seconds", timedelta(seconds=1)),
        ("m min mins minute minutes", timedelta(minutes=1)),
        ("h hr hrs hour hours", timedelta(hours=1)),
        ("d day days", _DAY),
        ("w week weeks", 7 * _DAY),
    )
    for name in names.split()
}
_WEEKDAYS: Final = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip
_DAYS: Final = {
    **{
        name: frozenset({number})
        for number, day in enumerate(_WEEKDAYS)
        for name in (day, f"{day}s", day[:3])
    },
    **dict.fromkeys(("daily", "day"), frozenset(range(7))),
    **dict.fromkeys(("weekday", "weekdays"), frozenset(range(5))),
    **dict.fromkeys(("weekend", "weekends"), frozenset({5, 6})),
}


@dataclass(frozen=True, slots=True)
class FixedInterval:
    """A fixed time after the last check."""

    length: timedelta

    def is_due(self, last: datetime | None, *, now: datetime, zone: ZoneInfo) -> bool:  # noqa: ARG002
        """Return whether it is due; a new item is due immediately.

        It may be early by a tenth, at most five minutes: runs come on a grid, and an item that
        misses one by a second would wait for the next.
        """
        if last is None:
            return True
        # One that lies far ahead was written by a clock that was wrong.
        return abs(now - last) >= self.length - min(self.length / 10, _MOST_SLACK)


@dataclass(frozen=True, slots=True)
class DailyTimes:
    """Times of day on some days: due in the first heartbeat run from then on.

    Args:
        days: 0 is Monday.
        times: The latest one first.
    """

    days: frozenset[int]
    times: tuple[time, ...]

    def is_due(self, last: datetime | None, *, now: datetime, zone: ZoneInfo) -> bool:
        """Return whether such a time was after the last check.

        A new item is due if the time was within ``FRESH``; otherwise it waits for the next.
        """
        latest = self.latest(now, zone)
        return now - latest < FRESH if last is None else latest > last

    def latest(self, now: datetime, zone: ZoneInfo) -> datetime:
        """Return the last of its times that is not after ``now``.

        A time that clocks skip is the first instant after the gap; of one that occurs twice the
        first counts, as in jobs.
        """
        today = label_of(now, zone).date()
        # In a repeated hour clocks may show yesterday although today has begun.
        for back in range(-1, 9):
            day = today - back * _DAY
            if day.weekday() not in self.days:
                continue
            for each in self.times:
                at = instant_of(datetime.combine(day, each), zone, now=_LONG_AGO)
                if at <= now:
                    return at
        raise AssertionError("every day of the week was within nine days")


Interval = FixedInterval | DailyTimes


@dataclass(frozen=True, slots=True)
class Timed:
    """A text that begins with an interval.

    Args:
        words: The interval as written.
        rest: The text after it.
    """

    words: str
    interval: Interval
    rest: str


def read_interval(text: str) -> Timed | None:
    """Parse one of ``FORMS`` with a colon, ignoring case; None for anything else.

    All blanks in the text are single spaces. An invalid interval, such as ``every 0h:``, is text:
    an item is better checked too often than never.
    """
    found = _HEAD.match(text)
    if found is None:
        return None
    head = found[1].lower()
    words = [word for word in _TOKEN.findall(head) if word not in _LINKS]
    interval = _clock(words) or _span(words)
    if interval is None:
        return None
    return Timed(found[1].strip(), interval, text[found.end() :])


def _clock(words: list[str]) -> DailyTimes | None:
    """Parse ``[every] <day>… <time>…``."""
    if words and words[0] == "every":
        words = words[1:]
    names = list(takewhile(_DAYS.__contains__, words))
    times = words[len(names) :]
    if not names or not times:
        return None
    if not all(_TIME.fullmatch(each) for each in times):
        return None
    days = frozenset(day for name in names for day in _DAYS[name])
    try:
        read = {time.fromisoformat(f"{each:0>5}") for each in times}
    except ValueError:
        return None
    return DailyTimes(days, tuple(sorted(read, reverse=True)))


def _span(words: list[str]) -> FixedInterval | None:
    """Parse ``every 2h``, ``every 1 h 30 min``, ``every hour``, ``hourly``."""
    match words:
        case [word] if word in _WORDS:
            return FixedInterval(_WORDS[word])
        case ["every", unit] if unit in _UNITS:
            return FixedInterval(_UNITS[unit])
        case ["every", *parts] if parts and len(parts) % 2 == 0:
            pairs = list(zip(parts[::2], parts[1::2], strict=True))
        case _:
            return None
    if not all(number.isdigit() and len(number) < 10 and unit in _UNITS for number, unit in pairs):
        return None
    # A product beyond what a timedelta holds is longer than any interval may be.
    try:
        length = sum((int(number) * _UNITS[unit] for number, unit in pairs), _NONE)
        return FixedInterval(durations.in_range(length, " ".join(words)))
    except (BadInterval, OverflowError):
        return None


def is_like_interval(text: str) -> bool:
    """Return whether an item begins like one with an interval: ``every two hours: …``.

    If it has none, its author meant one that is not understood.
    """
    return _LIKE_AN_INTERVAL.match(text) is not None
