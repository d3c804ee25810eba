"""Where a message was written, and by whom."""

from __future__ import annotations

from dataclasses import dataclass

from channels.telegram.client import GENERAL_TOPIC, Bot
from channels.telegram.fields import (
    Fields,
    Malformed,
    clean_name,
    object_or_empty,
    required_number,
    required_object,
    whole_number,
)
from goclaw_py.model.messages import SELF, PeerKind, Sender, Target

CHANNEL = "telegram"

_PEERS = {"private": PeerKind.DIRECT, "group": PeerKind.GROUP, "supergroup": PeerKind.GROUP}


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """How an update came: to which account and bot, and whether perhaps not for the first time.

    ``update`` is its number; None where it has none.
    """

    account: str
    bot: Bot
    update: int | None
    redelivered: bool


def read_peer(chat: Fields) -> PeerKind | None:
    """With whom a chat is; None for channels, where nobody talks. Raises ``Malformed``."""
    kind = chat.get("type")
    if not isinstance(kind, str):
        raise Malformed("chat.type: no string")
    # The messages that people send to a channel: an answer would need another kind of topic.
    return None if chat.get("is_direct_messages") is True else _PEERS.get(kind)


def read_chat(chat: Fields, account: str, thread: int | None = None) -> Target:
    """The target that stands for a chat. Raises ``Malformed``."""
    return Target(
        CHANNEL,
        account,
        str(required_number(chat, "id")),
        None if thread is None else str(thread),
    )


def read_thread(message: Fields) -> int | None:
    """The topic of a message (SPEC CHAN-6). Raises ``Malformed``.

    Replies outside of forums have a thread id too, but are in no topic.
    """
    if message.get("is_topic_message") is not True:
        return None
    return without_general(required_number(message, "message_thread_id"))


def without_general(thread: int | None) -> int | None:
    """The General topic is the chat itself (SPEC IO-7)."""
    return None if thread == GENERAL_TOPIC else thread


def read_sender(message: Fields) -> Sender:
    """Who wrote. Raises ``Malformed``.

    Anonymous admins and channels write as a chat, not as the user named for them: all of them share
    one user, which must not become a permission (SPEC CHAN-5).
    """
    if "sender_chat" in message:
        return person(required_object(message, "sender_chat"))
    return person(required_object(message, "from"))


def person(fields: Fields) -> Sender:
    """A user, or a chat that writes as one. Raises ``Malformed``."""
    return Sender(
        id=str(required_number(fields, "id")),
        name=name_of(fields),
        username=clean_name(fields.get("username")) or None,
    )


def author_of(message: Fields, bot: Bot) -> Sender | None:
    """Who wrote the message that another one replies to; None if that cannot be read."""
    chat = object_or_empty(message.get("sender_chat"))
    return _author(chat or object_or_empty(message.get("from")), bot)


def origin_of(message: Fields, bot: Bot, *, key: str = "forward_origin") -> Sender | None:
    """Who wrote first what a message passes on; None if it passes nothing on.

    Somebody who hides their account has a name and no id.
    """
    origin = object_or_empty(message.get(key))
    for kind in ("sender_user", "sender_chat", "chat"):
        if author := _author(object_or_empty(origin.get(kind)), bot):
            return author
    name = clean_name(origin.get("sender_user_name"))
    return Sender("", name) if name or origin else None


def _author(fields: Fields, bot: Bot) -> Sender | None:
    if fields.get("id") == bot.id:
        return SELF
    try:
        return person(fields)
    except Malformed:
        return None


def name_of(fields: Fields) -> str:
    """What people call a user or a chat; "" if nothing of it can be read."""
    title = clean_name(fields.get("title"))
    if title:
        return title
    parts = (fields.get("first_name"), fields.get("last_name"))
    return clean_name(" ".join(part for part in parts if isinstance(part, str)))


def is_for_nobody(message: Fields, bot: Bot) -> bool:
    """Whether a message was not written by a person: channel posts, and what bots write.

    Two bots that answer each other never end.
    """
    if message.get("is_automatic_forward") is True:
        return True
    if "sender_chat" in message:
        return False
    if "from" not in message:
        return True
    sender = required_object(message, "from")
    return sender.get("is_bot") is True or sender.get("id") == bot.id


def real_reply(message: Fields, thread: int | None) -> Fields | None:
    """The message that this one replies to.

    Every message in a topic carries the topic's own service message as if it were a reply.
    """
    replied = object_or_empty(message.get("reply_to_message"))
    number = whole_number(replied.get("message_id"))
    # An ephemeral message has the number 0, by which nobody can find it.
    if not number or number == thread or "forum_topic_created" in replied:
        return None
    return replied
