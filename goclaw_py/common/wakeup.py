"""A wake-up event that is never lost."""

from __future__ import annotations

import asyncio


class WakeEvent:
    """Lets a loop sleep until there is work.

    The order is: ``clear``, look for work, ``wait``. If it were cleared after the look, a call in
    between would be lost and its work would wait for the timeout.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def call(self) -> None:
        """Wake the loop: there may be work."""
        self._event.set()

    @property
    def is_called(self) -> bool:
        """Whether the next ``wait`` returns at once."""
        return self._event.is_set()

    def clear(self) -> None:
        """Let later calls wake the next ``wait``."""
        self._event.clear()

    async def wait(self, limit_s: float) -> None:
        """Sleep until called, at most ``limit_s`` seconds."""
        try:
            async with asyncio.timeout(max(0.0, limit_s)):
                await self._event.wait()
        except TimeoutError:
            return
