"""Updates in the shapes of the Bot API 10.3, for the tests of ``channels.telegram.inbound``."""

from __future__ import annotations

from collections.abc import Mapping

from channels.telegram.client import Bot
from channels.telegram.inbound.reader import parse_update
from goclaw_py.core.messages import ChatMigrated, ChatReached, Inbound, InboundMessage

Json = dict[str, object]

BOT = Bot(4242, "GoclawTestBot")
NOON = 1_790_000_000

ANN: Json = {
    "id": 7, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "annlee",
    "language_code": "en",
}  # fmt: skip
BEN: Json = {"id": 8, "is_bot": False, "first_name": "Ben"}
OURSELVES: Json = {"id": 4242, "is_bot": True, "first_name": "Goclaw", "username": "GoclawTestBot"}
OTHER_BOT: Json = {"id": 4343, "is_bot": True, "first_name": "Poll", "username": "PollBot"}

WITH_ANN: Json = {
    "id": 7,
    "first_name": "Ann",
    "last_name": "Lee",
    "username": "annlee",
    "type": "private",
}
GROUP: Json = {
    "id": -5007,
    "title": "Kitchen",
    "type": "group",
    "all_members_are_administrators": False,
}
TEAM: Json = {"id": -1001007, "title": "Team", "type": "supergroup"}
FORUM: Json = {"id": -1001008, "title": "Plans", "type": "supergroup", "is_forum": True}
NEWS: Json = {"id": -1001009, "title": "News", "username": "thenews", "type": "channel"}

PHOTO: list[Json] = [
    {"file_id": "s", "file_unique_id": "us", "width": 90, "height": 67, "file_size": 1_200},
    {"file_id": "x", "file_unique_id": "ux", "width": 1280, "height": 960, "file_size": 190_000},
    {"file_id": "m", "file_unique_id": "um", "width": 320, "height": 240, "file_size": 20_000},
]
DOCUMENT: Json = {
    "file_name": "report.pdf",
    "mime_type": "application/pdf",
    "file_id": "doc",
    "file_unique_id": "udoc",
    "file_size": 30_000,
}
STICKER: Json = {
    "width": 512, "height": 512, "emoji": "👍", "set_name": "Cats", "is_animated": False,
    "is_video": False, "type": "regular", "file_id": "st", "file_unique_id": "ust",
}  # fmt: skip
RESTRICTED: Json = {
    "user": OURSELVES,
    "status": "restricted",
    "is_member": True,
    "until_date": 0,
    "can_send_messages": False,
    **dict.fromkeys(
        [
            "can_send_audios", "can_send_documents", "can_send_photos", "can_send_videos",
            "can_send_video_notes", "can_send_voice_notes", "can_send_polls",
            "can_send_other_messages", "can_add_web_page_previews", "can_react_to_messages",
            "can_edit_tag", "can_change_info", "can_invite_users", "can_pin_messages",
            "can_manage_topics",
        ],
        False,
    ),
}  # fmt: skip

TOPIC_BEGAN: Json = {
    "message_id": 55,
    "from": OURSELVES,
    "chat": FORUM,
    "date": NOON - 100,
    "message_thread_id": 55,
    "forum_topic_created": {"name": "Budget", "icon_color": 7322096},
    "is_topic_message": True,
}


def message(text: object = "hello", **more: object) -> Json:
    """Ann's message number 12 in her private chat. A field that is None is omitted."""
    fields: Json = {
        "message_id": 12,
        "from": ANN,
        "chat": WITH_ANN,
        "date": NOON,
        "text": text,
        **more,
    }
    return {key: value for key, value in fields.items() if value is not None}


def update(kind: str = "message", content: object = None, *, number: int = 900) -> Json:
    return {"update_id": number, kind: message() if content is None else content}


def said(text: object = "hello", **more: object) -> Json:
    """An update with ``message``."""
    return update("message", message(text, **more))


def said_in(chat: Mapping[str, object], text: object = "hello", **more: object) -> Json:
    return said(text, chat=dict(chat), **more)


def said_in_topic(text: object = "hello", **more: object) -> Json:
    """A message in topic 55 of the forum. It carries the topic's beginning, as all of them do."""
    fields = {"reply_to_message": TOPIC_BEGAN, "message_thread_id": 55, "is_topic_message": True}
    return said_in(FORUM, text, **{**fields, **more})


def answer(text: object = "the answer", **more: object) -> Json:
    """A message of ours that others reply to."""
    return message(text, **{"message_id": 11, "from": OURSELVES, **more})


def edited(text: object = "hello!", **more: object) -> Json:
    return update("edited_message", message(text, **{"edit_date": NOON + 5, **more}))


def read(raw: object, *, bot: Bot = BOT, redelivered: bool = False) -> Inbound | None:
    return parse_update(raw, account="default", bot=bot, redelivered=redelivered)


def parsed(raw: object, *, bot: Bot = BOT) -> InboundMessage:
    found = read(raw, bot=bot)
    assert isinstance(found, InboundMessage)
    return found


def moved(raw: object) -> ChatMigrated:
    found = read(raw)
    assert isinstance(found, ChatMigrated)
    return found


def reached(raw: object) -> ChatReached:
    found = read(raw)
    assert isinstance(found, ChatReached)
    return found
