"""A turn: the messages that one run answers.

The rules of SPEC CHAN-12:

In an allowed group with mention required, the last `context_messages` (50; 0 is off; set per
account, chat and thread) messages without a mention are context for the next one that has it: told
once, before it, in order, with times and senders, per topic, marked as background that asks for
nothing, as far as `queue.turn_chars` leaves room, the newest first; then part of the history.
Files are told as words and not downloaded. They are stored with the batch and start nothing; a run
that a crash or a shutdown cut leaves them to the next. Nothing is kept of other groups, of denied
people, for longer than 24 h, or through `/new`. An edit changes what is kept. A message that a
running task takes in (QUEUE-4) brings none. A bot in privacy mode gets none of them; `doctor` says
so where it has groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from goclaw_py.chat.outbound import texts as wording
from goclaw_py.core.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import (
    Attachment,
    InboundMessage,
    PeerKind,
    Target,
    external_id,
    person_at,
)
from goclaw_py.core.outcomes import Ending
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.records import InboxRow, NewRun
from goclaw_py.runs import speakers
from goclaw_py.runs.agent_loop import MessagePart, TextPart
from goclaw_py.runs.history_only import has_chat
from goclaw_py.runs.replies.draft import ReplyDraft
from goclaw_py.runs.replies.wait_line import WaitLine
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.turn_state import STORED, TurnState
from goclaw_py.scheduler.models import DEFAULT_POLICY, Debounce, QueuePolicy


@dataclass(slots=True, eq=False)
class Turn:
    """A request with the messages that it answers; see ``goclaw_py.chat.inbound`` for its life.

    Grows until its run starts, and by messages that the run takes. ``policy`` is the queue policy
    of its first message, before any throttle.
    """

    id: RunId
    session: SessionKey
    agent: AgentName
    rows: list[InboxRow]
    policy: QueuePolicy = DEFAULT_POLICY
    late: bool = False
    """Its first message waited in the database before it was claimed."""
    state: TurnState = STORED
    """Changed by ``chat.inbound.turns`` only."""
    queued_at: datetime | None = None
    """When it was submitted to the scheduler. A retried message was received long before."""
    begun: tuple[NewRun, NodeId] | None = None
    """Its run and the id of this node, once its task has started."""
    progress: RunRecorder = field(default_factory=RunRecorder)
    """The recorder of its run."""
    kept_since: float | None = None
    """When it began to wait for its agent's provider, by the loop's clock."""
    asked_at: float | None = None
    """When its run began to ask its agent, by the loop's clock."""
    failed_at: float | None = None
    """When its first run failed for its agent's provider, by the loop's clock."""
    dropped: Ending | None = None
    """Why it never runs, until its sender is notified."""
    stop_tried: asyncio.Event | None = None
    """Set once the commit of the ``/stop`` that cancelled it has been tried."""
    former: RunId | None = None
    """The run for the same messages that failed in this outage."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its end is stored, or never will be."""
    wait: WaitLine | None = None
    """What its run waits for, for people, while it runs."""
    draft: ReplyDraft | None = None
    """Its reply that grows in the chat, while it runs."""
    stop_shown: asyncio.Event | None = None
    """To be set when its draft shows that it was stopped, while somebody waits for that."""
    abandoned: asyncio.Event | None = None
    """Of a run that ignores its cancellation, so that its session goes on: set with ``ended``, but
    before its draft is finished."""
    after: asyncio.Event | None = None
    """The end of the run that was cancelled for its last message, and whose messages it has."""
    offers: list[RunId] = field(default_factory=list)
    """Waiting messages that this turn may take (mode ``steer``)."""
    context_messages: int = 0
    """The number of unmentioned messages of its group that it may include (SPEC CHAN-12)."""
    background: str = ""
    """These messages as text, once its run has started."""

    @property
    def target(self) -> Target:
        """The target of the answer."""
        return self.rows[-1].message.target

    @property
    def chat(self) -> Target | None:
        """The target, None if the answer is only in the history."""
        target = self.target
        return target if has_chat(target) else None

    @property
    def run(self) -> NewRun | None:
        """Its run, once its task has started."""
        return None if self.begun is None else self.begun[0]

    @property
    def starts_durably(self) -> bool:
        """Whether the start of its run must survive a crash of the database server.

        A speculative run may start again until its first effect, which is stored before it happens.
        After a crash attempts are counted durably, so that they are limited (SPEC IO-2).
        """
        return self.late or self.policy.debounce is not Debounce.SPECULATIVE

    @property
    def facts(self) -> dict[str, str]:
        """The fields of log lines about it."""
        return {"run_id": self.id, "session": self.session}

    @property
    def peer(self) -> PeerKind:
        """Whether its chat is direct or a group."""
        return self.rows[0].message.peer

    @property
    def senders(self) -> frozenset[str]:
        """The ids of the senders of its messages."""
        return frozenset(row.message.of_whom for row in self.rows)

    @property
    def reply_to(self) -> str | None:
        """The message to reply to: in groups an answer without one would be unclear."""
        return self.rows[-1].message.message_id if self.peer is PeerKind.GROUP else None

    @property
    def message_ids(self) -> tuple[str, ...]:
        """The channel's ids of its messages."""
        return tuple(row.message.message_id for row in self.rows if row.message.message_id)

    @property
    def texts(self) -> list[str]:
        """Return what people said, message by message."""
        return prompt_of(self.rows)

    def prepend(self, messages: Sequence[InboundMessage]) -> None:
        """Prepend what was said without a mention, within the limit of a turn."""
        room = self.policy.turn_chars - sum(row.message.chars for row in self.rows)
        self.background = speakers.background(messages[-self.context_messages :], limit_chars=room)

    @property
    def context(self) -> tuple[MessagePart, ...]:
        """Return what the agent reads before its messages."""
        return (TextPart(self.background, ""),) if self.background else ()

    def parts(
        self, rows: Sequence[InboxRow], files: Mapping[int, Sequence[MessagePart]]
    ) -> tuple[MessagePart, ...]:
        """Return what the agent reads of some rows; ``files`` are the files of each row."""
        parts: list[MessagePart] = []
        for piece in _pieces(rows):
            if text := piece.with_text(piece.text):
                parts.append(TextPart(text, piece.text, tuple(piece.rows)))
            parts += [part for row in piece.rows for part in files.get(row, ())]
        return tuple(parts)

    def prompt(self) -> str:
        """Return all of it as text, for the history."""
        said = [piece.with_text(piece.with_files(piece.text)) for piece in _pieces(self.rows)]
        return "\n".join(filter(None, [self.background, *said]))

    def has(self, message: InboundMessage) -> bool:
        """Return whether this message is one of its own."""
        return any(external_id(row.message) == external_id(message) for row in self.rows)

    @property
    def steered_rows(self) -> tuple[int, ...]:
        """Return the ids of the rows that joined its run after its start."""
        begun_with = () if self.run is None else self.run.inbox
        return tuple(row.id for row in self.rows if row.id not in begun_with)

    @property
    def own_rows(self) -> tuple[InboxRow, ...]:
        """Return its rows without those that an interrupted run for it had taken in."""
        mine = {row.id for row in self.rows}
        return tuple(row for row in self.rows if row.joined not in mine)

    @property
    def has_files(self) -> bool:
        """Return whether its messages have files to download."""
        return any(row.message.attachments or row.message.quoted_files for row in self.rows)


