"""A chat server, and how a gateway reaches it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from goclaw_py.chat.channel import InboundHandler
from goclaw_py.core.errors import ChannelError, MaybeSent, NotSent, StoreUnavailable
from goclaw_py.core.messages import InboundMessage, OutboundMessage
from goclaw_py.core.run_events import RunSignal
from goclaw_py.testing.channel import RecordingChannel
from tests.chaos.facts import Seen
from tests.simulation.loop import Process
from tests.simulation.trouble import Trouble

POLL_S = 0.4
_AGAIN_S = 1.0


@dataclass(slots=True)
class Server:
    """Keeps what people write until it is confirmed, and what they see.

    Args:
        receiving: Who can be called with an update, where there are webhooks.
    """

    updates: dict[int, InboundMessage] = field(default_factory=dict)
    said: list[InboundMessage] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    receiving: dict[Process, SimulatedChannel] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def say(self, message: InboundMessage) -> int:
        """Somebody writes; the number of the update."""
        number = next(self._numbers)
        self.said.append(message)
        self.updates[number] = message
        return number

    def show(self, message: OutboundMessage) -> str:
        """A message arrives in a chat; its id."""
        number = str(next(self._numbers))
        now = asyncio.get_running_loop().time()
        self.seen.append(Seen(message.target.chat, number, message.text, now))
        return number


class SimulatedChannel(RecordingChannel):
    """The channel of one process. With a lease it polls, without one it is called."""

    def connect(self, server: Server, process: Process, trouble: Trouble) -> None:
        """Give it what it works with."""
        self.server, self.process, self.fates = server, process, trouble
        self.intake: InboundHandler | None = None
        self.since = 0.0

    async def receive(self, intake: InboundHandler) -> None:
        """Until cancelled."""
        self.since = asyncio.get_running_loop().time()
        self.intake = intake
        if self.lease is None:
            self.server.receiving[self.process] = self
            try:
                await asyncio.Event().wait()
            finally:
                self.server.receiving.pop(self.process, None)
        first = True
        while True:
            first = not await self._poll(intake, redelivered=first)

    async def _poll(self, intake: InboundHandler, *, redelivered: bool) -> bool:
        """Whether something was taken in, of which an earlier process may know."""
        await asyncio.sleep(POLL_S)
        server, call = self.server, self.fates.call
        try:
            batch = await call(self.process, "chat poll", lambda: dict(server.updates), NotSent)
            if not batch:
                return not redelivered
            await intake.accept([replace(m, redelivered=redelivered) for m in batch.values()])
            await call(
                self.process,
                "chat confirm",
                lambda: [server.updates.pop(n, None) for n in batch],
                NotSent,
            )
        except (StoreUnavailable, ChannelError):
            return False
        return True

    async def send(self, message: OutboundMessage) -> str:
        """Its fate tells whether it arrives, and who knows it."""
        if self.process.dead:
            raise asyncio.CancelledError
        return await self.fates.call(
            self.process,
            f"chat send {message.target.chat} {message.text!r}",
            lambda: self.server.show(message),
            lambda why: NotSent(why) if why == "refused" else MaybeSent(why),
        )

    def signal(self, signal: RunSignal) -> None:
        """Nobody sees it."""
