"""A chat channel that keeps what it is given and fails as a test tells it to.

::

    channel = RecordingChannel("telegram")
    channel.fail(NotSent("no route"), RateLimited("slow down", 30.0), chat="ann")
    await channel.deliver(message)  # returns when the intake has committed it
    assert channel.texts("ann") == ["re: hello"]
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.events import RunEnded, RunSignal, RunText
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import InboundMessage, OutboundMessage
from goclaw_py.core.text import split_text
from goclaw_py.ports.channel import Intake

OFFER_AGAIN_S = 0.5
"""How long ``receive`` waits before it offers a batch again that was not committed."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One ``send`` raises ``error``. ``arrives``: the message is in the chat all the same."""

    error: Exception
    arrives: bool = False


@dataclass(slots=True)
class _Delivery:
    batch: list[InboundMessage]
    committed: asyncio.Future[None]


@dataclass(slots=True)
class RecordingChannel:
    """Implements ``Channel``; see the module's docstring. Use one in one event loop only."""

    name: str = "telegram"
    account: str = "default"
    lease: str | None = None
    trusted: bool = True
    handle: str | None = "our_bot"
    part_limit: int = 4096
    """The longest message that the channel takes, in UTF-16 units."""
    attempts: list[OutboundMessage] = field(default_factory=list)
    """Every call of ``send``."""
    sent: list[OutboundMessage] = field(default_factory=list)
    """What arrived in a chat, in order of arrival."""
    signals: list[RunSignal] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    """Chats that ``reaches`` denies."""
    slow_s: dict[str, float] = field(default_factory=dict)
    """By chat: how long a ``send`` takes."""
    receiving: int = 0
    """How many ``receive`` calls are active."""
    closed: bool = False
    cut: bool = False
    _failures: defaultdict[str | None, deque[Failure]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    _inbound: asyncio.Queue[_Delivery | Exception] = field(default_factory=asyncio.Queue)
    _unconfirmed: _Delivery | None = None
    _gates: dict[str, asyncio.Event] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    # ------------------------------------------------------------------ what a test says

    def fail(self, *failures: Exception | Failure, chat: str | None = None) -> None:
        """Let the next sends fail, one after the other: to ``chat``, or to any."""
        for failure in failures:
            scripted = failure if isinstance(failure, Failure) else Failure(failure)
            self._failures[chat].append(scripted)

    def block(self, chat: str) -> None:
        """Let sends to ``chat`` hang until ``unblock``."""
        self._gates[chat] = asyncio.Event()

    def unblock(self, chat: str) -> None:
        """Let the hanging sends to ``chat`` arrive."""
        self._gates.pop(chat).set()

    async def deliver(self, *batch: InboundMessage) -> None:
        """Let ``receive`` take in a batch; returns when it is committed."""
        delivery = _Delivery(list(batch), asyncio.get_running_loop().create_future())
        self._inbound.put_nowait(delivery)
        await delivery.committed

    def break_off(self, error: Exception) -> None:
        """Let ``receive`` raise ``error`` after what was delivered before."""
        self._inbound.put_nowait(error)

    def cut_off(self) -> None:
        """Behave as in a process that was killed: nothing arrives any more, nothing is shown."""
        self.cut = True

    def texts(self, chat: str | None = None) -> list[str]:
        """The texts that arrived in one chat, or in all."""
        return [m.text for m in self.sent if chat is None or m.target.chat == chat]

    def shown(self, run_id: RunId) -> str:
        """What a run has streamed, as far as it was signalled."""
        mine = [s for s in self.signals if isinstance(s, RunText) and s.run_id == run_id]
        return "".join(signal.text for signal in mine)

    def ended(self) -> list[RunEnded]:
        """The ends of runs that were signalled."""
        return [signal for signal in self.signals if isinstance(signal, RunEnded)]

    async def until(self, reached: Callable[[], bool]) -> None:
        """Return once something is so that depends on what the channel was given."""
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    async def until_sent(self, messages: int) -> None:
        """Return once that many messages have arrived."""
        await self.until(lambda: len(self.sent) >= messages)

    # ------------------------------------------------------------------ what the runtime calls

    def reaches(self, chat: str) -> bool:
        """Whether the chat is not among the ``unreachable``."""
        return chat not in self.unreachable

    def parts(self, text: str) -> list[str]:
        """Cut by ``part_limit``."""
        return split_text(text, self.part_limit)

    async def receive(self, intake: Intake) -> None:
        """Hand over what ``deliver`` brings, in its order, again and again until committed.

        A batch that was not confirmed when this was cancelled is the first one of the next call.
        """
        self.receiving += 1
        self._changed.set()
        try:
            while True:
                delivery = self._unconfirmed or await self._inbound.get()
                if isinstance(delivery, Exception):
                    raise delivery
                self._unconfirmed = delivery
                await _offer(intake, delivery.batch)
                self._unconfirmed = None
                if not delivery.committed.done():
                    delivery.committed.set_result(None)
        finally:
            self.receiving -= 1
            self._changed.set()

    async def send(self, message: OutboundMessage) -> str:
        """Take as long and fail as the test says; ids count what arrived."""
        chat = message.target.chat
        self.attempts.append(message)
        self._changed.set()
        if (gate := self._gates.get(chat)) is not None:
            await gate.wait()
        if chat in self.slow_s:
            await asyncio.sleep(self.slow_s[chat])
        if self.cut:
            await asyncio.Event().wait()
        failure = self._next_failure(chat)
        if failure is None or failure.arrives:
            self.sent.append(message)
            self._changed.set()
        if failure is not None:
            raise failure.error
        return str(len(self.sent))

    def signal(self, signal: RunSignal) -> None:
        """Keep it."""
        if not self.cut:
            self.signals.append(signal)
            self._changed.set()

    async def close(self) -> None:
        """Note the call."""
        self.closed = True

    def _next_failure(self, chat: str) -> Failure | None:
        failures = self._failures[chat] or self._failures[None]
        return failures.popleft() if failures else None


async def _offer(intake: Intake, batch: Sequence[InboundMessage]) -> None:
    while True:
        try:
            await intake.accept(batch)
        except StoreUnavailable:
            await asyncio.sleep(OFFER_AGAIN_S)
        else:
            return
