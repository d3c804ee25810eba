"""What people say to an agent, and what goes back to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from goclaw_py.core.ids import RunId


class PeerKind(StrEnum):
    """With whom a chat is."""

    DIRECT = "direct"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Target:
    """A place that can be written to. Ids are the channel's own, as text."""

    channel: str
    account: str
    chat: str
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote. Only ``id`` identifies; name and user name can be changed by their owner."""

    id: str
    name: str = ""
    username: str | None = None


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One message as a channel received it.

    ``external_id`` is unique within channel and account and the same when the channel delivers the
    message again (``<chat>:<message>[:<edit date>]``, SPEC IO-1). ``cut`` says that the channel cut
    one long text here: the sender's next message goes on where this one ends (SPEC QUEUE-6).
    ``redelivered`` says that an earlier process may have acted on it already, so a command in it
    waits for the commit, which knows (SPEC CMD-1).
    """

    external_id: str
    target: Target
    peer: PeerKind
    sender: Sender
    text: str
    sent_at: datetime
    message_id: str | None = None
    reply_to: str | None = None
    cut: bool = False
    redelivered: bool = False


@dataclass(frozen=True, slots=True)
class OutboundMessage:
    """One message to be sent. ``run_id`` names the run whose reply it is, if it is one."""

    target: Target
    text: str
    reply_to: str | None = None
    run_id: RunId | None = None
