"""The console: a person at a terminal of this machine (SPEC CHAN-9).

One object is the channel for the runtime and distributes messages to terminals. Whoever can reach
it can also read the state folder, so everybody here is the operator.

The web chat of invited people (SPEC CHAN-13) is a second channel of the same kind, whose terminals
are the pages in their browsers. They are guests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from channels.uploads import UploadFolder
from goclaw_py.chat.channel import Channel, InboundHandler, PlainChannel
from goclaw_py.chat.terminals import ChatEvent, OpenButtons, TerminalMessage, UploadedFile
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import (
    BadUpload,
    MaybeSent,
    NotSent,
    SettingError,
    StoreUnavailable,
    Undeliverable,
)
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.messages import (
    Attachment,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Sender,
    Target,
)
from goclaw_py.core.run_events import (
    ButtonsUsed,
    LineReceived,
    RoleChanged,
    RunEnded,
    RunSignal,
    RunStarted,
    RunText,
    RunWaiting,
    RunWaits,
)
from goclaw_py.core.session_keys import is_chat_name
from goclaw_py.core.text import is_blank
from goclaw_py.core.web_links import WEB, guest_of, is_guest_chat

NAME: Final = "console"
ACCOUNT: Final = "default"

TAKE_S: Final = 10.0
"""Seconds that a message waits for a terminal, or for one to show it if others could."""

INTAKE_S: Final = 5.0
"""Seconds that a line waits for the runtime to accept messages."""

BUFFER_CHARS: Final = 64 * 1024
"""Characters of streamed text that wait for a slow terminal; then it gets no more of that run."""

_ASKED: Final = 200
"""The number of messages whose buttons can still be shown to terminals that attach."""

_OPTIONS: Final = ("uploads", "max_bytes", "max_files")
SIGNALS: Final = 256
"""The number of signals that wait for a slow terminal."""


@dataclass(slots=True)
class _Live:
    """A run in progress of a chat, with its text so far."""

    started: RunStarted
    text: list[str] = field(default_factory=list)
    chars: int = 0
    waiting: RunWaiting | None = None

    def add(self, text: str) -> None:
        self.chars += len(text)
        self.text.append(text)
        if self.chars > BUFFER_CHARS:
            self.text.clear()

    def replay(self, terminal: _Terminal) -> None:
        """Send a terminal that attaches late what it missed."""
        terminal.print_signal(self.started)
        if self.chars > BUFFER_CHARS:
            terminal.skip_text(self.started.run_id)
        elif self.text:
            self.text = ["".join(self.text)]
            terminal.print_signal(RunText(self.started.run_id, self.started.target, self.text[0]))
        if self.waiting is not None:
            terminal.print_signal(self.waiting)


@dataclass(slots=True, eq=False)
class _Sending:
    """A message that is being sent to a terminal.

    ``taken``: a terminal got it and may have shown it; ``takers`` are those that are still
    attached. ``shown`` becomes True when it was shown, False when the last terminal of the chat
    detached.
    """

    chat: str
    said: TerminalMessage
    shown: asyncio.Future[bool]
    given: list[_Terminal] = field(default_factory=list)
    takers: list[_Terminal] = field(default_factory=list)
    taken: bool = False


class _Terminal:
    """The queue of a terminal. Messages are never dropped, streamed text is."""

    def __init__(self) -> None:
        self._events: deque[ChatEvent | _Sending] = deque()
        self._chars = 0
        self._lost: set[RunId] = set()
        self._filled = asyncio.Event()

    def print_message(self, sending: _Sending) -> None:
        self._push(sending)

    def withdraw(self, sending: _Sending) -> None:
        if sending in self._events:
            self._events.remove(sending)

    def print_signal(self, signal: ChatEvent) -> None:
        match signal:
            case RunText(run_id):
                if run_id not in self._lost:
                    self._print_text(signal)
                return
            case RunEnded(run_id):
                self._lost.discard(run_id)
        if len(self._events) >= SIGNALS:
            self._make_room()
        self._push(signal)

    def _print_text(self, signal: RunText) -> None:
        # A gap in a streamed text would be shown as if it were none, so after a drop the terminal
        # gets nothing more of this run until its whole text comes as a message.
        if self._chars + len(signal.text) > BUFFER_CHARS:
            self.skip_text(signal.run_id)
            return
        self._chars += len(signal.text)
        last = self._events[-1] if self._events else None
        if isinstance(last, RunText) and last.run_id == signal.run_id:
            self._events[-1] = RunText(last.run_id, last.target, last.text + signal.text)
        else:
            self._push(signal)

    def skip_text(self, run_id: RunId) -> None:
        """Drop all streamed text of this run."""
        self._lost.add(run_id)
        kept = [e for e in self._events if not (isinstance(e, RunText) and e.run_id == run_id)]
        self._events = deque(kept)
        self._chars = sum(len(e.text) for e in kept if isinstance(e, RunText))

    def _make_room(self) -> None:
        for run_id in {e.run_id for e in self._events if isinstance(e, RunText)}:
            self.skip_text(run_id)
        oldest = next((e for e in self._events if not isinstance(e, _Sending)), None)
        if oldest is not None and len(self._events) >= SIGNALS:
            self._events.remove(oldest)

    def _push(self, event: ChatEvent | _Sending) -> None:
        self._events.append(event)
        self._filled.set()

    async def get(self) -> ChatEvent:
        while not self._events:
            self._filled.clear()
            await self._filled.wait()
        event = self._events.popleft()
        if isinstance(event, _Sending):
            event.taken = True
            event.takers.append(self)
            return event.said
        if isinstance(event, RunText):
            self._chars -= len(event.text)
        return event


class ConsoleChannel(PlainChannel):
    """Implements ``Channel`` for the runtime; ``Terminals`` and ``Uploads`` for the terminals."""

    name = NAME
    account = ACCOUNT
    lease = None
    trusted = True
    handle = None
    _is_chat = staticmethod(is_chat_name)

    def __init__(
        self,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        uploads: UploadFolder | None = None,
        max_files: int = 10,
    ) -> None:
        """``now`` returns the wall time, timezone-aware in UTC."""
        self._now = now
        self._uploads = uploads
        self._max_files = max_files
        self._asked: LruCache[str, tuple[str, TerminalMessage]] = LruCache(_ASKED)
        """Messages with unused buttons, with their chats, by receipt."""
        self._terminals: dict[str, list[_Terminal]] = {}
        self._live: dict[RunId, _Live] = {}
        self._sending: dict[str, _Sending] = {}
        self._intake: InboundHandler | None = None
        self._ready = asyncio.Event()
        self._closed = False

    # ------------------------------------------------------------------ for the runtime

    def chat_problem(self, chat: str) -> str:
        """A name that no terminal or browser can open leads nowhere."""
        return "" if self._is_chat(chat) else "it is not the name of a conversation"

    def reaches(self, chat: str) -> bool:
        """Return whether a terminal of this chat is attached."""
        return chat in self._terminals

    def parts(self, text: str) -> list[str]:
        """Return the text as one part, unless it is blank."""
        return [] if is_blank(text) else [text]

    async def receive(self, intake: InboundHandler) -> None:
        """Accept lines from terminals until cancelled."""
        self._intake = intake
        self._ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._intake = None
            self._ready.clear()

    async def send(self, message: OutboundMessage) -> str:
        """Send a message to the terminals of its chat, until one of them has shown it.

        A suspended terminal (Ctrl-Z, a pager) has the message and will show it later, so this waits
        for it without limit; sending it again would show it twice. A terminal that attaches
        meanwhile gets it too, after at most ``TAKE_S``.

        Raises ``NotSent`` without a terminal, or if none took the message within ``TAKE_S``;
        ``MaybeSent`` if one took it, did not confirm it and has detached.
        """
        chat = message.target.chat
        if self._closed:
            raise NotSent("the console is closed")
        if chat not in self._terminals:
            raise NotSent(f"no terminal is attached to chat {chat}")
        facts = message.run_id, message.file, message.buttons, message.draft, message.rich
        said = TerminalMessage(uuid4().hex, message.text, *facts)
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        sending = _Sending(chat, said, future)
        self._sending[said.receipt] = sending
        self._give(sending)
        try:
            shown = await self._shown(sending)
        finally:
            del self._sending[said.receipt]
            if not sending.shown.done() or not sending.shown.result():
                for terminal in self._terminals.get(chat, ()):
                    terminal.withdraw(sending)
        if not shown and sending.taken:
            raise MaybeSent("no terminal confirmed that it showed the message")
        if not shown:
            raise NotSent("the terminal did not take the message")
        for receipt, (asked_in, one) in list(self._asked.items()):
            # It is replaced, or asks the same as this one, which has the buttons from now on.
            if receipt == said.replaces or (asked_in == chat and one.data == said.data):
                self.signal(ButtonsUsed(message.target, receipt))
        if said.buttons:
            self._asked[said.receipt] = chat, said
        return said.receipt

    async def _shown(self, sending: _Sending) -> bool:
        while True:
            await asyncio.wait([sending.shown], timeout=TAKE_S)
            if sending.shown.done():
                return sending.shown.result()
            if not sending.takers:
                return False
            self._give(sending)

    def _give(self, sending: _Sending) -> None:
        """Queue a message for every terminal of its chat, once each."""
        for terminal in self._terminals.get(sending.chat, ()):
            if terminal not in sending.given:
                sending.given.append(terminal)
                terminal.print_message(sending)

    def signal(self, signal: RunSignal) -> None:
        """Show a run, and keep its text for terminals that attach while it is running."""
        match signal:
            case RunWaits() | RoleChanged():
                return
            case ButtonsUsed(message=receipt):
                self._asked.pop(receipt, None)
            case RunStarted(run_id):
                self._live[run_id] = _Live(signal)
            case RunText(run_id, _, text):
                if (live := self._live.get(run_id)) is not None:
                    live.add(text)
            case RunWaiting(run_id):
                if (live := self._live.get(run_id)) is not None:
                    live.waiting = signal if signal.text else None
            case RunEnded(run_id):
                self._live.pop(run_id, None)
        for terminal in self._terminals.get(signal.target.chat, ()):
            terminal.print_signal(signal)

    async def close(self) -> None:
        """Show no more messages."""
        self._closed = True

    # ------------------------------------------------------------------ for the terminals

    async def attach(self, chat: str) -> AsyncIterator[ChatEvent]:
        """Yield events for a terminal, which is attached from the first step of the iterator on."""
        terminal = _Terminal()
        for live in self._live.values():
            if live.started.target.chat == chat:
                live.replay(terminal)
        for asked_in, said in self._asked.values():
            if asked_in == chat:
                terminal.print_signal(OpenButtons(said))
        self._terminals.setdefault(chat, []).append(terminal)
        try:
            while True:
                yield await terminal.get()
        finally:
            self._detach(chat, terminal)

    def _detach(self, chat: str, terminal: _Terminal) -> None:
        terminals = self._terminals[chat]
        terminals.remove(terminal)
        if not terminals:
            del self._terminals[chat]
        for sending in self._sending.values():
            if sending.chat != chat or sending.shown.done():
                continue
            if terminal in sending.takers:
                sending.takers.remove(terminal)
            if terminals:
                self._give(sending)
            else:
                sending.shown.set_result(False)

    async def say(
        self,
        chat: str,
        message_id: str,
        text: str,
        *,
        agent: AgentName | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> None:
        """Accept a line. Raises ``StoreUnavailable`` if the runtime does not accept it in time."""
        message = replace(
            self._message(chat, message_id, text),
            message_id=message_id,
            attachments=await self._attachments(files),
            agent=agent,
        )
        names = tuple(one.name for one in message.attachments)
        line = LineReceived(message.target, message_id, text, names)
        # Before it is stored: what it leads to is shown behind it. If the store is away, its sender
        # says it again with the same id.
        for terminal in self._terminals.get(chat, ()):
            terminal.print_signal(line)
        await self._accept(message)

    async def press(
        self,
        chat: str,
        press_id: str,
        *,
        receipt: str,
        data: str,
        agent: AgentName | None = None,
    ) -> None:
        """Accept a press. Raises ``StoreUnavailable`` if the runtime does not accept it in time."""
        message = self._message(chat, f"press:{press_id}", data)
        await self._accept(replace(message, press=data, reply_to=receipt, agent=agent))

    def _message(self, chat: str, own_id: str, text: str) -> InboundMessage:
        if not self._is_chat(chat):
            raise ValueError(f"a chat name has 1 to 64 of A-Z a-z 0-9 . _ -, not {chat!r}")
        return InboundMessage(
            external_id=f"{chat}:{own_id}",
            target=Target(self.name, self.account, chat),
            peer=PeerKind.DIRECT,
            sender=self._sender(chat),
            text=text,
            sent_at=self._now(),
        )

    async def _attachments(self, files: Sequence[UploadedFile]) -> tuple[Attachment, ...]:
        if not files:
            return ()
        if self._uploads is None or len(files) > self._max_files:
            raise BadUpload(f"a message may have at most {self._max_files} files")
        return tuple([await self._uploads.attachment(one.ref, one.name) for one in files])

    async def _accept(self, message: InboundMessage) -> None:
        try:
            async with asyncio.timeout(INTAKE_S):
                while (intake := self._intake) is None:
                    await self._ready.wait()
        except TimeoutError:
            raise StoreUnavailable("the gateway accepts no messages now") from None
        await intake.accept([message])

    def _sender(self, chat: str) -> Sender:
        return Sender(chat)

    @property
    def max_files(self) -> int:
        """The largest number of files in a message."""
        return self._max_files

    @property
    def max_bytes(self) -> int:
        """The size of the largest file; 0 if there are no uploads."""
        return 0 if self._uploads is None else self._uploads.max_bytes

    async def upload(self, name: str, body: AsyncIterator[bytes], *, guest: str = "") -> Attachment:
        """Store a file for a message. Raises ``BadUpload``."""
        if self._uploads is None:
            raise BadUpload("this gateway accepts no files")
        return await self._uploads.save(name, body, now=self._now(), guest=guest)

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Move an uploaded file. Raises ``Undeliverable`` if it is gone, ``NotSent`` otherwise."""
        if self._uploads is None:
            raise Undeliverable("this gateway accepts no files")
        await self._uploads.move(attachment.ref, to)

    def confirm(self, receipt: str) -> None:
        """Confirm that a message was shown."""
        sending = self._sending.get(receipt)
        if sending is not None and not sending.shown.done():
            sending.shown.set_result(True)


