"""Waits until a chat may be written to (SPEC IO-4): the shell around ``delivery.rate_limit``."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from goclaw_py.delivery.rate_limit import RateLimit, Reservation, TokenWindow
from goclaw_py.model.messages import Target
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.store import Place

_TICK_S = 0.001
_LOOK_S = 0.25
"""How often what gives way looks whether messages still wait before it."""


@dataclass(slots=True)
class _Account:
    """One account. Messages line up at ``first``, whose holder waits for the account."""

    pacer: TokenWindow = field(default_factory=TokenWindow)
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    messages: int = 0
    """How many messages are in the line."""
    waiting: Counter[str] = field(default_factory=Counter)
    """How many messages of each chat wait, for their chat or in the line."""
    urgent: Counter[str] = field(default_factory=Counter)
    """How many of those in each chat go before all others."""
    urgent_first: int = 0
    """How many of those wait for the account only."""
    last: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Where messages line up that give way to the others."""


class RateLimiter:
    """The rate limits of all accounts of this process."""

    def __init__(self, channels: Mapping[Place, Channel]) -> None:
        self._channels = channels
        self._accounts = {place: _Account() for place in channels}

    async def message(self, target: Target, *, count: int = 1, last: bool = False) -> Reservation:
        """Wait until a message may go to a chat, and count it. First come, first served.

        An album counts as ``count`` messages. One that goes ``last`` lets those to other chats go
        before it. Give the ticket back if nothing was sent.
        """
        account = self._accounts[target.channel, target.account]
        pace = self._pace(target)
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
                    return account.pacer.take(target.chat, pace, now, count=count)

    async def urgent(self, target: Target) -> Reservation:
        """The same for a message that goes before all others, of its chat and of the account."""
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
                    return pacer.take(target.chat, pace, now)

    async def draft(self, target: Target) -> None:
        """Wait until a draft may be shown in a chat, and count it. Messages go first."""
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
                pacer.take(target.chat, pace, now, draft=True)
                return
            await _until(at if at > now else now + _LOOK_S)

    @contextmanager
    def sending(self, target: Target) -> Iterator[None]:
        """A message or draft is under way: what is next in its chat waits from its end on."""
        try:
            yield
        finally:
            account = self._accounts[target.channel, target.account]
            account.pacer.sent(target.chat, self._pace(target), _now())

    def give_back(self, target: Target, ticket: Reservation) -> None:
        """Nothing was sent with this ticket."""
        self._accounts[target.channel, target.account].pacer.give_back(ticket)

    def _pace(self, target: Target) -> RateLimit:
        return self._channels[target.channel, target.account].pace(target.chat)


async def _line_up(account: _Account, pace: RateLimit, count: int) -> None:
    """Wait for the account, in the line."""
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
    """Wait for the account until nobody is in the line."""
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
    """Count one more that waits, meanwhile."""
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
    """Sleep until the loop's clock shows ``at``."""
    wait_s = at - _now()
    if wait_s > 0:
        # A timer may fire within the clock's resolution before its time: sleeping for what is left
        # then, again and again, would turn in circles.
        await asyncio.sleep(max(wait_s, _TICK_S))
