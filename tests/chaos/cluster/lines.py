"""The way from one gateway to the database: a socket of its own, which can be cut.

All lines live in one thread with a loop; their methods may be called from any other.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tests.chaos.cluster.frames import Frames, without_notices

SOCKET: Final = ".s.PGSQL.5432"
"""How PostgreSQL names the socket in a folder."""
_CHUNK: Final = 1 << 16


class State(StrEnum):
    """What a line does with what is sent over it."""

    OPEN = "open"
    CUT = "cut"
    """Connections are dropped, new ones refused."""
    SILENT = "silent"
    """Nothing gets through; what was sent meanwhile arrives when the line is open again."""
    SLOW = "slow"
    """Whatever is asked takes longer."""
    DEAF = "deaf"
    """Notices get lost."""


class Line:
    """Listens in ``folder`` and hands everything on to the server in ``target``."""

    def __init__(self, folder: Path, target: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.folder = folder
        self._target = target / SOCKET
        self._loop = loop
        self._state = State.OPEN
        self._latency_s = 0.0
        self._passing = asyncio.Event()
        self._passing.set()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def set(self, state: State, *, latency_s: float = 0.0) -> None:
        """Change what it does, for the connections that there are too."""
        self._wait(self._set(state, latency_s))

    def start(self) -> None:
        """Listen."""
        self._wait(self._listen())

    def stop(self) -> None:
        """Drop everything."""
        self._wait(self._cut())

    def _wait(self, doing: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(doing, self._loop).result(30)

    async def _set(self, state: State, latency_s: float) -> None:
        self._state, self._latency_s = state, latency_s
        if state is State.SILENT:
            self._passing.clear()
        else:
            self._passing.set()
        if state is State.CUT:
            await self._cut()
        elif self._server is None:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.folder / SOCKET)

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError, OSError), self._counted(writer):
            await self._passing.wait()
            there, back = await asyncio.open_unix_connection(self._target)
            with self._counted(back):
                ways = {
                    asyncio.create_task(self._up(reader, back)),
                    asyncio.create_task(self._down(there, writer)),
                }
                self._tasks |= ways
                try:
                    # Where one side ends, the other one has nobody to talk to.
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._tasks -= ways
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    @contextmanager
    def _counted(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(writer)
        self._tasks.add(task)
        try:
            yield
        finally:
            self._open.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK):
            if self._state is State.SLOW:
                await asyncio.sleep(self._latency_s)
            await self._passing.wait()
            writer.write(chunk)
            await writer.drain()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames()
        while chunk := await reader.read(_CHUNK):
            await self._passing.wait()
            messages = frames.feed(chunk)
            if self._state is State.DEAF:
                messages = without_notices(messages)
            writer.write(b"".join(messages))
            await writer.drain()


@contextmanager
def lines(folder: Path, target: Path, count: int) -> Iterator[list[Line]]:
    """So many lines to the server whose socket is in ``target``, in folders of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True, name="lines")
    thread.start()
    made = [Line(folder / f"line{number}", target, loop) for number in range(count)]
    try:
        for line in made:
            line.start()
        yield made
    finally:
        for line in made:
            line.stop()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
