"""On which days a cron expression fires, for any year (rules R3, R10 and R11 of cron-rules.md).

There are only 14 years: with or without a leap day, beginning on one of seven weekdays. The days of
each are a number with one bit for each day, made when such a year is first looked at.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, reduce
from itertools import accumulate
from operator import or_
from typing import Final

from goclaw_py.jobs.cron.parser import LAST, Fields

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
_WEEK: Final = (1 << 7) - 1
_SEVENTH: Final = sum(1 << day for day in range(0, 366, 7))
"""Each seventh day of a year, from its first one on."""


class Days:
    """The days of one expression. Lasting for ever, they may be shared between threads."""

    __slots__ = ("_fields", "_gap", "_known", "_years")

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._gap: timedelta | None = None
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
        if self._gap is None:
            self._gap = self._least_gap()
        return self._gap

    def _least_gap(self) -> timedelta:
        pairs = [
            self._shaped(shape) | self._shaped(following) << 365 + shape[0]
            for shape in _SHAPES
            for following in _followers(shape)
        ]
        return min(map(_least_step, pairs)) * _DAY

    def _year(self, year: int) -> tuple[int, int]:
        """The ordinal of its first day, and its days."""
        first = date(year, 1, 1)
        found = first.toordinal(), self._shaped((calendar.isleap(year), first.weekday()))
        self._years[year] = found
        return found

    def _shaped(self, shape: _Shape) -> int:
        bits = self._known.get(shape)
        if bits is None:
            bits = self._known[shape] = self._made(_calendar(shape))
        return bits

    def _made(self, year: _Calendar) -> int:
        """The days that fit both fields, or one of them if neither begins with a star (R3)."""
        of_month, of_week = self._fields.day, self._fields.weekday
        in_month = _all(year.days[number] for number in of_month.numbers)
        if of_month.last:
            in_month |= year.last
        in_week = _all(year.weekdays[weekday] for weekday in of_week.numbers)
        in_week |= _all(year.weekdays[weekday] & year.weeks[nth] for weekday, nth in of_week.nth)
        both = of_month.star or of_week.star
        days = in_month & in_week if both else in_month | in_week
        return days & _all(year.months[month] for month in self._fields.month.numbers)


@dataclass(frozen=True, slots=True)
class _Calendar:
    """The days of a year of one shape, each kind of them a number with a bit for each day.

    Args:
        months: By month, from 1.
        days: By day of month, from 1.
        last: The last days of all months.
        weekdays: 0 is Sunday.
        weeks: The first, second … seven days of all months, from 1; ``LAST``: the last seven.
    """

    months: Mapping[int, int]
    days: Mapping[int, int]
    last: int
    weekdays: Mapping[int, int]
    weeks: Mapping[int, int]


@cache
def _calendar(shape: _Shape) -> _Calendar:
    """Made once for each shape: an expression only puts together what it is asked for."""
    lengths = [calendar.monthrange(_YEARS[shape], month)[1] for month in range(1, 13)]
    *begins, length = accumulate(lengths, initial=0)
    both = list(zip(begins, lengths, strict=True))
    days = {
        number: _all(1 << (begin + number - 1) for begin, most in both if number <= most)
        for number in range(1, 32)
    }
    weeks = {
        nth: _all(days[number] for number in range(7 * nth - 6, min(7 * nth, 31) + 1))
        for nth in range(1, 6)
    }
    weeks[LAST] = _all(_WEEK << (begin + most - 7) for begin, most in both)
    # The n-th day of a year that begins on a Monday, from 0, is weekday (n + 1) % 7.
    first, whole = shape[1] + 1, (1 << length) - 1
    return _Calendar(
        months={month: ((1 << most) - 1) << begin for month, (begin, most) in enumerate(both, 1)},
        days=days,
        last=_all(1 << (begin + most - 1) for begin, most in both),
        weekdays={(first + gone) % 7: _SEVENTH << gone & whole for gone in range(7)},
        weeks=weeks,
    )


def _all(days: Iterable[int]) -> int:
    return reduce(or_, days, 0)


def _least_step(days: int) -> int:
    """The fewest days from one of them to the next; 366 for anything longer."""
    if days & days >> 1:
        return 1
    between = f"{days:b}".rstrip("0").split("1")[1:-1]
    return min([*(len(each) + 1 for each in between), 366])


def _followers(shape: _Shape) -> list[_Shape]:
    """What the year after one of this shape may be."""
    leap, begins = shape
    next_begins = (begins + 1 + leap) % 7
    return [(False, next_begins)] if leap else [(False, next_begins), (True, next_begins)]
