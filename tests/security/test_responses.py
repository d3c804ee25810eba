"""A model server sends more than anybody reads: the run ends, with its reason (SPEC AGENT-13).

Promised: no response makes the gateway deaf. Tried: one event without an end, millions of small
ones, lines, comments, calls, parts, compressed and plain, in large pieces and in single bytes.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import httpx2
import pytest

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider, RetryPolicy
from goclaw_py.agents.models.responses import limits, progress
from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import AgentName
from tests.security.endless_server import MOST_BYTES, EndlessServer, serving
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

Json = dict[str, object]
Pieced = Callable[[], Iterator[bytes]]
OPENAI, ANTHROPIC = Provider.OPENAI, Provider.ANTHROPIC
WORDS = "All work and no play makes Jack a dull boy. "
MOST_READ = 8 * 2**20
"""What a client may read: its limit, and what is on its way in the buffers of two sockets."""


def event(data: Json | str) -> bytes:
    if isinstance(data, str):
        return data.encode()
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def chunk(delta: Json) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}


def call(number: int, arguments: str = "{}") -> Json:
    function = {"name": "look", "arguments": arguments}
    return {"index": number, "id": f"c{number}", "type": "function", "function": function}


def start() -> Json:
    usage = {"input_tokens": 3, "output_tokens": 1}
    said = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    return {"type": "message_start", "message": said | {"usage": usage}}


def block(number: int, **what: object) -> Json:
    return {"type": "content_block_start", "index": number, "content_block": what}


def delta(**what: object) -> Json:
    return {"type": "content_block_delta", "index": 0, "delta": what}


def repeated(
    *first: Json | str, again: Callable[[int], Json | str]
) -> Callable[[], Iterator[bytes]]:
    """Events at the beginning, and then others without an end."""
    return lambda: map(event, itertools.chain(first, map(again, itertools.count(1))))


def unended(*first: Json | str, begin: str, again: str) -> Pieced:
    """Events at the beginning, and then one that does not end."""
    return repeated(*first, begin, again=lambda _: again * 1_000)


TEXT = block(0, type="text", text="")
THOUGHT = block(0, type="thinking", thinking="", signature="")
USED: Json = {"type": "tool_use", "name": "look", "input": {}}
USE = block(0, **USED, id="a")
CONTENT = 'data: {"choices": [{"delta": {"content": "'

RESPONSES: Mapping[str, tuple[Provider, Pieced]] = {
    "a text in one event": (OPENAI, unended(begin=CONTENT, again=WORDS)),
    "an event that is no JSON": (OPENAI, unended(begin="data: ", again=WORDS)),
    "an event of short lines": (OPENAI, unended(begin="", again="data: a\n")),
    "a line": (OPENAI, unended(begin="", again=WORDS)),
    "a text": (OPENAI, repeated(again=lambda _: chunk({"content": WORDS}))),
    "thoughts": (OPENAI, repeated(again=lambda _: chunk({"reasoning_content": WORDS}))),
    "arguments": (OPENAI, repeated(again=lambda _: chunk({"tool_calls": [call(0, WORDS)]}))),
    "calls": (OPENAI, repeated(again=lambda n: chunk({"tool_calls": [call(n)]}))),
    "calls in one event": (
        OPENAI,
        repeated(again=lambda _: chunk({"tool_calls": [call(n) for n in range(2_000)]})),
    ),
    "choices in one event": (
        OPENAI,
        repeated(again=lambda _: {"id": "c", "choices": [{"delta": {}}] * 10_000}),
    ),
    "comments": (OPENAI, repeated(again=lambda _: ": still here\n\n" * 1_000)),
    "empty events": (OPENAI, repeated(again=lambda _: chunk({}))),
    "a text in one event, anthropic": (
        ANTHROPIC,
        unended(start(), TEXT, begin='data: {"delta": {"text": "', again=WORDS),
    ),
    "an event of short lines, anthropic": (
        ANTHROPIC,
        unended(start(), begin="", again="data: a\n"),
    ),
    "an event of lines that end with a return": (
        ANTHROPIC,
        unended(start(), begin="", again="data: a\r"),
    ),
    "a text, anthropic": (
        ANTHROPIC,
        repeated(start(), TEXT, again=lambda _: delta(type="text_delta", text=WORDS)),
    ),
    "thoughts, anthropic": (
        ANTHROPIC,
        repeated(start(), THOUGHT, again=lambda _: delta(type="thinking_delta", thinking=WORDS)),
    ),
    "arguments, anthropic": (
        ANTHROPIC,
        repeated(start(), USE, again=lambda _: delta(type="input_json_delta", partial_json=WORDS)),
    ),
    "calls, anthropic": (
        ANTHROPIC,
        repeated(
            start(), again=lambda n: block(n, type="tool_use", id=f"c{n}", name="a", input={})
        ),
    ),
    "blocks, anthropic": (
        ANTHROPIC,
        repeated(start(), again=lambda n: block(n, type="text", text="a")),
    ),
    "pings, anthropic": (ANTHROPIC, repeated(start(), again=lambda _: {"type": "ping"})),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are reached sooner: the sizes differ, what happens is the same."""
    monkeypatch.setattr(limits, "MOST_BYTES", 2**18)
    monkeypatch.setattr(limits, "MOST_EVENT_BYTES", 2**16)
    monkeypatch.setattr(progress, "MOST_CHARS", 25_000)


