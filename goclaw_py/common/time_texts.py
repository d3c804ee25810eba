"""Points and lengths of time as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from goclaw_py.common.timezones import zone as zone_named
from goclaw_py.model.errors import UnknownZone


def at(instant: datetime, zone: str) -> str:
    """A point in time as people read it, with its zone."""
    return f"{local(instant, zone)} ({zone_or_utc(zone)[1]})"


def local(instant: datetime, zone: str) -> str:
    """A point in time on the clock of a zone, such as ``Tue 3 Mar 2026, 09:00``."""
    there = instant.astimezone(zone_or_utc(zone)[0])
    # Not by strftime, which writes names in the language of the process.
    day, month = _DAYS[there.weekday()], _MONTHS[there.month - 1]
    return f"{day} {there.day} {month} {there.year}, {_clock(there)}"


def friendly(instant: datetime, zone: str, now: datetime) -> str:
    """A point in time as people say it on the clock of a zone.

    ``today 08:59``, ``tomorrow 09:00``, ``yesterday 23:10``; within six days before or after now
    ``Fri 09:00``; anything else has its date.
    """
    here = zone_or_utc(zone)[0]
    there = instant.astimezone(here)
    days = (there.date() - now.astimezone(here).date()).days
    if not -7 < days < 7:
        return local(instant, zone)
    day = _NEAR.get(days) or _DAYS[there.weekday()]
    return f"{day} {_clock(there)}"


def named(instant: datetime, zone: str, now: datetime) -> str:
    """The same with the zone, for readers whose clock may be another one."""
    return f"{friendly(instant, zone, now)} ({zone_or_utc(zone)[1]})"


def weekday(instant: datetime, zone: str) -> str:
    """The day of the week and the time on the clock of a zone: ``Tue 09:00``."""
    there = instant.astimezone(zone_or_utc(zone)[0])
    return f"{_DAYS[there.weekday()]} {there:%H:%M}"


def _clock(there: datetime) -> str:
    return f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"


_NEAR: Final = {-1: "yesterday", 0: "today", 1: "tomorrow"}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = tuple("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())  # noqa: SIM905


def lasting(time: timedelta) -> str:
    """How long, in the largest unit of which there is a whole one: ``3 hours``."""
    for unit, length in _UNITS:
        if time >= length:
            number = time // length
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return "less than a second"


def left(time: timedelta) -> str:
    """How long something still lasts, by its two largest units: ``1 hour 30 minutes``.

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
    """A zone and its name; UTC where the name is none any more: words are no place to fail."""
    try:
        return zone_named(name), name
    except UnknownZone:
        return UTC, "UTC"
