"""Fixtures with the whole Telegram channel, over both libraries and both ways of receiving.

``pytest_plugins = ["tests.support.telegram_fixtures"]``. A test with ``line`` runs four times, with
any other of them twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from channels.telegram import client_class
from channels.telegram.client import BotClient
from channels.telegram.settings import Library
from goclaw_py.chat.channel import Channel
from tests.botapi import BotApi
from tests.support.bot_clients import connected as client_over
from tests.support.telegram import ANN, Line, Mode, connected


@pytest.fixture(params=list(Library))
def library(request: pytest.FixtureRequest) -> Library:
    library = Library(request.param)
    # Here, where it may take its time: aiogram needs a second, under load many more.
    client_class(library)
    return library


@pytest.fixture(params=list(Mode))
def mode(request: pytest.FixtureRequest) -> Mode:
    return Mode(request.param)


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    # A server of one's own takes a webhook on loopback.
    async with BotApi(local=True) as api:
        yield api


@pytest.fixture
async def line(api: BotApi, library: Library, mode: Mode) -> AsyncIterator[Line]:
    """A channel that can receive, in both ways."""
    async with connected(api, library, mode) as line:
        yield line


@pytest.fixture
async def polling(api: BotApi, library: Library) -> AsyncIterator[Line]:
    async with connected(api, library, Mode.POLLING) as line:
        yield line


@pytest.fixture
async def hooked(api: BotApi, library: Library) -> AsyncIterator[Line]:
    async with connected(api, library, Mode.WEBHOOK) as line:
        yield line


@pytest.fixture
async def channel(api: BotApi, library: Library) -> AsyncIterator[Channel]:
    """A channel that only sends; ann has written to it."""
    api.say(ANN, "hello")
    async with connected(api, library) as line:
        yield line.channel


@pytest.fixture
async def client(api: BotApi, library: Library) -> AsyncIterator[BotClient]:
    """Only the calls of the server; ann has written to the bot."""
    api.say(ANN, "hello")
    async with client_over(library, api.url) as client:
        yield client
