"""Requests with forged addresses, and bodies that nobody wants (SPEC SEC-1, SEC-5).

Promised: what a client says about its own address changes nothing, and of a body only what is
wanted is read. Tried: every header of proxies, bodies of 100 MB with and without a length.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from goclaw_py.chat.channel import Hook
from goclaw_py.core.errors import SettingError
from goclaw_py.web.api.routes import closing_of
from goclaw_py.web.front import WebAccess, tcp_server
from goclaw_py.web.tcp import listen_tcp
from tests.support.apps import lend_api
from tests.unit.config.loading import settings
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl
from tests.unit.web.hooks_harness import Client, Sink

TOKEN = "a-token-of-thirty-two-characters"
MEGABYTE = b"a" * 2**20
MOST_TAKEN = 16 * 2**20
"""The buffers of two sockets, and what was read before the refusal."""

FORGED = {
    "x-forwarded-for": "127.0.0.1",
    "x-forwarded-host": "localhost",
    "x-forwarded-proto": "https",
    "x-forwarded-user": "admin",
    "x-real-ip": "127.0.0.1",
    "x-client-ip": "127.0.0.1",
    "x-original-url": "/healthz",
    "x-rewrite-url": "/healthz",
    "x-http-method-override": "GET",
    "forwarded": "for=127.0.0.1;host=localhost;proto=https",
    "remote-user": "admin",
    "via": "1.1 localhost",
}


@asynccontextmanager
async def connected() -> AsyncIterator[Client]:
    """A client of the API and a hook, with the address of another machine of its network."""
    app = lend_api(FakeControl(), FakeTerminals())
    with closing(listen_tcp("127.0.0.1", 0)) as listener:
        hooks = [Hook("/hook", Sink().handle, 1_000)]
        access = WebAccess("127.0.0.1", token=TOKEN)
        server = tcp_server(listener, hooks, app, access, on_stop=closing_of(app).set)
        running = asyncio.create_task(server.run())
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()
            server.stop()
            await running


@pytest.mark.real_time
@pytest.mark.parametrize("path", ["/api/status", "/api/settings", "/metrics", "/"])
@pytest.mark.parametrize("name", FORGED)
async def test_a_forged_header_opens_nothing(name: str, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{name}: {FORGED[name]}\r\n\r\n"
    async with connected() as client:
        assert (await client.ask(head.encode())).status == 401


HEADS = {
    "a hook": "POST /hook",
    "the api without a token": "POST /api/messages",
    "the sign-in": "POST /login",
    "the api": f"POST /api/messages HTTP/1.1\r\nauthorization: Bearer {TOKEN}\r\nx: ",
    "a probe": "GET /healthz",
}


@pytest.mark.real_time
@pytest.mark.parametrize("length", ["content-length: 104857600", "transfer-encoding: chunked"])
@pytest.mark.parametrize("name", HEADS)
async def test_a_body_of_a_hundred_megabytes_is_not_read(name: str, length: str) -> None:
    head = f"{HEADS[name]} HTTP/1.1\r\nhost: localhost\r\n{length}\r\n\r\n"
    chunk = b"%x\r\n%b\r\n" % (len(MEGABYTE), MEGABYTE)
    async with connected() as client:
        await client.send(head.encode())
        sent = await client.flood(MEGABYTE if "content" in length else chunk, most=100 * 2**20)
        assert sent < MOST_TAKEN


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_no_address_beyond_this_machine_is_opened_without_a_token(
    tmp_path: Path, host: str
) -> None:
    with pytest.raises(SettingError, match=r"set web\.token_file"):
        settings(tmp_path, f"[web]\napi = true\nhost = '{host}'\n")
