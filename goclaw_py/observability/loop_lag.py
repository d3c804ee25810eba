"""How late the event loop is: what blocks it delays everything, a ``/stop`` too."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

EVERY_S: Final = 1.0
"""How often it is measured."""

KEPT: Final = 15
"""How many measurements count; a probe comes every few seconds and must see what was between."""


class LoopLag:
    """Measures it all the time."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=KEPT)

    @property
    def worst_s(self) -> float:
        """By how much a timer was late at worst, among the last measurements; 0 before any."""
        return max(self._late, default=0.0)

    async def watch(self) -> None:
        """Measure. Runs until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            wanted = loop.time() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._late.append(max(loop.time() - wanted, 0.0))
