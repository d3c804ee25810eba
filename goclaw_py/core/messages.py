"""Messages between people and agents, as channels exchange them and as histories have them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from goclaw_py.core.actors import Actor
from goclaw_py.core.ids import AgentName, HeartbeatRunId, OccurrenceId, RunId
from goclaw_py.core.values import value


class PeerKind(StrEnum):
    """Whether a chat has one person or many."""

    DIRECT = "direct"
    GROUP = "group"


@value(frozen=True, slots=True)
class Target:
    """An address for messages: a chat, or a thread of it. Ids are the channel's own, as text."""

    channel: str
    account: str
    chat: str
    thread: str | None = None

    @property
    def whole_chat(self) -> Target:
        """The chat, without a thread."""
        return self if self.thread is None else replace(self, thread=None)


@value(frozen=True, slots=True)
class Sender:
    """The author of a message. Only ``id`` identifies; people can change name and user name."""

    id: str
    name: str = ""
    username: str | None = None


SUBAGENT: Final = "subagent"
"""The ``source`` of results of subagents."""

SELF: Final = Sender("self")
"""The bot, as the author of quoted or forwarded messages."""


class TopicState(StrEnum):
    """Whether a topic accepts messages."""

    OPEN = ""
    CLOSED = "closed"
    DELETED = "deleted"


class FileKind(StrEnum):
    """The kind of a file, as people see it."""

    PHOTO = "photo"
    DOCUMENT = "document"
    VOICE = "voice"
    AUDIO = "audio"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of an incoming message.

    ``ref`` is the channel's id of it. ``name`` is chosen by the sender and may be anything, also
    "". ``size`` is in bytes, None if the channel does not tell it.
    """

    kind: FileKind
    ref: str
    name: str = ""
    mime: str = ""
    size: int | None = None


@value(frozen=True, slots=True)
class InboundMessage:
    """A message as a channel received it.

    Args:
        external_id: Unique within channel and account, and the same if the channel delivers the
            message again: ``<chat>:<message>[:<edit date>]`` (SPEC IO-1), or the callback id of a
            button press.
        text: Its words as people see them; commands are found in it.
        formatted: ``text`` as Markdown, if it has links, code or other formatting; "" otherwise.
        message_id: The channel's id of it, for replies.
        reply_to: The message that it replies to.
        cut: The channel split a long text here; the sender's next message continues it (SPEC
            QUEUE-6).
        redelivered: An earlier process may have handled it, so a command in it waits for the
            commit, which detects duplicates (SPEC CMD-1).
        addressed: Whether it is for the agent: always in direct chats; in groups if it mentions the
            bot, replies to it or is a command (SPEC CHAN-5).
        attachments: The files of the message.
        quote: The text of the message that it replies to, or the selected part of it, as Markdown.
        quoted_files: The files of the message that it replies to.
        quoted_from: The author of ``quote``, ``SELF`` for the bot; without id if the channel hides
            it.
        forwarded_from: The original author of a forwarded message, with the same rules.
        album: Equal for messages of one album.
        edits: The ``external_id`` of the message that this is a new version of (SPEC CHAN-6).
        press: The data of the pressed button; ``text`` is the button's label.
        unsupported: The kind of content that cannot be given to an agent, in plain words.
        place_name: The chat's title, for operators.
        topic_name: The topic's name at its creation, "" if the channel does not tell it.
        source: The program that created it, if no person did: ``subagent``.
        asker: The sender whose task created it then, "" if unknown.
        agent: The agent that answers in place of that of the settings. Only a channel whose people
            are all operators may choose it; it is ignored on others.
        by: Who has sent the command or pressed the button, if that was known; None on channels
            whose people are not all operators. It is set where messages come in, not by
            channels (SPEC SEC-9).
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
    agent: AgentName | None = None
    formatted: str = ""
    quoted_files: tuple[Attachment, ...] = ()
    by: Actor | None = None

    @property
    def markdown(self) -> str:
        """Its text, with its formatting as Markdown."""
        return self.formatted or self.text

    @property
    def chars(self) -> int:
        """The number of characters that an agent reads of it."""
        return len(self.formatted or self.text) + len(self.quote)

    def is_same_content(self, other: InboundMessage) -> bool:
        """Return whether it has the words, the formatting and the files of another version."""
        return self.markdown == other.markdown and list(map(_file_facts, self.attachments)) == list(
            map(_file_facts, other.attachments)
        )

    def amended_by(self, edit: InboundMessage) -> InboundMessage:
        """Return it with the content of an edit (SPEC CHAN-6)."""
        return replace(self, **{name: getattr(edit, name) for name in AMENDED})

    def is_edited_by(self, edit: InboundMessage) -> bool:
        """Return whether an edit is a new version of it."""
        return external_id(self) == (edit.target.channel, edit.target.account, edit.edits)

    @property
    def of_whom(self) -> str:
        """The id of its sender, or of the sender whose task created it."""
        return self.asker or self.sender.id


