"""The server with its fakes, on a real unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from goclaw_py.cli.client.control import RemoteControl
from goclaw_py.web.server import ApiServer
from goclaw_py.web.sockets import listen_unix
from tests.support.apps import lend_api
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl


class Gateway:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.control = FakeControl()
        self.terminals = FakeTerminals()
        self.server: ApiServer
        self.task: asyncio.Task[None]

    def start(self) -> None:
        app = lend_api(self.control, self.terminals)
        self.listener = listen_unix(self.path)
        self.server = ApiServer(app, self.listener.socket)
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
