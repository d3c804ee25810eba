"""Waits for the rate limits of chats (SPEC IO-4): the shell around ``chat.outbound.rate_limit``."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.rate_limit import RateLimit, Reservation, TokenWindow
from goclaw_py.core.messages import Target
from goclaw_py.records import Place

_TICK_S = 0.001
_LOOK_S = 0.25
"""How often a message that gives way checks for others, in seconds."""


@dataclass(slots=True)
class _Account:
    """An account. Messages queue at ``first``, whose holder waits for the account."""

    pacer: TokenWindow = field(default_factory=TokenWindow)
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    messages: int = 0
    """The number of messages in the queue."""
    waiting: Counter[str] = field(default_factory=Counter)
    """The number of waiting messages of each chat, for the chat or in the queue."""
    urgent: Counter[str] = field(default_factory=Counter)
    """How many of those in each chat go before all others."""
    urgent_first: int = 0
    """How many of those wait only for the account."""
    last: asyncio.Lock = field(default_factory=asyncio.Lock)
    """The queue of messages that give way to others."""


class RateLimiter:
    """The rate limits of all accounts of this process."""

    def __init__(self, channels: Mapping[Place, Channel]) -> None:
        self._channels = channels
        self._accounts = {place: _Account() for place in channels}

    async def message(self, target: Target, *, count: int = 1, last: bool = False) -> Reservation:
        """Wait until a message to a chat is allowed, and count it. First come, first served.

        An album counts as ``count`` messages. A message that goes ``last`` gives way to those of
        other chats. Return the reservation with ``give_back`` if nothing was sent.
        """
        account = self._accounts[target.channel, target.account]
        pace = self._pace(target)
        is_first = not (last or account.messages or account.urgent_first)
        if is_first and target.chat not in account.waiting:
            # As a rule: nobody waits, and the limits allow it.
            now, pacer = _now(), account.pacer
            at = pacer.chat_ready_at(target.chat, pace, now, count=count)
            if max(at, pacer.account_ready_at(pace, now, count=count)) <= now:
                return pacer.add(target.chat, pace, now, count=count)
        with _counted(account.waiting, target.chat):
            while True:
                ready_at = account.pacer.chat_ready_at(target.chat, pace, _now(), count=count)
                await _until(ready_at)
                if account.urgent[target.chat]:
                    await _until(_now() + _LOOK_S)
                    continue
                await (_give_way if last else _line_up)(account, pace, count)
                now = _now()
                # Another message to the same chat may have been quicker.
                if account.pacer.chat_ready_at(target.chat, pace, now, count=count) <= now:
                    return account.pacer.add(target.chat, pace, now, count=count)

    async def urgent(self, target: Target) -> Reservation:
        """Do the same for a message that goes before all others of its chat and account."""
        account, pace = self._accounts[target.channel, target.account], self._pace(target)
        pacer = account.pacer
        with _counted(account.waiting, target.chat), _counted(account.urgent, target.chat):
            while True:
                await _until(pacer.chat_ready_at(target.chat, pace, _now()))
                account.urgent_first += 1
                try:
                    await _until(pacer.account_ready_at(pace, _now()))
                finally:
                    account.urgent_first -= 1
                now = _now()
                ready_at = pacer.chat_ready_at(target.chat, pace, now)
                if max(ready_at, pacer.account_ready_at(pace, now)) <= now:
                    return pacer.add(target.chat, pace, now)

    async def draft(self, target: Target) -> None:
        """Wait until a draft is allowed in a chat, and count it. Messages go first."""
        account = self._accounts[target.channel, target.account]
        pacer, pace = account.pacer, self._pace(target)
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            at = max(
                pacer.chat_ready_at(target.chat, pace, now, draft=True),
                pacer.account_ready_at(pace, now, draft=True),
            )
            if at <= now and not account.messages and target.chat not in account.waiting:
                pacer.add(target.chat, pace, now, draft=True)
                return
            await _until(at if at > now else now + _LOOK_S)

    @contextmanager
    def sending(self, target: Target) -> Iterator[None]:
        """Mark a request in progress: the gap of its chat starts at its end."""
        try:
            yield
        finally:
            account = self._accounts[target.channel, target.account]
            account.pacer.sent(target.chat, self._pace(target), _now())

    def give_back(self, target: Target, ticket: Reservation) -> None:
        """Return a reservation of which nothing was sent."""
        self._accounts[target.channel, target.account].pacer.give_back(ticket)

    def _pace(self, target: Target) -> RateLimit:
        return self._channels[target.channel, target.account].pace(target.chat)


async def _line_up(account: _Account, pace: RateLimit, count: int) -> None:
    """Wait for the account, in the queue."""
    account.messages += 1
    try:
        async with account.first:
            while (at := account.pacer.account_ready_at(pace, _now(), count=count)) > _now() or (
                account.urgent_first
            ):
                await _until(max(at, _now() + _TICK_S))
    finally:
        account.messages -= 1


async def _give_way(account: _Account, pace: RateLimit, count: int) -> None:
    """Wait for the account until the queue is empty."""
    loop = asyncio.get_running_loop()
    async with account.last:
        while True:
            now = loop.time()
            at = account.pacer.account_ready_at(pace, now, count=count)
            if at <= now and not (account.messages or account.urgent_first):
                return
            await _until(at if at > now else now + _LOOK_S)


@contextmanager
def _counted(waiting: Counter[str], chat: str) -> Iterator[None]:
    """Count a waiting message in the meantime."""
    waiting[chat] += 1
    try:
        yield
    finally:
        waiting[chat] -= 1
        if not waiting[chat]:
            del waiting[chat]


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _until(at: float) -> None:
    """Sleep until a time of the loop's clock."""
    wait_s = at - _now()
    if wait_s > 0:
        # A timer may fire within the clock's resolution before its time: sleeping for what is left
        # then, again and again, would turn in circles.
        await asyncio.sleep(max(wait_s, _TICK_S))
