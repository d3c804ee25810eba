"""A heap of timers that drops the ones that no longer matter."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

_SMALL = 64


class Timers(Generic[T]):
    """Items ordered by the time, in seconds, at which they fall due.

    ``is_live`` tells whether an item still matters. Dead items are skipped when they come up; the
    heap is rebuilt when they are the majority, so memory follows the number of live items.
    """

    __slots__ = ("_heap", "_is_live", "_retired", "added")

    def __init__(self, is_live: Callable[[T], bool]) -> None:
        self._is_live = is_live
        self._heap: list[tuple[float, int, T]] = []
        self.added = 0
        """How many items have ever been added."""
        self._retired = 0

    def add(self, at: float, item: T) -> None:
        """Let ``item`` fall due at ``at``; equal times keep the order of their adding."""
        self.added += 1
        heappush(self._heap, (at, self.added, item))

    def retire(self, count: int = 1) -> None:
        """Say that items have died, so that the heap can be rebuilt when it pays."""
        self._retired += count
        if self._retired > _SMALL and self._retired * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if self._is_live(entry[2])]
            heapify(self._heap)
            self._retired = 0

    def next_at(self) -> float | None:
        """When the next live item falls due."""
        heap = self._heap
        while heap and not self._is_live(heap[0][2]):
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: float) -> T | None:
        """Take the next live item that is due, or None."""
        at = self.next_at()
        if at is None or at > now:
            return None
        return heappop(self._heap)[2]

    def __len__(self) -> int:
        return len(self._heap)
