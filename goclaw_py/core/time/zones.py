"""Time zones by the exact names of the IANA database (rule R12 of docs/cron-rules.md)."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from goclaw_py.core.errors import UnknownZone

_ABBREVIATIONS: Final[Mapping[str, str]] = {
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "CST6CDT": "America/Chicago",
    "EET": "Europe/Athens",
    "EEST": "Europe/Athens",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "EST5EDT": "America/New_York",
    "BST": "Europe/London",
    "GMT0": "UTC",
    "HST": "Pacific/Honolulu",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MET": "Europe/Paris",
    "MSK": "Europe/Moscow",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "MST7MDT": "America/Denver",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "PST8PDT": "America/Los_Angeles",
    "WET": "Europe/Lisbon",
    "WEST": "Europe/Lisbon",
    "Z": "UTC",
}
"""Ambiguous abbreviations, with the likeliest meaning.

Some are in the database, with other clocks than people expect: EST has no summer time.
"""

_OTHER: Final = frozenset({"localtime", "Factory", "posixrules"})
_OFFSET: Final = re.compile(r"(?:UTC|GMT|Z)?[+\u2212-]?[0-9]{1,2}(?::?[0-9]{2})?")


def utc_day(instant: datetime) -> datetime:
    """Return the start of its day in UTC: budgets are per day (SPEC AGENT-5)."""
    return datetime.combine(instant.astimezone(UTC), time(), UTC)


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """Return the zone with this exact name. Raises ``UnknownZone`` with a hint."""
    # Some systems open any file for a name, and some ignore its case.
    if name not in _names():
        raise UnknownZone(name, _hint(name))
    return ZoneInfo(name)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    """Return all names, which are those of the system's or ``tzdata``'s files."""
    return frozenset(
        name
        for name in zoneinfo.available_timezones()
        if name not in _OTHER
        and name not in _ABBREVIATIONS
        and not name.startswith(("posix/", "right/"))
        and not _OFFSET.fullmatch(name)
    )


def _hint(name: str) -> str:
    """Return what may have been meant; "" if unknown."""
    if place := _ABBREVIATIONS.get(name.upper()):
        return f"abbreviations have several meanings; name a place, such as {place}"
    if _OFFSET.fullmatch(name):
        return "an offset knows no summer time; name a place, such as Europe/Berlin, or UTC"
    plain = name.strip().lower().replace(" ", "_")[:64]
    by_lower = {known.lower(): known for known in _names()}
    found = by_lower.get(plain.removeprefix("posix/").removeprefix("right/"))
    if found:
        return f"did you mean {found}?"
    by_place = {known.lower().rpartition("/")[2]: known for known in sorted(_names())}
    near = [by_place[plain]] if plain in by_place else []
    near += [by_lower[each] for each in difflib.get_close_matches(plain, by_lower, 3, 0.7)]
    near += [by_place[each] for each in difflib.get_close_matches(plain, by_place, 2, 0.8)]
    if near:
        return f"did you mean {', '.join(dict.fromkeys(near[:3]))}?"
    return "name a place of the IANA database, such as Europe/Berlin, or UTC"


# Clock changes: which instants have a local time, and what happens when clocks change.
#
# A *label* is a local time, a naive datetime; an *instant* is timezone-aware in UTC. Time zones do
# not list their changes, so these are found by comparing offsets. Changes may have any size: Lord
# Howe's are of 30 minutes, Troll's of two hours.
#
# Source: rules R5 to R9 of docs/cron-rules.md.

NARROW: Final = timedelta(hours=3)
"""The largest change that cron treats as daylight saving.

It catches up over a smaller gap, and does not repeat in one of up to this; larger changes count as
a clock that was set.
"""

_NONE: Final = timedelta()
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of clocks at an instant, by ``shift``: forward if it is positive.

    Args:
        begins: The first label after it.
    """

    at: datetime
    begins: datetime
    shift: timedelta

    @property
    def ends(self) -> datetime:
        """Return the label at which the missing or repeated labels end."""
        return self.begins - min(self.shift, _NONE)


def label_of(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time; ``fold`` is 1 in the second pass of a repeated time."""
    return instant.astimezone(zone).replace(tzinfo=None)


def passes(label: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return the instants with this label: one, none in a gap, two in a repeated time."""
    early, late = _offsets(label, zone)
    if early == late:
        return ((label - early).replace(tzinfo=UTC, fold=0),)
    if early < late:
        return ()
    return tuple((label - offset).replace(tzinfo=UTC, fold=0) for offset in (early, late))


def change_at(label: datetime, zone: ZoneInfo) -> ClockChange | None:
    """Return the change that makes this label missing or repeated; None if it is neither."""
    early, late = _offsets(label, zone)
    if early == late:
        return None
    low, high = sorted((label - offset).replace(tzinfo=UTC, fold=0) for offset in (early, late))
    # In a gap the earlier of these is before the change and the later one after it; a repeated
    # label has its first pass before and its second one after it.
    return change_between(low, high, zone)


def change_between(before: datetime, after: datetime, zone: ZoneInfo) -> ClockChange | None:
    """Return the change between two instants, None if their offsets are equal.

    Both are whole seconds, with at most one change between them.
    """
    old, new = _offset(before, zone), _offset(after, zone)
    if old == new:
        return None
    low, high = 0, (after - before) // _SECOND
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(before + middle * _SECOND, zone) == old:
            low = middle
        else:
            high = middle
    at = before + high * _SECOND
    return ClockChange(at, label_of(at, zone).replace(fold=0), new - old)


def _offsets(label: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the offsets before and after the change at a label; equal without a change."""
    return (
        label.replace(tzinfo=zone, fold=0).utcoffset() or _NONE,
        label.replace(tzinfo=zone, fold=1).utcoffset() or _NONE,
    )


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or _NONE
