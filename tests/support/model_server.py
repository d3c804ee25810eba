"""A model server on loopback that does what it is told.

It speaks OpenAI's chat completions and Anthropic's messages, below any path; other requests are
seen and not found. What to do stands in the model's name or, if that is no order, in the last user
message:

    say TEXT          the text, a word at a time
    exactly JSON      the text that this string of JSON holds, a word at a time, blanks as they are
    slow N DELAY      N words ("w1 w2 …"), DELAY seconds apart
    big BYTES SIZE    a text that long, in pieces of SIZE (1024)
    think TEXT        thoughts, then an answer
    status CODE       an error, always; 401 quotes the key back as real servers do
    fail CODE N       N times that error, then "ok"
    limit SECONDS N   N times 429 with Retry-After, then "ok"
    wait CODE TIME N  N times that error with Retry-After ("_" is a blank), then "ok"
    fake N TYPE JSON  N times status 200 with the body that this string of JSON holds, then "ok"
    advise CODE BOOL  that error with x-should-retry, always
    quota             the account is empty, in the provider's own words
    overflow          the conversation is too long, in the provider's own words
    cut N             N words, then the connection breaks
    half N            N words, then a clean end without finish_reason
    pause N           N words, then nothing
    fault N           N words, then an error in the stream: overloaded
    refuse            ends at once: the content filter
    hang              accepts the request and sends nothing
    tool NAME JSON    some words and a call of that tool; then says what the tool gave
    tools LIST        as that, several at once: [["NAME", {…} or "text"], …]
    again LIST        as tools, again and again
    walk LIST         the next one of [["TEXT", SECONDS, [["NAME", {…}], …]], …]: those words, so
                      long apart, then those calls; in a new conversation
    many NAME         calls that tool again and again
    mute NAME JSON    some words and a call of that tool; then says nothing
    say               nothing at all
    halftool NAME     a call of that tool, then a clean end without finish_reason
    calls LIST        calls with ids of their own, at once: [["ID", "NAME", {…} or "text"], …]
    short TEXT        the text, then an end because of the length: finish_reason "length"
    usage JSON ORDER  obeys ORDER, and reports that usage; null reports none
    raw LIST          a stream of just these bytes: each string (Latin-1) is sent on its own; then
                      says what the tools gave that it called
    anything else     "you said: …"

A conversation that public APIs refuse gets status 400, as there (``model_server_strict``), and so
does one with the word "poison", or with "curdled" in a call of a tool.

In the same process: ``async with ModelServer() as server``. As a process of its own:
``python -m tests.support.model_server --port 0`` prints its base URL; ``GET /seen`` shows requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from types import ModuleType, TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

from tests.support import model_server_anthropic as anthropic
from tests.support import model_server_openai as openai
from tests.support.model_server_orders import ORDERS, Answer, End, answer

INPUT_TOKENS_PER_MESSAGE = 10


@dataclass(slots=True)
class Seen:
    """One request. Times are those of ``time.monotonic``."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    order: str
    at: float
    hung_up_at: float | None = None
    refused: str = ""
    """Why the conversation was refused."""

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.body["messages"]]

    @property
    def texts(self) -> list[Any]:
        return [message.get("content") for message in self.body["messages"]]

    @property
    def is_spoken(self) -> bool:
        return self.path.endswith(("/chat/completions", "/messages"))

    @property
    def speech(self) -> ModuleType:
        """Whose protocol it is."""
        return anthropic if self.path.endswith("/messages") else openai


