"""The server with its fakes, on a real unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.web.api.routes import closing_of
from goclaw_py.web.server import HttpServer
from goclaw_py.web.sockets import listen_unix
from tests.support.apps import lend_api
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


class Gateway:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.control = FakeControl()
        self.terminals = FakeTerminals()
        self.server: HttpServer
        self.task: asyncio.Task[None]

    def start(self) -> None:
        app = lend_api(self.control, self.terminals)
        self.listener = listen_unix(self.path)
        self.server = HttpServer(app, self.listener.socket, on_stop=closing_of(app).set)
        self.task = asyncio.create_task(self.server.run())

    async def stop(self) -> None:
        self.server.stop()
        await self.task
        self.listener.close()


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[Gateway]:
    made = Gateway(folder / "gateway.sock")
    made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[tuple[Gateway, RemoteControl]]:
    async with gateway(folder) as made, RemoteControl(made.path) as remote:
        yield made, remote


def app_client(control: FakeControl | None = None, *, chats: bool = True) -> httpx.AsyncClient:
    """A client of the app itself, without a server in between."""
    app = lend_api(control or FakeControl(), FakeTerminals() if chats else None)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://x")


class Api:
    """Asks the API as a program does; one for a test: to make an app costs more than to ask."""

    def __init__(self) -> None:
        self.control = FakeControl()
        self.client = app_client(self.control)

    async def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and body of the answer."""
        answer = await self.client.request(method, f"/api{path}", json=body)
        return answer.status_code, answer.json()
