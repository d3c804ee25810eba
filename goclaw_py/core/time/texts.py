"""Times and durations in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from goclaw_py.core.errors import UnknownZone
from goclaw_py.core.time.zones import zone as zone_named


def at(instant: datetime, zone: str) -> str:
    """Return a time in a zone, with the name of the zone."""
    return f"{local(instant, zone)} ({zone_or_utc(zone)[1]})"


def local(instant: datetime, zone: str) -> str:
    """Return a time in a zone, such as ``Tue 3 Mar 2026, 09:00``."""
    there = instant.astimezone(zone_or_utc(zone)[0])
    # strftime would write names in the language of the process.
    day, month = _DAYS[there.weekday()], _MONTHS[there.month - 1]
    return f"{day} {there.day} {month} {there.year}, {_clock(there)}"


def friendly(instant: datetime, zone: str, now: datetime) -> str:
    """Return a time in a zone, with a relative day if it is near.

    ``today 08:59``, ``tomorrow 09:00``, ``yesterday 23:10``; within six days before or after now
    ``Fri 09:00``; anything else has its date, ``Mon 30 Nov 09:00``, and in another year the year.
    """
    here = zone_or_utc(zone)[0]
    there, today = instant.astimezone(here), now.astimezone(here).date()
    days = (there.date() - today).days
    day = _NEAR.get(days) or _DAYS[there.weekday()]
    if not -7 < days < 7:
        day = f"{day} {there.day} {_MONTHS[there.month - 1]}"
    if not -7 < days < 7 and there.year != today.year:
        day = f"{day} {there.year}"
    return f"{day} {_clock(there)}"


def named(instant: datetime, zone: str, now: datetime) -> str:
    """Return the same with the zone, for readers who may be in another one."""
    return f"{friendly(instant, zone, now)} ({zone_or_utc(zone)[1]})"


def weekday(instant: datetime, zone: str) -> str:
    """Return the day of the week and the time in a zone: ``Tue 09:00``."""
    there = instant.astimezone(zone_or_utc(zone)[0])
    return f"{_DAYS[there.weekday()]} {there:%H:%M}"


def _clock(there: datetime) -> str:
    return f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"


_NEAR: Final = {-1: "yesterday", 0: "today", 1: "tomorrow"}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = tuple("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())  # noqa: SIM905


def lasting(time: timedelta) -> str:
    """Return a duration in its largest unit, rounded down: ``3 hours``."""
    for unit, length in _UNITS:
        if time >= length:
            number = time // length
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return "less than a second"


def left(time: timedelta) -> str:
    """Return a remaining duration in its two largest units: ``1 hour 30 minutes``.

    Rounded up to whole minutes, so that two hours are still two hours when they are read.
    """
    unit = timedelta(minutes=1) if time > timedelta(minutes=1) else timedelta(seconds=1)
    rest = -(-time // unit) * unit
    parts: list[str] = []
    for _, length in _UNITS:
        if rest >= length and len(parts) < 2:
            parts.append(lasting(rest))
            rest %= length
    return " ".join(parts) or lasting(rest)


_UNITS: Final = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
    ("second", timedelta(seconds=1)),
)


def zone_or_utc(name: str) -> tuple[tzinfo, str]:
    """Return a zone and its name, or UTC for an unknown name: a text must not fail."""
    try:
        return zone_named(name), name
    except UnknownZone:
        return UTC, "UTC"
