"""The console channel, from both of its sides (SPEC CHAN-9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from channels import console
from channels.console import ConsoleChannel, factory
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.terminals import (
    ChatEvent,
    OpenButtons,
    TerminalMessage,
    Terminals,
    UploadedFile,
    Uploads,
)
from goclaw_py.core.errors import (
    BadUpload,
    MaybeSent,
    NotFound,
    NotSent,
    SettingError,
    StoreUnavailable,
    Undeliverable,
)
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.messages import (
    Attachment,
    Button,
    FileKind,
    Inbound,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Sender,
    Target,
)
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import (
    ButtonsUsed,
    LineReceived,
    PressAnswered,
    RunEnded,
    RunSignal,
    RunStarted,
    RunText,
    RunWaiting,
)

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
LOCAL = Target("console", "default", "local")
RUN = RunId("r1")


class Inbox:
    def __init__(self) -> None:
        self.messages: list[InboundMessage] = []

    async def accept(self, batch: Sequence[Inbound]) -> None:
        self.messages += [message for message in batch if isinstance(message, InboundMessage)]


class Terminal:
    """Reads a chat's events; ``close`` is what happens when the person leaves."""

    def __init__(self, terminals: Terminals, chat: str = "local") -> None:
        self.events: list[ChatEvent] = []
        self._terminals = terminals
        self._confirming = True
        self._task = asyncio.ensure_future(self._read(chat))

    def never_confirm(self) -> Terminal:
        self._confirming = False
        return self

    async def _read(self, chat: str) -> None:
        events = self._terminals.attach(chat)
        try:
            async for event in events:
                self.events.append(event)
                if isinstance(event, TerminalMessage) and self._confirming:
                    self._terminals.confirm(event.receipt)
        finally:
            await events.aclose()  # type: ignore[attr-defined]  # an async generator

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def said(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TerminalMessage)]

    @property
    def streamed(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, RunText))


@asynccontextmanager
async def attached(
    channel: ConsoleChannel, chat: str = "local", *, confirming: bool = True
) -> AsyncIterator[Terminal]:
    terminal = Terminal(channel, chat)
    if not confirming:
        terminal.never_confirm()
    await settle()
    try:
        yield terminal
    finally:
        await terminal.close()


@pytest.fixture
def channel() -> ConsoleChannel:
    return ConsoleChannel()


@asynccontextmanager
async def stuck(channel: ConsoleChannel) -> AsyncIterator[AsyncIterator[ChatEvent]]:
    """A terminal that has seen a run begin and reads nothing more by itself."""
    events = channel.attach("local")
    first = asyncio.ensure_future(anext(events))
    await settle()
    channel.signal(RunStarted(RUN, LOCAL))
    await first
    yield events
    await events.aclose()  # type: ignore[attr-defined]  # an async generator


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def message(text: str, chat: str = "local") -> OutboundMessage:
    return OutboundMessage(Target("console", "default", chat), text)


@asynccontextmanager
async def receiving(channel: ConsoleChannel) -> AsyncIterator[Inbox]:
    inbox = Inbox()
    task = asyncio.ensure_future(channel.receive(inbox))
    await settle()
    try:
        yield inbox
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_what_is_said_at_the_terminal_is_an_inbound_message_of_a_direct_chat() -> None:
    channel = ConsoleChannel(lambda: NOW)
    async with receiving(channel) as inbox:
        await channel.say("local", "m1", "hello")
    (got,) = inbox.messages
    assert (got.external_id, got.message_id, got.text) == ("local:m1", "m1", "hello")
    assert (got.target, got.peer, got.sender.id) == (LOCAL, PeerKind.DIRECT, "local")
    assert got.sent_at == NOW


