"""A model server on loopback that does what it is told; speaks OpenAI's chat completions.

What to do stands in the model's name or, if that is no order, in the last user message:

    say TEXT          the text, a word at a time
    slow N DELAY      N words ("w1 w2 …"), DELAY seconds apart
    status CODE       an error, always; 401 quotes the key back as real servers do
    fail CODE N       N times that error, then "ok"
    limit SECONDS N   N times 429 with Retry-After, then "ok"
    advise CODE BOOL  that error with x-should-retry, always
    quota             429 insufficient_quota
    cut N             N words, then the connection breaks
    half N            N words, then a clean end without finish_reason
    hang              accepts the request and sends nothing
    tool NAME JSON    some words and a call of that tool; then says what the tool gave
    many NAME         calls that tool again and again
    halftool NAME     a call of that tool, then a clean end without finish_reason
    anything else     "you said: …"

Anthropic's messages are spoken too, for the last order and for "half" only.

In the same process: ``async with ModelServer() as server``. As a process of its own:
``python -m tests.support.model_server --port 0`` prints its base URL; ``GET /seen`` shows requests.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

CREATED = 1_700_000_000
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

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.body["messages"]]

    @property
    def texts(self) -> list[Any]:
        return [message.get("content") for message in self.body["messages"]]


@dataclass(slots=True)
class ModelServer:
    """Listens on a free port of loopback while it is entered."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: Counter[str] = field(default_factory=Counter)
    _runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/messages", self._anthropic)
        app.router.add_get("/seen", self._show)
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
            body=orjson.dumps([asdict(seen) for seen in self.seen]),
            content_type="application/json",
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
        seen = Seen(request.path, headers, body, _order(body), time.monotonic())
        self.seen.append(seen)
        self.arrived.set()
        return seen

    async def _act(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        match seen.order.split(maxsplit=2):
            case ["hang"]:
                await asyncio.Event().wait()
            case ["status", code]:
                return _error(int(code), seen)
            case ["fail", code, times] if self._again(seen, int(times)):
                return _error(int(code), seen)
            case ["limit", seconds, times] if self._again(seen, int(times)):
                return _error(429, seen, {"Retry-After": seconds})
            case ["advise", code, advice]:
                return _error(int(code), seen, {"x-should-retry": advice})
            case ["quota"]:
                return _error(429, seen, code="insufficient_quota")
        return await _Answer(request, seen).send()

    def _again(self, seen: Seen, times: int) -> bool:
        self._failures[seen.order] += 1
        return self._failures[seen.order] <= times

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        seen = await self._note(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        text = f"you said: {seen.order}"
        usage = {"input_tokens": 10, "output_tokens": 0}
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": seen.body["model"],
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": text},
            },
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"output_tokens": 5},
            },
            {"type": "message_stop"},
        ]
        if seen.order.startswith("half"):
            del events[-2:]
        for event in events:
            name = event["type"].encode()
            await response.write(b"event: " + name + b"\ndata: " + orjson.dumps(event) + b"\n\n")
        return response


