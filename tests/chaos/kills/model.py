"""The model: OpenAI's chat completions, streamed, at an address for each life of a node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

from tests.chaos.kills.history import Asked, History
from tests.chaos.kills.script import Moment
from tests.chaos.kills.trap import Trap
from tests.support.model_server_openai import OpenAi
from tests.support.model_server_orders import Answer, Call, Finish


class _Speaker(OpenAi):
    """Gives each response an id of its own."""

    def __init__(self, body: dict[str, Any], response: str) -> None:
        super().__init__(body, 10)
        self._id = response

    def _envelope(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return super()._envelope(choices) | {"id": self._id}


@asynccontextmanager
async def model_server(history: History, trap: Trap) -> AsyncIterator[str]:
    """Serve; the address without node and life."""
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{node}/{life}/v1/chat/completions", _Model(history, trap).complete)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class _Model:
    """Answers as the tasks say."""

    def __init__(self, history: History, trap: Trap) -> None:
        self._history = history
        self._trap = trap

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        body = orjson.loads(await request.read())
        node, life = (int(request.match_info[name]) for name in ("node", "life"))
        asked = self._history.request(node, life, body)
        self._trap.reach(Moment.REQUEST, asked.node, asked.id)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        names = [tool["function"]["name"] for tool in body["tools"]]
        await self._stream(response, _Speaker(body, asked.id), asked, names)
        return response

    async def _stream(
        self, response: web.StreamResponse, speaker: OpenAi, asked: Asked, names: list[str]
    ) -> None:
        calls = [
            Call(_full(call.tool, names), orjson.dumps({"call": call.id}).decode(), call.id)
            for call in asked.calls
        ]
        end = Finish.CALLS if calls else Finish.STOP
        answer = Answer(asked.words, calls=calls, end=end)
        for place, word in enumerate(answer.pieces):
            await asyncio.sleep(asked.task.word_s)
            await response.write(speaker.piece(f" {word}" if place else word))
            if place == len(answer.pieces) // 2:
                self._trap.reach(Moment.STREAM, asked.node, asked.id)
        await response.write(speaker.calls(calls) + speaker.finish(answer))
        self._history.delivered(asked)
        self._trap.reach(Moment.RESPONSE, asked.node, asked.id)


def _full(tool: str, names: list[str]) -> str:
    """The name that a tool of the shop has for the model."""
    return next(name for name in names if name.endswith(f"_{tool}") and "shop" in name)
