"""One timer of the event loop, set to the next instant at which the scheduler must act."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_A_DAY_S = 86_400.0


class LoopTimer:
    """Fires at the instant that was last set, or earlier if that is more than a day away."""

    __slots__ = ("_at", "_handle", "_loop", "_ring")

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None
        # The handle does not always know its time: uvloop gives out another kind for what is due.
        self._at = 0.0

    def set(self, at: float | None) -> None:
        """Fire at ``at``, by the loop's clock; None: never. Firing early is allowed."""
        if self._handle is not None:
            if at is not None and self._at <= at:
                return
            self._handle.cancel()
            self._handle = None
        if at is not None:
            # Loops do not take any number.
            self._at = min(at, self._loop.time() + _A_DAY_S)
            self._handle = self._loop.call_at(self._at, self._go_off)

    def _go_off(self) -> None:
        self._handle = None
        self._ring()
