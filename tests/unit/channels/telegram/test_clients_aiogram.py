"""``channels.telegram.via_aiogram``: what the library sees of a file and of a session."""

from __future__ import annotations

import io

import aiogram
import pytest

from channels.telegram.http import FormFile, HttpPool
from channels.telegram.settings import TelegramSettings
from channels.telegram.via_aiogram import AiogramClient, _File, _Session
from goclaw_py.model.errors import NotSent

SETTINGS = TelegramSettings("4242:AAsecret-of_this")


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


async def test_a_client_that_was_not_opened_sends_nothing() -> None:
    with pytest.raises(NotSent, match="the connection pool is closed"):
        await AiogramClient(SETTINGS).get_me()
