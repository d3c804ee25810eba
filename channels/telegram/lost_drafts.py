"""Finding a growing reply whose post got no answer (SPEC IO-5).

A bot can neither list messages nor read one. But the ids of a chat only grow, and the stop button
below a growing reply names its run. So that very button is set again below each message that it
may be: the server says "not modified" of the one that has it, refuses those of others, and changes
a message of ours that is none of the two, from which the button is removed at once.
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
"""How many ids are looked at behind the question and before the reply."""

_REMEMBERED = 1_000

_Message = tuple[int, int]
"""The ids of a chat and of a message in it."""


class LostDrafts:
    """Finds drafts.

    Args:
        client: Opens the client.
        later: Calls something that may fail, with some tries.
    """

    def __init__(
        self,
        client: Callable[[], Awaitable[BotClient]],
        later: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self._client = client
        self._later = later
        self._others: deque[_Message] = deque(maxlen=_REMEMBERED)
        """Messages that may have a stop button which we have set; they are none that is lost."""
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        """By chat: two searches at once would each find the button that the other has just set."""

    async def find(
        self, chat_id: int, numbers: Iterator[int], buttons: Buttons, known: Collection[str]
    ) -> int | None:
        """The first of some messages that has these buttons. Raises ``ChannelError``."""
        for number in numbers:
            message = chat_id, number
            if str(number) in known:
                continue
            # What is set is removed again, also if nobody waits for it any more.
            if await asyncio.shield(asyncio.ensure_future(self._has(message, buttons))):
                return number
        return None

    async def is_open(self, message: _Message, buttons: Buttons) -> bool:
        """Whether a message still has these buttons, or has lost them to a search for another.

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
    """Where a message is looked for that came between two others, the likeliest first."""
    seen = range(0)
    if after is not None:
        last = after + LOOKED_AT if before is None else min(after + LOOKED_AT, before - 1)
        seen = range(after + 1, last + 1)
        yield from seen
    if before is not None:
        first = max(before - LOOKED_AT, 1 if after is None else after + 1)
        yield from (number for number in range(before - 1, first - 1, -1) if number not in seen)
