"""``channels.telegram.via_ptb`` and ``via_aiogram``: what they rely on in their libraries."""

from __future__ import annotations

import io
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
import telegram
from telegram.error import TelegramError

from channels.telegram import _connect, client_class
from channels.telegram.http import FormFile, HttpPool
from channels.telegram.settings import Library, TelegramSettings
from channels.telegram.via_ptb import PtbClient, _Failure, _Transport
from goclaw_py.core.errors import MaybeSent, NotSent

SETTINGS = TelegramSettings("4242:AAsecret-of_this")
CLIENTS = [
    (Library.PTB, "channels.telegram.via_ptb"),
    (Library.AIOGRAM, "channels.telegram.via_aiogram"),
]


@pytest.mark.parametrize(("library", "module"), CLIENTS)
async def test_the_chosen_library_makes_the_calls(library: Library, module: str) -> None:
    """SPEC CHAN-2."""
    client = await _connect(TelegramSettings(SETTINGS.token, library=library))
    assert type(client).__module__ == module
    await client.close()


@pytest.mark.parametrize("library", list(Library))
async def test_a_client_that_was_not_opened_sends_nothing(library: Library) -> None:
    client = client_class(library)(SETTINGS)
    with pytest.raises(NotSent, match="the connection pool is closed"):
        await client.get_me()


@pytest.fixture
def via_aiogram() -> Any:
    """``via_aiogram``, imported as the gateway does, and only for the tests that need it."""
    client_class(Library.AIOGRAM)
    return import_module("channels.telegram.via_aiogram")


async def test_an_open_file_is_one_to_the_library(via_aiogram: Any) -> None:
    content = bytes(100_000)
    file = via_aiogram._File(FormFile(io.BytesIO(content), "a.txt", "text/plain"))
    bot = via_aiogram.aiogram.Bot(SETTINGS.token)
    pieces = [piece async for piece in file.read(bot)]
    assert b"".join(pieces) == content
    assert file.filename == "a.txt"


async def test_a_session_closes_its_connections(via_aiogram: Any) -> None:
    pool = HttpPool(1, connect_s=1, silence_s=7)
    await pool.open()
    bot = via_aiogram.aiogram.Bot(SETTINGS.token, session=via_aiogram._Session(SETTINGS, pool))
    await bot.session.close()
    with pytest.raises(NotSent, match="closed"):
        await bot.get_me()


@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_a_call_that_is_not_parsed_warns_nobody(method: str) -> None:
    """The warning would be in the log with each call, and in ``pytest`` it is an error."""
    client = await PtbClient.open(SETTINGS)
    await client.close()
    assert hasattr(telegram.Bot, method), "else the library would not have warned"
    with pytest.raises(_Failure, match="the connection pool is closed"):
        await client._bot.do_api_request(method)


@pytest.mark.slow
def test_a_message_over_aiogram_builds_no_model_of_a_message() -> None:
    """Nor those of all that a message may contain: only its number is used."""
    script = """
import asyncio
from channels.telegram import client_class
from channels.telegram.client import ChatPlace, Text
from channels.telegram.http import HttpPool
from channels.telegram.settings import Library, TelegramSettings

async def post(*_, **__):
    return 200, b'{"ok": true, "result": {"message_id": 5}}'

async def main():
    HttpPool.post = post
    client = await client_class(Library.AIOGRAM).open(TelegramSettings("4242:AA"))
    buttons = [[("a", "b")]]
    print(await client.send_message(ChatPlace(7), Text("x"), reply_to=3, buttons=buttons))
    await client.close()

asyncio.run(main())
from aiogram.types import Message
print(Message.__pydantic_complete__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["5", "False"], done.stderr


async def test_the_transport_looks_to_the_library_as_its_own_does() -> None:
    pool = HttpPool(1, connect_s=1, silence_s=7)
    transport = _Transport(pool)
    assert transport.read_timeout == 7
    await transport.initialize()
    await transport.initialize()
    with pytest.raises(_Failure) as refused:
        await transport.do_request("http://127.0.0.1:9/", "POST")
    assert isinstance(refused.value, TelegramError)
    assert isinstance(refused.value.error, NotSent | MaybeSent)
    await transport.shutdown()
    with pytest.raises(_Failure, match="closed"):
        await transport.do_request("http://127.0.0.1:9/", "POST")
