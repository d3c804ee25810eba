"""Texts about messages that were sent twice or refused (SPEC IO-3, IO-5)."""

from __future__ import annotations

from dataclasses import replace

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import ChannelError, ChatGone, TopicGone, Undeliverable
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.records import OutboxRow


def has_copy_note(row: OutboxRow, found: str | None = None) -> bool:
    """Return whether the message has a note that it may be in the chat twice (SPEC IO-5).

    An edit that is repeated shows once, and removing a draft shows no text, so both get no note.
    ``found`` is the id of the lost draft that the message completes.
    """
    message = row.message
    is_empty = not message.text and message.file is None
    is_beside_lost = message.lost is not None and found is None
    return message.draft is None and not is_empty and (row.possible_duplicate or is_beside_lost)


def with_copy_note(channel: Channel, message: OutboundMessage) -> OutboundMessage:
    """Return the message with that note."""
    line = texts.sent_again(channel.name)
    lines = channel.parts(line) if message.rich else [line]
    return replace(message, text="\n\n".join(filter(None, [message.text, *lines])))


def refusal_notice(row: OutboxRow, error: ChannelError) -> tuple[OutboundMessage, ...]:
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
    text = texts.not_delivered(name, str(error), message.target.channel)
    return (OutboundMessage(message.target, text, reply_to=message.reply_to),)
