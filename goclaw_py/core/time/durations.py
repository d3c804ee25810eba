"""Durations as people write and read them (SPEC CRON-1)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from goclaw_py.core.errors import BadInterval

LONGEST: Final = timedelta(days=3660)
MILLISECOND: Final = timedelta(milliseconds=1)

_FORM: Final = re.compile(r"([0-9]+)([smhd])")
_UNITS: Final = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": MILLISECOND,
}
_FORM_WORDS: Final = "a whole number and one of s, m, h, d without blanks"
_LIKE_ONE: Final = re.compile(r"([+-]?)([0-9]{1,9})([.,][0-9]{1,9})?([A-Za-z]*)")
POSITIVE: Final = 'the interval must be positive, such as "5m"'
_NAMES: Final = {"d": "day", "h": "hour", "m": "minute", "s": "second", "ms": "millisecond"}


def read(text: str) -> timedelta:
    """Parse ``<integer><s|m|h|d>``. Raises ``BadInterval``."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise _bad(text, why_not(text))
    digits, unit = found[1].lstrip("0") or "0", found[2]
    # A number of a thousand digits is no integer for Python, and 10**12 days are no timedelta.
    if len(digits) > 12 or int(digits) > LONGEST // _UNITS[unit]:
        raise _too_long(text)
    return in_range(int(digits) * _UNITS[unit], text)


def milliseconds(count: int) -> timedelta:
    """Return an interval in milliseconds. Raises ``BadInterval``."""
    # Neither a text nor a timedelta can be made of any integer that JSON may hold.
    if count > LONGEST // MILLISECOND:
        raise _too_long("every_ms")
    return in_range(max(count, 0) * MILLISECOND, f"{max(count, -LONGEST // MILLISECOND)} ms")


def in_range(interval: timedelta, shown: str) -> timedelta:
    """Return an interval that a job may have. Raises ``BadInterval``."""
    if interval <= timedelta():
        raise _bad(shown, POSITIVE)
    if interval > LONGEST:
        raise _too_long(shown)
    if interval % MILLISECOND:
        raise _bad(shown, "an interval is a whole number of milliseconds")
    return interval


def text_of(interval: timedelta) -> str:
    """Return it in the largest unit that divides it: ``90m``, ``1500ms``."""
    number, unit = _parts(interval)
    return f"{number}{unit}"


def in_words(interval: timedelta) -> str:
    """Return words: ``every day``, ``every 90 minutes``."""
    number, unit = _parts(interval)
    return f"every {_NAMES[unit]}" if number == 1 else f"every {number} {_NAMES[unit]}s"


def _parts(interval: timedelta) -> tuple[int, str]:
    unit = next((unit for unit, length in _UNITS.items() if not interval % length), "ms")
    return interval // _UNITS[unit], unit


def why_not(text: str) -> str:
    """Return what is wrong with a text that is not an interval, and what to write."""
    found = _LIKE_ONE.fullmatch(text)
    if found is None:
        return f"write {_FORM_WORDS}, such as 30s, 10m, 2h"
    sign, whole, part, unit = found.groups()
    if sign == "-":
        return POSITIVE
    if not unit:
        return f'the unit is missing; for minutes write "{whole}m"'
    if unit.lower() not in ("s", "m", "h", "d"):
        return f"{unit[:20]!r} is no unit; write {_FORM_WORDS}"
    if unit != unit.lower():
        return f'units are in lower case; write "{whole}{part or ""}{unit.lower()}"'
    if part:
        exact = float(f"{whole}.{part[1:]}") * _UNITS[unit].total_seconds()
        near = timedelta(seconds=min(max(1, round(exact)), LONGEST.total_seconds()))
        return f'the number must be whole; write "{text_of(near)}"'
    return f"write {_FORM_WORDS}, such as {whole}{unit}"


def _too_long(shown: str) -> BadInterval:
    return _bad(shown, f"an interval is at most {LONGEST.days} days")


def _bad(shown: str, reason: str) -> BadInterval:
    short = shown if len(shown) <= 40 else shown[:40] + "…"
    return BadInterval(f"invalid interval {short!r}: {reason}", reason, shown)
