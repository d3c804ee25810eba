"""Searches for a draft whose response was lost (SPEC IO-5).

A bot can neither list nor read messages. But the ids in a chat increase, and the stop button of a
draft names its run. So the same button is set again on each message that the draft may be: the
server answers "not modified" for the draft, refuses messages of others, and changes other messages
of ours, from which the button is removed at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from functools import partial
from weakref import WeakValueDictionary

from channels.telegram.client import BotClient, Buttons
from goclaw_py.model.errors import MaybeSent, NotSent, Undeliverable

LOOKED_AT = 8
"""The number of ids that are tried after the question and before the reply."""

_REMEMBERED = 1_000

_Message = tuple[int, int]
"""The ids of a chat and of a message in it."""


class LostDrafts:
    """Searches for drafts.

    Args:
        client: Opens the client.
        later: Calls something that may fail, with retries.
    """

    def __init__(
        self,
        client: Callable[[], Awaitable[BotClient]],
        later: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self._client = client
        self._later = later
        self._others: deque[_Message] = deque(maxlen=_REMEMBERED)
        """Messages that may have a stop button of a search; they are not lost drafts."""
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        """By chat: two concurrent searches would find each other's buttons."""

    async def find(
        self, chat_id: int, numbers: Iterator[int], buttons: Buttons, known: Collection[str | None]
    ) -> int | None:
        """Return the first of some messages with these buttons. Raises ``ChannelError``."""
        for number in numbers:
            message = chat_id, number
            if str(number) in known:
                continue
            # Remove the button also if the caller was cancelled.
            if await asyncio.shield(asyncio.ensure_future(self._has(message, buttons))):
                return number
        return None

    async def is_open(self, message: _Message, buttons: Buttons) -> bool:
        """Return whether a message has these buttons, or lost them to another search.

        Raises ``ChannelError``.
        """
        if message in self._others:
            return True
        return await self.find(message[0], iter((message[1],)), buttons, ()) is not None

    async def _has(self, message: _Message, buttons: Buttons) -> bool:
        client = await self._client()
        lock = self._locks.setdefault(message[0], asyncio.Lock())
        async with lock:
            if message in self._others:
                return False
            try:
                is_other = await client.set_buttons(*message, buttons)
            except MaybeSent as error:
                self._clear(message)
                raise NotSent(str(error)) from None
            except Undeliverable:
                return False  # somebody else's, or none
            if is_other:
                self._clear(message)
            return not is_other

    def _clear(self, message: _Message) -> None:
        self._others.append(message)
        self._later(partial(self._remove, message))

    async def _remove(self, message: _Message) -> None:
        await (await self._client()).remove_buttons(*message)


def numbers_between(after: int | None, before: int | None) -> Iterator[int]:
    """Yield possible ids of a message between two others, the likeliest first."""
    seen = range(0)
    if after is not None:
        last = after + LOOKED_AT if before is None else min(after + LOOKED_AT, before - 1)
        seen = range(after + 1, last + 1)
        yield from seen
    if before is not None:
        first = max(before - LOOKED_AT, 1 if after is None else after + 1)
        yield from (number for number in range(before - 1, first - 1, -1) if number not in seen)
