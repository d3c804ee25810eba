"""An outbox sender over one channel, without a gateway around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.outbox_sender import OutboxSender
from goclaw_py.chat.outbound.rate_limiter import RateLimiter
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import OutboxState
from goclaw_py.records.bound import bind
from goclaw_py.testing.clock import LoopClock
from tests.support.memory_store import MemoryDatabase, MemoryStore
from tests.support.memory_store.tables import OutboxRecord
from tests.support.stores import A, a_node


class CountingStore(MemoryStore):
    """Counts the searches for copies."""

    looks = 0

    async def newest_before(
        self, chat: Target, at: datetime, *, everywhere: bool = False
    ) -> frozenset[str]:
        self.looks += 1
        return await super().newest_before(chat, at, everywhere=everywhere)

    async def own_messages(self, chat: Target, *, everywhere: bool = False) -> frozenset[str]:
        self.looks += 1
        return await super().own_messages(chat, everywhere=everywhere)


@dataclass(slots=True)
class Post:
    """Puts messages into the outbox, and waits until they are sent."""

    store: CountingStore
    database: MemoryDatabase
    sender: OutboxSender
    clock: LoopClock = field(default_factory=LoopClock)

    async def put(self, *messages: OutboundMessage) -> None:
        await self.store.settle((), Outcome.COMPLETED, now=self.clock.now(), say=messages)
        self.sender.wake.call()

    async def sent(self, *messages: OutboundMessage) -> list[OutboxRecord]:
        """The rows of messages, when nothing of them is under way any more."""
        await self.put(*messages)
        await self._until(
            lambda: (
                not self.sender.sending
                and all(row.state is OutboxState.SENT for row in self.database.outbox.values())
            )
        )
        return list(self.database.outbox.values())[-len(messages) :]

    @staticmethod
    async def _until(reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not reached():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def an_outbox(channel: Channel) -> AsyncIterator[Post]:
    """A sender that runs."""
    database = MemoryDatabase()
    store = CountingStore(database)
    await store.join(a_node(A))
    channels = {(channel.name, channel.account): channel}
    clock = LoopClock()
    sender = OutboxSender(bind(store, lambda: A), clock, channels, RateLimiter(channels))
    task = asyncio.create_task(sender.run(), name="outbox")
    try:
        yield Post(store, database, sender, clock)
    finally:
        task.cancel()
        await asyncio.wait({task})
        await sender.close(1)
