"""``channels.telegram.via_ptb`` and ``via_aiogram``: what they rely on in their libraries."""

from __future__ import annotations

import io

import aiogram
import pytest
import telegram
from telegram.error import TelegramError

from channels.telegram import _connect
from channels.telegram.http import FormFile, HttpPool
from channels.telegram.settings import Library, TelegramSettings
from channels.telegram.via_aiogram import AiogramClient, _File, _Session
from channels.telegram.via_ptb import PtbClient, _Failure, _Transport
from goclaw_py.model.errors import MaybeSent, NotSent

SETTINGS = TelegramSettings("4242:AAsecret-of_this")
CLIENTS: list[tuple[Library, type[PtbClient | AiogramClient]]] = [
    (Library.PTB, PtbClient),
    (Library.AIOGRAM, AiogramClient),
]


@pytest.mark.parametrize(("library", "kind"), CLIENTS)
async def test_the_chosen_library_makes_the_calls(library: Library, kind: type) -> None:
    """SPEC CHAN-2."""
    client = await _connect(TelegramSettings(SETTINGS.token, library=library))
    assert type(client) is kind
    await client.close()


@pytest.mark.parametrize("kind", [PtbClient, AiogramClient])
async def test_a_client_that_was_not_opened_sends_nothing(
    kind: type[PtbClient | AiogramClient],
) -> None:
    with pytest.raises(NotSent, match="the connection pool is closed"):
        await kind(SETTINGS).get_me()


async def test_an_open_file_is_one_to_the_library() -> None:
    content = bytes(100_000)
    file = _File(FormFile(io.BytesIO(content), "a.txt", "text/plain"))
    bot = aiogram.Bot(SETTINGS.token)
    pieces = [piece async for piece in file.read(bot)]
    assert b"".join(pieces) == content
    assert file.filename == "a.txt"


async def test_a_session_closes_its_connections() -> None:
    pool = HttpPool(1, connect_s=1, silence_s=7)
    await pool.open()
    bot = aiogram.Bot(SETTINGS.token, session=_Session(SETTINGS, pool))
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
