"""Shows "typing…" while a run is in progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from channels.telegram.client import ChatPlace
from goclaw_py.model.errors import ChannelError
from goclaw_py.model.ids import RunId

_log = logging.getLogger("channels.telegram")

AFTER_S = 0.3
"""Seconds before it is shown: quicker answers need none, and Telegram limits calls."""
_EVERY_S = 4.5
"""Seconds between repetitions: Telegram shows it for five seconds."""
_WAITS_S = 4.0
"""Seconds after which a waiting run gets a mark in place of "typing…"."""
_LONGEST_PAUSE_S = 60.0
_LONGEST_S = 2 * 60 * 60.0
"""Seconds after which it ends in any case, if the end of a run is never signalled."""
_MOST_PLACES = 200
_AT_ONCE = 4
"""Concurrent calls: it shares eight connections with marks and answers to presses."""


class TypingBoard:
    """Repeats "typing…" in every chat with a run. Failures have no effect."""

    def __init__(self, show: Callable[[ChatPlace], Awaitable[None]]) -> None:
        """``show`` shows it once; it raises ``ChannelError``."""
        self._show = show
        self._runs: dict[ChatPlace, set[RunId]] = {}
        self._timers: dict[ChatPlace, asyncio.TimerHandle] = {}
        """Timers until it is first shown."""
        self._tasks: dict[ChatPlace, asyncio.Task[None]] = {}
        self._waiting: dict[tuple[RunId, ChatPlace], asyncio.TimerHandle] = {}
        """Runs whose message was accepted and that have not started."""
        self._ending: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._closed = False

    def wait(self, run: RunId, place: ChatPlace) -> None:
        """Show it for an accepted message at once, and repeat it if its run starts soon."""
        if not self._add(run, place):
            return
        later = asyncio.get_running_loop().call_later
        if (run, place) not in self._waiting:
            self._waiting[run, place] = later(_WAITS_S, self.end, run, place)
        if place not in self._tasks:
            self._start(place)

    def begin(self, run: RunId, place: ChatPlace) -> None:
        """Show it for a run."""
        self._waits_no_more(run, place)
        if not self._add(run, place):
            return
        if place not in self._tasks and place not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[place] = loop.call_later(AFTER_S, self._start, place)

    def end(self, run: RunId, place: ChatPlace) -> None:
        """End it for a run; it ends with the last run of its chat."""
        self._waits_no_more(run, place)
        runs = self._runs.get(place)
        if runs is None:
            return
        runs.discard(run)
        if not runs:
            del self._runs[place]
            if (timer := self._timers.pop(place, None)) is not None:
                timer.cancel()
            else:
                self._cancel(self._tasks.pop(place))

    async def close(self) -> None:
        """Stop everywhere, permanently."""
        self._closed = True
        self._runs.clear()
        for timer in (*self._timers.values(), *self._waiting.values()):
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()
        while self._tasks:
            self._cancel(self._tasks.popitem()[1])
        if self._ending:
            await asyncio.wait(self._ending)

    def _add(self, run: RunId, place: ChatPlace) -> bool:
        """Add a run; return whether there was room for its chat."""
        if self._closed or (place not in self._runs and len(self._runs) >= _MOST_PLACES):
            return False
        self._runs.setdefault(place, set()).add(run)
        return True

    def _waits_no_more(self, run: RunId, place: ChatPlace) -> None:
        if (timer := self._waiting.pop((run, place), None)) is not None:
            timer.cancel()

    def _start(self, place: ChatPlace) -> None:
        if (timer := self._timers.pop(place, None)) is not None:
            timer.cancel()
        self._tasks[place] = asyncio.create_task(self._keep(place), name="telegram typing")

    def _cancel(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _keep(self, place: ChatPlace) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + _LONGEST_S
        failures = 0
        while loop.time() < end:
            began = loop.time()
            try:
                async with self._room:
                    await self._show(place)
                failures, pause = 0, _EVERY_S
            except ChannelError as error:
                _log.debug("typing_not_shown", extra={"error": str(error)})
                if not error.retryable:
                    return
                # A single failure costs nothing: people see it for five seconds anyway.
                slower = min(_EVERY_S * 2**failures, _LONGEST_PAUSE_S)
                failures += 1
                pause = min(max(slower, error.retry_after_s or 0), _LONGEST_PAUSE_S)
            await asyncio.sleep(max(began + pause - loop.time(), 0))
