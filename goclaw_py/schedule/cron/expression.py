"""When a cron expression fires next (SPEC CRON-1, by docs/cron-rules.md).

``croniter`` steps from one time on a wall clock to the next, over explicit lists of values. It
differs from Debian cron in three things, which are decided here: the grammar (``parser``), whether
both day fields must match (R3), and what happens when clocks change.

A job is *fixed* unless its minute, hour or second starts with ``*``; then it is a *wildcard* (R5,
R6). When clocks go forward, fixed jobs catch up at once and wildcards do not; when clocks go back,
fixed jobs do not repeat and wildcards do (R7, R8). A change of more than three hours is taken for
a clock that was set: nothing is caught up and everything goes by the new time (R9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

from goclaw_py.core.time.zones import NARROW, ClockChange, change_at, change_between, passes
from goclaw_py.schedule.cron.parser import LAST, Fields, read

LAST_YEAR: Final = 9998
"""The last year with firings: at the very end of the calendar, time zones overflow."""
_BEGIN: Final = datetime(2000, 1, 1)  # noqa: DTZ001  a label, not an instant
_LOOKED_AT: Final = 60
"""The number of days that ``least_gap`` examines (SPEC CRON-15)."""
_MOST_YEARS: Final = 41
"""The longest wait is 40 years, for a 29 February that is a Sunday."""
_NEVER: Final = (datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC))
_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)
_YEAR: Final = 366 * _DAY
_LOOKOUT: Final = timedelta(hours=26)
"""Clock changes repeat at most a day."""


@dataclass(frozen=True, slots=True)
class CronExpression:
    """A parsed expression. Create it with ``parse``; threads may share it.

    Args:
        wildcard: Its behaviour at clock changes: see above.
    """

    expression: str
    fields: Fields
    wildcard: bool
    _steps: tuple[croniter, ...] = field(compare=False, repr=False)
    """It fires at the times of each of these; without any it never fires."""
    _found: dict[str, tuple[datetime, datetime]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """The last result for each zone: an instant, and the first firing after it."""
    _gaps: list[timedelta] = field(default_factory=list, compare=False, repr=False)
    """The result of ``least_gap``, once it was computed: it takes as long as several firings."""

    def fires(self) -> bool:
        """Return whether any calendar has such a day (R11)."""
        return self._next_label(_BEGIN) is not None

    def next_after(self, zone: ZoneInfo, instant: datetime) -> datetime | None:
        """Return the earliest firing strictly after ``instant``, in UTC (R4).

        None if there is none before the year 9999.
        """
        since, known = self._found.get(zone.key, _NEVER)
        if since <= instant < known:
            return known
        found = self._after(zone, instant)
        if found is not None:
            self._found[zone.key] = instant, found
        return found

    def _after(self, zone: ZoneInfo, instant: datetime) -> datetime | None:
        if instant.year > LAST_YEAR:
            return None
        local = instant.astimezone(zone).replace(microsecond=0)
        offset = local.utcoffset()
        here = local.replace(tzinfo=None)
        if not local.fold and offset is not None and (label := self._next_label(here)) is not None:
            found = (label - offset).replace(tzinfo=UTC)
            # Nearly always: no change between the two, as no zone has several within a day.
            if label - here < _DAY and found.astimezone(zone).utcoffset() == offset:
                return found
        after = local.astimezone(UTC)
        first = self._by_label(self._begin(here, zone), zone, after)
        return self._repeated(after, first, zone) or first

    def least_gap(self) -> timedelta:
        """Return the shortest time between two firings, without clock changes.

        Examines all times of a day, and its first days from 2000 on. A longer time counts as a
        year.
        """
        if not self._gaps:
            self._gaps.append(self._least_gap())
        return self._gaps[0]

    def _least_gap(self) -> timedelta:
        second, minute, hour = (
            sorted(each.numbers)
            for each in (self.fields.second, self.fields.minute, self.fields.hour)
        )
        gaps = [_gap(second, _SECOND, timedelta())]
        length = _span(second, _SECOND)
        gaps.append(_gap(minute, 60 * _SECOND, length))
        length += _span(minute, 60 * _SECOND)
        gaps.append(_gap(hour, 3600 * _SECOND, length))
        length += _span(hour, 3600 * _SECOND)
        within = min(filter(None, gaps), default=_YEAR)
        if within <= _DAY - length:
            # Whatever its days are, the first time of one is no closer to the last of another.
            return within
        return min(within, self._least_days() - length)

    def _least_days(self) -> timedelta:
        """Return the shortest time between two of its first days, at most a year."""
        least, before = _YEAR, None
        label = self._next_label(_BEGIN)
        for _ in range(_LOOKED_AT):
            if label is None or least == _DAY:
                break
            midnight = label.replace(hour=0, minute=0, second=0)
            if before is not None:
                least = min(least, midnight - before)
            before, label = midnight, self._next_label(midnight + _DAY - _SECOND)
        return least

    def _begin(self, here: datetime, zone: ZoneInfo) -> datetime:
        """Return the local time after which the next firing is searched."""
        if here.fold and not self.wildcard:
            change = change_at(here.replace(fold=0), zone)
            # In the second pass nothing is left to do that the first one has not done.
            if change is not None and not self._goes_by(change):
                return change.ends - _SECOND
        return here.replace(fold=0)

    def _by_label(self, label: datetime, zone: ZoneInfo, after: datetime) -> datetime | None:
        """Return the first instant after ``after`` with a later local time or after a gap."""
        while (following := self._next_label(label)) is not None:
            label = following
            if instants := passes(label, zone):
                return instants[0] if instants[0] > after else instants[-1]
            gap = change_at(label, zone)
            assert gap is not None, "a label without an instant is in a gap"
            if not self._goes_by(gap):
                return gap.at
            label = gap.begins - _SECOND
        return None

    def _repeated(self, after: datetime, found: datetime | None, zone: ZoneInfo) -> datetime | None:
        """Return a firing before ``found`` whose local time occurs for the second time."""
        horizon = after + _LOOKOUT
        change = change_between(after, horizon if found is None else min(found, horizon), zone)
        if change is None or change.shift > timedelta() or not self._goes_by(change):
            return None
        again = self._by_label(change.begins - _SECOND, zone, change.at - _SECOND)
        return again if again is not None and (found is None or again < found) else None

    def _goes_by(self, change: ClockChange) -> bool:
        """Return whether this job follows the clock through a change."""
        if change.shift > timedelta():
            return self.wildcard or change.shift >= NARROW
        return self.wildcard or -change.shift > NARROW

    def _next_label(self, label: datetime) -> datetime | None:
        """Return the first local time after this one, whether clocks show it or not."""
        return min(filter(None, (_next(steps, label) for steps in self._steps)), default=None)


@lru_cache(maxsize=4096)
def parse(expression: str, fields: tuple[int, ...] = (5, 6)) -> CronExpression:
    """Parse an expression with an allowed number of fields; ``@daily`` etc. are always allowed.

    It may never fire, see ``CronExpression.fires``. Raises ``BadCron``.
    """
    found = read(expression, fields)
    wildcard = any(each.star for each in (found.second, found.minute, found.hour))
    return CronExpression(expression, found, wildcard, tuple(_steps(found)))


def _steps(fields: Fields) -> Iterator[croniter]:
    """Yield croniters that together fire at the times of these fields."""
    second, minute, hour = (
        _listed(each.numbers, count)
        for each, count in ((fields.second, 60), (fields.minute, 60), (fields.hour, 24))
    )
    month = _listed(fields.month.numbers, 12)
    for day, weekday in _day_pairs(fields):
        try:
            yield croniter(
                f"{second} {minute} {hour} {day} {month} {weekday}",
                _BEGIN,
                ret_type=datetime,
                day_or=False,
                max_years_between_matches=_MOST_YEARS,
                second_at_beginning=True,
            )
        except CroniterBadDateError:
            continue  # such as 30 February


def _day_pairs(fields: Fields) -> Iterator[tuple[str, str]]:
    """Yield pairs of day of month and weekday that must both match (R3).

    croniter takes weekdays such as ``5#3`` only apart from others.
    """
    days = [str(number) for number in sorted(fields.day.numbers)] + ["l"] * fields.day.last
    day = "*" if len(fields.day.numbers) == 31 else ",".join(days)
    nth = [
        f"l{weekday}" if number == LAST else f"{weekday}#{number}"
        for weekday, number in sorted(fields.weekday.nth)
    ]
    weekdays = [_listed(fields.weekday.numbers, 7), ",".join(nth)]
    if fields.day.star or fields.weekday.star:
        yield from ((day, weekday) for weekday in weekdays if weekday)
    else:
        yield day, "*"
        yield from (("*", weekday) for weekday in weekdays if weekday)


def _listed(numbers: Iterable[int], count: int) -> str:
    texts = [str(number) for number in sorted(numbers)]
    return "*" if len(texts) == count else ",".join(texts)


def _next(steps: croniter, label: datetime) -> datetime | None:
    """Return the first local time of a croniter after this one; None from 9998 on."""
    # A croniter keeps in itself where it is, so each call has its own.
    try:
        following: datetime = copy(steps).get_next(datetime, label)
    except (ValueError, OverflowError):
        return None  # it found none in many years, or left the calendar
    return following if following.year <= LAST_YEAR else None


def _gap(numbers: list[int], unit: timedelta, length: timedelta) -> timedelta | None:
    """Return the shortest time from the end of one to the start of the next."""
    steps = [(after - before) * unit for before, after in pairwise(numbers)]
    return min(steps) - length if steps else None


def _span(numbers: list[int], unit: timedelta) -> timedelta:
    return (numbers[-1] - numbers[0]) * unit