class _Answer:
    """A successful answer, streamed or in one piece."""

    def __init__(self, request: web.Request, seen: Seen) -> None:
        self._request = request
        self._seen = seen
        self._model = seen.body["model"]

    async def send(self) -> web.StreamResponse:
        seen = self._seen
        after_tool = seen.roles[-1] == "tool"
        match seen.order.split(maxsplit=2):
            case ["say", *rest]:
                sending = self._words(" ".join(rest).split(), 0)
            case ["slow", count, delay]:
                sending = self._words(_numbered(int(count)), float(delay))
            case ["cut", count]:
                sending = self._words(_numbered(int(count)), 0, cut=True)
            case ["half", count]:
                sending = self._words(_numbered(int(count)), 0, finish=None)
            case ["fail" | "limit", *_]:
                sending = self._words(["ok"], 0)
            case ["tool", name, arguments] if not after_tool:
                sending = self._call(name, arguments)
            case ["tool", *_]:
                sending = self._words(["tool", "gave:", str(seen.texts[-1])], 0)
            case ["halftool", name]:
                sending = self._call(name, "{}", finish=None)
            case ["many", name]:
                sending = self._call(name, "{}")
            case _:
                sending = self._words(["you", "said:", seen.order], 0)
        return await sending

    async def _words(
        self, words: Sequence[str], delay: float, *, cut: bool = False, finish: str | None = "stop"
    ) -> web.StreamResponse:
        pieces = [word if position == 0 else f" {word}" for position, word in enumerate(words)]
        if not self._seen.body.get("stream"):
            await asyncio.sleep(delay * len(pieces))
            return self._whole("".join(pieces))
        response = await self._open()
        for position, piece in enumerate(pieces):
            await asyncio.sleep(delay if position else 0)
            await response.write(self._chunk({"role": "assistant", "content": piece}))
        if cut:
            assert self._request.transport is not None
            self._request.transport.abort()
            return response
        return await self._close(response, finish, len(pieces))

    async def _call(
        self, name: str, arguments: str, *, finish: str | None = "tool_calls"
    ) -> web.StreamResponse:
        response = await self._open()
        await response.write(self._chunk({"role": "assistant", "content": "looking"}))
        function = {"name": name, "arguments": arguments}
        call = {
            "index": 0,
            "id": f"call_{len(self._seen.roles)}",
            "type": "function",
            "function": function,
        }
        await response.write(self._chunk({"tool_calls": [call]}))
        return await self._close(response, finish, 2)

    async def _open(self) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(self._request)
        return response

    async def _close(
        self, response: web.StreamResponse, finish: str | None, tokens: int
    ) -> web.StreamResponse:
        if finish is not None:
            await response.write(self._chunk({}, finish=finish))
            await response.write(_event(self._envelope([]) | {"usage": self._usage(tokens)}))
        await response.write(b"data: [DONE]\n\n")
        return response

    def _whole(self, text: str) -> web.Response:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        body = self._envelope([choice]) | {
            "object": "chat.completion",
            "usage": self._usage(len(text.split())),
        }
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    def _chunk(self, delta: dict[str, Any], *, finish: str | None = None) -> bytes:
        return _event(self._envelope([{"index": 0, "delta": delta, "finish_reason": finish}]))

    def _envelope(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self._model,
            "choices": choices,
        }

    def _usage(self, tokens: int) -> dict[str, int]:
        asked = INPUT_TOKENS_PER_MESSAGE * len(self._seen.roles)
        return {
            "prompt_tokens": asked,
            "completion_tokens": tokens,
            "total_tokens": asked + tokens,
        }


_ORDERS = frozenset(
    "say slow status fail limit advise quota cut half hang tool halftool many".split()  # noqa: SIM905 - a list of words
)


def _order(body: dict[str, Any]) -> str:
    model = str(body["model"])
    if model.split(maxsplit=1)[0] in _ORDERS:
        return model
    said = [message for message in body["messages"] if message["role"] == "user"]
    content = said[-1]["content"] if said else ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return str(content)


def _numbered(count: int) -> list[str]:
    return [f"w{number}" for number in range(1, count + 1)]


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def _error(
    status: int, seen: Seen, headers: dict[str, str] | None = None, *, code: str = "scripted"
) -> web.Response:
    key = seen.headers.get("authorization", "").removeprefix("Bearer ")
    message = {
        401: f"Incorrect API key provided: {key[:8]}*****{key[-4:]}. Bearer {key} is wrong.",
        404: f"The model {seen.body['model']} does not exist.",
    }.get(status, f"scripted {status}")
    body = {"error": {"message": message, "type": "scripted", "code": code}}
    return web.Response(
        status=status,
        headers=headers,
        body=orjson.dumps(body),
        content_type="application/json",
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
