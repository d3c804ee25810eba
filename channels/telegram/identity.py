"""Ids of messages, with the bot's id in front: each bot counts messages by itself.

Another token of an account may be one of another bot. In a direct chat its messages begin at 1
again, so that a number alone names messages of both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from goclaw_py.core.messages import InboundMessage, OutboundMessage


def named(bot: int, message: InboundMessage) -> InboundMessage:
    """Return a message with ids that no message of another bot has."""
    chat, _, rest = message.external_id.partition(":")
    return replace(
        message,
        external_id=f"{chat}:{bot}:{rest}",
        message_id=message.message_id and key(bot, message.message_id),
        reply_to=message.reply_to and key(bot, message.reply_to),
        edits=message.edits and _edited(bot, message.edits),
    )


def _edited(bot: int, external_id: str) -> str:
    chat, _, rest = external_id.partition(":")
    return f"{chat}:{bot}:{rest}"


def key(bot: int, number: int | str) -> str:
    """Return the id of a bot's message."""
    return f"{bot}:{number}"


@lru_cache(4096)
def number_in(bot: int, name: str | None) -> str | None:
    """Return the number of a bot's message; None if it is one of another bot.

    An id without a bot was stored by an earlier release, most likely for the same bot.
    """
    if name is None:
        return None
    owner, has_owner, number = name.rpartition(":")
    return number if not has_owner or owner == str(bot) else None


def numbered(bot: int, message: OutboundMessage) -> OutboundMessage:
    """Return a message for a bot: it replies to none of another bot, and edits none."""
    if message.reply_to is None and message.draft is None:
        return message
    reply_to, draft = number_in(bot, message.reply_to), number_in(bot, message.draft)
    return replace(message, reply_to=reply_to, draft=draft)
