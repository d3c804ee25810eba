"""Reactions to people's messages: 👀 while they wait, 👎 after a failure (SPEC CHAN-4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import inf
from types import MappingProxyType

from channels.telegram.client import ChatPlace
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.outcomes import FAILURES, Outcome

_log = logging.getLogger("channels.telegram")

WAITS = "👀"
FAILED = "👎"

AFTER_S = 2.0
"""Seconds before a mark: for earlier runs "typing…" is enough."""

_MOST = 1_000
_TRIES = 3
_APART_S = 2.0
_AT_ONCE = 2
"""Concurrent calls: they share eight connections with "typing…" and answers to presses."""

_Message = tuple[int, int]
"""Chat and message."""


class Marks:
    """The marks of a bot. Failures have no effect."""

    def __init__(
        self,
        react: Callable[[int, int, str], Awaitable[None]],
        sent_at: Mapping[ChatPlace, float] = MappingProxyType({}),
    ) -> None:
        """``react`` sets the reaction to a message, "" removes it.

        ``sent_at`` is when something was last sent to chats, by the clock of the loop.
        """
        self._react = react
        self._sent_at = sent_at
        self._timers: dict[_Message, asyncio.TimerHandle] = {}
        self._shown: set[_Message] = set()
        """Messages that are marked as waiting, or soon will be."""
        self._tasks: dict[_Message, asyncio.Task[None]] = {}
        """The present task of each message."""
        self._running: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_AT_ONCE)

    def wait(self, place: ChatPlace, messages: Iterable[int], *, marked: bool = False) -> None:
        """Mark messages as waiting; an earlier process may have ``marked`` them."""
        loop = asyncio.get_running_loop()
        for message in messages:
            key = place.chat_id, message
            if marked and len(self._shown) < _MOST:
                self._shown.add(key)
            if len(self._timers) < _MOST and key not in self._timers:
                self._timers[key] = loop.call_later(AFTER_S, self._is_late, place, message)

    def begin(self, place: ChatPlace, messages: Iterable[int]) -> None:
        """Set no marks on messages whose run starts."""
        for message in messages:
            self._withdraw((place.chat_id, message))

    def end(self, place: ChatPlace, messages: Iterable[int], outcome: Outcome) -> None:
        """Mark messages whose run has ended."""
        keys = [(place.chat_id, message) for message in messages]
        for key in keys:
            self._withdraw(key)
            if key in self._shown:
                self._set(key, "")
        if keys and outcome in FAILURES:
            self._set(keys[-1], FAILED)

    async def close(self) -> None:
        """Set no more marks."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _is_late(self, place: ChatPlace, message: int) -> None:
        loop, key = asyncio.get_running_loop(), (place.chat_id, message)
        due = self._sent_at.get(place, -inf) + AFTER_S
        if due > loop.time():
            # While answers come, people see that their messages are being worked on.
            self._timers[key] = loop.call_at(due, self._is_late, place, message)
            return
        del self._timers[key]
        self._set(key, WAITS)

    def _withdraw(self, key: _Message) -> None:
        """Do not mark a message as waiting, unless the call has begun."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        elif key not in self._shown and (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    def _set(self, key: _Message, emoji: str) -> None:
        before = self._tasks.get(key)
        if emoji != WAITS:
            self._shown.discard(key)
        task = asyncio.create_task(self._show(key, emoji, before), name="telegram mark")
        self._tasks[key] = task
        self._running.add(task)
        task.add_done_callback(lambda done: self._done(key, done))

    def _done(self, key: _Message, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if self._tasks.get(key) is task:
            del self._tasks[key]

    async def _show(self, key: _Message, emoji: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._room:
                    if self._tasks.get(key) is not asyncio.current_task():
                        return  # a later mark takes its place
                    if emoji == WAITS:
                        self._shown.add(key)
                    await self._react(*key, emoji)
            except ChannelError as error:
                _log.debug("reaction_not_shown", extra={"error": str(error)})
                if not error.retryable or attempt == _TRIES:
                    return
                await asyncio.sleep(error.retry_after_s or _APART_S)
            else:
                return