async def test_what_a_guest_says_is_theirs_in_each_of_their_chats() -> None:
    """CHAN-13: a guest is nobody's operator."""
    channel = factory.build("web", {})
    assert isinstance(channel, ConsoleChannel)
    assert (channel.name, channel.account, channel.trusted) == ("web", "default", False)
    async with receiving(channel) as inbox:
        await channel.say("ann", "m1", "hello")
        await channel.say("ann.trip", "m1", "hello")
        await channel.press("ann.trip", "p1", receipt="r", data="retry:x")
        await channel.say("Анна.2", "m1", "hello")
        with pytest.raises(ValueError, match="a chat name has"):
            await channel.say("a b", "m1", "hello")
    chats = [one.target.chat for one in inbox.messages]
    assert chats == ["ann", "ann.trip", "ann.trip", "Анна.2"]
    assert {one.target.channel for one in inbox.messages} == {"web"}
    senders = [one.sender for one in inbox.messages]
    assert senders == [*[Sender("ann", "ann")] * 3, Sender("Анна", "Анна")]
    assert len({one.external_id for one in inbox.messages}) == 4


async def test_a_line_waits_for_the_runtime_to_take_messages(channel: ConsoleChannel) -> None:
    line = asyncio.ensure_future(channel.say("local", "m1", "early"))
    await settle()
    async with receiving(channel) as inbox:
        await line
    assert [m.text for m in inbox.messages] == ["early"]


async def test_a_line_that_nobody_takes_fails_in_bounded_time() -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    with pytest.raises(StoreUnavailable):
        await ConsoleChannel().say("local", "m1", "early")
    assert loop.time() - before == console.INTAKE_S


async def test_a_line_fails_when_messages_are_no_longer_taken(channel: ConsoleChannel) -> None:
    async with receiving(channel):
        pass
    with pytest.raises(StoreUnavailable):
        await channel.say("local", "m1", "late")


@pytest.mark.parametrize("chat", ["", "a:b", "a/b", "-a", "x" * 65, "ä"])
async def test_a_chat_name_that_would_break_a_session_key_is_refused(chat: str) -> None:
    """SPEC IO-7."""
    with pytest.raises(ValueError, match="chat name has"):
        await ConsoleChannel().say(chat, "m1", "x")


async def test_a_message_is_sent_when_the_terminal_has_confirmed_it(
    channel: ConsoleChannel,
) -> None:
    """SPEC IO-6."""
    async with attached(channel) as terminal:
        receipt = await channel.send(message("hi"))
    (event,) = terminal.events
    assert event == TerminalMessage(receipt, "hi", None)


async def test_a_line_is_shown_by_all_terminals_of_its_chat(channel: ConsoleChannel) -> None:
    async with receiving(channel), attached(channel) as one, attached(channel, "other") as other:
        await channel.say("local", "m1", "hello")
        await settle()
    assert one.events == [LineReceived(LOCAL, "m1", "hello")]
    assert other.events == []


async def test_a_chat_without_terminal_does_not_hold_up_another(channel: ConsoleChannel) -> None:
    async with attached(channel, "other") as terminal:
        assert channel.reaches("other")
        assert not channel.reaches("local")
        with pytest.raises(NotSent):
            await channel.send(message("hi", "local"))
        await channel.send(message("ho", "other"))
    assert terminal.said == ["ho"]
    assert not channel.reaches("other")


async def test_a_terminal_that_stands_still_shows_it_once_later(channel: ConsoleChannel) -> None:
    """Ctrl-Z, or a pager that nobody scrolls. SPEC IO-5: it would appear again for each try."""
    async with attached(channel, confirming=False) as terminal:
        sending = asyncio.ensure_future(channel.send(message("hi")))
        await asyncio.sleep(86_400)
        assert not sending.done()
        (said,) = (event for event in terminal.events if isinstance(event, TerminalMessage))
        channel.confirm(said.receipt)
        assert await sending == said.receipt
    assert terminal.said == ["hi"]


