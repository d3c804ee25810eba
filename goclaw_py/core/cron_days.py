"""On which days a cron expression fires, for any year (rules R3, R10 and R11 of cron-rules.md).

There are only 14 years: with or without a leap day, beginning on one of seven weekdays. The days of
each are a number with one bit for each day, made when such a year is first looked at.
"""

from __future__ import annotations

import calendar
from datetime import date, timedelta
from typing import Final

from goclaw_py.core.cron_fields import LAST, Fields

LAST_YEAR: Final = 9998
"""No day is looked for after this one: at the very end of the calendar, zones run out of it."""

_Shape = tuple[bool, int]
"""Whether it has a leap day; on which weekday it begins, 0 is Monday."""

_SHAPES: Final = [(leap, begins) for leap in (False, True) for begins in range(7)]
_YEARS: Final = {
    (calendar.isleap(year), date(year, 1, 1).weekday()): year for year in range(2000, 2028)
}
"""A year of each shape."""
_DAY: Final = timedelta(days=1)


class Days:
    """The days of one expression. Lasting for ever, they may be shared between threads."""

    __slots__ = ("_fields", "_known", "_years")

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._known: dict[_Shape, int] = {}
        self._years: dict[int, tuple[int, int]] = {}

    def first_from(self, day: date, *, past: bool = False) -> date | None:
        """The first of them that is not before ``day``; None if there is none until 9998.

        ``day`` itself is none of them if it is ``past``.
        """
        year = day.year
        first, bits = self._years.get(year) or self._year(year)
        gone = day.toordinal() + past - first
        left = bits >> gone
        if left & 1:
            return date.fromordinal(first + gone) if past else day
        # The longest wait is for a 29 February that is a Sunday: 40 years.
        if not left and not self.any():
            return None
        while not left:
            if year >= LAST_YEAR:
                return None
            year += 1
            (first, left), gone = self._years.get(year) or self._year(year), 0
        return date.fromordinal(first + gone + (left & -left).bit_length() - 1)

    def any(self) -> bool:
        """Whether any calendar has such a day."""
        return any(self._shaped(shape) for shape in _SHAPES)

    def least_gap(self) -> timedelta:
        """The shortest time between two of them; a year stands for anything longer."""
        pairs = [
            self._shaped(shape) | self._shaped(following) << 365 + shape[0]
            for shape in _SHAPES
            for following in _followers(shape)
        ]
        gaps = (gap for gap in range(1, 366) if any(days & days >> gap for days in pairs))
        return next(gaps, 366) * _DAY

    def _year(self, year: int) -> tuple[int, int]:
        """The ordinal of its first day, and its days."""
        first = date(year, 1, 1)
        found = first.toordinal(), self._shaped((calendar.isleap(year), first.weekday()))
        self._years[year] = found
        return found

    def _shaped(self, shape: _Shape) -> int:
        bits = self._known.get(shape)
        if bits is None:
            bits = self._known[shape] = self._made(_YEARS[shape])
        return bits

    def _made(self, year: int) -> int:
        first = date(year, 1, 1)
        bits = 0
        for month in self._fields.month.numbers:
            length = calendar.monthrange(year, month)[1]
            before = (date(year, month, 1) - first).days
            for number in range(1, length + 1):
                if self._fits(date(year, month, number), length):
                    bits |= 1 << (before + number - 1)
        return bits

    def _fits(self, day: date, length: int) -> bool:
        """Whether a day fits both fields, or one of them if neither begins with a star (R3)."""
        of_month, of_week = self._fields.day, self._fields.weekday
        weekday = day.isoweekday() % 7
        number = (day.day - 1) // 7 + 1
        in_month = day.day in of_month.numbers or (of_month.last and day.day == length)
        in_week = (
            weekday in of_week.numbers
            or (weekday, number) in of_week.nth
            or (day.day + 7 > length and (weekday, LAST) in of_week.nth)
        )
        if of_month.star or of_week.star:
            return in_month and in_week
        return in_month or in_week


def _followers(shape: _Shape) -> list[_Shape]:
    """What the year after one of this shape may be."""
    leap, begins = shape
    next_begins = (begins + 1 + leap) % 7
    return [(False, next_begins)] if leap else [(False, next_begins), (True, next_begins)]
