"""Times and durations in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from math import floor
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
    Seconds are left out, as in what people tell each other.
    """
    here = zone_or_utc(zone)[0]
    there, today = instant.astimezone(here), now.astimezone(here).date()
    days = (there.date() - today).days
    day = _NEAR.get(days) or _DAYS[there.weekday()]
    if not -7 < days < 7:
        day = f"{day} {there.day} {_MONTHS[there.month - 1]}"
    if not -7 < days < 7 and there.year != today.year:
        day = f"{day} {there.year}"
    return f"{day} {there:%H:%M}"


def named(instant: datetime, zone: str, now: datetime) -> str:
    """Return the same with the zone, for readers who may be in another one."""
    return f"{friendly(instant, zone, now)} ({zone_or_utc(zone)[1]})"


def for_reader(instant: datetime, zone: str, own: str, now: datetime) -> str:
    """Return a time in the ``zone`` of its reader, "" if that is not known.

    ``own`` is the zone of what the time belongs to, in which people give its times: where clocks
    there show another time, that is added.
    """
    if not zone:
        return named(instant, own, now)
    here, there = weekday(instant, zone), weekday(instant, own)
    other = "" if here == there else f" ({there} in {zone_or_utc(own)[1]})"
    return f"{friendly(instant, zone, now)}{other}"


@dataclass(frozen=True, slots=True)
class ChatZone:
    """The time zone in which a chat reads times (SPEC CMD-5).

    Where nobody has chosen one, people cannot know it: each sentence with a time names it, and
    below a list one line does.
    """

    name: str
    is_chosen: bool = True

    def when(self, instant: datetime, now: datetime) -> str:
        """Return a time in a sentence."""
        return (friendly if self.is_chosen else named)(instant, self.name, now)

    def note(self, lines: Sequence[str]) -> list[str]:
        """Return the last line of a list, if it has times and needs one."""
        if self.is_chosen or not any(_CLOCK.search(line) for line in lines):
            return []
        return [f"Times are in {zone_or_utc(self.name)[1]}. To change that: /timezone Europe/Paris"]


_CLOCK: Final = re.compile(r"\b\d\d:\d\d\b")


def weekday(instant: datetime, zone: str) -> str:
    """Return the day of the week and the time in a zone: ``Tue 09:00``."""
    there = instant.astimezone(zone_or_utc(zone)[0])
    return f"{_DAYS[there.weekday()]} {there:%H:%M}"


def _clock(there: datetime) -> str:
    return f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"


_NEAR: Final = {-1: "yesterday", 0: "today", 1: "tomorrow"}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = tuple("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())  # noqa: SIM905


def duration(seconds: float | None) -> str:
    """Return a duration in its two largest units, rounded: ``0.42 s``, ``1.5 s``, ``3 min 5 s``.

    The only one that formats a measured duration; "" for None. A negative one counts as zero.
    """
    if seconds is None:
        return ""
    seconds = max(seconds, 0.0)
    if seconds < 9.95:
        return f"{round(seconds, 1 if seconds >= 0.995 else 2):g} s"
    for (size, unit), (part_size, part) in pairwise(_UNITS):
        parts = _nearest(seconds / part_size)
        count, rest = divmod(parts, size // part_size)
        if count:
            return f"{count} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{_nearest(seconds)} s"


def rough(seconds: float) -> str:
    """Return a duration in one unit, rounded: ``42 s``, ``90 min``, ``36 h``, ``3 d``.

    Hours begin at two, days at two: below that the smaller unit says more. ``app.js`` has the same
    function for pages, and both pass the same cases.
    """
    for size, unit, below in _ROUGH:
        count = _nearest(max(seconds, 0.0) / size)
        if count < below:
            return f"{count} {unit}"
    return f"{_nearest(seconds / _DAY_S)} d"


def age(at: datetime, now: datetime) -> str:
    """Return how far an instant is from now: ``3 min ago``, ``now``, ``in 24 h``."""
    seconds = (now - at).total_seconds()
    text = rough(abs(seconds))
    if text == "0 s":
        return "now"
    return f"{text} ago" if seconds > 0 else f"in {text}"


def _nearest(number: float) -> int:
    """Round a half up, as browsers do; ``round`` would round 2.5 to 2."""
    return floor(number + 0.5)


_DAY_S: Final = 86_400
_UNITS: Final = ((_DAY_S, "d"), (3600, "h"), (60, "min"), (1, "s"))
_ROUGH: Final = ((1, "s", 60), (60, "min", 120), (3600, "h", 48))


def zone_or_utc(name: str) -> tuple[tzinfo, str]:
    """Return a zone and its name, or UTC for an unknown name: a text must not fail."""
    try:
        return zone_named(name), name
    except UnknownZone:
        return UTC, "UTC"
