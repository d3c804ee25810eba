"""Points in time as people and programs write and read them (SPEC CRON-1, CRON-2)."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from goclaw_py.core.errors import BadMoment, PastMoment
from goclaw_py.core.time import durations
from goclaw_py.core.time.texts import duration
from goclaw_py.core.time.zones import change_at, label_of, passes
from goclaw_py.core.time.zones import zone as zone_named

FURTHEST: Final = timedelta(days=36_525)
"""The latest allowed time: a hundred years from now."""

FORMS: Final = (
    "2026-02-25 08:00, 2026-02-25T08:00:00+01:00, 18:30, today 18:30, tomorrow 9:00, "
    "monday 9:00, in 20m, in 1h30m"
)
"""Examples of what ``parse_moment`` accepts."""

_DAY: Final = timedelta(days=1)
_NONE: Final = timedelta()
_ISO: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[t ](\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?) ?(z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)
_CLOCK: Final = re.compile(r"(?:([a-z]+) )?(?:at )?(\d{1,2}:\d{2}(?::\d{2})?)", re.ASCII)
_DATE: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)", re.ASCII)
_HOUR: Final = re.compile(r"(?<![\d:+-])(\d{1,2}):(\d{2})(?!\d)", re.ASCII)
_LIKE_SPAN: Final = re.compile(r"in (-?\d{1,9}(?:[.,]\d{1,9})?[smhd]?)", re.ASCII)
_SPAN: Final = re.compile(r"(\d{1,9}) ?([a-z]+) ?", re.ASCII)
_IN: Final = re.compile(rf"in ((?:{_SPAN.pattern})+)", re.ASCII)
_WEEKDAYS: Final = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip
_UNITS: Final = {
    timedelta(seconds=1): ("s", "sec", "secs", "second", "seconds"),
    timedelta(minutes=1): ("m", "min", "mins", "minute", "minutes"),
    timedelta(hours=1): ("h", "hr", "hrs", "hour", "hours"),
    timedelta(days=1): ("d", "day", "days"),
    timedelta(days=7): ("w", "week", "weeks"),
}
_UNIT: Final = {name: length for length, names in _UNITS.items() for name in names}


def parse_moment(text: str, *, now: datetime, zone: str, also: str = "") -> datetime:
    """Parse one of ``FORMS``; the result is in UTC and later than ``now``.

    A time without an offset is in ``zone``, one without a date is the next such time. ``in 1d`` is
    24 hours, also on a day with 23. A time that clocks skip is the first instant after the gap; of
    one that occurs twice it is the first, or the second if the first has passed.

    Raises ``BadMoment``, for past times with the present time, the text and the difference, and
    ``UnknownZone``. The error for an unreadable text lists ``FORMS``, and what the caller ``also``
    reads.
    """
    here = zone_named(zone)
    plain = " ".join(text.lower().split()) if len(text) <= 100 else ""
    try:
        at = _written(plain, now, here) or _by_clock(plain, now, here) or _in(plain, now)
    except OverflowError:
        raise BadMoment(f"{_shown(text)}: that is beyond the calendar") from None
    except ValueError:
        at = None
    if at is None:
        raise BadMoment(
            f"{_shown(text)} is not a time that I understand{why_not(plain)}; write one of: "
            + ", ".join(filter(None, (FORMS, also)))
        )
    return ahead(at, now=now, zone=zone, shown=text)


def clock_change(text: str, at: datetime, *, zone: str) -> str:
    """Say that a time of day in ``text`` does not exist on its day in ``zone``, or occurs twice.

    ``at`` is what ``parse_moment`` made of it. "" if the clocks do not change then.
    """
    given, written = _HOUR.search(text), _ISO.fullmatch(" ".join(text.lower().split()))
    here = at.astimezone(zone_named(zone))
    if given is None or (written is not None and written[3]):
        return ""
    if (int(given[1]), int(given[2])) != (here.hour, here.minute):
        return f"clocks in {zone} skip {given[0]} on that day: it is {here:%H:%M}"
    if here.replace(fold=0).utcoffset() == here.replace(fold=1).utcoffset():
        return ""
    which = "second" if here.fold else "first"
    return f"clocks in {zone} show {given[0]} twice on that day: it is the {which} time"


def strict_moment(text: str, *, now: datetime, zone: str = "UTC") -> datetime:
    """Parse ISO 8601 with an offset; the result is in UTC and later than ``now``.

    Raises ``BadMoment``, which shows the present time in ``zone`` if the offset is missing.
    """
    return ahead(any_moment(text, now=now, zone=zone), now=now, zone=zone, shown=text)


def any_moment(text: str, *, now: datetime, zone: str = "UTC") -> datetime:
    """Parse ISO 8601 with an offset, also of the past; the result is in UTC.

    Raises ``BadMoment``, like ``strict_moment``.
    """
    found = _ISO.fullmatch(text.strip().lower()) if len(text) <= 100 else None
    try:
        at = found and _iso(found)
    except (ValueError, OverflowError):
        at = None
    here = now.astimezone(zone_named(zone)).isoformat(timespec="seconds")
    if at is None:
        raise BadMoment(
            f"{_shown(text)} is no time in ISO 8601 with its offset{why_not(text[:100].lower())}; "
            f"now is {here} ({zone})"
        )
    if at.tzinfo is None:
        raise BadMoment(
            f"{_shown(text)} has no offset, so nobody knows when that is: write it like now, "
            f"which is {here} ({zone})"
        )
    return at.astimezone(UTC)


def why_not(plain: str) -> str:
    """Return the invalid part of a text, such as ``: there is no month 13``, or ""."""
    reason = ""
    if found := _DATE.match(plain):
        year, month, day = (int(number) for number in found.groups())
        if not 1 <= month <= 12:
            reason = f"there is no month {month}"
        elif year and not 1 <= day <= monthrange(year, month)[1]:
            reason = f"month {month} of {year} has no day {day}"
        elif found.end() == len(plain):
            reason = f"the time of day is missing, such as {plain} 09:00"
    if not reason and (found := _HOUR.search(plain)):
        hour, minute = int(found[1]), int(found[2])
        if hour > 23:
            reason = f"there is no hour {hour}" + (", midnight is 00:00" if hour == 24 else "")
        elif minute > 59:
            reason = f"there is no minute {minute}"
    if not reason and (found := _LIKE_SPAN.fullmatch(plain)):
        reason = durations.why_not(found[1])
    return f": {reason}" if reason else ""


def ahead(at: datetime, *, now: datetime, zone: str, shown: str = "") -> datetime:
    """Return a point in time if it is in the future and within reach. Raises ``BadMoment``.

    ``PastMoment`` if it is in the past.
    """
    given = f"{_shown(shown)}: " if shown else ""
    if at <= now:
        raise PastMoment(
            f"{given}that time is over: given {local_text(at, zone)}, now "
            f"{local_text(now, zone)}, which is {duration((now - at).total_seconds())} later"
        )
    if at - now > FURTHEST:
        years = FURTHEST // timedelta(days=365)
        raise BadMoment(f"{given}that is too far ahead, at most {years} years are allowed")
    return at


def local_text(instant: datetime, zone: str) -> str:
    """Return a local time: ``2026-02-25 08:00:00 IST``. Raises ``UnknownZone``.

    Zones without an abbreviation show their offset.
    """
    there = instant.astimezone(zone_named(zone))
    return f"{there.replace(tzinfo=None, microsecond=0)} {there.tzname()}"


def instant_of(label: datetime, zone: ZoneInfo, *, now: datetime) -> datetime:
    """Return the instant of a local time, in UTC; gaps and repetitions as in ``parse_moment``."""
    if found := passes(label, zone):
        return next((each for each in found if each > now), found[0])
    change = change_at(label, zone)
    assert change is not None, "a label without an instant is in a gap"
    return change.at


def _written(plain: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    found = _ISO.fullmatch(plain)
    if found is None:
        return None
    at = _iso(found)
    return instant_of(at, zone, now=now) if at.tzinfo is None else at.astimezone(UTC)


def _iso(found: re.Match[str]) -> datetime:
    """Return what ``_ISO`` has matched; naive without an offset. Raises ``ValueError``."""
    day, clock, offset = found.groups()
    at = datetime.combine(date.fromisoformat(day), _time(clock))
    if at.year in (MINYEAR, MAXYEAR):
        raise ValueError("such a time does not exist in every zone")
    if offset is None:
        return at
    return datetime.fromisoformat(f"{at.isoformat()}{offset.upper()}")


def _by_clock(plain: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Parse ``[today|tomorrow|<weekday>] [at] H:MM[:SS]``."""
    found = _CLOCK.fullmatch(plain)
    if found is None:
        return None
    word, clock = found[1] or "", _time(found[2])
    today = label_of(now, zone).date()
    match word:
        case "today":
            return instant_of(datetime.combine(today, clock), zone, now=now)
        case "tomorrow":
            return instant_of(datetime.combine(today + _DAY, clock), zone, now=now)
        case "" | "at":
            days, again = 0, 1
        case _:
            weekdays = [name for name in _WEEKDAYS if word in (name, name[:3])]
            if not weekdays:
                return None
            days, again = (_WEEKDAYS.index(weekdays[0]) - today.weekday()) % 7, 7
    at = instant_of(datetime.combine(today + days * _DAY, clock), zone, now=now)
    if at > now:
        return at
    return instant_of(datetime.combine(today + (days + again) * _DAY, clock), zone, now=now)


def _in(plain: str, now: datetime) -> datetime | None:
    """Parse ``in 20m``, ``in 1h30m``, ``in 2 hours``."""
    found = _IN.fullmatch(plain)
    if found is None:
        return None
    spans = _SPAN.findall(found[1])
    if any(unit not in _UNIT for _, unit in spans):
        return None
    span = sum((int(number) * _UNIT[unit] for number, unit in spans), _NONE)
    return (now + min(span, FURTHEST + _DAY)).astimezone(UTC)


def _time(clock: str) -> time:
    """Parse a time of day. Raises ``ValueError``."""
    hour, _, rest = clock.partition(":")
    return time.fromisoformat(f"{hour:0>2}:{rest}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
