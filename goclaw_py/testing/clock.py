"""A wall clock for tests that goes with the event loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class LoopClock:
    """Implements ``Clock``: ``start`` is the instant at which the running loop's clock shows 0.

    Made for ``VirtualLoop``, whose clock begins there. All clocks of one loop with equal ``start``
    agree, so several processes can be played with one each.
    """

    def __init__(self, start: datetime = START) -> None:
        self._start = start

    def now(self) -> datetime:
        """The loop's present instant."""
        return self._start + timedelta(seconds=asyncio.get_running_loop().time())

    def put_forward(self, by: timedelta) -> None:
        """Let it show a later time from now on, as after a machine has slept."""
        self._start += by
