"""A heap of timers that removes those that no longer matter."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

_SMALL = 64


class Timers(Generic[T]):
    """Items ordered by the time, in seconds, at which they are due.

    ``is_live`` tells whether an item still matters. Others are skipped; the heap is rebuilt when
    they are the majority, so memory follows the number of live items.
    """

    __slots__ = ("_heap", "_is_live", "_retired", "added")

    def __init__(self, is_live: Callable[[T], bool]) -> None:
        self._is_live = is_live
        self._heap: list[tuple[float, int, T]] = []
        self.added = 0
        """The number of items ever added."""
        self._retired = 0

    def add(self, at: float, item: T) -> None:
        """Add an item; items with equal times keep their order."""
        self.added += 1
        heappush(self._heap, (at, self.added, item))

    def retire(self, count: int = 1) -> None:
        """Count items that no longer matter, so that the heap is rebuilt in time."""
        self._retired += count
        if self._retired > _SMALL and self._retired * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if self._is_live(entry[2])]
            heapify(self._heap)
            self._retired = 0

    def next_at(self) -> float | None:
        """Return when the next live item is due."""
        heap = self._heap
        while heap and not self._is_live(heap[0][2]):
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: float) -> T | None:
        """Remove and return the next live item that is due, or None."""
        at = self.next_at()
        if at is None or at > now:
            return None
        return heappop(self._heap)[2]

    def __len__(self) -> int:
        return len(self._heap)