@dataclass(slots=True)
class ModelServer:
    """Listens on a free port of loopback while it is entered. ``obey`` makes the answers."""

    port: int = 0
    obey: Callable[[str, Sequence[str], int], Answer] = answer
    in_calls: str = "curdled"
    """What it refuses in a call of a tool, and takes as plain text."""
    anywhere: str = "poison"
    """What it refuses anywhere."""
    seen: list[Seen] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: Counter[str] = field(default_factory=Counter)
    _runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """For Anthropic's client, which puts the version into the path on its own."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_get("/seen", self._show)
        app.router.add_post("/{path:.*}", self._complete)
        # With handler_cancellation the handler hears at once that the client has gone.
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _show(self, request: web.Request) -> web.Response:
        return web.Response(
            body=orjson.dumps([asdict(seen) for seen in self.seen]), content_type="application/json"
        )

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        seen = await self._note(request)
        try:
            return await self._act(request, seen)
        except asyncio.CancelledError:
            seen.hung_up_at = time.monotonic()
            self.hung_up.set()
            raise

    async def _note(self, request: web.Request) -> Seen:
        body = orjson.loads(await request.read())
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = Seen(request.path, headers, body, "", time.monotonic())
        if seen.is_spoken:
            model = str(body["model"])
            seen.order = model if model.partition(" ")[0] in ORDERS else seen.speech.said(body)
        self.seen.append(seen)
        self.arrived.set()
        return seen

    async def _act(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        if not seen.is_spoken:
            return _json(404, {"error": {"message": "not found", "code": 404}})
        if why := seen.speech.refusal(seen.body) or self._dislikes(seen):
            seen.refused = why
            return _failure(seen, 400, why, "invalid_request_error")
        verb, _, rest = seen.order.partition(" ")
        if verb == "hang":
            await asyncio.Event().wait()
        results = seen.speech.results(seen.body)
        if verb == "raw" and not results:
            return await _send_raw(request, orjson.loads(rest))
        if (failure := self._failed(seen)) is not None:
            return failure
        return await _send(request, seen, self.obey(seen.order, results, len(seen.roles)))

    def _dislikes(self, seen: Seen) -> str | None:
        messages = seen.body["messages"]
        calls = [message for message in messages if message.get("tool_calls")] + [
            block
            for message in messages
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_use"
        ]
        is_refused = self.anywhere in json.dumps(messages) or self.in_calls in json.dumps(calls)
        return "invalid request" if is_refused else None

    def _failed(self, seen: Seen) -> web.Response | None:
        match seen.order.split(maxsplit=2):
            case ["wait" | "fake", *_]:
                return self._odd(seen)
            case ["status", code]:
                return _error(int(code), seen)
            case ["fail", code, times] if self._again(seen, int(times)):
                return _error(int(code), seen)
            case ["limit", seconds, times] if self._again(seen, int(times)):
                return _error(429, seen, {"Retry-After": seconds})
            case ["advise", code, advice]:
                return _error(int(code), seen, {"x-should-retry": advice})
            case ["quota"]:
                return _failure(seen, *seen.speech.QUOTA)
            case ["overflow"]:
                return _failure(seen, *seen.speech.OVERFLOW)
        return None

    def _odd(self, seen: Seen) -> web.Response | None:
        match seen.order.split(maxsplit=3):
            case ["wait", code, value, times] if self._again(seen, int(times)):
                return _error(int(code), seen, {"Retry-After": value.replace("_", " ")})
            case ["fake", times, kind, body] if self._again(seen, int(times)):
                return web.Response(text=orjson.loads(body), content_type=kind)
        return None

    def _again(self, seen: Seen, times: int) -> bool:
        self._failures[seen.order] += 1
        return self._failures[seen.order] <= times


async def _send(request: web.Request, seen: Seen, what: Answer) -> web.StreamResponse:
    """A successful answer, streamed or in one piece."""
    asked = INPUT_TOKENS_PER_MESSAGE * (len(seen.roles) + ("system" in seen.body))
    kind = anthropic.Anthropic if seen.speech is anthropic else openai.OpenAi
    speaker = kind(seen.body, asked)
    if not seen.body.get("stream"):
        await asyncio.sleep(what.delay_s * len(what.pieces))
        return _json(200, speaker.whole(what))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await _stream(response, speaker, what)
    match what.end:
        case End.CUT:
            assert request.transport is not None
            request.transport.abort()
        case End.SILENCE:
            await asyncio.Event().wait()
        case End.FAULT:
            await response.write(speaker.fault())
        case _:
            await response.write(speaker.finish(what))
    return response


async def _send_raw(request: web.Request, pieces: Sequence[str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece.encode("latin-1"))
        await asyncio.sleep(0)  # a packet of its own
    return response


async def _stream(
    response: web.StreamResponse, speaker: anthropic.Anthropic | openai.OpenAi, what: Answer
) -> None:
    await response.write(speaker.begin(what))
    for position, piece in enumerate(what.pieces):
        await asyncio.sleep(what.delay_s if position else 0)
        await response.write(speaker.piece(piece))
    if what.calls:
        await response.write(speaker.calls(list(what.calls)))


def _error(status: int, seen: Seen, headers: dict[str, str] | None = None) -> web.Response:
    key = seen.headers.get("authorization", "").removeprefix("Bearer ")
    key = key or seen.headers.get("x-api-key", "")
    message = {
        401: f"Incorrect API key provided: {key[:8]}*****{key[-4:]}. Bearer {key} is wrong.",
        404: f"The model {seen.body['model']} does not exist.",
    }.get(status, f"scripted {status}")
    return _failure(seen, status, message, "scripted", headers)


def _failure(
    seen: Seen, status: int, message: str, code: str, headers: dict[str, str] | None = None
) -> web.Response:
    return _json(status, seen.speech.error(status, message, code), headers)


def _json(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, headers=headers, body=orjson.dumps(body), content_type="application/json"
    )


async def _serve(port: int) -> None:
    async with ModelServer(port=port) as server:
        print(server.base_url, flush=True)
        # Whoever started it holds the other end of stdin: no orphan is left when that one dies.
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
