"""What people say to an agent, and what goes back to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from goclaw_py.model.ids import HeartbeatRunId, OccurrenceId, RunId


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


SELF: Final = Sender("self")
"""The bot, where a message quotes or forwards what it said."""


class TopicState(StrEnum):
    """Whether a topic takes messages."""

    OPEN = ""
    CLOSED = "closed"
    DELETED = "deleted"


class FileKind(StrEnum):
    """What a file is to people."""

    PHOTO = "photo"
    DOCUMENT = "document"
    VOICE = "voice"
    AUDIO = "audio"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message; ``ref`` is the channel's own handle of it.

    ``name`` is its sender's choice and may be anything, "" included. ``size`` is in bytes, None if
    the channel did not say.
    """

    kind: FileKind
    ref: str
    name: str = ""
    mime: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One message as a channel received it.

    ``external_id`` is unique within channel and account and the same when the channel delivers the
    message again (``<chat>:<message>[:<edit date>]``, SPEC IO-1; the callback id for the press of a
    button).

    Args:
        message_id: The channel's id of it, to reply to.
        reply_to: The message that it replies to.
        cut: The channel cut one long text here: the sender's next message goes on where this one
            ends (SPEC QUEUE-6).
        redelivered: An earlier process may have acted on it already, so a command in it waits for
            the commit, which knows (SPEC CMD-1).
        addressed: It is meant for the agent: always in direct chats; in groups if it mentions the
            bot, replies to it or is a command (SPEC CHAN-5).
        attachments: Files that came with it.
        quote: What the message that it replies to says, or the part of it that was marked.
        quoted_from: Who said that, ``SELF`` for the bot; without id if the channel hides it.
        forwarded_from: Who said first what its sender only passes on, likewise.
        album: Messages with the same value are one message that the channel takes apart.
        edits: The ``external_id`` of the message that this is a new version of (SPEC CHAN-6).
        press: The data of the button that was pressed; ``text`` is what the button says.
        unsupported: The kind of content that cannot be given to an agent, in plain words.
        place_name: What people call the chat, for operators.
        topic_name: What they called its topic when they made it, "" if the channel did not say.
        source: What has brought it, if no person has: ``subagent``.
        asker: The sender whose task has brought it then, "" if that is not known.
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
    addressed: bool = True
    attachments: tuple[Attachment, ...] = ()
    quote: str = ""
    quoted_from: Sender | None = None
    forwarded_from: Sender | None = None
    album: str | None = None
    edits: str | None = None
    press: str | None = None
    unsupported: str = ""
    place_name: str = ""
    topic_name: str = ""
    source: str = ""
    asker: str = ""

    @property
    def of_whom(self) -> str:
        """The id of the sender whose message it is, or whose task has brought it."""
        return self.asker or self.sender.id


ExternalId = tuple[str, str, str]
"""Channel, account, external id: what makes a message the same message."""


def external_id(message: InboundMessage) -> ExternalId:
    """What makes it the same message."""
    return message.target.channel, message.target.account, message.external_id


def person_at(target: Target, sender: str) -> str:
    """A sender as one text that names nobody of another channel or account."""
    return f"{target.channel}/{target.account}/{sender}"


@dataclass(frozen=True, slots=True)
class ChatMigrated:
    """A chat has another id now; what belongs to the old one moves (SPEC CHAN-7)."""

    channel: str
    account: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ChatReached:
    """We may write to a chat again, or may not any more (SPEC CHAN-7).

    ``gone`` is why not, "" if we may. ``target`` names no thread.
    """

    target: Target
    peer: PeerKind
    gone: str = ""
    place_name: str = ""


@dataclass(frozen=True, slots=True)
class TopicChanged:
    """A topic was made, named, closed or opened (SPEC CHAN-6).

    Args:
        target: The chat and the thread; without a thread it is the general topic.
        name: What people call it; "" if that was not told.
        renamed: It is called so now; else it was when it was made.
        state: Whether it takes messages now; None if that was not told.
    """

    target: Target
    peer: PeerKind
    name: str = ""
    renamed: bool = False
    state: TopicState | None = None
    place_name: str = ""


Inbound = InboundMessage | ChatMigrated | ChatReached | TopicChanged
"""What a channel hands over."""


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message. ``data`` comes back when it is pressed, at most 64 bytes."""

    text: str
    data: str


@dataclass(frozen=True, slots=True)
class OutFile:
    """A file to be sent, read when that happens. ``path`` is absolute, ``name`` what people see."""

    kind: FileKind
    path: str
    name: str
    mime: str = ""


@dataclass(frozen=True, slots=True)
class LostDraft:
    """A draft whose post got no answer: it is in the chat or not, and nobody knows its id.

    Args:
        run_id: The run that the stop button below it names.
        after: The channel's id of a message that was there before it.
        id: The channel's id of it, if the answer came too late.
    """

    run_id: RunId
    after: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class OutboundMessage:
    """One message to be sent.

    Args:
        run_id: The run whose reply it is, if it is one.
        rich: ``text`` is as the channel's ``parts`` wrote it, else it is shown as it stands.
        draft: The channel's id of the draft that this message finishes, or of a message that it
            replaces: that one is edited instead of sending another, or removed if ``text`` is
            empty; both can be repeated without harm (SPEC IO-5).
        file: A file to be sent, with ``text`` under it.
        buttons: Rows of buttons below it.
        lost: A draft that this message finishes, if it is in the chat. Without ``text`` and
            ``draft`` nothing is sent: the draft is only removed.
        occurrence: The time of a job of which it tells, if it tells of one (SPEC CRON-13).
        heartbeat_run: The heartbeat run of which it tells, if it tells of one.
        alert: Equal for alerts that say the same there (SPEC HB-7), and for messages by which
            owners are asked about one request for access (SPEC CHAN-5); "" for all others.
        album: Equal for files that are sent together as one album (SPEC CHAN-6), "" for the rest.
    """

    target: Target
    text: str
    reply_to: str | None = None
    run_id: RunId | None = None
    rich: bool = False
    draft: str | None = None
    file: OutFile | None = None
    buttons: tuple[tuple[Button, ...], ...] = ()
    lost: LostDraft | None = None
    occurrence: OccurrenceId | None = None
    heartbeat_run: HeartbeatRunId | None = None
    alert: str = ""
    album: str = ""

    @property
    def in_general(self) -> OutboundMessage:
        """The same for the general topic of its chat, where it replies to nothing."""
        target = replace(self.target, thread=None)
        return replace(self, target=target, reply_to=None, draft=None)
