"""What strangers may send to the hooks' server: nothing of it costs much or stays (SPEC SEC-1)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from goclaw_py.web import server as web_server
from goclaw_py.web.hooks import BODY_S
from tests.unit.web.hooks_harness import (
    GOOD,
    MOST_BYTES,
    Client,
    Server,
    Sink,
    hook,
    serving,
    until,
)

CHUNKED = b"POST /hook HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNK = b"400\r\n" + b"x" * 1024 + b"\r\n"
IN_FLIGHT = 1 << 20
"""More than what client, kernel and server hold between a send and the end of a connection."""


def announced(length: int) -> bytes:
    return b"POST /hook HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % length


def now() -> float:
    return asyncio.get_running_loop().time()


async def drip(client: Client, raw: bytes, *, every_s: float) -> None:
    """Send a byte at a time until the server hangs up."""
    try:
        for byte in raw:
            await client.send(bytes([byte]))
            await asyncio.sleep(every_s)
    except ConnectionError:
        pass


@pytest.mark.parametrize("length", [MOST_BYTES + 1, 10**9, 10**17])
@pytest.mark.parametrize("expect", [b"", b"expect: 100-continue\r\n"])
async def test_an_announced_body_that_is_too_long_is_refused_before_it_comes(
    sink: Sink, server: Server, client: Client, length: int, expect: bytes
) -> None:
    answer = await client.ask(announced(length).replace(b"content", expect + b"content"))
    assert (answer.status, answer.body) == (413, b"the body is longer than 100000 bytes")
    assert await client.closed()
    assert now() < 1
    assert (await server.ask(GOOD)).status == 200
    assert len(sink.requests) == 1


@pytest.mark.parametrize(("head", "piece"), [(announced(5 << 20), b"x" * 4096), (CHUNKED, CHUNK)])
async def test_a_long_body_is_cut_off_at_the_limit(
    sink: Sink, server: Server, client: Client, head: bytes, piece: bytes
) -> None:
    await client.send(head)
    assert await client.flood(piece, most=5 << 20) < IN_FLIGHT
    assert now() < 1
    assert (await server.ask(GOOD)).status == 200
    assert len(sink.requests) == 1


async def test_a_body_that_turns_out_too_long_is_refused_in_words(tmp_path: Path) -> None:
    sink = Sink()
    async with serving(tmp_path, hook(sink, most_bytes=10)) as server, server.client() as client:
        answer = await client.ask(CHUNKED + b"6\r\n123456\r\n6\r\n123456\r\n")
        assert (answer.status, answer.body) == (413, b"the body is longer than 10 bytes")
        assert await client.closed()
    assert sink.requests == []


@pytest.mark.parametrize("drips", [False, True])
async def test_a_late_body_is_given_up(sink: Sink, client: Client, *, drips: bool) -> None:
    await client.send(announced(60))
    dripping = asyncio.create_task(drip(client, b"x" * (60 if drips else 3), every_s=1))
    answer = await client.answer()
    assert (answer.status, answer.body) == (408, b"the request body did not arrive in time")
    assert now() == pytest.approx(BODY_S, abs=0.5)
    await dripping
    assert await client.closed()
    assert sink.requests == []


async def test_a_body_nobody_asked_for_is_not_read(tmp_path: Path) -> None:
    """What follows a 404 is not even thrown away: the connection ends."""
    async with serving(tmp_path) as server, server.client() as client:
        await client.send(CHUNKED)
        assert await client.flood(CHUNK, most=50 << 20) < IN_FLIGHT


async def test_a_client_that_leaves_amid_its_body_is_forgotten(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Sink()
    async with serving(tmp_path, hook(sink)) as server:
        async with server.client() as client:
            await client.send(announced(10) + b"123")
            await asyncio.sleep(1)
        await asyncio.sleep(1)
        assert (await server.ask(GOOD)).status == 200
    assert len(sink.requests) == 1
    assert caplog.records == []


async def test_a_client_that_leaves_before_the_answer_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The message is taken in all the same; its repeat falls out as a duplicate."""
    sink = Sink(gate=asyncio.Event())
    async with serving(tmp_path, hook(sink)) as server:
        async with server.client() as client:
            await client.send(GOOD)
            await until(lambda: sink.working)
        sink.open()
        await until(lambda: not sink.working)
        assert (await server.ask(GOOD)).status == 200
    assert caplog.records == []


@pytest.mark.parametrize("start", [b"", b"P", b"POST /hook HTTP/1.1\r\nhost: x\r\n", GOOD[:-5]])
async def test_a_request_without_end_ends_after_a_while(client: Client, start: bytes) -> None:
    await client.send(start)
    assert await client.closed()
    assert now() == pytest.approx(web_server.HEAD_S, abs=0.5)