async def test_what_one_that_stands_still_took_is_shown_by_another(channel: ConsoleChannel) -> None:
    async with attached(channel, confirming=False) as still:
        sending = asyncio.ensure_future(channel.send(message("hi")))
        await asyncio.sleep(61)
        async with attached(channel) as other:
            async with asyncio.timeout(console.TAKE_S):
                await sending
    assert (still.said, other.said) == (["hi"], ["hi"])


async def test_what_a_terminal_did_not_take_may_have_been_shown(channel: ConsoleChannel) -> None:
    loop = asyncio.get_running_loop()
    async with stuck(channel):
        async with attached(channel, confirming=False):
            sending = asyncio.ensure_future(channel.send(message("hi")))
            await asyncio.sleep(1)
        with pytest.raises(MaybeSent):
            await sending
        # The stuck one has its own time; the message does not wait behind it for ever.
        assert loop.time() <= 1 + 2 * console.TAKE_S


async def test_what_a_stuck_terminal_never_took_is_not_sent(channel: ConsoleChannel) -> None:
    async with stuck(channel) as events:
        before = asyncio.get_running_loop().time()
        with pytest.raises(NotSent):
            await channel.send(message("hi"))
        assert asyncio.get_running_loop().time() - before == console.TAKE_S
        channel.signal(RunEnded(RUN, LOCAL, Outcome.COMPLETED))
        assert await anext(events) == RunEnded(RUN, LOCAL, Outcome.COMPLETED)


async def test_an_unconfirmed_message_is_shown_by_who_is_left(channel: ConsoleChannel) -> None:
    async with attached(channel) as first:
        async with attached(channel, confirming=False) as second:
            sending = asyncio.ensure_future(channel.send(message("hi")))
            await settle()
        await sending
    assert (first.said, second.said) == (["hi"], ["hi"])


async def test_a_terminal_that_leaves_disturbs_no_other(channel: ConsoleChannel) -> None:
    older = Terminal(channel).never_confirm()
    await settle()
    async with attached(channel, confirming=False) as newer:
        sending = asyncio.ensure_future(channel.send(message("hi")))
        await settle()
        await older.close()
        assert not sending.done()
        (said,) = (event for event in newer.events if isinstance(event, TerminalMessage))
        channel.confirm(said.receipt)
        await sending
    assert newer.said == ["hi"]


async def test_every_terminal_of_a_chat_shows_its_messages(channel: ConsoleChannel) -> None:
    """One confirmation is enough; the others still show it."""
    async with attached(channel) as first, attached(channel, confirming=False) as second:
        await channel.send(message("hi"))
        await settle()
    assert (first.said, second.said) == (["hi"], ["hi"])


async def test_an_unknown_receipt_is_ignored() -> None:
    ConsoleChannel().confirm("nothing")


async def test_every_terminal_of_a_chat_sees_what_a_run_does(channel: ConsoleChannel) -> None:
    signals: list[RunSignal] = [
        RunStarted(RUN, LOCAL),
        RunText(RUN, LOCAL, "Hel"),
        RunText(RUN, LOCAL, "lo"),
        RunEnded(RUN, LOCAL, Outcome.COMPLETED),
    ]
    async with attached(channel) as one, attached(channel) as two, attached(channel, "x") as other:
        for signal in signals:
            channel.signal(signal)
            await settle()
    assert one.events == signals
    assert two.events == signals
    assert other.events == []


async def test_who_attaches_during_a_run_gets_its_text_so_far(channel: ConsoleChannel) -> None:
    channel.signal(RunStarted(RUN, LOCAL))
    channel.signal(RunText(RUN, LOCAL, "Hel"))
    channel.signal(RunText(RUN, LOCAL, "lo"))
    async with attached(channel) as terminal, attached(channel, "elsewhere") as other:
        channel.signal(RunText(RUN, LOCAL, "!"))
        await settle()
    assert terminal.events[0] == RunStarted(RUN, LOCAL)
    assert terminal.streamed == "Hello!"
    assert other.events == []


