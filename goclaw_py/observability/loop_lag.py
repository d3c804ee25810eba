"""The lag of the event loop: whatever blocks it delays everything, also a ``/stop``."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

EVERY_S: Final = 1.0
"""The interval of measurements in seconds."""

KEPT: Final = 15
"""The number of measurements that count: a probe must see what happened since the last one."""


class LoopLag:
    """Measures the lag regularly."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=KEPT)

    @property
    def worst_s(self) -> float:
        """Return the largest delay of a timer among the last measurements; 0 before any."""
        return max(self._late, default=0.0)

    async def watch(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            wanted = loop.time() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._late.append(max(loop.time() - wanted, 0.0))
