"""Homes and emulators for end-to-end tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.botapi.control import Control
from tests.e2e.heartbeat_gateway import with_heartbeat
from tests.e2e.loopback_model import Model, model_server
from tests.support.postgres import Server, run_sql
from tests.support.process import Home, emulator, home, telegram


@pytest.fixture
def api() -> Iterator[Control]:
    with emulator() as control:
        yield control


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Home]:
    with home(tmp_path / "home") as made:
        yield made


@pytest.fixture
def bot(tmp_path: Path, api: Control) -> Iterator[Home]:
    """A home whose gateways serve the emulator's bot and let everybody talk."""
    open_door = {"GOCLAW_CHANNELS__TELEGRAM__DIRECT": "open"}
    with home(tmp_path / "home", **telegram(api, **open_door)) as made:
        yield made


@pytest.fixture
def model() -> Iterator[Model]:
    with model_server() as started:
        yield started


@pytest.fixture
def postgres_url(postgres_server: Server) -> str:
    """A DSN of an empty database on the tests' own server."""
    name = f"e2e_{uuid4().hex}"
    asyncio.run(run_sql(postgres_server.address, f"create database {name}"))
    address = postgres_server.at(name)
    return f"postgresql://{address.user}@/{name}?host={address.host}"


@pytest.fixture
def heart(bot: Home, model: Model, postgres_url: str) -> Home:
    """A home whose agents beat when they are told to, and ask the loopback model."""
    return with_heartbeat(bot, model, postgres_url)
