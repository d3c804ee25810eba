"""The hooks' server on a real unix socket, and a client that speaks raw HTTP.

A unix socket hands bytes over at once, so that virtual time never overtakes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from goclaw_py.chat.channel import Hook, WebAnswer, WebRequest
from goclaw_py.web.hooks import HookApp
from goclaw_py.web.server import HttpServer
from goclaw_py.web.sockets import listen_unix, short_path

PATH = "/hook"
MOST_BYTES = 100_000
OK = WebAnswer(200)
GOOD = b"POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


@dataclass
class Sink:
    """Keeps what a hook is asked, and answers as the test says."""

    answer: WebAnswer = OK
    requests: list[WebRequest] = field(default_factory=list)
    working: int = 0
    most_working: int = 0
    error: Exception | None = None
    gate: asyncio.Event | None = None
    """If set, requests wait for it."""
    stubborn_s: float = 0.0
    """How long a cancelled request goes on."""

    def open(self) -> None:
        assert self.gate is not None
        self.gate.set()

    async def handle(self, request: WebRequest) -> WebAnswer:
        self.requests.append(request)
        self.working += 1
        self.most_working = max(self.working, self.most_working)
        try:
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self.working -= 1
            if self.stubborn_s:
                await asyncio.sleep(self.stubborn_s)
        if self.error is not None:
            raise self.error
        return self.answer


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def answer(self, *, bodiless: bool = False) -> Answer:
        """Read one answer; ``bodiless`` is one to HEAD."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
        headers = dict(one.lower().split(": ", 1) for one in rest)
        length = 0 if bodiless else int(headers.get("content-length", "0"))
        return Answer(int(line.split()[1]), headers, await self.reader.readexactly(length))

    async def ask(self, raw: bytes) -> Answer:
        await self.send(raw)
        return await self.answer()

    async def closed(self) -> bool:
        """Wait until the server hangs up; False if it says something instead."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def flood(self, piece: bytes, *, most: int) -> int:
        """Send a piece again and again until the server hangs up; how many bytes it took."""
        sent = 0
        try:
            while sent < most:
                await self.send(piece)
                sent += len(piece)
        except ConnectionError:
            pass
        return sent


class Server:
    def __init__(self, hooks: list[Hook], path: Path) -> None:
        self.path = path
        self.listener = listen_unix(path)
        self.server = HttpServer(HookApp(hooks), self.listener.socket, strangers=True)
        self.task = asyncio.create_task(self.server.run())

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        with short_path(self.path) as name:
            reader, writer = await asyncio.open_unix_connection(name)
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)

    async def ask(self, raw: bytes) -> Answer:
        """Ask on a connection of its own."""
        async with self.client() as client:
            return await client.ask(raw)

    async def stop(self) -> None:
        self.server.stop()
        await self.task


@asynccontextmanager
async def serving(folder: Path, *hooks: Hook) -> AsyncIterator[Server]:
    server = Server(list(hooks), folder / "hooks.sock")
    try:
        yield server
    finally:
        await server.stop()
        server.listener.close()


def hook(sink: Sink, path: str = PATH, most_bytes: int = MOST_BYTES) -> Hook:
    return Hook(path, sink.handle, most_bytes)


async def until(reached: Callable[[], object], within_s: float = 30.0) -> None:
    async with asyncio.timeout(within_s):
        while not reached():
            await asyncio.sleep(0.001)