@dataclass(slots=True)
class _Piece:
    """A text, which the channel may have split, and the files that it stands above.

    ``message`` is the one that it begins, or, unless it ``leads``, the first one of its album.
    ``text`` is Markdown; people see ``words``.
    """

    message: InboundMessage
    leads: bool
    text: str
    words: str
    rows: list[int]
    files: list[Attachment]

    def with_text(self, text: str) -> str:
        """Return ``text`` in place of its own for the agent; only the first one has its speaker."""
        return (speakers.with_speaker if self.leads else speakers.with_caption)(self.message, text)

    def with_files(self, text: str) -> str:
        """Return a text with placeholders for the files."""
        if not self.files:
            return text
        return "\n".join(filter(None, [text, *map(wording.file_name, self.files)]))


def as_they_ran(rows: Sequence[InboxRow]) -> list[InboxRow]:
    """Put the rows of each interrupted run together, in their order, at the place of one of them.

    It is the one with the most attempts: after crashes other messages may go first (SPEC IO-2).
    """
    of_run: dict[RunId, list[InboxRow]] = {}
    for row in rows:
        if row.last_run is not None and row.joined is None:
            of_run.setdefault(row.last_run, []).append(row)
    sorted_rows: list[InboxRow] = []
    for row in rows:
        together = [row] if row.joined is not None else of_run.get(row.last_run or RunId(""), [row])
        if row is max(together, key=lambda one: one.attempts):
            sorted_rows += sorted(together, key=lambda one: one.id)
    return sorted_rows


def prompt_of(rows: Sequence[InboxRow]) -> list[str]:
    """Return what people said, message by message, with split texts joined."""
    messages: list[str] = []
    for piece in _pieces(rows):
        text = piece.with_files(piece.words)
        if piece.leads:
            messages.append(text)
        else:
            messages[-1] = "\n".join(filter(None, [messages[-1], text]))
    return messages


def _pieces(rows: Sequence[InboxRow]) -> list[_Piece]:
    """Return what was said, with split texts joined."""
    pieces: list[_Piece] = []
    before: InboundMessage | None = None
    for row in rows:
        message = row.message
        follows = before is not None and follows_on(before, message)
        if before is not None and before.cut and follows:
            piece = pieces[-1]
            piece.text += message.markdown
            piece.words += message.text
            piece.rows.append(row.id)
            piece.files += message.attachments
        else:
            first, files = pieces[-1].message if follows else message, list(message.attachments)
            text = message.formatted or message.text
            pieces.append(_Piece(first, not follows, text, message.text, [row.id], files))
        before = message
    return pieces


def follows_on(before: InboundMessage, message: InboundMessage) -> bool:
    """Return whether a message continues the one before it."""
    if before.sender.id != message.sender.id or before.forwarded_from != message.forwarded_from:
        return False
    return before.cut or (message.album is not None and before.album == message.album)


def goes_on(message: InboundMessage) -> bool:
    """Return whether the sender's next message may continue this one."""
    return message.cut or message.album is not None


def maker_in(turn: Turn) -> Requester:
    """Return the requester for the agent's job tools during a turn."""
    message = turn.rows[0].message
    owner = owner_of(message.target, message.peer)
    creator = person_at(message.target, message.of_whom)
    return Requester(owner, Maker.MODEL, turn.agent, message.target, message.peer, creator)
