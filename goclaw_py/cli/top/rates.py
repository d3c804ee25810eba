"""How much a gateway does in a minute."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

_WINDOW_S: Final = 60.0
_LEAST_S: Final = 20.0
"""Below that, a rate says nothing."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Totals at one instant, which only grow.

    Args:
        at_s: Any clock, in seconds.
    """

    at_s: float
    total: int


class Rate:
    """The increase of a total in a minute, over the last minute."""

    def __init__(self) -> None:
        self._seen: deque[Counts] = deque()

    def add(self, counts: Counts) -> None:
        """Add a total. A smaller one than before begins anew: another gateway, another day."""
        if self._seen and counts.total < self._seen[-1].total:
            self._seen.clear()
        self._seen.append(counts)
        while counts.at_s - self._seen[0].at_s > _WINDOW_S:
            self._seen.popleft()

    @property
    def per_minute(self) -> float | None:
        """Return the rate; None while it is not known yet."""
        if not self._seen:
            return None
        first, last = self._seen[0], self._seen[-1]
        passed_s = last.at_s - first.at_s
        return None if passed_s < _LEAST_S else (last.total - first.total) * 60 / passed_s


def rate_text(name: str, per_minute: float | None) -> str:
    """Return ``4.2 runs/min``; a dash instead of a number that is not known yet."""
    if per_minute is None:
        return f"- {name}/min"
    return f"{per_minute:.{1 if 0 < per_minute < 10 and per_minute % 1 else 0}f} {name}/min"
