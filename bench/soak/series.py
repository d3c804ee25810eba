"""What was sampled over time, and whether it grows.

A gateway that gets messages all the time is never at rest, so a single sample says little. Samples
are folded first: of each stretch of time one value is left (the least, where nights are quiet; the
median, where work is even). Through what is left of the second half a straight line is laid; the
first half is for caches, pools and tables to fill.

A series grows if this line rises by more than each of three things: a part of the mean (its
``bound``), what nobody would care about (its ``slack``), and what chance makes of the scatter
(``CERTAIN`` standard errors).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

CERTAIN: Final = 3.0
"""A slope of fewer standard errors may be chance. There are few points, so more than usual."""

FEWEST: Final = 4
"""So many folded points the second half needs, or nothing is said."""

BOUND: Final = 0.10
"""What counts as growth unless a series says otherwise: a tenth of the mean within the half."""

Point = tuple[float, float]
"""Seconds since the beginning, and a value."""


class Verdict(StrEnum):
    """What became of a series in the second half."""

    FLAT = "flat"
    GROWING = "GROWING"
    KEPT = "kept"
    """It grows, and is to: it is kept for ever."""
    SHORT = "too short"


@dataclass(frozen=True, slots=True)
class Trend:
    """A line through the second half.

    Args:
        begin: Where it begins, and ``end``: where it ends; time and value.
        error: The standard error of its rise.
    """

    begin: Point
    end: Point
    mean: float
    error: float

    @property
    def rise(self) -> float:
        """By how much it goes up from one end to the other; less than 0 if it goes down."""
        return self.end[1] - self.begin[1]

    @property
    def share(self) -> float:
        """The rise as a part of the mean."""
        if not self.rise:
            return 0.0
        return self.rise / abs(self.mean) if self.mean else math.copysign(math.inf, self.rise)


@dataclass(slots=True)
class Series:
    """One thing that was sampled.

    Args:
        group: What it belongs to, for people.
        bound: A rise of more than this part of the mean is growth.
        slack: A rise of no more than this is none.
        kept: Why it may grow for ever; "" if it must not.
        plotted: Whether it gets a plot of its own.
    """

    name: str
    group: str
    unit: str = ""
    bound: float = BOUND
    slack: float = 0.0
    kept: str = ""
    plotted: bool = True
    points: list[Point] = field(default_factory=list)

    def add(self, at_s: float, value: float) -> None:
        """One more sample, later than those before."""
        self.points.append((at_s, value))

    @property
    def last(self) -> float:
        """The last value, 0 if there is none."""
        return self.points[-1][1] if self.points else 0.0

    @property
    def most(self) -> float:
        """The largest value, 0 if there is none."""
        return max((value for _, value in self.points), default=0.0)


@dataclass(frozen=True, slots=True)
class Fold:
    """How samples become the points that a line is laid through.

    Args:
        every_s: Of each stretch of this length one value is left.
        least: The least value; else the median.
    """

    every_s: float
    least: bool = False

    def __call__(self, points: Sequence[Point]) -> list[Point]:
        """One point for each stretch that has samples, in its middle."""
        choose: Callable[[Iterable[float]], float] = min if self.least else statistics.median
        stretches: dict[int, list[float]] = {}
        for at_s, value in points:
            stretches.setdefault(int(at_s // self.every_s), []).append(value)
        return [
            ((number + 0.5) * self.every_s, choose(values))
            for number, values in sorted(stretches.items())
        ]


def trend(points: Sequence[Point]) -> Trend | None:
    """The line of least squares through the second half of folded points; None for too few."""
    if not points:
        return None
    middle = (points[0][0] + points[-1][0]) / 2
    half = [point for point in points if point[0] >= middle]
    if len(half) < FEWEST:
        return None
    times = [at_s for at_s, _ in half]
    values = [value for _, value in half]
    slope, start = statistics.linear_regression(times, values)
    begin, end = ((at_s, start + slope * at_s) for at_s in (times[0], times[-1]))
    spread = sum((at_s - statistics.fmean(times)) ** 2 for at_s in times)
    left = sum((value - start - slope * at_s) ** 2 for at_s, value in half)
    error = math.sqrt(left / (len(half) - 2) / spread) * (times[-1] - times[0])
    return Trend(begin, end, statistics.fmean(values), error)


def verdict(series: Series, found: Trend | None) -> Verdict:
    """Whether a series grows, by its trend."""
    if found is None:
        return Verdict.SHORT
    # A line through equal values may rise by what numbers are rounded to.
    rounding = 1e-9 * max(1.0, abs(found.mean))
    least = max(series.bound * abs(found.mean), series.slack, CERTAIN * found.error, rounding)
    if found.rise <= least:
        return Verdict.FLAT
    return Verdict.KEPT if series.kept else Verdict.GROWING
