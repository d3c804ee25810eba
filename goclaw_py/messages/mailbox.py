"""One mailbox per active session: which of its messages this process has, and in which state.

The life cycle of a message here. The database knows only ``pending`` and ``done``.

========  ==================================================  =================================
state     meaning                                             next
========  ==================================================  =================================
ARRIVED   permitted, its commit is under way                  WAITING, or gone if it failed
WAITING   committed; worked on in the order of the session    STARTING
STARTING  being worked on: a command, an edit, a new turn     TAKEN; without database, WAITING
TAKEN     a turn, a notice or a command has it until its end  gone, or WAITING if given back
========  ==================================================  =================================

A mailbox works strictly in the order of the database. When it is unsure (a commit without an
answer, a message that could not be worked on, a turn that was given back, rows that somebody else
stored), it becomes *stale*: nothing more begins until a reload has read what is pending, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from goclaw_py.common.lru import LruCache
from goclaw_py.model.chat_commands import Command, StopCommand
from goclaw_py.model.ids import AgentName, SessionKey
from goclaw_py.model.messages import ExternalId, InboundMessage, external_id
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.ports.store import AcceptedMessages, InboxKind, InboxRow, NewInbox, Stops
from goclaw_py.runs.turn import Turn

_REMEMBERED = 100_000


class MessageState(Enum):
    """See the module."""

    ARRIVED = auto()
    WAITING = auto()
    STARTING = auto()
    TAKEN = auto()


@dataclass(slots=True, eq=False)
class MailboxEntry:
    """One message that this process has.

    Attributes:
        row: Set once it is known to be committed.
        accepting: The channel waits for its commit; it is as new as what comes with it.
        cancelled: Why it gets no answer, if a stop that came after it has met it.
        acted: It is a stop that has taken effect.
        stops: What it has stopped, to be committed with it.
        announce: Tells what it has stopped; left until it is known that no other node works there.
        unstored: Why it was stopped, while that is not known to be stored.
        tried: Of a stop that has acted: set once its commit has been tried. Until then the ends of
            what it has stopped are not stored.
    """

    message: InboundMessage
    session: SessionKey
    agent: AgentName
    command: Command | None = None
    state: MessageState = MessageState.ARRIVED
    row: InboxRow | None = None
    turn: Turn | None = None
    accepting: bool = False
    cancelled: Reason | None = None
    acted: bool = False
    stops: Stops | None = None
    announce: Callable[[], None] | None = None
    unstored: Reason | None = None
    tried: asyncio.Event | None = None

    @property
    def key(self) -> ExternalId:
        """By what its channel knows it."""
        return external_id(self.message)

    def new_row(self) -> NewInbox:
        """What is committed of it."""
        outcome, reason = None, None
        if self.cancelled is not None:
            outcome, reason = Outcome.CANCELLED, self.cancelled
        elif isinstance(self.command, StopCommand) and self.acted:
            outcome = Outcome.COMPLETED
        return NewInbox(
            message=self.message,
            session=self.session,
            agent=self.agent,
            kind=InboxKind.MESSAGE if self.command is None else InboxKind.COMMAND,
            outcome=outcome,
            reason=reason,
            stops=self.stops,
        )

    def commit_tried(self) -> None:
        """Let the ends of what it has stopped be stored."""
        if self.tried is not None:
            self.tried.set()

    def announce_now(self) -> None:
        """Tell what it has stopped, once."""
        announce, self.announce = self.announce, None
        if announce is not None:
            announce()


@dataclass(slots=True, eq=False)
class Mailbox:
    """The messages of one session, and whether this node has done something in it (``owned``)."""

    entries: dict[ExternalId, MailboxEntry] = field(default_factory=dict)
    owned: bool = False
    stale: bool = False
    version: int = 0
    """Grows whenever it becomes stale; a reload that began before does not make it fresh."""

    def mark_stale(self) -> None:
        """Begin nothing more here before a reload."""
        self.stale = True
        self.version += 1

    def waiting(self) -> list[MailboxEntry]:
        """Committed messages that no turn has, in order: a stop still meets them."""
        entries = [
            (entry.row.id, entry)
            for entry in self.entries.values()
            if entry.row is not None
            and entry.row.kind is InboxKind.MESSAGE
            and entry.state in (MessageState.WAITING, MessageState.STARTING)
            and entry.cancelled is None
        ]
        return [entry for _, entry in sorted(entries, key=lambda one: one[0])]

    def arrived(self) -> list[MailboxEntry]:
        """Messages that are not known to be committed and not cancelled, in order of arrival."""
        return [
            entry
            for entry in self.entries.values()
            if entry.state is MessageState.ARRIVED
            and entry.command is None
            and entry.cancelled is None
        ]


class Mailboxes:
    """The mailboxes of all sessions in which this process has something.

    Attributes:
        epoch: Grows when this node was declared dead: what was taken before belongs to others.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self._boxes: dict[SessionKey, Mailbox] = {}
        self._rows: dict[int, MailboxEntry] = {}
        self._expected: LruCache[ExternalId, MailboxEntry] = LruCache(_REMEMBERED)
        """Their commits failed: they come again, and what stops have decided still holds."""
        self._acted: LruCache[ExternalId, None] = LruCache(_REMEMBERED)
        """Stops that are stored; a channel may deliver them again."""

    def of(self, session: SessionKey) -> Mailbox:
        """The mailbox of a session; made if there is none."""
        return self._boxes.setdefault(session, Mailbox())

    def find(self, session: SessionKey) -> Mailbox | None:
        """The mailbox of a session, if there is one."""
        return self._boxes.get(session)

    # ------------------------------------------------------------------ arriving

    def enter(self, entry: MailboxEntry) -> None:
        """A message has arrived, and its commit begins."""
        entry.accepting = True
        entries = self.of(entry.session).entries
        before = entries.get(entry.key) or self._expected.pop(entry.key, None)
        if before is not None:
            _decide_alike(entry, before)
        entry.acted |= entry.key in self._acted
        entries.setdefault(entry.key, entry)

    def has_acted(self, session: SessionKey, message: InboundMessage) -> bool:
        """Whether a message is a stop that has taken effect, maybe before it came again."""
        key = external_id(message)
        box = self._boxes.get(session)
        entry = self._expected.get(key) or (None if box is None else box.entries.get(key))
        return key in self._acted or (entry is not None and entry.acted)

    def act(self, entry: MailboxEntry) -> None:
        """It is a stop that is committed and takes effect now."""
        entry.acted = True
        self._acted[entry.key] = None

    def committed(
        self,
        entries: Sequence[MailboxEntry],
        rows: Sequence[NewInbox],
        accepted: AcceptedMessages,
    ) -> None:
        """A batch is committed, with what stops in it have decided.

        In a session that another node owns nothing was decided: that one does it (SPEC NODE-1).
        """
        listed = {external_id(row.message) for row in accepted.rows}
        for entry, row in zip(entries, rows, strict=True):
            is_known = entry.message.external_id in accepted.duplicates
            if entry.announce is not None and not is_known and entry.key not in listed:
                entry.acted, entry.announce = False, None
                for other in self.of(entry.session).entries.values():
                    if other.state is not MessageState.ARRIVED:
                        other.cancelled = None
            elif row.stops is not None:
                self._forget_stopped(entry, row.stops, entries)
            entry.announce_now()
            entry.commit_tried()
            if is_known and entry.cancelled is not None:
                self._expected[entry.key] = entry  # a reload brings it, if it is not done
            if is_known or row.outcome is not None:
                self._leave(entry)

    def _forget_stopped(
        self, stop: MailboxEntry, stops: Stops, batch: Sequence[MailboxEntry]
    ) -> None:
        """The commit of a stop has ended what it met; if an operator undoes it, it stays undone.

        What others are just committing has not ended with it.
        """
        channel, account, _ = stop.key
        entries = self.of(stop.session).entries
        for name in stops.messages:
            key = (channel, account, name)
            self._expected.pop(key, None)
            entry = entries.get(key)
            if entry is None or entry.state is not MessageState.WAITING:
                continue
            if not entry.accepting or entry in batch:
                self.remove(entry)

    def leave(self, entries: Sequence[MailboxEntry], *, committed: bool) -> None:
        """Their commit has ended: they are known here by now, or come again."""
        for entry in entries:
            entry.announce_now()  # while the database is away: it is not told twice
            entry.accepting = False
            entry.commit_tried()
            is_decided = entry.cancelled is not None or entry.acted
            if is_decided and not committed and entry.state is MessageState.ARRIVED:
                self._expected[entry.key] = entry
            self._leave(entry)

    def _leave(self, entry: MailboxEntry) -> None:
        if entry.acted and entry.key not in self._expected:
            self._acted[entry.key] = None
        if entry.state is MessageState.ARRIVED:
            self.remove(entry)

    # ------------------------------------------------------------------ committed

    def add(self, row: InboxRow) -> MailboxEntry:
        """A committed row: the message that arrived here, or one that somebody else accepted."""
        entries, key = self.of(row.session).entries, external_id(row.message)
        entry = entries.get(key)
        if entry is None:
            entry = MailboxEntry(row.message, row.session, row.agent)
            if (before := self._expected.pop(key, None)) is not None:
                _decide_alike(entry, before)
            entry.acted |= key in self._acted
            entries[key] = entry
        if entry.state in (MessageState.ARRIVED, MessageState.WAITING):
            entry.state, entry.row = MessageState.WAITING, row
        self._rows[row.id] = entry
        return entry

    def assign(self, rows: Iterable[InboxRow], turn: Turn) -> None:
        """A turn answers these."""
        for row in rows:
            if (entry := self._rows.get(row.id)) is not None:
                entry.turn = turn

    def give_back(self, turns: Iterable[Turn]) -> None:
        """What these were to answer waits again, before what came after it."""
        for turn in turns:
            for row in turn.rows:
                entry = self._rows.get(row.id) or self.add(row)
                entry.state, entry.row, entry.turn = MessageState.WAITING, row, None
            self.of(turn.session).mark_stale()

    def turn(self, row_id: int) -> Turn | None:
        """The turn that a message came with."""
        entry = self._rows.get(row_id)
        return None if entry is None else entry.turn

    def turns(self) -> Collection[Turn]:
        """All of them, each once."""
        turns = (entry.turn for entry in self._rows.values())
        return {turn.id: turn for turn in turns if turn is not None}.values()

    def rows(self) -> set[int]:
        """All rows that are known here."""
        return set(self._rows)

    # ------------------------------------------------------------------ reloading

    def begun(self) -> set[int]:
        """The rows that a reload does not bring again: they are worked on."""
        return {row for row, entry in self._rows.items() if entry.state is not MessageState.WAITING}

    def versions(self) -> Mapping[SessionKey, int]:
        """Those of all mailboxes, as a reload begins."""
        return {session: box.version for session, box in self._boxes.items()}

    def reloaded(self, versions: Mapping[SessionKey, int]) -> None:
        """A reload has ended that began with these: who has not become stale again is fresh."""
        for session, box in self._boxes.items():
            if box.version == versions.get(session):
                box.stale = False

    def forget_done(self, done: Collection[int], kept: Collection[int] | None = None) -> None:
        """Forget rows whose end is stored: those ``done``, and what is not among ``kept``.

        One that is pending again is to be tried again.
        """
        for row, entry in list(self._rows.items()):
            is_done = row in done and entry.state is not MessageState.STARTING
            if kept is not None and entry.state is MessageState.TAKEN:
                is_done |= row not in kept and entry.unstored is None
            if is_done:
                self.remove(entry)

    # ------------------------------------------------------------------ stopping

    def stopped(self, turns: Iterable[Turn], reason: Reason) -> None:
        """What these were to answer was stopped; that is to be stored."""
        for turn in turns:
            for row in turn.rows:
                if (entry := self._rows.get(row.id)) is not None:
                    entry.unstored = reason

    def unstored_stops(self) -> dict[Reason, list[int]]:
        """The rows that were stopped and are not known to be stored so."""
        found: dict[Reason, list[int]] = {}
        for row, entry in self._rows.items():
            if entry.unstored is not None:
                found.setdefault(entry.unstored, []).append(row)
        return found

    def stop_stored(self, rows: Iterable[int]) -> None:
        """It is stored that these were stopped."""
        for row in rows:
            if (entry := self._rows.get(row)) is not None:
                entry.unstored = None

    # ------------------------------------------------------------------ ending

    def idle(self, *, ending: bool) -> set[SessionKey]:
        """The sessions of this node in which no message is on its way to a turn.

        With ``ending`` messages that wait go to other nodes with their session.
        """
        busy = {MessageState.ARRIVED, MessageState.STARTING}
        if not ending:
            busy.add(MessageState.WAITING)
        return {
            session
            for session, box in self._boxes.items()
            if box.owned
            and not any(one.accepting or one.state in busy for one in box.entries.values())
        }

    def close(self, sessions: Iterable[SessionKey]) -> None:
        """This node gives up these sessions."""
        for session in sessions:
            box = self._boxes[session]
            box.owned = False
            for entry in list(box.entries.values()):
                if entry.unstored is None:
                    self.remove(entry)
            if not box.entries:
                self._boxes.pop(session, None)

    def clear(self) -> None:
        """This node was declared dead: all belongs to others. The only reset of messages.

        Stops that are not committed act again, on what is there then.
        """
        self.epoch += 1
        arriving = [
            (session, entry)
            for session, box in self._boxes.items()
            for entry in box.entries.values()
            if entry.state is MessageState.ARRIVED
        ]
        self._boxes.clear()
        self._rows.clear()
        for session, entry in arriving:
            self.of(session).entries[entry.key] = entry
        for entry in (*(entry for _, entry in arriving), *self._expected.values()):
            entry.acted, entry.stops, entry.announce = False, None, None

    def remove(self, entry: MailboxEntry) -> None:
        """Nobody here has it any more; the next reload finds it if it is not done."""
        if entry.row is not None and self._rows.get(entry.row.id) is entry:
            del self._rows[entry.row.id]
        box = self._boxes.get(entry.session)
        if box is not None and box.entries.get(entry.key) is entry:
            del box.entries[entry.key]
            if not (box.entries or box.owned or box.stale):
                del self._boxes[entry.session]


def _decide_alike(entry: MailboxEntry, before: MailboxEntry) -> None:
    """The same message again: what a stop has decided about it, or it about others, holds."""
    entry.cancelled, entry.acted, entry.stops = before.cancelled, before.acted, before.stops
