"""Clock changes: which instants have a local time, and what happens when clocks change.

A *label* is a local time, a naive datetime; an *instant* is timezone-aware in UTC. Time zones do
not list their changes, so these are found by comparing offsets. Changes may have any size: Lord
Howe's are of 30 minutes, Troll's of two hours.

Source: rules R5 to R9 of docs/cron-rules.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

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
