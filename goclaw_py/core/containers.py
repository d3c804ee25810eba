"""A dictionary with a size limit, and histograms of durations."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(OrderedDict[K, V]):
    """Contains at most ``limit`` entries; the oldest are removed first."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > self._limit:
            self.popitem(last=False)


BOUNDS_S: tuple[float, ...] = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
)  # fmt: skip
"""Upper bounds in seconds, inclusive; a last bucket holds what is longer."""


@dataclass(frozen=True, slots=True)
class HistogramView:
    """Counts of durations up to each bound.

    ``counts`` has a number for each of ``bounds_s``, and one for longer durations.
    """

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_S) + 1)
    total_s: float = 0.0
    bounds_s: tuple[float, ...] = BOUNDS_S

    @property
    def count(self) -> int:
        """Return the number of durations."""
        return sum(self.counts)

    def quantile(self, share: float) -> float | None:
        """Return a bound that is not exceeded by ``share`` (0 to 1) of the durations.

        None without durations; infinite if it is above the last bound.
        """
        wanted = share * self.count
        if not wanted:
            return None
        seen = 0
        for bound, count in zip(self.bounds_s, self.counts, strict=False):
            seen += count
            if seen >= wanted:
                return bound
        return float("inf")


NOTHING_MEASURED = HistogramView()


class Histogram:
    """Counts durations by size."""

    __slots__ = ("_counts", "_total_s")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._total_s = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        # Most waits are none.
        self._counts[bisect_left(BOUNDS_S, seconds) if seconds else 0] += 1
        self._total_s += seconds

    def view(self) -> HistogramView:
        """Return the present counts."""
        return HistogramView(tuple(self._counts), self._total_s)
