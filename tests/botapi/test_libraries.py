"""Both client libraries understand every answer and every update of the emulator."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.botapi import OTHER, Control, FileKind, in_thread, png
from tests.botapi.rules import Json

pytestmark = pytest.mark.real_time

ANN, TEAM, OLD = 7, -1005, -5


@pytest.fixture
def api() -> Iterator[Control]:
    with in_thread(local=True) as control:
        everything(control)
        yield control


def everything(api: Control) -> None:
    """Let every kind of update wait."""
    api.say(ANN, "/start @Some_bot https://x.example", username="ann")
    api.say(ANN, "why?", reply_to=1, quote="start", forwarded_from=-1007)
    for kind in FileKind:
        api.send(ANN, kind, caption="see")
    for content in OTHER.values():
        api.send_other(ANN, content)
    api.album(ANN, [FileKind.PHOTO, FileKind.VIDEO])
    api.edit(ANN, 1, "changed")
    api.press(ANN, 1, "x")
    api.block(ANN)
    api.unblock(ANN)
    api.add_group(TEAM, "Team", topics=[55])
    api.say(ANN, "x", chat_id=TEAM, thread=55, anonymous=True)
    api.open_topic(TEAM, 66, "New")
    api.close_topic(TEAM, 66)
    api.reopen_topic(TEAM, 66)
    api.join(TEAM, 8)
    api.leave(TEAM, 8)
    api.rename(TEAM, "Crew")
    api.pin(TEAM, 1)
    api.mute(TEAM)
    api.kick(TEAM)
    api.invite(TEAM)
    api.add_group(OLD, "Old", kind="group")
    api.migrate(OLD, -1006)


def updates(api: Control) -> list[Json]:
    """All updates that wait, as they come."""
    connection = http.client.HTTPConnection(urlsplit(api.url).netloc, timeout=10)
    try:
        connection.request("GET", f"/bot{api.token}/getUpdates")
        result = json.loads(connection.getresponse().read())["result"]
    finally:
        connection.close()
    assert isinstance(result, list)
    return result


def test_python_telegram_bot_reads_all(api: Control) -> None:
    import telegram

    for update in updates(api):
        read = telegram.Update.de_json(update, None)
        assert _unknown(read) == set(), update
    asyncio.run(_with_ptb(api))


async def _with_ptb(api: Control) -> None:
    import telegram

    bot = telegram.Bot(api.token, base_url=f"{api.url}/bot", base_file_url=f"{api.url}/file/bot")
    async with bot:
        button = telegram.InlineKeyboardButton("ok", callback_data="x")
        markup = telegram.InlineKeyboardMarkup([[button]])
        reply = telegram.ReplyParameters(1)
        sent = await bot.send_message(
            ANN, "<b>x</b>", "HTML", reply_markup=markup, reply_parameters=reply
        )
        edited = await bot.edit_message_text("y", ANN, sent.message_id)
        assert isinstance(edited, telegram.Message)
        await bot.edit_message_reply_markup(ANN, sent.message_id, reply_markup=markup)
        await bot.send_message_draft(ANN, 5, "growing")
        photo = await bot.send_photo(ANN, png(), caption="see")
        assert photo.photo
        file = await bot.get_file(photo.photo[-1].file_id)
        assert bytes(await file.download_as_bytearray()) == png()
        await bot.send_document(ANN, b"abc", filename="a.txt")
        await bot.send_voice(ANN, b"OggS")
        await bot.send_media_group(ANN, [telegram.InputMediaPhoto(png())] * 2)
        await bot.set_message_reaction(ANN, 1, "👀")
        await bot.set_my_commands([("stop", "Stop")], telegram.BotCommandScopeChat(ANN))
        assert (await bot.get_chat(TEAM)).title == "Crew"
        assert await bot.set_webhook("http://127.0.0.1:9/x", secret_token="s")
        assert (await bot.get_webhook_info()).url == "http://127.0.0.1:9/x"
        await bot.delete_messages(ANN, [1, 2])
        await bot.leave_chat(TEAM)
        with pytest.raises(telegram.error.ChatMigrated):
            await bot.send_message(OLD, "x")
    assert _uploads(api) == ["sendPhoto", "sendDocument", "sendVoice", "sendMediaGroup"]


def test_aiogram_reads_all(api: Control) -> None:
    import aiogram

    for update in updates(api):
        read = aiogram.types.Update.model_validate(update)
        assert read.event_type in update
        assert read.event.model_extra in (None, {}), update
    asyncio.run(_with_aiogram(api))


async def _with_aiogram(api: Control) -> None:
    import aiogram
    from aiogram import types
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    session = AiohttpSession(api=TelegramAPIServer.from_base(api.url))
    async with aiogram.Bot(api.token, session=session) as bot:
        button = types.InlineKeyboardButton(text="ok", callback_data="x")
        markup = types.InlineKeyboardMarkup(inline_keyboard=[[button]])
        sent = await bot.send_message(ANN, "<b>x</b>", parse_mode="HTML", reply_markup=markup)
        assert sent.html_text == "<b>x</b>"
        await bot.edit_message_text("y", chat_id=ANN, message_id=sent.message_id)
        await bot.send_message_draft(ANN, draft_id=5, text="growing", can_stop=True)
        api.stop_draft(ANN)
        picture = types.BufferedInputFile(png(), "a.png")
        photo = await bot.send_photo(ANN, picture, caption="see")
        assert photo.photo
        content = await bot.download(photo.photo[-1])
        assert content is not None
        assert content.read() == png()
        await bot.send_document(ANN, types.BufferedInputFile(b"abc", "a.txt"))
        await bot.send_voice(ANN, types.BufferedInputFile(b"OggS", "a.oga"))
        await bot.send_media_group(ANN, [types.InputMediaPhoto(media=picture)] * 2)
        eyes = types.ReactionTypeEmoji(emoji="👀")
        await bot.set_message_reaction(ANN, 1, [eyes])
        assert (await bot.get_chat(TEAM)).title == "Crew"
        await bot.set_webhook("http://127.0.0.1:9/x", secret_token="s")
        assert (await bot.get_webhook_info()).url == "http://127.0.0.1:9/x"
        await bot.leave_chat(TEAM)
        with pytest.raises(aiogram.exceptions.TelegramMigrateToChat):
            await bot.send_message(OLD, "x")
        await bot.delete_webhook()
    stopped = [update for update in updates(api) if "stopped_message_generation" in update]
    read = types.Update.model_validate(stopped[0])
    assert read.stopped_message_generation is not None
    assert read.stopped_message_generation.draft_id == 5
    assert _uploads(api) == ["sendPhoto", "sendDocument", "sendVoice", "sendMediaGroup"]


def _uploads(api: Control) -> list[str]:
    """The methods by which files came and were taken."""
    calls = api.transcript(ok=True)
    return [
        call.method
        for call in calls
        if any(isinstance(value, dict) and "mime" in value for value in call.parameters.values())
    ]


def _unknown(read: object) -> set[str]:
    """Fields of a message that the library does not know."""
    extra: set[str] = set()
    for name in ("message", "edited_message", "callback_query", "my_chat_member"):
        found = getattr(read, name, None)
        if found is not None:
            extra |= set(found.api_kwargs)
    return extra
