"""Converts a message, or a new version of one."""

from __future__ import annotations

from datetime import datetime

from channels.telegram.client import TEXT_LIMIT, Bot
from channels.telegram.fields import (
    Fields,
    Malformed,
    instant,
    object_or_empty,
    required_number,
    required_object,
    text_or_empty,
    whole_number,
)
from channels.telegram.inbound.address import (
    is_addressed,
    is_mentioned,
    names_another_bot,
    without_address,
)
from channels.telegram.inbound.chat import (
    CHANNEL,
    UpdateContext,
    author_of,
    is_for_nobody,
    name_of,
    origin_of,
    read_chat,
    read_peer,
    read_sender,
    read_thread,
    real_reply,
)
from channels.telegram.inbound.content import MessageContent, read_content, read_links, read_quote
from channels.telegram.inbound.topic import read_topic, topic_name
from goclaw_py.core.chat_commands import our_command
from goclaw_py.core.messages import ChatMigrated, Inbound, InboundMessage, PeerKind, Sender
from goclaw_py.core.text import utf16_len


def read_message(
    message: Fields, arrival: UpdateContext, *, edited: bool = False
) -> Inbound | None:
    """Convert a message, or the move of its chat; None if it is not for us.

    Raises ``Malformed``.
    """
    chat = required_object(message, "chat")
    peer = read_peer(chat)
    if moved := _migrated(message, chat, arrival.account):
        return moved
    if peer is None:
        return None
    if changed := read_topic(message, peer, arrival.account):
        return changed
    if is_for_nobody(message, arrival.bot):
        return None
    content = read_content(message, direct=peer is PeerKind.DIRECT)
    # A shared position is edited every few seconds for hours; these edits are ignored.
    is_unread = content is not None and bool(content.unsupported) and not content.text
    if content is None or (edited and (is_unread or content.shared)):
        return None
    return _inbound_message(message, content, peer, arrival, edited=edited)


def _migrated(message: Fields, chat: Fields, account: str) -> ChatMigrated | None:
    """Convert a move of a chat, which both chats report with the other's id (SPEC CHAN-7)."""
    here = str(required_number(chat, "id"))
    if "migrate_to_chat_id" in message:
        there = str(required_number(message, "migrate_to_chat_id"))
        return ChatMigrated(CHANNEL, account, here, there)
    if "migrate_from_chat_id" in message:
        there = str(required_number(message, "migrate_from_chat_id"))
        return ChatMigrated(CHANNEL, account, there, here)
    return None


def _inbound_message(
    message: Fields,
    content: MessageContent,
    peer: PeerKind,
    arrival: UpdateContext,
    *,
    edited: bool,
) -> InboundMessage:
    chat = required_object(message, "chat")
    number = required_number(message, "message_id")
    thread = read_thread(message)
    target = read_chat(chat, arrival.account, thread)
    replied = real_reply(message, thread)
    quote, quoted_files = read_quote(message, replied)
    text = _text(content, arrival.bot, alone=not (content.attachments or quote or quoted_files))
    external_id = f"{target.chat}:{number}" if number else _ephemeral(target.chat, arrival)
    return InboundMessage(
        external_id=f"{external_id}:{required_number(message, 'edit_date')}"
        if edited
        else external_id,
        target=target,
        peer=peer,
        sender=read_sender(message),
        text=text,
        formatted=_formatted(message, content, text, arrival.bot),
        sent_at=_sent_at(message, edited=edited),
        message_id=str(number) if number else None,
        reply_to=_number_of(replied),
        cut=not edited and _was_split(message, content.text),
        redelivered=arrival.redelivered,
        addressed=peer is PeerKind.DIRECT or _addressed(content, replied, arrival.bot),
        attachments=content.attachments,
        quote=quote,
        quoted_files=quoted_files,
        quoted_from=_quoted_from(message, replied, arrival.bot),
        forwarded_from=origin_of(message, arrival.bot),
        album=_album(message, target.chat),
        edits=external_id if edited else None,
        unsupported=content.unsupported,
        place_name=name_of(chat),
        topic_name=topic_name(message, thread),
    )


def _ephemeral(chat: str, arrival: UpdateContext) -> str:
    """Return the id of an ephemeral message: all have number 0, so the update's id is used."""
    if arrival.update is None:
        raise Malformed("update_id: no whole number")
    return f"{chat}:0:{arrival.update}"


def _text(content: MessageContent, bot: Bot, *, alone: bool) -> str:
    """Return the text without the bot's name, unless there is nothing else, or another bot's."""
    text = without_address(content.text, bot)
    if text == content.text or (alone and not text):
        return content.text
    both = names_another_bot(content.text, content.entities, bot) and our_command(text) is None
    return content.text if both else text


def _formatted(message: Fields, content: MessageContent, text: str, bot: Bot) -> str:
    """Return the text as Markdown; "" if that is ``text``."""
    links = read_links(message) if "reply_markup" in message else ""
    named = content.named if content.text else ""
    if not (content.rich or content.entities or links or named):
        return ""
    if content.rich:
        is_whole = text == content.text
        markdown = content.rich if is_whole else without_address(content.rich, bot)
    else:
        # ``text`` is the whole text without the bot's name at its ends.
        begin = content.text.find(text)
        markdown = content.markdown(begin, begin + len(text)) if begin >= 0 else text
    markdown = "\n".join(filter(None, [markdown, named, links]))
    return "" if markdown == text else markdown


def _sent_at(message: Fields, *, edited: bool) -> datetime:
    return instant(message, "edit_date" if edited else "date")


def _was_split(message: Fields, text: str) -> bool:
    """Return whether the client probably split a longer text here (SPEC QUEUE-6)."""
    return "text" in message and TEXT_LIMIT in {len(text), utf16_len(text)}


def _addressed(content: MessageContent, replied: Fields | None, bot: Bot) -> bool:
    if is_addressed(content.text, content.entities, bot, replied=replied):
        return True
    return bool(content.rich) and is_mentioned(content.text, bot)


def _quoted_from(message: Fields, replied: Fields | None, bot: Bot) -> Sender | None:
    """Return the sender of the replied message, here or in another chat."""
    if replied is not None:
        return author_of(replied, bot)
    return origin_of(object_or_empty(message.get("external_reply")), bot, key="origin")


def _number_of(replied: Fields | None) -> str | None:
    number = whole_number(replied.get("message_id")) if replied is not None else None
    return None if number is None else str(number)


def _album(message: Fields, chat: str) -> str | None:
    """Return the id of an album, which Telegram makes unique only within the chat."""
    group = text_or_empty(message.get("media_group_id"))
    return f"{chat}:{group}" if group else None
