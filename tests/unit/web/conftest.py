"""What tests of the API and of the hooks' server share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.web.harness import Api
from tests.unit.web.hooks_harness import Client, Server, Sink, hook, serving


@pytest.fixture
def api() -> Api:
    return Api()


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
