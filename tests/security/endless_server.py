"""A model server that sends whatever it likes, for ever, and counts what is read of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

MOST_BYTES = 100 * 2**20
"""A client that reads this much has no limit."""


@dataclass(slots=True)
class EndlessServer:
    """Answers each request with a head and then with pieces, until the client hangs up.

    ``chunk`` is the size of the pieces into which everything is cut.
    """

    pieces: Callable[[], Iterator[bytes]]
    head: str = "content-type: text/event-stream"
    status: str = "200 OK"
    chunk: int = 65_536
    port: int = 0
    sent: int = 0
    """Bytes of bodies that were sent, to all clients."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 {self.status}\r\n{self.head}\r\ntransfer-encoding: chunked\r\n\r\n"
            writer.write(head.encode())
            for piece in self.pieces():
                for place in range(0, len(piece), self.chunk):
                    part = piece[place : place + self.chunk]
                    writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                    self.sent += len(part)
                await writer.drain()
                if self.sent > MOST_BYTES:
                    break
            writer.write(b"0\r\n\r\n")
        writer.close()


@asynccontextmanager
async def serving(server: EndlessServer) -> AsyncIterator[EndlessServer]:
    """Listen on a free port of loopback."""
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    # Else it grows to 4 MB, and that of the client to 6: more than a client may read.
    listening.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
