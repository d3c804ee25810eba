"""The hours of the day in which a heartbeat may send alerts (SPEC HB-2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Final

from goclaw_py.core.errors import BadHours
from goclaw_py.core.time.zones import change_at, label_of, passes
from goclaw_py.core.time.zones import zone as zone_named

START_PATTERN: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]"
END_PATTERN: Final = rf"{START_PATTERN}|24:00"
START_MEANING: Final = "a time from 00:00 to 23:59 with two digits each, such as 08:00"
END_MEANING: Final = "a time from 00:00 to 24:00 with two digits each, such as 22:00"

_DAY: Final = 24 * 60
_INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """From ``start`` to ``end``, in minutes of the day in a time zone.

    ``start`` is inclusive and from 0 to 1439, ``end`` exclusive and from 1 to 1440; they differ. A
    window whose end is before its start includes midnight. Its ``str`` is for people.
    """

    start: int
    end: int
    zone: str

    def holds(self, at: datetime) -> bool:
        """Return whether an instant is in it, by the local time of its zone.

        A local time that occurs twice has the same result both times.
        """
        label = label_of(at, zone_named(self.zone))
        minute = label.hour * 60 + label.minute
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def next_start(self, after: datetime) -> datetime:
        """Return the first instant after ``after`` at which it opens, in UTC.

        It opens at an instant that is in it and has none before it that is: if a clock change skips
        its start, at the change; if clocks go back to before its start, again. A window that never
        closes opens at midnight.
        """
        return min(
            at
            for at in self._candidates(after)
            if at > after and self.holds(at) and (self._is_all_day or not self.holds(at - _INSTANT))
        )

    @property
    def _is_all_day(self) -> bool:
        return self.end - self.start == _DAY

    def _candidates(self, after: datetime) -> Iterator[datetime]:
        """Yield all instants around ``after`` at which it can open.

        A clock change opens it only if it skips or repeats its start or end.
        """
        zone = zone_named(self.zone)
        today = datetime.combine(label_of(after, zone), time())
        # Places have left out whole days, and the window of one may lie in a gap.
        for day in range(-2, 5):
            for minutes in (self.start, self.end):
                label = today + timedelta(days=day, minutes=minutes)
                yield from passes(label, zone)
                if change := change_at(label, zone):
                    yield change.at

    def __str__(self) -> str:
        """Return both times with a dash between them, and the zone."""
        return f"{_clock(self.start)}\u2013{_clock(self.end)} {self.zone}"


def read_hours(start: str, end: str, zone: str) -> ActiveHours:
    """Parse ``HH:MM`` with two digits each; the end ``00:00`` means ``24:00``.

    ``00:00`` to ``24:00`` is always. Raises ``BadHours``, also if start and end are equal, and
    ``UnknownZone``.
    """
    if not re.fullmatch(START_PATTERN, start):
        raise BadHours("start", start, f"must be {START_MEANING}")
    if not re.fullmatch(END_PATTERN, end):
        raise BadHours("end", end, f"must be {END_MEANING}")
    if start == end:
        raise BadHours("end", end, "must differ from the start; 00:00 to 24:00 is always")
    zone_named(zone)
    return ActiveHours(_minute(start), _minute(end) or _DAY, zone)


def _minute(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
