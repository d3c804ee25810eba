"""Hooks and the guarded API at one TCP address (SPEC OPS-2, CHAN-2, SEC-1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import httpx
import pytest

from goclaw_py.chat.channel import Hook, WebAnswer, WebRequest
from goclaw_py.web.api.routes import closing_of
from goclaw_py.web.front import WebAccess, tcp_server
from goclaw_py.web.tcp import listen_tcp, url_of
from tests.support.apps import lend_api
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl

pytestmark = pytest.mark.real_time

TOKEN = "0123456789abcdef"
SEEN = {"host": "bot.example.org", "origin": "https://web.telegram.org"}


async def hooked(_request: WebRequest) -> WebAnswer:
    return WebAnswer(200, "hooked")


@asynccontextmanager
async def served(access: WebAccess | None) -> AsyncIterator[httpx.AsyncClient]:
    app = lend_api(FakeControl(), FakeTerminals())
    with closing(listen_tcp("127.0.0.1", 0)) as listener:
        server = tcp_server(
            listener, [Hook("/telegram/x", hooked, 1000)], app, access, on_stop=closing_of(app).set
        )
        task = asyncio.create_task(server.run())
        try:
            async with httpx.AsyncClient(base_url=url_of(listener), trust_env=False) as client:
                yield client
        finally:
            server.stop()
            await task
            assert closing_of(app).is_set() is (access is not None)


async def test_without_access_only_hooks_are_there() -> None:
    async with served(None) as client:
        assert (await client.post("/telegram/x", headers=SEEN)).text == "hooked"
        for path in ("/healthz", "/api/status", "/openapi.json"):
            answer = await client.get(path)
            assert (answer.status_code, answer.text) == (404, "")


async def test_hooks_are_called_by_any_name_and_the_api_by_ours() -> None:
    async with served(WebAccess("127.0.0.1")) as client:
        assert (await client.post("/telegram/x", headers=SEEN)).text == "hooked"
        assert (await client.get("/api/schedule", headers=SEEN)).status_code == 421
        assert (await client.get("/telegram/x/../api", headers=SEEN)).status_code == 421
        assert (await client.get("/api/schedule")).json() == []
        assert (await client.post("/api/outbox/drop", json={"ids": []})).status_code == 403
        ours = {"origin": str(client.base_url).rstrip("/")}
        dropped = await client.post("/api/outbox/drop", json={"ids": []}, headers=ours)
        assert dropped.json() == {"dropped": 0}


async def test_with_a_token_the_api_needs_it_and_hooks_do_not() -> None:
    async with served(WebAccess("127.0.0.1", ("bot.example.org",), TOKEN)) as client:
        assert (await client.post("/telegram/x", headers=SEEN)).text == "hooked"
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        alive = await client.head("/healthz")
        assert (alive.status_code, alive.content) == (200, b"")
        assert (await client.get("/api/schedule")).status_code == 401
        bearer = {"authorization": f"Bearer {TOKEN}", "host": "bot.example.org"}
        assert (await client.get("/api/schedule", headers=bearer)).json() == []


async def test_what_runs_do_is_streamed_here_too() -> None:
    async with (
        served(WebAccess("127.0.0.1")) as client,
        client.stream("GET", "/api/runs/events") as stream,
    ):
        assert stream.status_code == 200
        assert b"event: now" in await anext(stream.aiter_bytes())


async def test_what_is_no_http_is_told_as_all_errors_are() -> None:
    async with served(WebAccess("127.0.0.1")) as client:
        port = client.base_url.port
        for wrong in (b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: \x1b\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wrong)
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            writer.close()
            assert head.startswith(b"HTTP/1.1 400 ")
            assert b"content-type: application/json" in head
            assert list(json.loads(body)) == ["error"]


async def test_no_address_leads_to_another_one() -> None:
    """Behind a proxy that speaks TLS it would lead to plain HTTP, and the token with it."""
    async with served(WebAccess("127.0.0.1", token=TOKEN)) as client:
        auth = {"authorization": f"Bearer {TOKEN}"}
        for path in ("/api/runs/", "/api/schedule/", "/healthz/", "/metrics/"):
            answer = await client.get(path, headers=auth)
            assert answer.status_code in (404, 422), path
            assert "location" not in answer.headers
            assert list(answer.json()) == ["error"]
