"""Time zones by the exact names of the IANA database (rule R12 of docs/cron-rules.md)."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from goclaw_py.model.errors import UnknownZone

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
