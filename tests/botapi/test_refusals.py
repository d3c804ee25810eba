"""The emulator refuses what the real server refuses, in the real server's words."""

from __future__ import annotations

import aiohttp
import pytest

from tests.botapi import BotApi, FileKind, png
from tests.botapi.caller import ANN, TEAM, Wire
from tests.botapi.files import PHOTO_BYTES, UPLOAD_BYTES
from tests.botapi.rules import Json

MINE = 4
"""The message of the bot in the chat; 1 is Ann's."""
LOST: object = object()
"""Of a parameter that is left out."""

GOOD: dict[str, Json] = {
    "sendMessage": {"chat_id": ANN, "text": "x"},
    "sendMessageDraft": {"chat_id": ANN, "draft_id": 5, "text": "x"},
    "editMessageText": {"chat_id": ANN, "message_id": MINE, "text": "y"},
    "editMessageCaption": {"chat_id": ANN, "message_id": MINE, "caption": "y"},
    "deleteMessage": {"chat_id": ANN, "message_id": 1},
    "sendChatAction": {"chat_id": ANN, "action": "typing"},
    "setMessageReaction": {"chat_id": ANN, "message_id": 1, "reaction": [{"emoji": "👍"}]},
    "sendPhoto": {"chat_id": ANN, "photo": "file0002"},
    "sendMediaGroup": {"chat_id": ANN},
}


@pytest.fixture
async def full(chat: Wire) -> Wire:
    """The chat with Ann, with a file of each kind and a message of the bot; a group."""
    chat.api.add_group(TEAM, "Team")
    chat.api.say(ANN, "x", chat_id=TEAM)
    chat.api.send(ANN, FileKind.DOCUMENT)
    chat.api.send(ANN, FileKind.PHOTO)
    await chat.result("sendMessage", chat_id=ANN, text="x")
    return chat


def keyboard(*buttons: object) -> Json:
    return {"reply_markup": {"inline_keyboard": [list(buttons)]}}


def button(data: object = "x", text: str = "ok") -> Json:
    return keyboard({"text": text, "callback_data": data})


def stop(**other: object) -> Json:
    return {"command": "stop", "description": "x", **other}


def html(text: str) -> Json:
    return {"text": text, "parse_mode": "HTML"}


def photo(media: str = "x", **other: object) -> Json:
    return {"type": "photo", "media": media, **other}


LONG_LINKS = f'<a href="https://x.example/{"a" * 190}">x</a> ' * 50


