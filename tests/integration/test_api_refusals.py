"""Every route refuses what it should, over TCP, in the words of the API (SPEC OPS-2, SEC-1).

The table is made from the description: a route that is added later is asked too.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from goclaw_py.web import attempts
from goclaw_py.web.api.openapi import JSON, operations
from goclaw_py.web.api.routes import closing_of
from goclaw_py.web.api.wire import MAX_BODY_BYTES
from goclaw_py.web.front import WebAccess, tcp_server
from goclaw_py.web.guard import OPEN_PATHS
from goclaw_py.web.tcp import listen_tcp
from tests.support.apps import lend_api
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl

pytestmark = pytest.mark.real_time

TOKEN = "0123456789abcdef-secret"
GOOD = {"authorization": f"Bearer {TOKEN}"}
EVIL = "http://evil.example"

UNKNOWN = {"row_id": "987654321", "number": "99", "occurrence": "nobody", "heartbeat_run": "nobody"}
"""Ids that nothing has; elsewhere ``nobody``."""

MADE_OR_EMPTY = {
    ("put", "/api/schedule/{slug}"),  # makes it
    ("get", "/api/sessions/{key}/asides"),  # has none
    ("get", "/api/sessions/{key}/history"),  # has none
    ("post", "/api/sessions/{key}/stop"),  # nothing runs there
    ("post", "/api/sessions/{key}/reset"),  # has nothing to forget
    ("get", "/api/chat/{chat}/events"),  # a chat begins when somebody opens it
    ("post", "/api/chat/{chat}/messages"),
    ("post", "/api/chat/{chat}/press"),
    ("post", "/api/chat/{chat}/confirm"),
}


@pytest.fixture
def table() -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of every operation."""
    document = lend_api(FakeControl(), FakeTerminals()).openapi()
    return [(method, path, operation) for path, method, operation in operations(document)]


@pytest.fixture
async def http(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API as it stands on TCP, with a token.

    A table of wrong tokens is more than one address may show, which is a law of its own.
    """
    monkeypatch.setattr(attempts, "MOST_OF_ADDRESS", 10_000)
    monkeypatch.setattr(attempts, "MOST_OF_ALL", 10_000)
    listener = listen_tcp("127.0.0.1", 0)
    port = listener.getsockname()[1]
    app = lend_api(FakeControl(), FakeTerminals())
    server = tcp_server(
        listener, (), app, WebAccess("127.0.0.1", token=TOKEN), on_stop=closing_of(app).set
    )
    serving = asyncio.create_task(server.run())
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client
    server.stop()
    await serving


def unknown(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: UNKNOWN.get(found[1], "nobody"), path)


def required(operation: dict[str, Any]) -> dict[str, str]:
    """The parameters of the query without which nothing is asked."""
    found = {}
    for one in operation.get("parameters", []):
        if one["in"] == "query" and one.get("required"):
            found[one["name"]] = (one.get("examples") or one["schema"]["examples"])[0]
    return found


def body_of(operation: dict[str, Any]) -> bytes | None:
    media = operation.get("requestBody", {}).get("content", {}).get(JSON)
    return None if media is None else json.dumps(media["example"]).encode()


def refused(answer: httpx.Response, status: int, operation: dict[str, Any]) -> None:
    assert answer.status_code == status, (answer.request, answer.text)
    assert answer.headers["content-type"] == JSON
    told = answer.json()
    assert isinstance(told["error"], str)
    assert told["error"]
    assert TOKEN not in answer.text
    assert status == 405 or str(status) in operation["responses"]


async def test_a_route_refuses_strangers_and_what_it_cannot_read(
    http: httpx.AsyncClient, table: list[tuple[str, str, dict[str, Any]]]
) -> None:
    for method, path, operation in table:
        await refuses(http, method, path, operation)


async def refuses(
    http: httpx.AsyncClient, method: str, path: str, operation: dict[str, Any]
) -> None:
    address, params, body = unknown(path), required(operation), body_of(operation)
    as_json = {"content-type": JSON}

    async def ask(headers: dict[str, str], content: bytes | None = body, how: str = method) -> Any:
        return await http.request(how, address, params=params, content=content, headers=headers)

    if path not in OPEN_PATHS:
        for wrong in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
            answer = await ask(as_json | wrong)
            refused(answer, 401, operation)
            assert answer.headers["www-authenticate"].startswith("Bearer")
    refused(await ask(GOOD | as_json | {"origin": EVIL}), 403, operation)
    refused(await ask(GOOD | as_json | {"origin": "null"}), 403, operation)
    refused(await ask(GOOD | as_json | {"host": "evil.example"}), 421, operation)
    answer = await ask(GOOD, None, "TRACE")
    refused(answer, 405, operation)
    assert method.upper() in answer.headers["allow"].split(", ")
    if body is not None:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
            refused(await ask(GOOD | ({"content-type": kind} if kind else {})), 415, operation)
        refused(await ask(GOOD | as_json, b"x" * (MAX_BODY_BYTES + 1)), 413, operation)
        refused(await ask(GOOD | as_json, b"{"), 400, operation)
        refused(await ask(GOOD | as_json, b"\xff"), 400, operation)


async def test_what_nothing_is_called_is_not_found(
    http: httpx.AsyncClient, table: list[tuple[str, str, dict[str, Any]]]
) -> None:
    for method, path, operation in table:
        if "{" not in path or (method, path) in MADE_OR_EMPTY:
            continue
        answer = await http.request(
            method,
            unknown(path),
            params=required(operation),
            content=body_of(operation),
            headers=GOOD | {"content-type": JSON},
        )
        refused(answer, 404, operation)


async def test_a_path_that_leads_nowhere_is_not_found(http: httpx.AsyncClient) -> None:
    for path in ("/api", "/api/", "/api/nothing", "/api/runs/x/y/z", "/api/%00", "/nothing"):
        answer = await http.get(path, headers=GOOD)
        assert answer.status_code == 404, path
        assert list(answer.json()) == ["error"]


async def test_a_token_in_the_address_is_no_token(http: httpx.AsyncClient) -> None:
    """SPEC SEC-2: addresses are written to logs."""
    answer = await http.get("/api/runs", params={"token": TOKEN, "access_token": TOKEN})
    assert answer.status_code == 401