@pytest.mark.parametrize("later", ["", "⏳ Waiting for your answer …"])
async def test_who_attaches_is_told_what_the_run_waits_for(
    channel: ConsoleChannel, later: str
) -> None:
    channel.signal(RunStarted(RUN, LOCAL))
    for text in ("⏳ Waiting for the model …", later):
        channel.signal(RunWaiting(RUN, LOCAL, text))
    async with attached(channel) as terminal:
        await settle()
    waiting = [RunWaiting(RUN, LOCAL, later)] if later else []
    assert terminal.events == [RunStarted(RUN, LOCAL), *waiting]


async def test_who_attaches_after_a_run_sees_nothing_of_it(channel: ConsoleChannel) -> None:
    channel.signal(RunStarted(RUN, LOCAL))
    channel.signal(RunEnded(RUN, LOCAL, Outcome.COMPLETED))
    channel.signal(RunText(RUN, LOCAL, "late"))
    async with attached(channel) as terminal:
        pass
    assert terminal.events == []


async def test_a_text_too_long_to_keep_is_not_shown_in_part(channel: ConsoleChannel) -> None:
    channel.signal(RunStarted(RUN, LOCAL))
    channel.signal(RunText(RUN, LOCAL, "x" * (console.BUFFER_CHARS + 1)))
    async with attached(channel) as terminal:
        channel.signal(RunText(RUN, LOCAL, "tail"))
        await settle()
        await channel.send(message("whole"))
    assert terminal.streamed == ""
    assert terminal.said == ["whole"]