def _file_facts(file: Attachment) -> tuple[object, ...]:
    """Return what is equal in each delivery of a file; a channel may give it another reference."""
    return file.kind, file.name, file.mime, file.ref if file.size is None else file.size


AMENDED: Final = ("text", "formatted", "attachments", "quote", "quoted_files")
"""The fields of a message that an edit replaces."""

ExternalId = tuple[str, str, str]
"""Channel, account and external id, which identify a message."""


def external_id(message: InboundMessage) -> ExternalId:
    """Return the identity of a message."""
    return message.target.channel, message.target.account, message.external_id


def person_at(target: Target, sender: str) -> str:
    """Return a sender as one text that is unique over channels and accounts."""
    return f"{target.channel}/{target.account}/{sender}"


@dataclass(frozen=True, slots=True)
class ChatMigrated:
    """A chat has a new id; its data must move to it (SPEC CHAN-7)."""

    channel: str
    account: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ChatReached:
    """The bot can send to a chat again, or no longer can (SPEC CHAN-7).

    ``gone`` is the reason why not, "" if it can. ``target`` has no thread.
    """

    target: Target
    peer: PeerKind
    gone: str = ""
    place_name: str = ""


@dataclass(frozen=True, slots=True)
class TopicChanged:
    """A topic was created, renamed, closed or opened (SPEC CHAN-6).

    Args:
        target: The chat and the thread; without a thread, the general topic.
        name: Its name; "" if the channel does not tell it.
        renamed: Whether ``name`` is new; otherwise it is the name at its creation.
        state: Whether it accepts messages; None if the channel does not tell it.
    """

    target: Target
    peer: PeerKind
    name: str = ""
    renamed: bool = False
    state: TopicState | None = None
    place_name: str = ""


Inbound = InboundMessage | ChatMigrated | ChatReached | TopicChanged
"""Everything that a channel delivers."""


@dataclass(frozen=True, slots=True)
class Button:
    """A button below a message. ``data`` (at most 64 bytes) is returned when it is pressed."""

    text: str
    data: str


@dataclass(frozen=True, slots=True)
class OutFile:
    """A file to send, read at that time. ``path`` is absolute; people see ``name``."""

    kind: FileKind
    path: str
    name: str
    mime: str = ""


@value(frozen=True, slots=True)
class LostDraft:
    """A draft that may be in the chat: the response to posting it, and so its id, was lost.

    Args:
        run_id: The run that its stop button names.
        after: The channel's id of an older message.
        id: The channel's id of it, if the response came late.
    """

    run_id: RunId
    after: str | None = None
    id: str | None = None


@value(frozen=True, slots=True)
class OutboundMessage:
    """A message to send.

    Args:
        run_id: The run whose reply it is, if any.
        rich: Whether ``text`` is a result of the channel's ``parts``; otherwise it is shown as it
            is.
        draft: The channel's id of the draft that this message completes, or of a message that it
            replaces. That message is edited, or removed if ``text`` is empty; both can be repeated
            safely (SPEC IO-5).
        file: A file to send, with ``text`` as its caption.
        buttons: Rows of buttons below it.
        lost: A lost draft that this message completes if it is found. Without ``text`` and
            ``draft`` nothing is sent: the lost draft is only removed.
        occurrence: The job occurrence that it reports, if any (SPEC CRON-13).
        heartbeat_run: The heartbeat run that it reports, if any.
        alert: Equal for alerts with the same text in a chat (SPEC HB-7), and for messages that ask
            owners about the same pending request (SPEC CHAN-5); "" otherwise.
        album: Equal for files that are sent as one album (SPEC CHAN-6), "" otherwise.
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
        """Return the same message for the general topic of its chat, without a reply."""
        return replace(self, target=self.target.whole_chat, reply_to=None, draft=None)


class Role(StrEnum):
    """The author of a history entry."""

    USER = "user"
    ASSISTANT = "assistant"


@value(frozen=True, slots=True)
class HistoryEntry:
    """The request or the reply of one turn in a session's history.

    ``text`` is readable by every loop and by people. ``native`` is the same in the format of the
    loop that wrote it (JSON bytes), which that loop reads without loss; ``format`` names this
    format, for example ``"pydantic-ai"``. ``files`` of the workspace came or went with it.
    """

    role: Role
    text: str
    native: bytes | None = None
    format: str | None = None
    files: tuple[OutFile, ...] = ()
