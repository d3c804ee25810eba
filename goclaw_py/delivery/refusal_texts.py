"""What people read of a delivery that went wrong (SPEC IO-3, IO-5)."""

from __future__ import annotations

from dataclasses import replace

from goclaw_py.delivery import texts
from goclaw_py.model.errors import ChannelError, ChatGone, TopicGone, Undeliverable
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.store import OutboxRow


def told_if_again(channel: Channel, row: OutboxRow) -> OutboundMessage:
    """The message, with a line that tells if an earlier try of it may be in the chat (SPEC IO-5).

    What is repeated by an edit is seen once, and what only removes a draft says nothing.
    """
    message = row.message
    is_empty = not message.text and message.file is None
    if message.draft is not None or not row.possible_duplicate or is_empty:
        return message
    line = texts.sent_again(channel.name)
    lines = channel.parts(line) if message.rich else [line]
    return replace(message, text="\n\n".join(filter(None, [message.text, *lines])))


def refusal_told(row: OutboxRow, error: ChannelError) -> tuple[OutboundMessage, ...]:
    """What the chat reads of a part of a reply that its channel refuses for good (SPEC IO-3).

    Nothing if it reads nothing any more, or if who looks after heartbeats and jobs tells it.
    """
    message = row.message
    of_others = message.beat is not None or message.occurrence is not None
    if message.run_id is None or of_others or not isinstance(error, Undeliverable):
        return ()
    if isinstance(error, ChatGone | TopicGone):
        return ()
    name = "" if message.file is None else message.file.name
    text = texts.not_delivered(name, str(error), row.id)
    return (OutboundMessage(message.target, text, reply_to=message.reply_to),)
