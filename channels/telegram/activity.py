"""Shows "typing…" while people wait for something."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType

from channels.telegram.client import ChatPlace
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.ids import RunId

_log = logging.getLogger("channels.telegram")

AFTER_S = 0.25
"""Seconds before it is shown: quicker answers need none, and Telegram limits calls."""
_EVERY_S = 4.5
"""Seconds between repetitions: Telegram shows it for five seconds."""
_WAITS_S = 4.0
"""Seconds after which a waiting run gets a mark in place of "typing…"."""
JUST_SENT_S = 2.0
"""Seconds after a message in which nothing is shown for another one that waits."""
_LONGEST_PAUSE_S = 60.0
_LONGEST_S = 2 * 60 * 60.0
"""Seconds after which it ends in any case, if the end of a run is never signalled."""
_MOST_PLACES = 200
_AT_ONCE = 4
"""Concurrent calls: it shares eight connections with marks and answers to presses."""


@dataclass(eq=False, slots=True)
class _Shown:
    """What is shown in a chat."""

    runs: dict[RunId, float] = field(default_factory=dict)
    """Until when it is shown for each run, by the clock of the loop."""
    timer: asyncio.TimerHandle | None = None
    """Until the next call; None during a call, and after it was refused."""
    call: asyncio.Task[None] | None = None
    failures: int = 0
    may_show_soon: bool = False
    """Whether the next run shows it soon: it is not shown, since something was sent."""
    was_shown: bool = False


class TypingBoard:
    """Shows "typing…" in every chat with a run, and repeats it. Failures have no effect."""

    def __init__(
        self,
        show: Callable[[ChatPlace], Awaitable[None]],
        sent_at: Mapping[ChatPlace, float] = MappingProxyType({}),
    ) -> None:
        """``show`` shows it once; it raises ``ChannelError``.

        ``sent_at`` is when something was last sent to chats, by the clock of the loop.
        """
        self._show = show
        self._sent_at = sent_at
        self._places: dict[ChatPlace, _Shown] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._closed = False

    def wait(self, run: RunId, place: ChatPlace) -> None:
        """Show it soon for an accepted message, unless the chat has just got an answer.

        It is shown once: what waits longer is marked, and the start of its run shows it again.
        """
        now = asyncio.get_running_loop().time()
        if place not in self._places and now - self._sent_at.get(place, -inf) < JUST_SENT_S:
            return
        if (shown := self._in(place)) is not None:
            shown.runs.setdefault(run, now + _WAITS_S)

    def begin(self, run: RunId, place: ChatPlace) -> None:
        """Show it soon for a run."""
        if (shown := self._in(place)) is not None:
            shown.runs[run] = asyncio.get_running_loop().time() + _LONGEST_S
            if shown.may_show_soon:
                self._call_after(AFTER_S, place, shown)

    def sent(self, place: ChatPlace) -> None:
        """Something was sent: show it for the next run again, or after the usual pause."""
        shown = self._places.get(place)
        if shown is None or shown.failures or (shown.timer is None and shown.call is None):
            return
        self._cancel(shown)
        self._call_after(_EVERY_S, place, shown)
        shown.may_show_soon = True

    def end(self, run: RunId, place: ChatPlace) -> None:
        """End it for a run; it ends with the last run of its chat."""
        if (shown := self._places.get(place)) is not None:
            shown.runs.pop(run, None)
            if not shown.runs:
                self._cancel(self._places.pop(place))

    async def close(self) -> None:
        """Stop everywhere, permanently."""
        self._closed = True
        while self._places:
            self._cancel(self._places.popitem()[1])
        if self._ending:
            await asyncio.wait(self._ending)

    def _in(self, place: ChatPlace) -> _Shown | None:
        """Return what is shown in a chat; None if there is no room for it."""
        shown = self._places.get(place)
        if shown is None and not self._closed and len(self._places) < _MOST_PLACES:
            shown = self._places[place] = _Shown()
            self._call_after(AFTER_S, place, shown)
        return shown

    def _call_after(self, pause_s: float, place: ChatPlace, shown: _Shown) -> None:
        if shown.timer is not None:
            shown.timer.cancel()
        shown.may_show_soon = False
        shown.timer = asyncio.get_running_loop().call_later(pause_s, self._begin_call, place)

    def _begin_call(self, place: ChatPlace) -> None:
        shown, now = self._places[place], asyncio.get_running_loop().time()
        shown.runs = {run: until for run, until in shown.runs.items() if until > now}
        if not shown.runs:
            del self._places[place]
            return
        is_running = max(shown.runs.values()) > now + _WAITS_S
        if shown.was_shown and not is_running:
            self._call_after(_EVERY_S, place, shown)
            shown.may_show_soon = True
            return
        shown.timer, shown.may_show_soon, shown.was_shown = None, False, True
        shown.call = asyncio.create_task(self._call(place, shown), name="telegram typing")

    def _cancel(self, shown: _Shown) -> None:
        if shown.timer is not None:
            shown.timer.cancel()
        if shown.call is not None:
            shown.call.cancel()
            self._ending.add(shown.call)
            shown.call.add_done_callback(self._ending.discard)
            shown.call = None

    async def _call(self, place: ChatPlace, shown: _Shown) -> None:
        now = asyncio.get_running_loop().time
        began = now()
        try:
            async with self._room:
                began = now()
                await self._show(place)
            shown.failures, pause = 0, _EVERY_S
        except ChannelError as error:
            _log.debug("typing_not_shown", extra={"error": str(error)})
            if not error.retryable:
                shown.call = None
                return
            # A single failure costs nothing: people see it for five seconds anyway.
            slower = min(_EVERY_S * 2**shown.failures, _LONGEST_PAUSE_S)
            shown.failures += 1
            pause = min(max(slower, error.retry_after_s or 0), _LONGEST_PAUSE_S)
        shown.call = None
        self._call_after(max(began + pause - now(), 0), place, shown)
