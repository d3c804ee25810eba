"""``channels.telegram.via_ptb`` and ``via_aiogram``: what they rely on in their libraries."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import pytest
import telegram
from telegram.error import TelegramError

from channels.telegram import _connect, client_class
from channels.telegram.http import FormFile, HttpPool
from channels.telegram.settings import Library, TelegramSettings
from channels.telegram.via_ptb import _Failure, _Transport
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


@pytest.mark.parametrize(
    "method",
    ["get_Updates", "get_File", "send_Message", "edit_Message_Text", "send_Photo", "send_Voice"],
)
def test_the_library_takes_a_method_spelled_so_for_one_that_it_does_not_know(method: str) -> None:
    """Else it warns, and the warning would be in the log with each call."""
    assert not hasattr(telegram.Bot, method)
    assert hasattr(telegram.Bot, method.lower())


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
