"""Searches for messages of ours whose response was lost (SPEC IO-5).

A bot can neither list nor read messages. But the ids in a chat increase, and the stop button of a
draft names its run. So the same button is set again on each message that the draft may be: the
server answers "not modified" for the draft, refuses messages of others, and changes other messages
of ours, from which the button is removed at once. A first copy of a message is searched in the same
way, with its own buttons.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import count, islice
from weakref import WeakValueDictionary

from channels.telegram.client import BotClient, Buttons, MessageGone
from channels.telegram.identity import key, number_in
from channels.telegram.sending import buttons_of, number_of, place_or_raise, stop_button
from goclaw_py.core.errors import MaybeSent, NotSent, Undeliverable
from goclaw_py.core.messages import LostDraft, OutboundMessage, Target

LOOKED_AT = 8
"""The number of unknown ids that are tried after the question and before the reply."""

_MOST_COPIES = 16
"""The number of unknown ids that are tried for a copy; of more it stays uncertain."""
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

    async def search(
        self,
        bot: int,
        target: Target,
        lost: LostDraft,
        before: str | None,
        known: Collection[str],
    ) -> str | None:
        chat = place_or_raise(target).chat_id
        buttons, ours = stop_button(lost.run_id), _numbers(bot, known)
        if lost.id is not None:
            number = number_of(number_in(bot, lost.id))
            if number is None or number in ours:
                return None
            return lost.id if await self._is_open((chat, number), buttons) else None
        after = number_in(bot, lost.after)
        if after is None and lost.after is not None:
            return None  # another bot has posted it
        numbers = numbers_between(number_of(after), number_of(number_in(bot, before)), ours)
        number = await self._find(chat, numbers, buttons)
        return None if number is None else key(bot, number)

    async def _find(self, chat_id: int, numbers: Iterable[int], buttons: Buttons) -> int | None:
        """Return the first of some messages with these buttons. Raises ``ChannelError``."""
        for number in numbers:
            try:
                if await self._has((chat_id, number), buttons):
                    return number
            except Undeliverable:
                continue
        return None

    async def is_alone(
        self,
        bot: int,
        message: OutboundMessage,
        sent: str,
        earlier: Collection[str],
        known: Collection[str],
    ) -> bool:
        """Return whether a message is certainly in its chat only once, as ``sent``.

        Whatever is ours between the newest of ``earlier`` and it, and not known, may be a copy.
        Raises ``ChannelError``.
        """
        (end,) = _numbers(bot, [sent]) or {0}
        begin = max(_numbers(bot, earlier), default=end)
        if begin >= end:  # they were counted in another chat
            return False
        between = _unknown(range(begin + 1, end), _numbers(bot, known), _MOST_COPIES + 1)
        if len(between) > _MOST_COPIES:
            return False
        chat_id, buttons = place_or_raise(message.target).chat_id, buttons_of(message)
        for number in between:
            if await self._has((chat_id, number), buttons) is not None:
                return False
        return True

    async def _is_open(self, message: _Message, buttons: Buttons) -> bool:
        """Return whether a message has these buttons, or lost them to another search.

        Raises ``ChannelError``.
        """
        if message in self._others:
            return True
        return await self._find(message[0], [message[1]], buttons) is not None

    async def _has(self, message: _Message, buttons: Buttons) -> bool | None:
        """Return whether a message has these buttons; None if it is none of ours."""
        # Remove the button also if the caller was cancelled.
        return await asyncio.shield(asyncio.ensure_future(self._set(message, buttons)))

    async def _set(self, message: _Message, buttons: Buttons) -> bool | None:
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
            except MessageGone:
                return None  # somebody else's, or none
            if is_other:
                self._clear(message)
            return not is_other

    def _clear(self, message: _Message) -> None:
        self._others.append(message)
        self._later(partial(self._remove, message))

    async def _remove(self, message: _Message) -> None:
        await (await self._client()).remove_buttons(*message)


def numbers_between(
    after: int | None, before: int | None, known: Collection[int] = ()
) -> Iterator[int]:
    """Yield possible ids of a message between two others, the likeliest first.

    Known ids do not count: a bot's ids run on over its chats, so what was said in other chats
    meanwhile stands between.
    """
    first: list[int] = []
    if after is not None:
        above = count(after + 1) if before is None else range(after + 1, before)
        first = _unknown(above, known, LOOKED_AT)
        yield from first
    if before is not None:
        below = _unknown(range(before - 1, after or 0, -1), known, LOOKED_AT)
        yield from (number for number in below if number not in first)


def _unknown(numbers: Iterable[int], known: Collection[int], most: int) -> list[int]:
    return list(islice((number for number in numbers if number not in known), most))


def _numbers(bot: int, names: Collection[str]) -> set[int]:
    """Return the numbers of a bot's messages."""
    numbers = (number_of(number_in(bot, name)) for name in names)
    return {number for number in numbers if number is not None}
