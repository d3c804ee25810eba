"""Texts about messages that were sent twice or refused (SPEC IO-3, IO-5)."""

from __future__ import annotations

from dataclasses import replace

from goclaw_py.delivery import texts
from goclaw_py.model.errors import ChannelError, ChatGone, TopicGone, Undeliverable
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.store import OutboxRow


def is_told_again(row: OutboxRow) -> bool:
    """Return whether the message has that note when it is sent now."""
    message = row.message
    is_empty = not message.text and message.file is None
    return row.possible_duplicate and message.draft is None and not is_empty


def told_if_again(channel: Channel, row: OutboxRow) -> OutboundMessage:
    """Return the message, with a note if an earlier attempt may be in the chat too (SPEC IO-5).

    An edit that is repeated shows once, and removing a draft shows no text, so both get no note.
    """
    message = row.message
    if not is_told_again(row):
        return message
    line = texts.sent_again(channel.name)
    lines = channel.parts(line) if message.rich else [line]
    return replace(message, text="\n\n".join(filter(None, [message.text, *lines])))


def refusal_told(row: OutboxRow, error: ChannelError) -> tuple[OutboundMessage, ...]:
    """Return the notice about a part of a reply that its channel refused for good (SPEC IO-3).

    Return nothing if the chat is gone, or for heartbeats and jobs, which have their own notices.
    """
    message = row.message
    of_others = message.heartbeat_run is not None or message.occurrence is not None
    if message.run_id is None or of_others or not isinstance(error, Undeliverable):
        return ()
    if isinstance(error, ChatGone | TopicGone):
        return ()
    name = "" if message.file is None else message.file.name
    text = texts.not_delivered(name, str(error), row.id)
    return (OutboundMessage(message.target, text, reply_to=message.reply_to),)
