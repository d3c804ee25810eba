"""Chats over HTTP: event streams, and what happens when a side goes away (SPEC CHAN-9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goclaw_py.chat.terminals import ChatEvent, OpenButtons, TerminalMessage, UploadedFile
from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.core.errors import NoGateway, NotAccepted, StoreUnavailable, UnknownAgent
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Button, FileKind, OutFile
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import (
    ButtonsUsed,
    LineReceived,
    PressAnswered,
    RunEnded,
    RunStarted,
    RunText,
    RunWaiting,
)
from goclaw_py.web.api import streams, wire
from goclaw_py.web.api.error_json import Refused
from goclaw_py.web.sockets import listen_unix, short_path
from tests.unit.web import fakes
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.harness import Gateway, gateway, until

pytestmark = pytest.mark.real_time


EVENTS: list[ChatEvent] = [
    RunStarted(fakes.RUN_ID, fakes.LOCAL),
    RunText(fakes.RUN_ID, fakes.LOCAL, "Zeile 1\n\nevent: said\r\ndata: ü\u2028\x85 "),
    RunWaiting(fakes.RUN_ID, fakes.LOCAL, "⏳ Still waiting for the model …"),
    RunEnded(fakes.RUN_ID, fakes.LOCAL, Outcome.COMPLETED),
    TerminalMessage("receipt", "a\nb", fakes.RUN_ID),
    TerminalMessage("receipt2", "c", None),
    TerminalMessage(
        "receipt3", "", None, OutFile(FileKind.PHOTO, "/w/ü.png", "ü.png", "image/png")
    ),
    OpenButtons(TerminalMessage("receipt4", "d", None, None, ((Button("✅ Done", "job:x"),),))),
    ButtonsUsed(fakes.LOCAL, "receipt4"),
    PressAnswered(fakes.LOCAL, "local:press:1", "✅ Done"),
    LineReceived(fakes.LOCAL, "m1", "Zeile 1\nü", ("a.txt",)),
]


async def test_a_chat_streams_its_events_unchanged(made: Gateway, remote: RemoteControl) -> None:
    got = []
    for event in EVENTS:
        made.terminals.events.put_nowait(event)
    async for event in remote.attach("local"):
        got.append(event)
        if len(got) == len(EVENTS):
            break
    assert got == EVENTS
    await until(lambda: made.terminals.detached == 1)
    assert made.terminals.attached == ["local"]


async def test_a_line_waits_until_the_terminal_is_attached(
    made: Gateway, remote: RemoteControl
) -> None:
    line = asyncio.create_task(remote.say("local", "m1", "hello"))
    await asyncio.sleep(0)
    assert made.terminals.said == []
    events = remote.attach("local")
    reading = asyncio.create_task(_first(events))
    await line
    assert made.terminals.attached == ["local"]
    assert made.terminals.said == [("local", "m1", "hello")]
    made.terminals.events.put_nowait(EVENTS[-1])
    assert await reading == EVENTS[-1]


async def _first(events: AsyncIterator[ChatEvent]) -> ChatEvent:
    async for event in events:
        return event
    raise AssertionError("the stream ended")


async def test_a_line_has_its_agent_and_files_and_a_button_is_pressed(
    made: Gateway, remote: RemoteControl
) -> None:
    reading = asyncio.create_task(_first(remote.attach("local")))
    files = (UploadedFile("0f", "a.txt"),)
    await remote.say("local", "m1", "look", agent=AgentName("coder"), files=files)
    assert made.terminals.more == [("coder", files)]
    with pytest.raises(UnknownAgent, match="there is no agent 'none'"):
        await remote.say("local", "m2", "look", agent=AgentName("none"))
    with pytest.raises(NotAccepted, match="at most 100 items"):
        await remote.say("local", "m3", "look", files=files * 101)
    coder = AgentName("coder")
    await remote.press("local", "p1", receipt="r1", data="job:done:x", agent=coder)
    assert made.terminals.more[-1] == (coder, ())
    assert made.terminals.pressed == [("local", "p1", "r1", "job:done:x")]
    for data in ("", "x" * 65):
        with pytest.raises(NotAccepted):
            await remote.press("local", "p2", receipt="r1", data=data)
    made.terminals.events.put_nowait(EVENTS[-1])
    await reading


async def test_a_line_that_is_not_committed_is_an_error_on_the_other_side(
    made: Gateway, remote: RemoteControl
) -> None:
    reading = asyncio.create_task(_first(remote.attach("local")))
    made.terminals.refusals = 1
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await remote.say("local", "m1", "hello")
    made.terminals.events.put_nowait(EVENTS[0])
    await reading


async def test_a_line_from_a_terminal_that_is_not_attached_fails_in_bounded_time(
    remote: RemoteControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goclaw_py.cli.client.control.ATTACH_S", 0.01)
    with pytest.raises(StoreUnavailable, match="not connected to the gateway yet"):
        await remote.say("local", "m1", "hello")


async def test_a_confirmation_arrives_even_if_the_client_leaves_at_once(tmp_path: Path) -> None:
    async with gateway(tmp_path) as made:
        async with RemoteControl(made.path) as remote:
            remote.confirm("r1")
        assert made.terminals.confirmed == ["r1"]
    async with RemoteControl(tmp_path / "gateway.sock") as remote:
        remote.confirm("nobody takes it")


async def test_a_confirmation_that_was_lost_is_repeated(
    made: Gateway, remote: RemoteControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway sends a chat nothing more before it knows that the last message was shown."""
    take, tries = made.terminals.confirm, []

    def confirm(receipt: str) -> None:
        tries.append(receipt)
        if len(tries) < 3:
            raise StoreUnavailable("not now")
        take(receipt)

    monkeypatch.setattr(made.terminals, "confirm", confirm)
    remote.confirm("r1")
    await until(lambda: made.terminals.confirmed == ["r1"])
    assert len(tries) == 3