async def test_a_request_that_drips_in_gets_no_longer_time(client: Client) -> None:
    dripping = asyncio.create_task(drip(client, GOOD, every_s=1))
    assert await client.closed()
    assert now() == pytest.approx(web_server.HEAD_S, abs=0.5)
    await dripping


async def test_the_second_request_of_a_connection_has_no_longer_time_either(client: Client) -> None:
    assert (await client.ask(GOOD)).status == 200
    await asyncio.sleep(60)
    await client.send(GOOD[:10])
    assert await client.closed()
    assert now() == pytest.approx(60 + web_server.HEAD_S, abs=0.5)


async def test_idle_noise_does_not_keep_a_connection(client: Client) -> None:
    """Empty lines before a request are allowed, but not for ever."""
    assert (await client.ask(GOOD)).status == 200
    await drip(client, b"\r\n" * 100, every_s=1)
    assert now() == pytest.approx(web_server.HEAD_S, abs=2)


@pytest.mark.parametrize(("start", "piece"), [
    (b"", b"A" * 1024), (b"GET /", b"a" * 1024), (b"GET /hook HTTP/1.1\r\n", b"a: b\r\n" * 200),
    (b"GET /hook HTTP/1.1\r\na: ", b"b" * 1024), (b"GET /hook HTTP/1.1\r\n", b"b" * 1024),
    (b"", b"\r\n" * 512), (GOOD, b"\r\n" * 512),
])  # fmt: skip
async def test_a_head_without_end_is_cut_off(
    server: Server, client: Client, start: bytes, piece: bytes
) -> None:
    await client.send(start)
    assert await client.flood(piece, most=50 << 20) < IN_FLIGHT
    assert now() < 1
    assert (await server.ask(GOOD)).status == 200


async def test_each_request_of_a_connection_has_the_limits_to_itself(client: Client) -> None:
    long = GOOD.replace(b"host: x\r\n", b"a: " + b"b" * 10_000 + b"\r\n")
    for _ in range(10):
        await client.send(long[:9_000])
        await asyncio.sleep(web_server.HEAD_S - 1)
        assert (await client.ask(long[9_000:])).status == 200


@pytest.mark.parametrize("raw", [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), b"hello\r\n\r\n", b"GET\r\n\r\n",
    b"GET /hook HTTP/9.9\r\n\r\n", b"GET /h ook HTTP/1.1\r\n\r\n",
    b"GET /ho\x00ok HTTP/1.1\r\n\r\n", b"GET /ho\xffok HTTP/1.1\r\n\r\n",
    b"NOSUCH /hook HTTP/1.1\r\n\r\n", b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"POST /hook HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    b"POST /hook HTTP/1.1\r\ncontent-length: 2x\r\n\r\n{}",
    b"POST /hook HTTP/1.1\r\ncontent-length: " + b"9" * 40 + b"\r\n\r\n{}",
    b"POST /hook HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}{",
    b"POST /hook HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /hook HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"POST /hook HTTP/1.1\r\ntransfer-encoding: chunked, x\r\n\r\n",
    b"POST /hook HTTP/1.1\r\nbad header: x\r\n\r\n",
    b"POST /hook HTTP/1.1\r\na: b\r\n folded: c\r\n\r\n", b"POST /hook HTTP/1.1\r\na: \x01\r\n\r\n",
    b"POST /hook HTTP/1.1\r\na: b\rc\r\n\r\n",
])  # fmt: skip
async def test_what_is_not_http_is_refused_quietly(
    tmp_path: Path, raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Strangers can neither reach a hook that way nor fill the log."""
    sink = Sink()
    with caplog.at_level(logging.INFO):
        async with serving(tmp_path, hook(sink)) as server, server.client() as client:
            await client.send(raw)
            said = await client.reader.read()
            assert said == b"" or 400 <= int(said.split()[1]) < 500
            assert sink.requests == []
            assert (await server.ask(GOOD)).status == 200
    assert [record.levelname for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.parametrize("to", [b"websocket", b"h2c"])
async def test_other_protocols_are_not_heard(sink: Sink, server: Server, to: bytes) -> None:
    wish = b"connection: upgrade\r\nupgrade: " + to + b"\r\n"
    answer = await server.ask(b"GET /hook HTTP/1.1\r\nhost: x\r\n" + wish + b"\r\n")
    assert answer.status == 200
    assert (await server.ask(GOOD)).status == 200
    assert [request.method for request in sink.requests] == ["GET", "POST"]
