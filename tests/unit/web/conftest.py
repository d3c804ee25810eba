"""What tests of the API and of the hooks' server share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goclaw_py.cli.client.control import RemoteControl
from tests.unit.web.harness import Api, Gateway, gateway
from tests.unit.web.hooks_harness import Client, Server, Sink, hook, serving


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Gateway]:
    """What answers on a socket."""
    async with gateway(tmp_path) as made:
        yield made


@pytest.fixture
async def remote(made: Gateway) -> AsyncIterator[RemoteControl]:
    """The client of ``made``."""
    async with RemoteControl(made.path) as remote:
        yield remote


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
async def server(tmp_path: Path, sink: Sink) -> AsyncIterator[Server]:
    """It serves ``sink`` at its usual path."""
    async with serving(tmp_path, hook(sink)) as made:
        yield made


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with server.client() as made:
        yield made
