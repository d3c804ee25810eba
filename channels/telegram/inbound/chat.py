"""The chat and the sender of a message."""

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
from goclaw_py.core.messages import SELF, PeerKind, Sender, Target

CHANNEL = "telegram"

_PEERS = {"private": PeerKind.DIRECT, "group": PeerKind.GROUP, "supergroup": PeerKind.GROUP}


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """The context of an update: account, bot, and whether it may be redelivered.

    ``update`` is its id; None if it has none.
    """

    account: str
    bot: Bot
    update: int | None
    redelivered: bool


def read_peer(chat: Fields) -> PeerKind | None:
    """Return whether a chat is direct or a group; None for channels. Raises ``Malformed``."""
    kind = chat.get("type")
    if not isinstance(kind, str):
        raise Malformed("chat.type: no string")
    # The messages that people send to a channel: an answer would need another kind of topic.
    return None if chat.get("is_direct_messages") is True else _PEERS.get(kind)


def read_chat(chat: Fields, account: str, thread: int | None = None) -> Target:
    """Return the target of a chat. Raises ``Malformed``."""
    return Target(
        CHANNEL,
        account,
        str(required_number(chat, "id")),
        None if thread is None else str(thread),
    )


def read_thread(message: Fields) -> int | None:
    """Return the topic of a message (SPEC CHAN-6). Raises ``Malformed``.

    Replies outside of forums have a thread id too, but no topic.
    """
    if message.get("is_topic_message") is not True:
        return None
    return without_general(required_number(message, "message_thread_id"))


def without_general(thread: int | None) -> int | None:
    """Return None for the General topic, which is the chat itself (SPEC IO-7)."""
    return None if thread == GENERAL_TOPIC else thread


def read_sender(message: Fields) -> Sender:
    """Return the sender. Raises ``Malformed``.

    Anonymous administrators and channels write as a chat, not as the user in the message, whom they
    all share and who must not get permissions (SPEC CHAN-5).
    """
    if "sender_chat" in message:
        return person(required_object(message, "sender_chat"))
    return person(required_object(message, "from"))


def person(fields: Fields) -> Sender:
    """Return a user, or a chat that writes as one. Raises ``Malformed``."""
    return Sender(
        id=str(required_number(fields, "id")),
        name=name_of(fields),
        username=clean_name(fields.get("username")) or None,
    )


def author_of(message: Fields, bot: Bot) -> Sender | None:
    """Return the sender of a replied message; None if it cannot be read."""
    chat = object_or_empty(message.get("sender_chat"))
    return _author(chat or object_or_empty(message.get("from")), bot)


def origin_of(message: Fields, bot: Bot, *, key: str = "forward_origin") -> Sender | None:
    """Return the original sender of a forwarded message; None for others.

    A sender with a hidden account has a name and no id.
    """
    origin = object_or_empty(message.get(key))
    if not origin:
        return None
    for kind in ("sender_user", "sender_chat", "chat"):
        if author := _author(object_or_empty(origin.get(kind)), bot):
            return author
    name = clean_name(origin.get("sender_user_name"))
    return Sender("", name)


def _author(fields: Fields, bot: Bot) -> Sender | None:
    if fields.get("id") == bot.id:
        return SELF
    try:
        return person(fields)
    except Malformed:
        return None


def name_of(fields: Fields) -> str:
    """Return the name of a user or chat; "" if it cannot be read."""
    title = clean_name(fields.get("title"))
    if title:
        return title
    parts = (fields.get("first_name"), fields.get("last_name"))
    return clean_name(" ".join(part for part in parts if isinstance(part, str)))


def is_for_nobody(message: Fields, bot: Bot) -> bool:
    """Return whether a message was not written by a person: channel posts and bots.

    Two bots that answer each other would never stop.
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
    """Return the message that this one replies to.

    Every message in a topic has the topic's service message as a reply.
    """
    replied = object_or_empty(message.get("reply_to_message"))
    number = whole_number(replied.get("message_id"))
    # An ephemeral message has the number 0, by which it cannot be found.
    if not number or number == thread or "forum_topic_created" in replied:
        return None
    return replied
