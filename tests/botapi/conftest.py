"""An emulator in the test's loop, and somebody who calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.botapi.caller import ANN, Wire
from tests.botapi.server import BotApi


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as api:
        yield api


@pytest.fixture
async def wire(api: BotApi) -> AsyncIterator[Wire]:
    async with aiohttp.ClientSession() as session:
        yield Wire(api, session)


@pytest.fixture
async def chat(api: BotApi, wire: Wire) -> Wire:
    """A caller, and a chat that Ann has begun; nothing waits for the bot."""
    api.say(ANN, "hello")
    api.world.updates.drop()
    return wire
