"""Rigs of our own channels, for the suite that every channel has to pass."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from channels.console import ConsoleChannel
from channels.console import factory as console_kind
from goclaw_py.chat.terminals import TerminalMessage
from goclaw_py.core.errors import (
    ChannelRefused,
    ChatGone,
    ChatMoved,
    MaybeSent,
    NotSent,
    RateLimited,
    StoreUnavailable,
    Undeliverable,
)
from goclaw_py.core.messages import Attachment, FileKind, InboundMessage, PeerKind, Sender, Target
from goclaw_py.testing.channel import RecordingChannel, SendFailure
from goclaw_py.testing.conformance import Offer, Rig, SeenMessage, Trouble

_NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)

# ---------------------------------------------------------------------------- the recording channel


class RecordingRig(Rig):
    """The fake of this project; what its server would hold is held here."""

    offers = frozenset(Offer) - {Offer.HOOK, Offer.SETTINGS}
    troubles = frozenset(Trouble)
    ann = Target("telegram", "default", "ann")
    ben = Target("telegram", "default", "ben")
    patience_s = 30.0

    def __init__(self, make: Callable[[], RecordingChannel] = RecordingChannel) -> None:
        self._make = make
        self._numbers = count(1)
        self._held: dict[InboundMessage, asyncio.Task[None]] = {}
        self._last: InboundMessage | None = None
        self.channel: RecordingChannel = make()
        self.channel.drafting = True

    def say(self, chat: Target, text: str) -> None:
        self._hold(self._message(chat, text))

    def say_again(self) -> None:
        assert self._last is not None
        self._hold(self._last)

    def say_file(self, chat: Target, content: bytes) -> None:
        message = self._message(chat, "see")
        self.channel.files[message.external_id] = content
        file = Attachment(FileKind.DOCUMENT, message.external_id, size=len(content))
        self._hold(replace(message, attachments=(file,)))

    def unconfirmed(self) -> int:
        return len(self._held)

    def seen(self, chat: Target) -> list[SeenMessage]:
        channel = self.channel
        drafts = {
            number: SeenMessage(number, shown[-1])
            for number, shown in channel.drafted.items()
            if number not in channel.deleted and chat.chat == self.ann.chat
        }
        for number, sent in enumerate(channel.sent, 1):
            if sent.target.chat == chat.chat and (sent.draft is None or sent.draft in drafts):
                one = SeenMessage(
                    sent.draft or str(number), sent.text, channel.uploads.get(str(number))
                )
                drafts[one.id] = one
        return list(drafts.values())

    def delete(self, chat: Target, message_id: str) -> None:
        self.channel.deleted.add(message_id)

    async def restart(self) -> None:
        old = self.channel
        await old.close()
        held = list(self._held)
        await self.close()
        self.channel = self._make()
        self.channel.drafting = True
        self.channel.sent, self.channel.drafted = old.sent, old.drafted
        self.channel.files, self.channel.deleted = old.files, old.deleted
        for message in held:
            self._hold(replace(message, redelivered=True))

    async def cause(self, trouble: Trouble) -> None:
        channel, ann = self.channel, self.ann.chat
        match trouble:
            case Trouble.AWAY:
                channel.fail(NotSent("no route"))
                self._files_gone = dict(channel.files)
                channel.files = dict.fromkeys(channel.files, NotSent("no route"))
            case Trouble.ANSWER_LOST:
                # By chat, an edit's lost answer is told from a message's.
                is_edit = bool(channel.drafted)
                error = NotSent("no answer") if is_edit else MaybeSent("no answer")
                channel.fail(SendFailure(error, arrives=True))
            case Trouble.HANGS:
                channel.block(ann)
                channel.slow_files_s = 1_000.0
            case Trouble.FLOOD:
                channel.fail(RateLimited("slow down", 7.0))
            case Trouble.MESSAGE_REFUSED:
                channel.fail(Undeliverable("too odd"))
            case Trouble.CHAT_GONE:
                channel.fail(ChatGone("blocked"), chat=ann)
            case Trouble.CHAT_MOVED:
                channel.fail(ChatMoved("moved", "anna"), chat=ann)
            case Trouble.ACCOUNT_REFUSED:
                channel.fail(ChannelRefused("wrong token"))
                channel.break_off(ChannelRefused("wrong token"))

    async def calm(self) -> None:
        self.channel.heal()
        self.channel.slow_files_s = 0.0
        with suppress(KeyError):
            self.channel.unblock(self.ann.chat)
        self.channel.files |= getattr(self, "_files_gone", {})

    async def close(self) -> None:
        """End what is still held."""
        tasks = list(self._held.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _message(self, chat: Target, text: str) -> InboundMessage:
        number = str(next(self._numbers))
        sender = Sender(chat.chat)
        external = f"{chat.chat}:{number}"
        return InboundMessage(
            external, chat, PeerKind.DIRECT, sender, text, _NOW, message_id=number
        )

    def _hold(self, message: InboundMessage) -> None:
        task = asyncio.create_task(self.channel.deliver(message), name="held")
        self._held[message] = task
        task.add_done_callback(lambda done: self._done(message, done))

    def _done(self, message: InboundMessage, task: asyncio.Task[None]) -> None:
        del self._held[message]
        if not task.cancelled():
            self._last = message


@asynccontextmanager
async def recording(
    make: Callable[[], RecordingChannel] = RecordingChannel,
) -> AsyncIterator[RecordingRig]:
    """The recording channel, or one that is made like it."""
    rig = RecordingRig(make)
    try:
        yield rig
    finally:
        await rig.close()
        await rig.channel.close()


# ---------------------------------------------------------------------------- the console


class Terminal:
    """A person's terminal, which shows what it is told and says so."""

    def __init__(self, shown: list[SeenMessage]) -> None:
        self.confirms = True
        self.leaves_after_next = False
        self._shown = shown
        self._task: asyncio.Task[None] | None = None

    def attach(self, channel: ConsoleChannel, chat: str) -> None:
        self._task = asyncio.create_task(self._read(channel, chat), name="terminal")

    async def detach(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _read(self, channel: ConsoleChannel, chat: str) -> None:
        events = channel.attach(chat)
        async with contextlib.aclosing(events) as events:  # type: ignore[type-var]  # a generator
            async for event in events:
                if not isinstance(event, TerminalMessage):
                    continue
                shown = [event.text] if event.text else []
                shown += [f"{file.name}: {file.path}"] if (file := event.file) else []
                self._shown.append(SeenMessage(event.receipt, "\n".join(shown)))
                if self.leaves_after_next:
                    return
                if self.confirms:
                    channel.confirm(event.receipt)


class ConsoleRig(Rig):
    """Two people at terminals, whose lines are said again until they are taken."""

    offers = frozenset({Offer.SETTINGS, Offer.DELIVERS_AGAIN})
    troubles = frozenset({Trouble.AWAY, Trouble.HANGS, Trouble.ANSWER_LOST})
    ann = Target("console", "default", "ann")
    ben = Target("console", "default", "ben")
    patience_s = 60.0
    kind = console_kind

    def __init__(self) -> None:
        self.channel: ConsoleChannel = ConsoleChannel()
        self._numbers = count(1)
        self._said = ("", "", "")
        self._saying: dict[str, asyncio.Queue[tuple[str, str, str]]] = {}
        self._waiting = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._shown: dict[str, list[SeenMessage]] = {chat.chat: [] for chat in (self.ann, self.ben)}
        self._terminals = {chat: Terminal(shown) for chat, shown in self._shown.items()}

    async def open(self) -> None:
        """Let both come."""
        for chat, terminal in self._terminals.items():
            terminal.attach(self.channel, chat)
            self._saying[chat] = asyncio.Queue()
            self._tasks.append(asyncio.create_task(self._speak(chat), name="keyboard"))
        await self._until_attached()

    async def close(self) -> None:
        """Let both leave."""
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        for terminal in self._terminals.values():
            await terminal.detach()

    def say(self, chat: Target, text: str) -> None:
        self._type((chat.chat, str(next(self._numbers)), text))

    def say_again(self) -> None:
        self._type(self._said)

    def unconfirmed(self) -> int:
        return self._waiting

    def seen(self, chat: Target) -> list[SeenMessage]:
        return list(self._shown.get(chat.chat, ()))

    async def restart(self) -> None:
        await self.channel.close()
        for terminal in self._terminals.values():
            await terminal.detach()
        self.channel = ConsoleChannel()
        for chat, terminal in self._terminals.items():
            terminal.attach(self.channel, chat)
        await self._until_attached()

    async def cause(self, trouble: Trouble) -> None:
        terminal = self._terminals[self.ann.chat]
        if trouble is Trouble.AWAY:
            await terminal.detach()
        elif trouble is Trouble.HANGS:
            terminal.confirms = False
        else:
            terminal.leaves_after_next = True

    async def calm(self) -> None:
        terminal = self._terminals[self.ann.chat]
        await terminal.detach()
        terminal.confirms, terminal.leaves_after_next = True, False
        terminal.attach(self.channel, self.ann.chat)
        await self._until_attached()

    async def _until_attached(self) -> None:
        while not all(map(self.channel.reaches, self._terminals)):
            await asyncio.sleep(0)

    def _type(self, line: tuple[str, str, str]) -> None:
        self._waiting += 1
        self._saying[line[0]].put_nowait(line)

    async def _speak(self, chat: str) -> None:
        """Say one line after the other, as ``goclaw chat`` does."""
        while True:
            line = await self._saying[chat].get()
            while not await self._is_accepted(line):
                await asyncio.sleep(0.2)
            self._said = line
            self._waiting -= 1

    async def _is_accepted(self, line: tuple[str, str, str]) -> bool:
        try:
            await self.channel.say(*line)
        except (StoreUnavailable, RuntimeError):
            return False
        return True


@asynccontextmanager
async def console() -> AsyncIterator[ConsoleRig]:
    """The console with two terminals."""
    rig = ConsoleRig()
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()
        await rig.channel.close()
