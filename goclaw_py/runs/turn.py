"""What one run answers: the messages that became one turn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from goclaw_py.delivery import texts as wording
from goclaw_py.model.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.model.messages import (
    Attachment,
    InboundMessage,
    PeerKind,
    Target,
    external_id,
    person_at,
)
from goclaw_py.model.owners import Maker, owner_of
from goclaw_py.ports.agent import MessagePart, TextPart
from goclaw_py.ports.jobs import Requester
from goclaw_py.ports.store import InboxRow, NewRun
from goclaw_py.runs import speakers
from goclaw_py.runs.history_only import has_chat
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.scheduler.models import DEFAULT_POLICY, QueuePolicy


@dataclass(slots=True)
class Turn:
    """One request with the messages it answers.

    Grows until its run starts, and by what the run takes in after that. ``policy`` is how its first
    message queued, before any throttle.
    """

    id: RunId
    session: SessionKey
    agent: AgentName
    rows: list[InboxRow]
    policy: QueuePolicy = DEFAULT_POLICY
    late: bool = False
    """Its first message waited in the database for somebody to take it up."""
    epoch: int = 0
    """In which epoch of this process it was taken, see ``Mailboxes``."""
    begun: tuple[NewRun, NodeId] | None = None
    """Its row and the node that this process was, once its task has begun."""
    progress: RunRecorder = field(default_factory=RunRecorder)
    """What is known of its work."""
    kept_since: float | None = None
    """When it began to wait for its agent's provider to come back, by the loop's clock."""
    is_stopped: bool = False
    """It was stopped while it was kept, or was about to be."""
    stop_tried: asyncio.Event | None = None
    """Set once the commit of the ``/stop`` that met it has been tried."""
    former: RunId | None = None
    """The run for the same messages that met this outage."""
    offers: list[RunId] = field(default_factory=list)
    """Messages that wait and that this turn may take in (mode ``steer``)."""
    context_messages: int = 0
    """How many messages that did not mention the bot it is told of, at most (SPEC CHAN-12)."""
    background: str = ""
    """What the agent is told of them, once its run has begun."""

    @property
    def target(self) -> Target:
        """Where the answer goes."""
        return self.rows[-1].message.target

    @property
    def chat(self) -> Target | None:
        """The same, None if the answer is only in the history."""
        return self.target if has_chat(self.target) else None

    @property
    def run(self) -> NewRun | None:
        """Its row, once its task has begun."""
        return None if self.begun is None else self.begun[0]

    @property
    def facts(self) -> dict[str, str]:
        """What log lines tell of it."""
        return {"run_id": self.id, "session": self.session}

    @property
    def peer(self) -> PeerKind:
        """With whom its chat is."""
        return self.rows[0].message.peer

    @property
    def senders(self) -> frozenset[str]:
        """Whose messages it answers, by id."""
        return frozenset(row.message.of_whom for row in self.rows)

    @property
    def reply_to(self) -> str | None:
        """The message that the answer replies to: in groups it would else stand for itself."""
        return self.rows[-1].message.message_id if self.peer is PeerKind.GROUP else None

    @property
    def message_ids(self) -> tuple[str, ...]:
        """The channel's ids of the messages it answers."""
        return tuple(row.message.message_id for row in self.rows if row.message.message_id)

    @property
    def texts(self) -> list[str]:
        """What people said, message by message."""
        return told(self.rows)

    def put_before(self, said: Sequence[InboundMessage]) -> None:
        """Tell first what was said without a mention, as far as one turn may be that long."""
        texts = (row.message.text + row.message.quote for row in self.rows)
        room = self.policy.turn_chars - sum(map(len, texts))
        self.background = speakers.background(said[-self.context_messages :], limit_chars=room)

    @property
    def context(self) -> tuple[MessagePart, ...]:
        """What the agent is told before its messages."""
        return (TextPart(self.background, ""),) if self.background else ()

    def parts(
        self, rows: Sequence[InboxRow], files: Mapping[int, Sequence[MessagePart]]
    ) -> tuple[MessagePart, ...]:
        """What the agent is told of some of its rows; ``files`` are what came with each row."""
        parts: list[MessagePart] = []
        for said in _said(rows):
            if text := speakers.told(said.first, said.text):
                parts.append(TextPart(text, said.text))
            parts += [part for row in said.rows for part in files.get(row, ())]
        return tuple(parts)

    def prompt(self) -> str:
        """All of it in words, as the history keeps it."""
        spoken = (speakers.told(said.first, said.told) for said in _said(self.rows))
        return "\n".join(filter(None, [self.background, *spoken]))

    def has(self, message: InboundMessage) -> bool:
        """Whether this very message is among its own."""
        return any(external_id(row.message) == external_id(message) for row in self.rows)

    @property
    def taken_in(self) -> tuple[int, ...]:
        """The ids of the rows that joined its run after that had begun."""
        begun_with = () if self.run is None else self.run.inbox
        return tuple(row.id for row in self.rows if row.id not in begun_with)

    @property
    def has_files(self) -> bool:
        """Whether something came with its messages that has to be downloaded."""
        return any(row.message.attachments for row in self.rows)


@dataclass(slots=True)
class _Said:
    """What somebody said in one message, which the channel may have taken apart."""

    first: InboundMessage
    text: str
    rows: list[int]
    files: list[Attachment]

    @property
    def told(self) -> str:
        """The text, and words for the files."""
        return "\n".join(filter(None, [self.text, *map(wording.file_name, self.files)]))


def told(rows: Sequence[InboxRow]) -> list[str]:
    """What people said, message by message; what the channel took apart is whole again."""
    return [said.told for said in _said(rows)]


def _said(rows: Sequence[InboxRow]) -> list[_Said]:
    """What was said, message by message."""
    messages: list[_Said] = []
    before: InboundMessage | None = None
    for row in rows:
        message = row.message
        if before is not None and _goes_on(before, message):
            last = messages[-1]
            between = "" if before.cut or not (last.text and message.text) else "\n"
            last.text += between + message.text
            last.rows.append(row.id)
            last.files += message.attachments
        else:
            files = list(message.attachments)
            messages.append(_Said(message, message.text, [row.id], files))
        before = message
    return messages


def _goes_on(before: InboundMessage, message: InboundMessage) -> bool:
    """Whether a message is the rest of the one before it."""
    if before.sender.id != message.sender.id or before.forwarded_from != message.forwarded_from:
        return False
    return before.cut or (message.album is not None and before.album == message.album)


def goes_on(message: InboundMessage) -> bool:
    """Whether the sender's next message may be the rest of this one."""
    return message.cut or message.album is not None


def maker_in(turn: Turn) -> Requester:
    """As whom the agent makes and changes jobs while it answers a turn."""
    message = turn.rows[0].message
    owner = owner_of(message.target, message.peer)
    creator = person_at(message.target, message.of_whom)
    return Requester(owner, Maker.MODEL, turn.agent, message.target, message.peer, creator)
