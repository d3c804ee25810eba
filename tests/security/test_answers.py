"""What every answer of the API says, and heads that are too large (SPEC SEC-7).

Promised: no answer is guessed to be something else or stored on its way, whoever gave it; a head
over 64 KiB gets 431. Tried: answers, errors and refusals of the API, of probes and the
server itself; a large address, one large field, many fields, in one piece and in many.
"""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.web.server import MAX_HEAD_BYTES
from tests.security.test_hostile_requests import TOKEN, connected

WITH_TOKEN = f"host: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
ASKED = {
    "an answer": f"GET /api/status HTTP/1.1\r\n{WITH_TOKEN}\r\n",
    "not found": f"GET /api/nothing HTTP/1.1\r\n{WITH_TOKEN}\r\n",
    "a wrong method": f"PUT /api/status HTTP/1.1\r\n{WITH_TOKEN}content-length: 0\r\n\r\n",
    "a body that is no JSON": f"POST /api/names HTTP/1.1\r\n{WITH_TOKEN}content-length: 1\r\n\r\nx",
    "too large": f"POST /api/chats/allow HTTP/1.1\r\n{WITH_TOKEN}content-length: 99999999\r\n\r\n",
    "a description": f"GET /openapi.json HTTP/1.1\r\n{WITH_TOKEN}\r\n",
    "no token": "GET /api/status HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "another name": "GET /api/status HTTP/1.1\r\nhost: evil.example\r\n\r\n",
    "a probe": "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "no HTTP": "HELLO\r\n\r\n",
}


@pytest.mark.real_time
@pytest.mark.parametrize("name", ASKED)
async def test_every_answer_is_sealed(name: str) -> None:
    async with connected() as client:
        await client.send(ASKED[name].encode())
        head = (await client.reader.readuntil(b"\r\n\r\n")).lower()
    assert head.count(b"x-content-type-options: nosniff\r\n") == 1
    assert head.count(b"cache-control: no-store\r\n") == 1


BIG = "x" * (MAX_HEAD_BYTES + 1)
HEADS = {
    "the address": f"GET /healthz?{BIG} HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a field": f"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {BIG}\r\n\r\n",
    "a cookie": f"GET /api/status HTTP/1.1\r\n{WITH_TOKEN}cookie: {BIG}\r\n\r\n",
    "a name": f"GET /healthz HTTP/1.1\r\nhost: localhost\r\n{BIG}: x\r\n\r\n",
    "many fields": "GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + "x: y\r\n" * 40_000 + "\r\n",
    "no end": f"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {BIG}",
    "a hook": f"POST /hook HTTP/1.1\r\nx: {BIG}\r\ncontent-length: 2\r\n\r\n{{}}",
}


@pytest.mark.real_time
@pytest.mark.parametrize("pieces", [1, 100])
@pytest.mark.parametrize("name", HEADS)
async def test_a_head_over_the_limit_is_refused(name: str, pieces: int) -> None:
    raw = HEADS[name].encode()
    size = len(raw) // pieces + 1
    async with connected() as client:
        for start in range(0, len(raw), size):
            await client.send(raw[start : start + size])
            await asyncio.sleep(0)
        answer = await client.answer()
    assert answer.status == 431


@pytest.mark.real_time
async def test_a_head_below_the_limit_is_served() -> None:
    raw = HEADS["a field"].replace(BIG, "x" * (MAX_HEAD_BYTES - 200)).encode()
    async with connected() as client:
        assert (await client.ask(raw)).status == 200
