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
from itertools import count
from weakref import WeakValueDictionary

from channels.telegram.client import BotClient, Buttons
from goclaw_py.model.errors import MaybeSent, NotSent, Undeliverable

LOOKED_AT = 8
"""The number of unknown ids that are tried after the question and before the reply."""

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


def numbers_between(
    after: int | None, before: int | None, known: Collection[str | None] = ()
) -> Iterator[int]:
    """Yield possible ids of a message between two others, the likeliest first.

    Known ids do not count: a bot's ids run on over its chats, so what was said in other chats
    meanwhile stands between.
    """
    taken = {int(name) for name in known if name is not None and name.isdecimal()}
    seen: set[int] = set()
    if after is not None:
        for number in count(after + 1):
            if len(seen) == LOOKED_AT or (before is not None and number >= before):
                break
            if number not in taken:
                seen.add(number)
                yield number
    if before is not None:
        left = LOOKED_AT
        for number in range(before - 1, after or 0, -1):
            if not left:
                break
            if number not in taken:
                left -= 1
                if number not in seen:
                    yield number