@pytest.mark.parametrize(
    ("method", "change", "words"),
    [
        ("sendTelepathy", {}, "Not Found"),
        ("sendMessage", {"chat_id": LOST}, "chat_id is empty"),
        ("sendMessage", {"chat_id": 8}, "chat not found"),
        ("sendMessage", {"chat_id": "@ann"}, "chat not found"),
        ("sendMessage", {"text": LOST}, "message text is empty"),
        ("sendMessage", {"text": " \n"}, "message text is empty"),
        ("sendMessage", {"text": "x" * 4097}, "message is too long"),
        ("sendMessage", {"text": "a\ud83d"}, "encoded in UTF-8"),
        ("sendMessage", {"text": 5}, "must be a string"),
        ("sendMessage", {"parse_mode": "X"}, "unsupported parse_mode"),
        ("sendMessage", {"message_thread_id": 1}, "thread not found"),
        ("sendMessage", {"message_thread_id": "a"}, "as an integer"),
        ("sendMessage", {"reply_parameters": "{"}, "JSON object"),
        ("sendMessage", {"reply_parameters": []}, "expected an Object"),
        ("sendMessage", {"reply_parameters": {"message_id": 99}}, "to be replied not found"),
        ("sendMessage", button(""), "BUTTON_DATA_INVALID"),
        ("sendMessage", button("ü" * 33), "BUTTON_DATA_INVALID"),
        ("sendMessage", button(text=" "), "BUTTON_TEXT_INVALID"),
        ("sendMessage", button(5), "must be of type String"),
        ("sendMessage", keyboard({"text": "x"}), "Text buttons are unallowed"),
        ("sendMessage", keyboard({"callback_data": "x"}), 'Can\'t find field "text"'),
        ("sendMessage", keyboard({"text": 5}), "must be of type String"),
        ("sendMessage", keyboard("x"), "must be an Object"),
        ("sendMessage", {"reply_markup": {"inline_keyboard": ["x"]}}, "an Array of Arrays"),
        ("sendMessage", {"reply_markup": {"inline_keyboard": "x"}}, "must be an Array"),
        ("sendMessage", {"reply_markup": []}, "object expected as reply markup"),
        ("sendMessage", html("<b>a"), "Can't find end tag corresponding to start tag"),
        ("sendMessage", html("a</b>"), "Unexpected end tag at byte offset 1"),
        ("sendMessage", html("<b>ü<i>a</b></i>"), 'offset 9, expected "</i>", found "</b>"'),
        ("sendMessage", html("<div>a</div>"), 'Unsupported start tag "div" at byte offset 0'),
        ("sendMessage", html("1 < 2"), 'Unsupported start tag "" at byte offset 2'),
        ("sendMessage", html("<b"), "Unclosed start tag"),
        ("sendMessage", html("<b>a</b"), "Unclosed end tag"),
        ("sendMessage", html("<span>a</span>"), "must have class"),
        ("sendMessage", html("<b> </b>"), "message text is empty"),
        ("sendMessage", html(LONG_LINKS), "ENTITIES_TOO_LONG"),
        ("sendMessageDraft", {"chat_id": TEAM}, "TEXTDRAFT_PEER_INVALID"),
        ("sendMessageDraft", {"draft_id": LOST}, "non-zero"),
        ("sendMessageDraft", {"text": "x" * 4097}, "message is too long"),
        ("sendMessageDraft", {"message_thread_id": 9}, "message thread not found"),
        ("editMessageText", {"message_id": 99}, "to edit not found"),
        ("editMessageText", {"message_id": 1}, "can't be edited"),
        ("editMessageText", {"message_id": LOST}, "message identifier is not specified"),
        ("editMessageText", {"text": "x" * 4097}, "MESSAGE_TOO_LONG"),
        ("editMessageText", {"text": "x"}, "message is not modified"),
        ("editMessageCaption", {}, "there is no caption in the message to edit"),
        ("editMessageCaption", {"message_id": 99}, "message to edit not found"),
        ("editMessageCaption", {"message_id": 3}, "can't be edited"),
        ("editMessageCaption", {"message_id": LOST}, "message identifier is not specified"),
        ("editMessageCaption", {"caption": "x" * 1025}, "message caption is too long"),
        ("editMessageCaption", {"caption": "<b>", "parse_mode": "HTML"}, "Can't find end tag"),
        ("deleteMessage", {"message_id": 99}, "message to delete not found"),
        ("deleteMessage", {"message_id": LOST}, "message identifier is not specified"),
        ("deleteMessage", {"chat_id": TEAM}, "message can't be deleted"),
        ("sendChatAction", {"action": "dance"}, "wrong parameter action"),
        ("sendChatAction", {"message_thread_id": 5}, "thread not found"),
        ("setMyCommands", {"commands": [stop(command="Stop")]}, "BOT_COMMAND_INVALID"),
        ("setMyCommands", {"commands": [stop(description="")]}, "DESCRIPTION_INVALID"),
        ("setMyCommands", {"commands": ["stop"]}, "expected an Object"),
        ("setMyCommands", {"commands": {}}, "expected an Array"),
        ("setMyCommands", {"commands": [stop()] * 101}, "TOO_MUCH"),
        ("setMessageReaction", {"message_id": 99}, "react not found"),
        ("setMessageReaction", {"reaction": [{"emoji": "x"}]}, "REACTION_INVALID"),
        ("setMessageReaction", {"reaction": [{"emoji": "👍"}] * 2}, "REACTIONS_TOO_MANY"),
        ("answerCallbackQuery", {"callback_query_id": "x"}, "query is too old"),
        ("sendPhoto", {"photo": ""}, "there is no photo in the request"),
        ("sendPhoto", {"photo": "nonsense"}, "wrong file identifier/HTTP URL specified"),
        ("sendPhoto", {"photo": "https://x.example/a.png"}, "failed to get HTTP URL content"),
        ("sendPhoto", {"photo": "file0001"}, "can't use file of type Document as Photo"),
        ("sendPhoto", {"caption": "x" * 1025}, "message caption is too long"),
        ("sendMediaGroup", {"media": []}, "there are no messages to send"),
        ("sendMediaGroup", {"media": [photo("file0002")]}, "at least two"),
        ("sendMediaGroup", {"media": [photo()] * 11}, "too many messages to send as an album"),
        ("sendMediaGroup", {"media": ["x"]}, "expected an Object"),
        ("sendMediaGroup", {"media": [photo(type="sticker")]}, "Media type is unsupported"),
        ("sendMediaGroup", {"media": [photo("attach://x")]}, "there is no photo in the request"),
        ("sendMediaGroup", {"media": [photo(caption="x" * 1025)]}, "caption is too long"),
        ("sendMediaGroup", {"media": [photo("file0002"), photo("file0001", type="document")]},
         "can't use the media of the specified type in the album"),
        ("getFile", {}, "file_id not specified"),
        ("getFile", {"file_id": "x"}, "invalid file_id"),
        ("getChatAdministrators", {"chat_id": ANN}, "no administrators in the private chat"),
        ("setWebhook", {"url": "http://bot.example"}, "An HTTPS URL must be provided"),
        ("setWebhook", {"url": "bot.example"}, "An HTTPS URL must be provided"),
        ("setWebhook", {"url": "https://bot.example:1"}, "can be set up only on ports"),
        ("setWebhook", {"url": "https://bot.example:x"}, "URL is invalid"),
        ("setWebhook", {"url": "https://b.example", "secret_token": "ä"}, "unallowed characters"),
        ("setWebhook", {"url": "https://b.example", "secret_token": "a" * 257}, "is too long"),
    ],
)  # fmt: skip
async def test_a_wrong_call_is_refused(full: Wire, method: str, change: Json, words: str) -> None:
    given = {**GOOD.get(method, {}), **change}
    parameters = {name: value for name, value in given.items() if value is not LOST}
    assert words in await full.refusal(method, **parameters)
    assert full.api.texts(ANN) == ["x"]
    assert (len(full.api.view(ANN)), len(full.api.view(TEAM))) == (4, 1)
    assert full.api.world.webhook == ""


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("method", "content", "more", "words"),
    [
        ("sendPhoto", b"no picture", 0, "Bad Request: IMAGE_PROCESS_FAILED"),
        ("sendPhoto", png(9999, 2), 0, "Bad Request: PHOTO_INVALID_DIMENSIONS"),
        ("sendPhoto", png(21, 1), 0, "Bad Request: PHOTO_INVALID_DIMENSIONS"),
        ("sendPhoto", png(), PHOTO_BYTES, "is too big for a photo; the maximum size is"),
        ("sendDocument", b"", 0, "Bad Request: file must be non-empty"),
        ("sendDocument", b"x", UPLOAD_BYTES, "Request Entity Too Large"),
    ],
)
async def test_a_file_that_cannot_be_sent_is_refused(
    chat: Wire, method: str, content: bytes, more: int, words: str
) -> None:
    field = method.removeprefix("send").lower()
    answer = await chat.upload(method, {field: ("a", content + bytes(more))}, chat_id=ANN)
    assert answer["ok"] is False
    assert words in str(answer["description"])
    assert len(chat.api.view(ANN)) == 1


@pytest.mark.parametrize(
    ("content_type", "body"),
    [("application/json", b"{nonsense"), ("multipart/form-data; boundary=x", b"--x--")],
    ids=["json", "form"],
)
async def test_an_unreadable_body_is_no_crash(chat: Wire, content_type: str, body: bytes) -> None:
    url = f"{chat.api.url}/bot{chat.api.token}/sendMessage"
    headers = {"Content-Type": content_type}
    async with chat.session.post(url, data=body, headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["ok"] is False


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/botnonsense/getMe", 404),
        ("/bot4242:AAanother-one-than-ours/getMe", 401),
        ("/file/bot4242:AAanother-one-than-ours/x", 401),
        ("/", 404),
    ],
)
async def test_a_wrong_token_or_address_is_refused(api: BotApi, path: str, code: int) -> None:
    async with aiohttp.ClientSession() as session, session.get(api.url + path) as answer:
        assert answer.status == code
        assert (await answer.json())["error_code"] == code
