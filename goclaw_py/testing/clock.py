"""A wall clock for tests that follows the clock of the event loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class LoopClock:
    """Implements ``Clock``: ``start`` is the instant at which the running loop's clock shows 0.

    Made for ``VirtualLoop``, whose clock starts at 0. All clocks of one loop with equal ``start``
    agree, so a test can simulate several processes with one clock each.
    """

    def __init__(self, start: datetime = START) -> None:
        self._start = start

    def now(self) -> datetime:
        """Return the current time of the loop."""
        return self._start + timedelta(seconds=asyncio.get_running_loop().time())

    def advance(self, by: timedelta) -> None:
        """Move the clock forward, as after a machine has slept."""
        self._start += by