async def test_a_stuck_terminal_loses_text_but_no_message(channel: ConsoleChannel) -> None:
    async with stuck(channel) as events:
        sending = asyncio.ensure_future(channel.send(message("whole")))
        await settle()
        for _ in range(console.BUFFER_CHARS // 100 + 2):
            channel.signal(RunText(RUN, LOCAL, "x" * 100))
        for n in range(console.SIGNALS * 2):
            channel.signal(RunStarted(RunId(f"other{n}"), LOCAL))
        got: list[ChatEvent] = []
        while not isinstance(event := await anext(events), TerminalMessage):
            got.append(event)
        channel.confirm(event.receipt)
        await sending
        got += [await anext(events) for _ in range(console.SIGNALS - 1)]
        assert not any(isinstance(e, RunText) for e in got)
        channel.signal(RunEnded(RUN, LOCAL, Outcome.COMPLETED))
        assert await anext(events) == RunEnded(RUN, LOCAL, Outcome.COMPLETED)


async def test_waiting_text_makes_room_before_signals_do(channel: ConsoleChannel) -> None:
    async with stuck(channel) as events:
        for n in range(console.SIGNALS // 2):
            channel.signal(RunStarted(RunId(f"a{n}"), LOCAL))
            channel.signal(RunText(RunId(f"a{n}"), LOCAL, "x"))
        channel.signal(RunStarted(RunId("last"), LOCAL))
        got = [await anext(events) for _ in range(console.SIGNALS // 2 + 1)]
        assert all(isinstance(event, RunStarted) for event in got)


def test_a_blank_reply_is_no_message(channel: ConsoleChannel) -> None:
    assert channel.parts(" \n") == []
    assert channel.parts("x" * 100_000) == ["x" * 100_000]


def test_the_kind_makes_a_channel_that_everybody_may_use_without_lease() -> None:
    channel: Channel = factory.build("default", {})
    assert (channel.name, channel.account, channel.lease) == ("console", "default", None)
    assert channel.trusted
    assert channel.handle is None
    assert isinstance(channel, ConsoleChannel)


@pytest.mark.parametrize(
    ("account", "options", "key"),
    [("default", {"token": "x"}, "token"), ("work", {}, "accounts.work")],
)
def test_the_console_has_no_settings(account: str, options: dict[str, object], key: str) -> None:
    with pytest.raises(SettingError) as caught:
        factory.build(account, options)
    assert caught.value.key == key


@pytest.mark.real_time
async def test_a_message_has_its_agent_and_its_files(tmp_path: Path) -> None:
    options = {"uploads": tmp_path / "up", "max_bytes": 9, "max_files": 1}
    channel = factory.build("default", options)
    assert isinstance(channel, ConsoleChannel)
    assert isinstance(channel, Uploads)
    assert (channel.max_bytes, channel.max_files) == (9, 1)

    async def body() -> AsyncIterator[bytes]:
        yield b"text"

    stored = await channel.upload("a.txt", body())
    async with receiving(channel) as inbox:
        one = UploadedFile(stored.ref, "b.txt")
        await channel.say("local", "m1", "look", agent=AgentName("coder"), files=[one])
        with pytest.raises(BadUpload, match="at most 1 files"):
            await channel.say("local", "m2", "look", files=[one, one])
        with pytest.raises(NotFound):
            await channel.say("local", "m3", "look", files=[UploadedFile("0" * 32, "c")])
    (got,) = inbox.messages
    assert got.agent == "coder"
    assert got.attachments == (Attachment(FileKind.DOCUMENT, stored.ref, "b.txt", "text/plain", 4),)
    await channel.fetch(got.attachments[0], tmp_path / "there")
    assert (tmp_path / "there").read_text() == "text"


async def test_a_message_that_is_replaced_or_asked_again_loses_its_buttons(
    channel: ConsoleChannel,
) -> None:
    """Found by use: each /queue left one more row of buttons."""

    def asks(label: str, data: str = "queue:steer", draft: str | None = None) -> OutboundMessage:
        rows = ((Button(label, data),),)
        return replace(message(label), buttons=rows, draft=draft)

    async with receiving(channel), attached(channel) as terminal:
        first = await channel.send(asks("one"))
        second = await channel.send(asks("two"))
        other = await channel.send(asks("other", "job:done:1"))
        third = await channel.send(asks("three", "queue:done", second))
        await settle()
        used = [event.message for event in terminal.events if isinstance(event, ButtonsUsed)]
        assert used == [first, second]
        async with attached(channel) as late:
            open_buttons = [one.message for one in late.events if isinstance(one, OpenButtons)]
    assert [one.receipt for one in open_buttons] == [other, third]
    assert [one.replaces for one in open_buttons] == [None, second]


async def test_without_a_folder_there_are_no_files(tmp_path: Path) -> None:
    channel = ConsoleChannel()
    with pytest.raises(BadUpload):
        await channel.say("local", "m1", "x", files=[UploadedFile("0" * 32, "a")])
    with pytest.raises(Undeliverable):
        await channel.fetch(Attachment(FileKind.DOCUMENT, "0" * 32), tmp_path / "there")
    assert channel.max_bytes == 0


async def test_a_button_is_pressed_and_goes_from_every_terminal(channel: ConsoleChannel) -> None:
    buttons = ((Button("Done", "job:done:1"),),)
    asked = replace(message("Tea!"), buttons=buttons)
    async with receiving(channel) as inbox, attached(channel) as first:
        receipt = await channel.send(asked)
        coder = AgentName("coder")
        await channel.press("local", "p1", receipt=receipt, data="job:done:1", agent=coder)
        (got,) = inbox.messages
        assert got.external_id == "local:press:p1"
        assert (got.press, got.reply_to, got.agent) == ("job:done:1", receipt, coder)
        async with attached(channel) as late, attached(channel, "other") as other:
            said = TerminalMessage(receipt, "Tea!", None, None, buttons)
            assert (first.events, late.events) == ([said], [OpenButtons(said)])
            ends: list[ButtonsUsed | PressAnswered] = [
                PressAnswered(LOCAL, "local:press:p1", "Done"),
                ButtonsUsed(LOCAL, receipt),
            ]
            for signal in ends:
                channel.signal(signal)
            await settle()
            assert (first.events[1:], late.events[1:], other.events) == (ends, ends, [])
        async with attached(channel) as last:
            assert last.events == []