class WebChannel(ConsoleChannel):
    """The web chat of invited people."""

    name = WEB
    trusted = False
    _is_chat = staticmethod(is_guest_chat)

    def _sender(self, chat: str) -> Sender:
        person = guest_of(chat)
        return Sender(person, person)


class ConsoleKind:
    """Creates the console."""

    name = NAME

    def build(self, account: str, options: Mapping[str, object]) -> Channel:
        """Create its only account, or the channel ``web``.

        Its options are ``[web]``'s: ``uploads`` (the folder), ``max_bytes`` and ``max_files``.
        Raises ``SettingError`` for other ones.
        """
        for key, value in options.items():
            if key not in _OPTIONS:
                raise SettingError(
                    key, value, "unknown key; remove it: the console has no settings of its own"
                )
        if account not in (ACCOUNT, WEB):
            raise SettingError(
                f"accounts.{account}",
                account,
                "unknown key; remove it: the console has only one account",
            )
        channel = WebChannel if account == WEB else ConsoleChannel
        folder, max_bytes, max_files = map(options.get, _OPTIONS)
        if not (isinstance(folder, Path) and isinstance(max_bytes, int)):
            return channel()
        assert isinstance(max_files, int)
        return channel(uploads=UploadFolder(folder, max_bytes), max_files=max_files)


factory = ConsoleKind()
