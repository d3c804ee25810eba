"""Telegram's updates → messages.

Updates are read one by one and field by field from the raw JSON, so that one that is malformed, or
newer than this code, costs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

from channels.telegram.client import TEXT_LIMIT
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.core.text import utf16_len, well_formed

CHANNEL = "telegram"
_PEERS = {"private": PeerKind.DIRECT, "group": PeerKind.GROUP, "supergroup": PeerKind.GROUP}
_YEAR_9999 = 253_370_764_800

Fields = Mapping[str, object]


class Malformed(ValueError):
    """An update is not what the Bot API promises. Says which field, never what it holds."""


def update_id(update: object) -> int | None:
    """The id that confirms an update, or None where there is none."""
    value = cast("Fields", update).get("update_id") if isinstance(update, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def parse_update(
    update: object, *, account: str, redelivered: bool = False
) -> InboundMessage | None:
    """The text message in an update; None for anything else. Raises ``Malformed``."""
    if not isinstance(update, dict):
        raise Malformed("update: no object")
    if "message" not in update:
        return None
    message = _object(update, "message")
    text = message.get("text", message.get("caption"))
    peer = _PEERS.get(_text(_object(message, "chat"), "type"))
    if text is None or peer is None or "from" not in message:
        return None
    if not isinstance(text, str):
        raise Malformed("message.text: no string")
    chat = str(_number(_object(message, "chat"), "id"))
    number = _number(message, "message_id")
    thread = _thread(message)
    return InboundMessage(
        external_id=f"{chat}:{number}",
        target=Target(CHANNEL, account, chat, None if thread is None else str(thread)),
        peer=peer,
        sender=_sender(message),
        text=_clean(text),
        sent_at=_instant(message),
        message_id=str(number),
        reply_to=_reply(message, thread),
        cut=TEXT_LIMIT in {len(text), utf16_len(text)},
        redelivered=redelivered,
    )


def _sender(message: Fields) -> Sender:
    """Who wrote. Anonymous admins and channels write as a chat, not as the user named for them."""
    if "sender_chat" in message:
        chat = _object(message, "sender_chat")
        name = chat.get("title")
    else:
        chat = _object(message, "from")
        name = " ".join(
            part
            for part in (chat.get("first_name"), chat.get("last_name"))
            if isinstance(part, str) and part
        )
    username = chat.get("username")
    return Sender(
        id=str(_number(chat, "id")),
        name=_clean(name) if isinstance(name, str) else "",
        username=_clean(username) if isinstance(username, str) else None,
    )


def _thread(message: Fields) -> int | None:
    """The topic. Replies outside of forums have a thread id too, but are in no topic."""
    if message.get("is_topic_message") is not True:
        return None
    return _number(message, "message_thread_id")


def _reply(message: Fields, thread: int | None) -> str | None:
    """The message that this one replies to.

    Every message in a topic carries the topic's own service message as if it were a reply.
    """
    replied = message.get("reply_to_message")
    if not isinstance(replied, dict) or "forum_topic_created" in replied:
        return None
    number = replied.get("message_id")
    return str(number) if isinstance(number, int) and number != thread else None


def _instant(message: Fields) -> datetime:
    seconds = _number(message, "date")
    if not 0 <= seconds < _YEAR_9999:
        raise Malformed("date: out of range")
    return datetime.fromtimestamp(seconds, UTC)


def _clean(text: str) -> str:
    # PostgreSQL stores no NUL: one in a message would keep its whole batch from being committed.
    return well_formed(text).replace("\x00", "\ufffd")


def _object(fields: Fields, key: str) -> Fields:
    value = fields.get(key)
    if not isinstance(value, dict):
        raise Malformed(f"{key}: no object")
    return value


def _number(fields: Fields, key: str) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(f"{key}: no whole number")
    return value


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise Malformed(f"{key}: no string")
    return value