async def test_stopping_the_server_ends_streams_and_tells_terminals(tmp_path: Path) -> None:
    made = Gateway(tmp_path / "gateway.sock")
    made.start()
    async with RemoteControl(made.path) as remote:
        reading = asyncio.create_task(_first(remote.attach("local")))
        await until(lambda: made.terminals.attached == ["local"])
        async with asyncio.timeout(1.5):
            await made.stop()
        with pytest.raises(NoGateway):
            await reading
    assert made.terminals.detached == 1
    assert not made.path.exists()


async def test_cancelling_the_server_ends_it_as_stopping_does(tmp_path: Path) -> None:
    made = Gateway(tmp_path / "gateway.sock")
    made.start()
    async with RemoteControl(made.path) as remote:
        await remote.people.list()
    made.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await made.task
    made.listener.close()


async def test_a_stream_of_a_bad_chat_or_that_its_terminals_end_is_over(
    made: Gateway, remote: RemoteControl
) -> None:
    with pytest.raises(NotAccepted):
        await _first(remote.attach("a:b"))
    made.terminals.events.put_nowait(None)
    with pytest.raises(NoGateway, match="has shut down or closed"):
        await _first(remote.attach("local"))


async def test_an_idle_stream_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PING_S", 0.01)
    lines = streams.stream(FakeTerminals().attach("local"), asyncio.Event(), wire.ATTACHED)
    got = [await anext(lines) for _ in range(3)]
    assert got == [wire.ATTACHED, wire.PING, wire.PING]
    await lines.aclose()  # type: ignore[attr-defined]  # an async generator


class Source:
    """Numbers as events, as fast as they are wanted."""

    def __init__(self, until: int, *, breaks: bool = False) -> None:
        self.taken = 0
        self.closed = False
        self._until = until
        self._breaks = breaks

    async def events(self) -> AsyncIterator[TerminalMessage]:
        try:
            while self.taken < self._until:
                self.taken += 1
                yield TerminalMessage(str(self.taken), "x", None)
            if self._breaks:
                raise StoreUnavailable("away")
        finally:
            self.closed = True