async def failure(server: EndlessServer, provider: Provider) -> AgentError:
    """Run an agent on a server; it has to fail."""
    async with serving(server):
        path = "" if provider is ANTHROPIC else "/v1"
        address = f"http://127.0.0.1:{server.port}{path}"
        spec = AgentSpec(AgentName("main"), base_url=address, api_key="none")
        agent = ModelAgent(spec, provider, "x", retry=RetryPolicy(first_wait_s=0.001))
        try:
            with pytest.raises(AgentError) as caught:
                await agent.run(request("say something"), Events())
        finally:
            await agent.close()
    return caught.value


@pytest.mark.parametrize("size", [
    pytest.param(65_536, id="large pieces"),
    pytest.param(512, id="small pieces", marks=pytest.mark.slow),
])  # fmt: skip
@pytest.mark.parametrize("name", RESPONSES)
async def test_a_response_without_an_end_ends_the_run_and_is_not_read_on(
    name: str, size: int
) -> None:
    provider, pieces = RESPONSES[name]
    server = EndlessServer(pieces, chunk=size)
    error = await failure(server, provider)
    assert error.friendly == "The model's answer was far too long, so I stopped it."
    assert not error.retryable
    assert server.sent < MOST_READ < MOST_BYTES


BODY = {"error": {"message": WORDS * 10_000}}
BODIES: Mapping[str, tuple[str, str, bytes]] = {
    "a whole answer": ("200 OK", "content-type: application/json", b"[" + b"{}," * 1_000_000),
    "an error": ("400 Bad Request", "content-type: application/json", json.dumps(BODY).encode()),
    "a temporary error": ("503 Down", "content-type: text/html", WORDS.encode() * 100_000),
    "zeros, compressed": (
        "200 OK",
        "content-type: text/event-stream\r\ncontent-encoding: gzip",
        gzip.compress(bytes(50 * 2**20), 1),
    ),
    "events, compressed": (
        "200 OK",
        "content-type: text/event-stream\r\ncontent-encoding: gzip",
        gzip.compress(event(chunk({"content": WORDS})) * 200_000, 1),
    ),
}


@pytest.mark.parametrize("provider", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_is_too_long_is_not_read(name: str, provider: Provider) -> None:
    status, head, body = BODIES[name]
    server = EndlessServer(lambda: iter([body]), head, status)
    error = await failure(server, provider)
    assert error.friendly == "The model's answer was far too long, so I stopped it."


async def test_a_compressed_answer_is_read() -> None:
    said = [chunk({"content": "well"}), chunk({}) | {"choices": [{"index": 0, "delta": {}}]}]
    said[1]["choices"] = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    body = gzip.compress(b"".join(map(event, said)))
    head = "content-type: text/event-stream\r\ncontent-encoding: gzip"
    async with serving(EndlessServer(lambda: iter([body]), head, chunk=7)) as server:
        address = f"http://127.0.0.1:{server.port}/v1"
        agent = ModelAgent(AgentSpec(AgentName("main"), base_url=address), OPENAI, "x")
        assert (await agent.run(request("say"), Events())).text == "well"
        await agent.close()


@pytest.mark.slow
@pytest.mark.parametrize("provider", [OPENAI, ANTHROPIC])
async def test_a_response_in_which_nothing_is_new_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    """A server can keep the connection open for ever with comments."""
    monkeypatch.setattr(progress, "NO_PROGRESS_S", 0.05)
    monkeypatch.setattr(limits, "MOST_BYTES", 2**40)
    error = await failure(EndlessServer(lambda: itertools.repeat(b": wait\n\n")), provider)
    assert "did not go on" in error.friendly
    assert error.retryable


@pytest.mark.slow
async def test_a_response_in_single_characters_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them costs a library as much work as a sentence."""
    monkeypatch.setattr(limits, "MOST_BYTES", 2**20)
    monkeypatch.setattr(progress, "MOST_EVENTS", 2_000)
    error = await failure(EndlessServer(repeated(again=lambda _: chunk({"content": "a"}))), OPENAI)
    assert "far too long" in error.friendly
    assert "more than 2,000 events" in str(error)


class Body(httpx2.AsyncByteStream):
    """A body that is there at once, in pieces of a size."""

    def __init__(self, body: bytes, size: int) -> None:
        self._body = body
        self._size = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for place in range(0, len(self._body), self._size):
            yield self._body[place : place + self._size]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000, 10**9])
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
async def test_events_are_handed_over_whole_a_few_at_a_time(end: str, size: int) -> None:
    """However they come; between them every other task has its turn."""
    events = [f"event: a{end[: len(end) // 2]}data: {number}{end}" for number in range(5_000)]
    body = "".join([*events, "data: the rest"]).encode()
    response = limits.limited(httpx2.Response(200, stream=Body(body, size)))
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(count_turns())
    batches = [batch async for batch in response.stream]
    others.cancel()
    assert b"".join(batches) == body
    assert all(batch.endswith(end.encode()) for batch in batches[:-1])
    assert max(map(len, batches)) <= 8_192
    assert turns >= len(body) // 8_192
