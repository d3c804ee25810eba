"""``library = …``: which of the two clients is made (SPEC CHAN-2)."""

from __future__ import annotations

import pytest

from channels.telegram import _connect
from channels.telegram.settings import Library, read_settings
from channels.telegram.via_aiogram import AiogramClient
from channels.telegram.via_ptb import PtbClient
from goclaw_py.model.errors import SettingError

TOKEN = "4242:AAtest-token_for-tests-only-12345"


@pytest.mark.parametrize(
    ("options", "library"),
    [
        ({}, Library.PTB),
        ({"library": "python-telegram-bot"}, Library.PTB),
        ({"library": "aiogram"}, Library.AIOGRAM),
    ],
)
def test_the_library_is_chosen_by_its_name(options: dict[str, object], library: Library) -> None:
    assert read_settings({"token": TOKEN, **options}).library is library


@pytest.mark.parametrize("value", ["", "telethon", "AIOGRAM", 5, None, ["aiogram"], TOKEN])
def test_any_other_library_is_refused(value: object) -> None:
    with pytest.raises(SettingError, match="python-telegram-bot, aiogram") as caught:
        read_settings({"token": TOKEN, "library": value})
    assert caught.value.key == "library"
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("library", "kind"), [("python-telegram-bot", PtbClient), ("aiogram", AiogramClient)]
)
async def test_the_chosen_library_makes_the_calls(library: str, kind: type) -> None:
    client = await _connect(read_settings({"token": TOKEN, "library": library}))
    assert type(client) is kind
    await client.close()
