"""A caller of the Bot API that knows no library, and a bot behind a webhook."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from tests.botapi.rules import Json, is_object
from tests.botapi.server import BotApi

ANN, BOB, TEAM, OLD = 7, 8, -1005, -5


class Wire:
    """Calls methods; ``refusal`` and ``result`` say which answer they expect."""

    def __init__(self, api: BotApi, session: aiohttp.ClientSession) -> None:
        self.api = api
        self.session = session

    async def call(self, method: str, **parameters: object) -> Json:
        url = f"{self.api.url}/bot{self.api.token}/{method}"
        async with self.session.post(url, json=parameters) as answer:
            body: Json = await answer.json()
            assert answer.status == body.get("error_code", 200)
            return body

    async def refusal(self, method: str, **parameters: object) -> str:
        body = await self.call(method, **parameters)
        assert body["ok"] is False, body
        return str(body["description"])

    async def result(self, method: str, **parameters: object) -> Json:
        """The object that a method returns."""
        body = await self.call(method, **parameters)
        assert body["ok"] is True, body
        result = body["result"]
        return result if is_object(result) else {"result": result}

    async def updates(self, **parameters: object) -> list[Json]:
        result = (await self.call("getUpdates", **parameters))["result"]
        assert isinstance(result, list)
        return result

    async def new(self, kind: str) -> list[Json]:
        """What the updates of a kind hold; all updates are confirmed."""
        updates = await self.updates()
        if updates:
            await self.updates(offset=number(updates[-1], "update_id") + 1)
        found = [update.get(kind) for update in updates]
        return [content for content in found if is_object(content)]

    async def upload(
        self, method: str, files: Mapping[str, tuple[str, bytes]], **fields: object
    ) -> Json:
        """Call with files as multipart form data; returns the whole answer."""
        form = aiohttp.FormData()
        for name, value in fields.items():
            form.add_field(name, str(value))
        for name, (file_name, content) in files.items():
            form.add_field(name, io.BytesIO(content), filename=file_name)
        url = f"{self.api.url}/bot{self.api.token}/{method}"
        async with self.session.post(url, data=form) as answer:
            body: Json = await answer.json()
            return body


@dataclass
class Hooked:
    """A bot behind a webhook. ``answer`` gives the status for an update, after ``pause_s``."""

    answer: Callable[[Json], int] = lambda _update: 200
    pause_s: float = 0.0
    received: list[Json] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    @property
    def texts(self) -> list[str]:
        return [text_of(update) for update in self.received]

    async def handle(self, request: web.BaseRequest) -> web.Response:
        update: Json = await request.json()
        self.received.append(update)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.pause_s)
            return web.Response(status=self.answer(update))
        finally:
            self.at_once -= 1


def number(content: Json, name: str) -> int:
    found = content[name]
    assert isinstance(found, int)
    return found


def text_of(update: Json) -> str:
    message = update["message"]
    assert is_object(message)
    return str(message["text"])