def numbers(written: list[bytes]) -> list[str]:
    found = wire.EventReader(wire.CHAT_EVENTS).feed(b"".join(written))
    return [event.receipt for event in found if isinstance(event, TerminalMessage)]


async def test_events_that_come_together_are_written_together() -> None:
    source = Source(50)
    lines = streams.stream(source.events(), asyncio.Event(), b": here\n\n", gather_s=0.01)
    first, *rest = [line async for line in lines]
    assert first == b": here\n\n"
    assert len(rest) == 1
    assert numbers(rest) == [str(number) for number in range(1, 51)]


async def test_every_event_is_written_once_however_many_come() -> None:
    source = Source(3_000)
    lines = streams.stream(source.events(), asyncio.Event(), b"")
    assert numbers([line async for line in lines]) == [str(n) for n in range(1, 3_001)]


async def test_little_is_taken_for_one_who_reads_nothing() -> None:
    """What is taken is kept for each reader; the feed keeps the rest once for all."""
    source = Source(1_000_000)
    lines = streams.stream(source.events(), asyncio.Event(), b"")
    await anext(lines)
    await anext(lines)
    before = source.taken
    await asyncio.sleep(0.05)
    assert source.taken - before <= streams._MOST_TOGETHER
    await lines.aclose()  # type: ignore[attr-defined]  # an async generator
    assert source.closed


async def test_what_has_come_before_the_end_is_written() -> None:
    source, closing = Source(1_000_000), asyncio.Event()
    lines = streams.stream(source.events(), closing, b"", gather_s=0.01)
    await anext(lines)
    await asyncio.sleep(0)
    closing.set()
    assert numbers([line async for line in lines])[0] == "1"
    assert source.closed


async def test_a_source_that_breaks_ends_the_stream_with_its_error() -> None:
    source = Source(3, breaks=True)
    lines = streams.stream(source.events(), asyncio.Event(), b"")
    written = [await anext(lines), await anext(lines)]
    with pytest.raises(StoreUnavailable, match="away"):
        await anext(lines)
    assert numbers(written) == ["1", "2", "3"]


async def test_a_foreign_server_is_not_understood(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        line = b"HTTP/1.1 500 no\r\n" if b"/people" in request else b"HTTP/1.1 200 ok\r\n"
        writer.write(line + b"content-length: 2\r\nconnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    path = tmp_path / "gateway.sock"
    with short_path(path) as name:
        server = await asyncio.start_unix_server(serve, name)
        async with server, RemoteControl(path) as remote:
            with pytest.raises(wire.Unreadable, match="same release"):
                await remote.sessions.list()
            with pytest.raises(Refused, match="answered 500"):
                await remote.people.list()


async def test_a_hanging_gateway_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goclaw_py.cli.client.control.TIMEOUT_S", 0.05)
    listener = listen_unix(tmp_path / "gateway.sock")
    try:
        async with RemoteControl(listener.path) as remote:
            with pytest.raises(NoGateway, match="in time"):
                await remote.lanes.status()
    finally:
        listener.close()


def test_unknown_events_and_comments_are_skipped() -> None:
    reader = wire.EventReader(wire.CHAT_EVENTS)
    stream = b": attached\n\nevent: later\ndata: {}\n\nid: 5\n\n: ping\n\n"
    assert list(reader.feed(stream)) == []
    said = wire.encode_event(EVENTS[-1])
    assert list(reader.feed(said)) == [EVENTS[-1]]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_read_from_pieces_of_any_size(size: int) -> None:
    raw = b"".join(wire.encode_event(event) for event in EVENTS)
    reader = wire.EventReader(wire.CHAT_EVENTS)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS
