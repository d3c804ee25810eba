"""Connections that only wait keep nobody out (SPEC SEC-5).

Promised: whoever has the token, a hook or a probe always gets an answer. Tried: as many connections
as there may be and more, which say nothing, half of a head, half of a body, or read no answer; from
one address and from many; event streams of one browser; few files that may be open.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from goclaw_py.chat.channel import Hook
from goclaw_py.web import connections
from goclaw_py.web import server as web_server
from goclaw_py.web.api.streams import ClosedStream
from goclaw_py.web.connections import Connections, Streams, peer_of
from goclaw_py.web.front import WebAccess, tcp_server
from goclaw_py.web.tcp import listen_tcp
from tests.unit.web.hooks_harness import GOOD, Sink, serving

MOST = 40
KEPT_FOR_KNOWN = MOST // 4
MOST_OF_PEER = MOST // 8
TOKEN = "a-token-of-thirty-two-characters"
WITH_TOKEN = f"GET / HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n".encode()
STREAM = WITH_TOKEN.replace(b"GET / ", b"GET /stream ")
PROBE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
FLOOD = WITH_TOKEN.replace(b"GET / ", b"GET /flood ")


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers every request; some for ever, and some with more than any buffer holds."""
    if scope["path"] == "/stream":
        await ClosedStream(endless())(scope, receive, send)
        return
    body = bytes(2**25) if scope["path"] == "/flood" else b"ok"
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def endless() -> AsyncIterator[bytes]:
    yield b": here\n\n"
    await asyncio.Event().wait()


class Peers:
    """Clients of a server on loopback, from addresses of their own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: list[socket.socket] = []

    async def connect(self, number: int = 1, say: bytes = b"") -> socket.socket:
        """Connect from the address 127.0.0.``number``, and say something."""
        client = socket.socket()
        client.setblocking(False)
        client.bind((f"127.0.0.{number}", 0))
        self._open.append(client)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", self._port))
        await loop.sock_sendall(client, say)
        return client

    async def ask(self, raw: bytes, number: int = 1) -> bytes:
        """Return the status of the answer on a new connection; b"" without one."""
        return await self.status(await self.connect(number, raw))

    async def status(self, client: socket.socket) -> bytes:
        try:
            head = await asyncio.get_running_loop().sock_recv(client, 65_536)
        except ConnectionError:
            return b""
        return head[9:12]

    def close(self) -> None:
        for client in self._open:
            client.close()


@pytest.fixture
def sink() -> Sink:
    return Sink()


@asynccontextmanager
async def gateway(sink: Sink) -> AsyncIterator[Peers]:
    listener = listen_tcp("127.0.0.1", 0)
    hooks = [Hook("/hook", sink.handle, 1_000)]
    access = WebAccess("127.0.0.1", token=TOKEN)
    server = tcp_server(listener, hooks, app, access)
    running = asyncio.create_task(server.run())
    peers = Peers(listener.getsockname()[1])
    try:
        yield peers
    finally:
        peers.close()
        server.stop()
        await running


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", MOST)


WAITS = {
    "says nothing": b"",
    "half of a head": b"GET / HTTP/1.1\r\nhost: lo",
    "half of a body": b"POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n{",
    "a body without an end": GOOD.replace(b"content-length: 2", b"transfer-encoding: chunked")[:-2],
    "idle after an answer": PROBE,
    "idle after a refusal": b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
}


@pytest.mark.real_time
@pytest.mark.parametrize("from_many", [False, True], ids=["one address", "many addresses"])
@pytest.mark.parametrize("say", WAITS.values(), ids=list(WAITS))
async def test_connections_that_wait_keep_nobody_out(
    sink: Sink, say: bytes, *, from_many: bool
) -> None:
    async with gateway(sink) as peers:
        operator = await peers.connect(200, WITH_TOKEN)
        assert await peers.status(operator) == b"200"
        for number in range(3 * MOST):
            await peers.connect(1 + number % 90 if from_many else 1, say)
        assert await peers.ask(WITH_TOKEN) == b"200"
        assert await peers.ask(PROBE, 201) == b"200"
        assert await peers.ask(GOOD, 202) == b"200"
        # What is known is not thrown out for what is not.
        await asyncio.get_running_loop().sock_sendall(operator, WITH_TOKEN)
        assert await peers.status(operator) == b"200"


@pytest.mark.slow
@pytest.mark.real_time
async def test_answers_that_nobody_reads_make_room(sink: Sink) -> None:
    async with gateway(sink) as peers:
        for _number in range(2 * MOST):
            await peers.connect(1, FLOOD)
        assert await peers.ask(WITH_TOKEN, 2) == b"200"
        assert await peers.ask(GOOD, 3) == b"200"


@pytest.mark.real_time
async def test_event_streams_are_limited_for_each_peer_and_together(sink: Sink) -> None:
    async with gateway(sink) as peers:
        first = [await peers.ask(STREAM) for _ in range(MOST)]
        assert first.count(b"200") == MOST // 4
        assert set(first) == {b"200", b"503"}
        others = [await peers.ask(STREAM, number) for number in range(2, MOST)]
        assert others.count(b"200") == MOST // 2 - MOST // 4
        assert await peers.ask(WITH_TOKEN) == b"200"
        assert await peers.ask(PROBE, 201) == b"200"


@pytest.mark.real_time
async def test_a_full_server_says_so(sink: Sink) -> None:
    """All places are taken by requests that the gateway works on."""
    sink.gate = asyncio.Event()
    async with gateway(sink) as peers:
        for number in range(MOST):
            await peers.connect(1 + number, GOOD)
        while len(sink.requests) < MOST:
            await asyncio.sleep(0.01)
        assert await peers.ask(GOOD, 200) == b"503"
        sink.open()


@pytest.mark.parametrize(
    ("say", "after_s"),
    [
        (GOOD.replace(b"/hook", b"/nothing"), 0.0),
        (b"", web_server.HEAD_S),
        (b"GET / HTTP/1.1\r\n", web_server.HEAD_S),
        (GOOD, web_server.KEEP_ALIVE_S),
    ],
    ids=["refused", "says nothing", "half of a head", "an accepted hook"],
)
async def test_who_waits_is_hung_up_on_after_a_while(
    tmp_path: Path, sink: Sink, say: bytes, after_s: float
) -> None:
    now = asyncio.get_running_loop().time
    hook = Hook("/hook", sink.handle, 1_000)
    async with serving(tmp_path, hook) as server, server.client() as client:
        await client.send(say)
        if say.endswith(b"{}"):
            await client.answer()
        began = now()
        assert await client.closed()
        assert now() - began == pytest.approx(after_s, abs=1)


class Waiter:
    """A connection as the rules see it."""

    def __init__(self, peer: str, *, is_known: bool = False) -> None:
        self.peer = peer
        self.is_known = is_known
        self.is_evicted = False

    def evict(self) -> None:
        self.is_evicted = True


def evicted(waiters: list[Waiter]) -> list[int]:
    return [place for place, one in enumerate(waiters) if one.is_evicted]


def test_the_oldest_of_the_same_peer_goes_first() -> None:
    rules = Connections(MOST)
    other = Waiter("b")
    mine = [Waiter("a") for _ in range(MOST_OF_PEER + 2)]
    assert all(rules.add(one, now=2.0 * at) for at, one in enumerate([other, *mine]))
    assert not other.is_evicted
    assert evicted(mine) == [0, 1]


def test_many_that_come_at_once_have_the_time_to_say_something() -> None:
    """A proxy opens a connection for each request of a burst."""
    rules = Connections(MOST)
    mine = [Waiter("a") for _ in range(MOST - KEPT_FOR_KNOWN)]
    assert all(rules.add(one, now=0) for one in mine)
    assert evicted(mine) == []
    other = Waiter("b")
    for one in mine[1:]:
        rules.begin_work(one)
    assert rules.add(other, now=0)
    assert evicted(mine) == [0]
    assert not other.is_evicted


def test_a_request_in_progress_is_not_given_up() -> None:
    rules = Connections(MOST)
    mine = [Waiter("a") for _ in range(MOST_OF_PEER)]
    for one in mine:
        rules.add(one, now=0)
        rules.begin_work(one)
    rules.begin_wait(mine[3], now=0)
    assert rules.add(Waiter("a"), now=2)
    assert evicted(mine) == [3]


def test_a_quarter_is_kept_for_who_is_known() -> None:
    rules = Connections(MOST)
    unknown = [Waiter(str(number)) for number in range(2 * MOST)]
    assert all(rules.add(one, now=0) for one in unknown)
    assert len(unknown) - len(evicted(unknown)) == MOST - KEPT_FOR_KNOWN
    known = [Waiter("k", is_known=True) for _ in range(2 * MOST)]
    assert all(rules.add(one, now=0) for one in known)
    # Those who are known and wait make room, too, when nobody else does.
    assert len(known) - len(evicted(known)) <= MOST


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::8", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_network_of_ipv6_is_one_peer(address: str, peer: str) -> None:
    assert peer_of((address, 1)) == peer


@pytest.mark.parametrize(("files", "most"), [(64, 8), (128, 32), (4_096, 40)])
def test_few_files_are_not_all_used_for_strangers(
    monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert connections.most_connections() == most


def test_an_ended_stream_makes_room() -> None:
    streams = Streams(4)

    @contextmanager
    def room() -> Iterator[bool]:
        with streams.room_for("a") as has_room:
            yield has_room

    for _again in range(5):
        with room() as first, room() as second:
            assert (first, second) == (True, False)
