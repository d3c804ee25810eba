"""One mailbox per active session: which of its messages this process has, and in which state.

The first life of a message in this process, until it has a turn or its command is executed. The
second one is that of its turn, see ``turns``. The database has only ``pending`` and ``done``.

========  ====================================================  ===============================
state     meaning                                               next state
========  ====================================================  ===============================
ARRIVED   admitted; its commit is in progress                   WAITING; removed if that failed
WAITING   committed; processed in the order of the session      STARTING
STARTING  being processed: a command, an edit, or a new turn    TAKEN; without database WAITING
TAKEN     a turn has it, or its command is executed             removed; WAITING if released
========  ====================================================  ===============================

A mailbox follows the order of the database strictly. When it may not know that order (a commit
without response, a message that could not be processed, a released turn, rows that another process
stored), it becomes *stale*: nothing starts until a reload has read the pending rows in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from goclaw_py.chat.inbound.mailbox_entry import MailboxEntry, MessageState
from goclaw_py.chat.inbound.turns import Turns
from goclaw_py.core.containers import LruCache
from goclaw_py.core.ids import NodeId, SessionKey
from goclaw_py.core.messages import ExternalId, InboundMessage, external_id
from goclaw_py.core.outcomes import Reason
from goclaw_py.records import AcceptedMessages, InboxKind, InboxRow, NewInbox
from goclaw_py.runs.turn import Turn

_REMEMBERED = 100_000


@dataclass(slots=True, eq=False)
class Mailbox:
    """The messages of a session, and whether this node has used the session (``owned``)."""

    entries: dict[ExternalId, MailboxEntry] = field(default_factory=dict)
    owned: bool = False
    stale: bool = False
    version: int = 0
    """Increases when it becomes stale; an older reload does not make it fresh."""

    def mark_stale(self) -> None:
        """Start nothing more before a reload."""
        self.stale = True
        self.version += 1

    def waiting(self) -> list[MailboxEntry]:
        """Return committed messages without a turn, in order: a stop still cancels them."""
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
        """Return messages that are neither committed nor cancelled, in order of arrival."""
        return [
            entry
            for entry in self.entries.values()
            if entry.state is MessageState.ARRIVED
            and entry.command is None
            and entry.cancelled is None
        ]


class Mailboxes:
    """The mailboxes of all sessions of this process.

    Args:
        epoch: Increases when this node has expired: earlier claims belong to others.
    """

    def __init__(self, turns: Turns) -> None:
        self.epoch = 0
        self._turns = turns
        self._boxes: dict[SessionKey, Mailbox] = {}
        self._rows: dict[int, MailboxEntry] = {}
        self._expected: LruCache[ExternalId, MailboxEntry] = LruCache(_REMEMBERED)
        """Messages that come again after a failed commit or by a reload; stops still apply."""
        self._acted: LruCache[ExternalId, None] = LruCache(_REMEMBERED)
        """Stored stops, which a channel may deliver again."""
        self._covered: LruCache[ExternalId, Reason] = LruCache(_REMEMBERED)
        """Messages that an answered stop has cancelled, until that is stored."""
        self._owed: dict[Reason, set[int]] = {}
        """Rows that this process has stopped as ``former``."""
        self.former: NodeId | None = None
        """The expired node that this process was, until ``forget_former``."""
        self._left: dict[SessionKey, list[MailboxEntry]] = {}
        """Messages that ``former`` had: until its sessions are released a stop ends them."""

    def of(self, session: SessionKey) -> Mailbox:
        """Return the mailbox of a session; create it if needed."""
        box = self._boxes.get(session)
        if box is None:
            box = self._boxes[session] = Mailbox()
        return box

    def find(self, session: SessionKey) -> Mailbox | None:
        """Return the mailbox of a session, if there is one."""
        return self._boxes.get(session)

    # ------------------------------------------------------------------ arriving

    def enter(self, entry: MailboxEntry) -> MailboxEntry:
        """Add a message whose commit begins; return its entry.

        It is another one if the same message was delivered before and its commit has not ended.
        """
        entries = self.of(entry.session).entries
        before = entries.get(entry.key) or self._expected.pop(entry.key, None)
        if before is not None and before.accepting and before.state is MessageState.ARRIVED:
            entry = before
        elif before is not None:
            _decide_alike(entry, before)
        entry.accepting += 1
        entry.acted |= entry.key in self._acted
        entries.setdefault(entry.key, entry)
        return entry

    def has_acted(self, session: SessionKey, message: InboundMessage) -> bool:
        """Return whether a message is a stop that was executed, perhaps before it came again."""
        key = external_id(message)
        box = self._boxes.get(session)
        entry = self._expected.get(key) or (None if box is None else box.entries.get(key))
        return key in self._acted or (entry is not None and entry.acted)

    def returning(self, session: SessionKey) -> list[MailboxEntry]:
        """Return messages of a session whose commit has failed, at least as this process knows."""
        return [
            entry
            for entry in self._expected.values()
            if entry.session == session
            and entry.state is MessageState.ARRIVED
            and entry.command is None
            and entry.cancelled is None
        ]

    def arriving_stops(self) -> list[MailboxEntry]:
        """Return the executed stops that are not committed, as far as is known."""
        here = [entry for box in self._boxes.values() for entry in box.entries.values()]
        entries = [*here, *self._expected.values()]
        return [one for one in entries if one.acted and one.state is MessageState.ARRIVED]

    def act(self, entry: MailboxEntry) -> None:
        """Mark a committed stop as executed."""
        entry.acted = True
        self._acted[entry.key] = None

    def committed(
        self,
        entries: Sequence[MailboxEntry],
        rows: Sequence[NewInbox],
        accepted: AcceptedMessages,
    ) -> None:
        """Handle that a batch is committed, with the decisions of its stops.

        In a session of another node nothing was decided: that node decides (SPEC NODE-1).
        """
        listed = {external_id(row.message) for row in accepted.rows}
        for entry, row in zip(entries, rows, strict=True):
            is_known = entry.message.external_id in accepted.duplicates
            if entry.acted and not is_known and entry.key not in listed:
                self._undo_stop(entry)
            elif row.stops is not None:
                self._forget_stopped(entry, entries)
            entry.announce_now()
            entry.commit_tried()
            has_arrived = entry.state is MessageState.ARRIVED
            if is_known or row.outcome is not None:
                if has_arrived and entry.cancelled is not None:
                    # A reload brings it if it is not done: it waits in a session of another node.
                    self._expected[entry.key] = entry
                self._leave(entry)

    def _undo_stop(self, stop: MailboxEntry) -> None:
        """Undo a stop that another node executes; it decides about all committed messages."""
        stop.acted, stop.announce = False, None
        for key in stop.stopped_keys():
            self._covered.pop(key, None)
        entries = self.of(stop.session).entries
        kept = [one for one in self._expected.values() if one.session == stop.session]
        for other in (*entries.values(), *kept):
            if other.state is not MessageState.ARRIVED:
                other.cancelled = None

    def _forget_stopped(self, stop: MailboxEntry, batch: Sequence[MailboxEntry]) -> None:
        """Remove the messages that a committed stop cancelled; an operator may retry them.

        Messages whose commit is in progress, or has failed, have not ended with it.
        """
        entries = self.of(stop.session).entries
        for key in stop.stopped_keys():
            before = self._expected.get(key)
            if before in batch or (before and before.state is not MessageState.ARRIVED):
                self._expected.pop(key)
            self._covered.pop(key, None)
            entry = entries.get(key)
            if entry is None or entry.state is not MessageState.WAITING:
                continue
            if not entry.accepting or entry in batch:
                self.remove(entry)

    def leave(self, entries: Sequence[MailboxEntry], *, committed: bool) -> None:
        """Handle the end of a commit: the messages are known by now, or come again."""
        for entry in entries:
            entry.announce_now()  # while the database is away: it is not told twice
            if not committed:
                self._mark_cancelled(entry)
            entry.accepting -= 1
            entry.commit_tried()
            box = self._boxes.get(entry.session)
            # Committed in a session that this node has not claimed: a reload may bring it before
            # the commit of its stop.
            is_here = box is not None and box.entries.get(entry.key) is entry
            is_decided = entry.cancelled is not None or entry.acted
            has_arrived = entry.state is MessageState.ARRIVED
            is_lost = not committed and (is_here or is_decided)
            if has_arrived and (is_lost or (is_decided and is_here)):
                self._expected[entry.key] = entry
            self._leave(entry)
            if committed and has_arrived:
                entry.state = MessageState.WAITING  # in the database only

    def _mark_cancelled(self, stop: MailboxEntry) -> None:
        """Note that the messages that a stop has cancelled must not run."""
        if stop.stops is not None:
            self._covered.update(dict.fromkeys(stop.stopped_keys(), stop.stops.reason))

    def _leave(self, entry: MailboxEntry) -> None:
        if entry.acted and entry.key not in self._expected:
            self._acted[entry.key] = None
        if entry.state is MessageState.ARRIVED:
            self.remove(entry)

    # ------------------------------------------------------------------ committed

    def add(self, row: InboxRow) -> MailboxEntry:
        """Add a committed row: one that arrived here, or that another process accepted."""
        entries, key = self.of(row.session).entries, external_id(row.message)
        entry = entries.get(key)
        if entry is None:
            entry = MailboxEntry(row.message, row.session, row.agent)
            if (before := self._expected.pop(key, None)) is not None:
                _decide_alike(entry, before)
            entry.acted |= key in self._acted
            entry.cancelled = self._covered.pop(key, entry.cancelled)
            entries[key] = entry
        if entry.state in (MessageState.ARRIVED, MessageState.WAITING):
            entry.state, entry.row = MessageState.WAITING, row
        self._rows[row.id] = entry
        return entry

    def release(self, turns: Collection[Turn]) -> None:
        """Let the messages of turns wait again, before later ones: the only way back."""
        self._turns.release(turns)
        for turn in turns:
            for row in turn.rows:
                entry = self._rows.get(row.id) or self.add(row)
                entry.state, entry.row = MessageState.WAITING, row
            self.of(turn.session).mark_stale()

    def turn_of_run(self, row: InboxRow) -> Turn | None:
        """Return the turn with another row that the same interrupted run began with."""
        if row.last_run is None:
            return None
        for entry in self.of(row.session).entries.values():
            other = entry.row
            if other is not None and other.last_run == row.last_run:
                turn = self._turns.of_row(other.id)
                if turn is not None:
                    return turn
        return None

    def has_all(self, rows: Set[int]) -> bool:
        """Return whether this process has all of these rows."""
        return rows <= self._rows.keys()

    def rows(self) -> set[int]:
        """Return all rows of this process."""
        return set(self._rows)

    # ------------------------------------------------------------------ reloading

    def begun(self) -> set[int]:
        """Return the rows that a reload must not add again, because they are in progress."""
        return {row for row, entry in self._rows.items() if entry.state is not MessageState.WAITING}

    def has_stale(self) -> bool:
        """Return whether a mailbox waits for a reload."""
        return any(box.stale for box in self._boxes.values())

    def versions(self) -> Mapping[SessionKey, int]:
        """Return the versions of all mailboxes at the start of a reload."""
        return {session: box.version for session, box in self._boxes.items()}

    def reloaded(self, versions: Mapping[SessionKey, int]) -> None:
        """Handle the end of a reload: mailboxes that are not stale again are fresh."""
        for session, box in self._boxes.items():
            if box.version == versions.get(session):
                box.stale = False

    def forget_done(self, done: Collection[int], open_rows: Collection[int] | None = None) -> None:
        """Remove rows whose end is stored: those ``done``, and those not in ``open_rows``.

        A row that is pending again is to be retried.
        """
        for row, entry in list(self._rows.items()):
            is_done = row in done and entry.state is not MessageState.STARTING
            if open_rows is not None and entry.state is MessageState.TAKEN:
                is_done |= row not in open_rows and entry.unstored is None
            if is_done:
                self.remove(entry)

    # ------------------------------------------------------------------ stopping

    def stopped(self, turns: Iterable[Turn], reason: Reason) -> None:
        """Record that the rows of these turns were stopped, to be stored."""
        for turn in turns:
            for row in turn.rows:
                if (entry := self._rows.get(row.id)) is not None:
                    entry.unstored = reason

    def unstored_stops(self) -> dict[Reason, list[int]]:
        """Return the stopped rows whose end is not stored yet."""
        found: dict[Reason, list[int]] = {}
        for row, entry in self._rows.items():
            if entry.unstored is not None:
                found.setdefault(entry.unstored, []).append(row)
        return found

    def stop_stored(self, rows: Iterable[int]) -> None:
        """Record that the ends of stopped rows are stored."""
        for row in rows:
            if (entry := self._rows.get(row)) is not None:
                entry.unstored = None

    # ------------------------------------------------------------------ ending

    def idle(self, *, ending: bool) -> set[SessionKey]:
        """Return the used sessions without a message on its way to a turn, or to a stored stop.

        With ``ending``, waiting messages go to other nodes with their session.
        """
        busy = {MessageState.ARRIVED, MessageState.STARTING}
        if not ending:
            busy.add(MessageState.WAITING)
        return {
            session
            for session, box in self._boxes.items()
            if box.owned
            and not any(
                one.accepting or one.unstored or one.state in busy for one in box.entries.values()
            )
        }

    def release_later(self, session: SessionKey) -> None:
        """Release a session that this node has used, once it is idle."""
        self.of(session).owned = True

    def close(self, sessions: Iterable[SessionKey]) -> None:
        """Remove mailboxes whose sessions this node releases."""
        for session in sessions:
            box = self._boxes[session]
            box.owned = False
            for entry in list(box.entries.values()):
                self.remove(entry)
            self._boxes.pop(session, None)

    def clear(self, node: NodeId) -> None:
        """Forget everything: this node has expired. The only reset of messages.

        A stop that was answered stays as it is: the messages that it has cancelled do not run.
        Uncommitted stops without an answer are executed again, on what is there then; but not a
        ``/stop`` that has cancelled an uncommitted message, because it would cancel another one.
        """
        self.epoch += 1
        self.former = self.former or node
        arriving = [
            (session, entry)
            for session, box in self._boxes.items()
            for entry in box.entries.values()
            if entry.state is MessageState.ARRIVED
        ]
        for row, entry in sorted(self._rows.items()):
            if (reason := entry.unstored or entry.cancelled) is not None:
                self._owed.setdefault(reason, set()).add(row)
                self._covered[entry.key] = reason
            elif entry.row is not None and entry.row.kind is InboxKind.MESSAGE:
                self._left.setdefault(entry.session, []).append(entry)
        self._boxes.clear()
        self._rows.clear()
        for session, entry in arriving:
            self.of(session).entries[entry.key] = entry
        kept = [*(entry for _, entry in arriving), *self._expected.values()]
        cancelled = {entry.key for entry in kept if entry.cancelled is not None}
        for entry in kept:
            if not entry.is_answered and not _has_its_message(entry, cancelled):
                entry.acted, entry.stops, entry.announce = False, None, None
            elif entry.is_answered:
                self._mark_cancelled(entry)

    def left_of(self, session: SessionKey) -> list[MailboxEntry]:
        """Return messages of a session that this process had as the node that has expired."""
        return [entry for entry in self._left.get(session, ()) if entry.key not in self._covered]

    def owed(self) -> tuple[dict[Reason, list[int]], list[NewInbox]]:
        """Return what is to be stored of answered stops as the node that this process was.

        These are rows by the reason of their end, and messages to commit: stops, and what they have
        cancelled, in the order of their arrival.
        """
        here = [entry for box in self._boxes.values() for entry in box.entries.values()]
        entries = [*self._expected.values(), *here]
        decided = [
            entry.new_row()
            for entry in entries
            if entry.state is MessageState.ARRIVED and (entry.is_answered or entry.cancelled)
        ]
        return {reason: sorted(rows) for reason, rows in self._owed.items()}, decided

    def forget_former(self) -> None:
        """Record that what was ``owed`` is stored, and that the former node owns nothing more."""
        self._owed.clear()
        self._covered.clear()
        self._left.clear()
        self.former = None

    def remove(self, entry: MailboxEntry) -> None:
        """Remove a message; the next reload reads it if it has not ended."""
        if entry.row is not None and self._rows.get(entry.row.id) is entry:
            del self._rows[entry.row.id]
        box = self._boxes.get(entry.session)
        if box is not None and box.entries.get(entry.key) is entry:
            del box.entries[entry.key]
            if not (box.entries or box.owned or box.stale):
                del self._boxes[entry.session]


def _has_its_message(stop: MailboxEntry, cancelled: Collection[ExternalId]) -> bool:
    """Return whether a ``/stop`` has cancelled one of these messages."""
    if stop.stops is None or stop.stops.everything:
        return False
    return any(key in cancelled for key in stop.stopped_keys())


def _decide_alike(entry: MailboxEntry, before: MailboxEntry) -> None:
    """Copy decisions of and about stops to the same message delivered again."""
    entry.cancelled, entry.acted, entry.stops = before.cancelled, before.acted, before.stops
