"""A real proxy on loopback: plain HTTP, ``CONNECT`` and SOCKS5, with and without a password.

Every name of a host that it is asked for is this machine, so that a test may use names that only
exist behind the proxy.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

HOST = "127.0.0.1"
_CHUNK = 1 << 16


@dataclass(slots=True)
class ProxyServer:
    """Listens while it is entered. ``seen`` are the servers that it has connected to."""

    user: str = ""
    password: str = ""
    refuses: int = 0
    """The status (HTTP) or reply (SOCKS5) with which it refuses everything."""
    hangs_up: bool = False
    """It closes each connection without an answer."""
    port: int = 0
    seen: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    """The heads of the HTTP requests that it has read, those for servers behind it too."""
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def http(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def socks(self) -> str:
        return f"socks5://{HOST}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            if not self.hangs_up:
                first = await reader.readexactly(1)
                serve = self._socks if first == b"\x05" else self._http
                await serve(first, reader, writer)
        writer.close()

    async def _http(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = first + await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode("latin-1"))
        line, *fields = self.heads[-1].removesuffix("\r\n\r\n").split("\r\n")
        method, target, version = line.split(" ")
        given = [one.partition(": ")[2] for one in fields if _is_for_us(one)]
        if self.user and given[-1:] != [f"Basic {_basic(self.user, self.password)}"]:
            await _answer(writer, 407, "Proxy Authentication Required")
        elif self.refuses:
            await _answer(writer, self.refuses, "No")
        elif method == "CONNECT":
            server = await self._connect(int(target.rpartition(":")[2]), target)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _join((reader, writer), server)
        else:
            url = urlsplit(target)
            server = await self._connect(url.port or 80, url.netloc)
            place = target.removeprefix(f"{url.scheme}://{url.netloc}") or "/"
            kept = [one for one in fields if not one.lower().startswith("connection:")]
            kept = [one for one in kept if not _is_for_us(one)]
            lines = [f"{method} {place} {version}", *kept, "Connection: close", "", ""]
            server[1].write("\r\n".join(lines).encode("latin-1"))
            await _join((reader, writer), server)

    async def _socks(
        self, _: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        # One that needs no password may still be given one.
        method = 2 if self.user or 0 not in methods else 0
        if method not in methods:
            writer.write(b"\x05\xff")
            await writer.drain()
            return
        writer.write(bytes([5, method]))
        if method:
            await reader.readexactly(1)
            user = await reader.readexactly((await reader.readexactly(1))[0])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            given = (user.decode(), password.decode())
            is_right = not self.user or given == (self.user, self.password)
            writer.write(b"\x01\x00" if is_right else b"\x01\x01")
            await writer.drain()
            if not is_right:
                return
        _version, _command, _zero, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(map(str, await reader.readexactly(4)))
        (port,) = struct.unpack(">H", await reader.readexactly(2))
        if self.refuses:
            writer.write(bytes([5, self.refuses, 0, 1]) + bytes(6))
            await writer.drain()
            return
        server = await self._connect(port, f"{host}:{port}")
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        await _join((reader, writer), server)

    async def _connect(
        self, port: int, shown: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.seen.append(shown)
        return await asyncio.open_connection(HOST, port)


@asynccontextmanager
async def tls_front(tls: ssl.SSLContext, behind: int) -> AsyncIterator[int]:
    """Listen on a port, and take TLS off for a server on ``behind`` that has none."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await _join((reader, writer), await asyncio.open_connection(HOST, behind))
        writer.close()

    server = await asyncio.start_server(accept, HOST, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _is_for_us(line: str) -> bool:
    return line.lower().startswith("proxy-authorization:")


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


async def _answer(writer: asyncio.StreamWriter, status: int, reason: str) -> None:
    page = f"<html>{reason}</html>"
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/html\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {len(page)}\r\n\r\n{page}".encode())
    await writer.drain()


_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _join(one: _Stream, other: _Stream) -> None:
    """Copy both ways until one side has ended."""
    copies = [
        asyncio.ensure_future(_copy(one[0], other[1])),
        asyncio.ensure_future(_copy(other[0], one[1])),
    ]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copy in copies:
            copy.cancel()
        other[1].close()


async def _copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    while piece := await source.read(_CHUNK):
        to.write(piece)
        await to.drain()
