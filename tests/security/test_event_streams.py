"""Hundreds of event streams, of which half are not read, while runs say a lot (SPEC SEC-5, OPS-2).

Promised: the operator, hooks and probes are answered, no reader makes the gateway keep more than
its share, one stream too many is refused with the reason, and all end with the gateway. Tried: as
many as there may be and more, at full size over TCP, from several addresses, behind real runs.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from goclaw_py.agents.callable import CallableAgent
from goclaw_py.chat.channel import Hook
from goclaw_py.core.run_events import TextDelta
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.runs.events.buffer import PIECE_CHARS
from goclaw_py.web import server as web_server
from goclaw_py.web.api.routes import closing_of
from goclaw_py.web.connections import most_connections
from goclaw_py.web.front import WebAccess, tcp_server
from goclaw_py.web.tcp import listen_tcp
from tests.support.apps import lend_api
from tests.support.harness import GatewayProcess, a_process, until
from tests.unit.web.hooks_harness import GOOD, Sink

pytestmark = pytest.mark.real_time

TOKEN = "a-token-of-thirty-two-characters"
HEAD = f" HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
STREAM = f"GET /api/runs/events{HEAD}".encode()
RUNS = f"GET /api/runs?active=true{HEAD}".encode()
PROBE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
PIECES = 400
CHATS = ("ann", "bob")
MOST_GROWTH = 150 * 2**20
"""Bytes. The streams that are not read would need 230 MB for all that they have not sent."""


async def talkative(_: RunRequest, emit: Emit) -> str:
    """Say a lot, in events of the largest size."""
    for _piece in range(PIECES):
        emit(TextDelta("a" * PIECE_CHARS))
        await asyncio.sleep(0)
    return ""


@dataclass(slots=True)
class Reader:
    """A stream of a client that reads all of it, or nothing but its head."""

    socket: socket.socket
    head: bytes = b""
    end: bytes = b""
    received: int = 0
    has_ended: bool = False

    async def read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await loop.sock_recv(self.socket, 65_536):
                self.received += len(data)
                self.end = (self.end + data)[-8_192:]
        except ConnectionError:
            pass
        self.has_ended = True


@dataclass(slots=True)
class Clients:
    """Clients on loopback, from addresses of their own."""

    port: int
    opened: list[socket.socket] = field(default_factory=list)

    async def ask(self, raw: bytes, number: int) -> Reader:
        """Ask on a new connection, and read the beginning of the answer."""
        client = socket.socket()
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.bind((f"127.0.0.{number}", 0))
        self.opened.append(client)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", self.port))
        await loop.sock_sendall(client, raw)
        return Reader(client, await loop.sock_recv(client, 4_096))


@asynccontextmanager
async def serving(gateway: GatewayProcess) -> AsyncIterator[Clients]:
    """Clients of the server of a gateway, which stops at the end, before they hang up."""
    app = lend_api(gateway.control)
    listener = listen_tcp("127.0.0.1", 0)
    # Otherwise the kernel keeps some megabytes of each stream, and nothing waits to be read.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
    sink = Sink()
    access = WebAccess("127.0.0.1", token=TOKEN)
    server = tcp_server(
        listener, [Hook("/hook", sink.handle, 1_000)], app, access, on_stop=closing_of(app).set
    )
    running = asyncio.create_task(server.run())
    clients = Clients(listener.getsockname()[1])
    try:
        yield clients
    finally:
        server.stop()
        await running
        for client in clients.opened:
            client.close()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.slow
async def test_hundreds_of_event_streams_leave_room_for_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine a client that reads may be slow for a second, and must not be cut off.
    monkeypatch.setattr(web_server, "STALL_S", 5.0)
    most = most_connections()
    most_streams, most_of_peer = most // 2, most // 4
    assert most_streams >= 200
    async with a_process(CallableAgent(talkative)) as gateway:
        async with serving(gateway) as clients:
            asked = [await clients.ask(STREAM, 1) for _ in range(most_of_peer + 10)]
            asked += [await clients.ask(STREAM, 2) for _ in range(most_of_peer + 10)]
            asked += [await clients.ask(STREAM, number) for number in range(3, 13)]
            streams = [one for one in asked if one.head[9:12] == b"200"]
            refused = [one.head for one in asked if one.head[9:12] != b"200"]
            assert len(streams) == most_streams
            for head in refused:
                assert head[9:12] == b"503"
                assert b"too many event streams are open; close some of them" in head
            assert len(gateway.container.feed._subscriptions) == most_streams

            before = resident()
            readers = streams[::2]
            reading = [asyncio.create_task(one.read()) for one in readers]
            for chat in CHATS:
                await gateway.say("tell me all", chat=chat)
            answers = list[Reader]()
            while len(await gateway.outcomes()) < len(CHATS) or None in await gateway.outcomes():
                answers += [await clients.ask(raw, 200) for raw in (RUNS, GOOD, PROBE)]
            assert len(answers) >= 3
            assert {one.head[9:12] for one in answers} == {b"200"}
            await until(lambda: all(b'"kind":"ended"' in one.end for one in readers), within_s=60)
            assert resident() - before < MOST_GROWTH
            # Those that nobody reads make room.
            await until(
                lambda: len(gateway.container.feed._subscriptions) <= len(readers), within_s=60
            )
            assert not any(one.has_ended for one in readers)
            assert (await clients.ask(STREAM, 12)).head[9:12] == b"200"
        await asyncio.wait(reading, timeout=30)
        assert all(one.has_ended for one in readers)
        assert len(gateway.container.feed._subscriptions) == 0
