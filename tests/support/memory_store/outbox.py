"""The outbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.records import (
    ALL_MESSAGES,
    ALL_OUTGOING,
    ChatsDue,
    MessageFilter,
    Notice,
    OutboxQuery,
    OutboxRow,
    OutboxState,
    Place,
)
from goclaw_py.store.text import storable
from tests.support.memory_store import sql_rules
from tests.support.memory_store.tables import MemoryDatabase, MemoryPart, OutboxRecord


class MemoryOutbox(MemoryPart):
    """Implements ``OutboxStore``."""

    async def chats_due(self, places: Collection[Place], *, now: datetime) -> ChatsDue:
        heads = sorted(self._heads(places), key=lambda head: (head.next_attempt_at, head.id))
        due = [head for head in heads if head.next_attempt_at <= now]
        return ChatsDue(
            {Target(*head.chat): len(self._together(head)) for head in due},
            next((head.next_attempt_at for head in heads[len(due) :]), None),
        )

    async def claim_next(self, chat: Target, *, node: NodeId, now: datetime) -> OutboxRow | None:
        line = self._db.unsent.get(storable((chat.channel, chat.account, chat.chat)))
        if not line or node not in self._db.nodes:
            return None
        head = _head(line)
        due = head.state is OutboxState.WAITING and head.next_attempt_at <= now
        if not due and head.owner != node:
            return None
        return _claimed_row(head, node)

    async def claim_album(self, row: OutboxRow, *, node: NodeId) -> list[OutboxRow]:
        head = self._db.outbox[row.id]
        others = [
            other
            for other in self._together(head)
            if other.id > row.id and (other.state is OutboxState.WAITING or other.owner == node)
        ]
        return [_claimed_row(other, node) for other in others if node in self._db.nodes]

    async def mark_sent(
        self, row: OutboxRow, external_id: str, *, now: datetime, beside_draft: bool = False
    ) -> bool:
        if (record := self._claimed(row, OutboxState.SENT)) is not None:
            end_message(self._db, record, OutboxState.SENT)
            record.external_id = storable(external_id)
            record.finished_at = now
            record.error = None
            record.possible_duplicate = record.possible_duplicate or beside_draft
            return record.chat in self._db.unsent
        return True

    async def clear_duplicate(self, row: OutboxRow) -> None:
        record = self._db.outbox.get(row.id)
        if record is not None and (record.state, record.fence) == (OutboxState.SENT, row.fence):
            record.possible_duplicate = False

    async def mark_failed(
        self,
        row: OutboxRow,
        error: str,
        *,
        retry_at: datetime,
        maybe_sent: bool,
        alone: bool = False,
    ) -> None:
        if (record := self._claimed(row, OutboxState.WAITING)) is not None:
            record.state = OutboxState.WAITING
            record.owner = None
            record.error = storable(error)
            record.next_attempt_at = retry_at
            record.possible_duplicate = record.possible_duplicate or maybe_sent
            if alone:
                record.message = replace(record.message, album="")

    async def advance_outbox(self, *, after: datetime, by: timedelta) -> None:
        for line in self._db.unsent.values():
            for record in line.values():
                if record.next_attempt_at > after:
                    record.next_attempt_at -= by

    async def mark_dead(
        self,
        row: OutboxRow,
        error: str,
        *,
        now: datetime,
        say: Sequence[OutboundMessage] = (),
    ) -> None:
        if (record := self._claimed(row, OutboxState.FAILED)) is not None:
            end_message(self._db, record, OutboxState.FAILED)
            record.error = storable(error)
            record.finished_at = now
            self._db.enqueue(storable(tuple(say)), session=row.session, now=now)

    async def outbox(self, query: OutboxQuery = ALL_OUTGOING) -> list[OutboxRow]:
        run = storable(query.run)
        newest_first = reversed(self._selected(query.only))
        found = [
            row
            for row in newest_first
            if query.state in (None, row.state)
            and run in (None, row.message.run_id)
            and (query.before is None or row.id < query.before)
        ]
        return [row.row() for row in found[: query.limit]]

    async def outbox_counts(self, only: MessageFilter = ALL_MESSAGES) -> dict[OutboxState, int]:
        return dict(Counter(row.state for row in self._selected(only)))

    def _selected(self, only: MessageFilter) -> list[OutboxRecord]:
        only = storable(only)
        return [
            row
            for row in self._db.outbox.values()
            if sql_rules.selects(
                only, (target := row.message.target), row.created_at, row.message.text, target
            )
        ]

    async def outbox_row(self, row_id: int) -> OutboxRow | None:
        found = self._db.outbox.get(row_id)
        return None if found is None else found.row()

    def _sender_of(self, row: OutboxRecord) -> str | None:
        run = self._db.runs.get(row.message.run_id or RunId(""))
        return None if run is None else run.asked.sender

    async def drop_answers(
        self,
        session: SessionKey,
        chat: Target,
        *,
        everything: bool,
        run: RunId | None,
        sender: str | None,
        now: datetime,
    ) -> int:
        line = self._db.unsent.get(storable((chat.channel, chat.account, chat.chat)), {})
        waiting = [row for row in line.values() if _is_answer(row, storable(session))]
        if sender is not None:
            waiting = [row for row in waiting if self._sender_of(row) == storable(sender)]
        waiting.sort(key=lambda row: row.id)
        first = waiting[0].message.run_id if waiting else None
        cut = [row for row in waiting if everything or row.message.run_id == (run or first)]
        for row in cut:
            end_message(self._db, row, OutboxState.DROPPED)
            row.error = "stopped"
            row.finished_at = now
        if cut:
            self._db.notify(Notice.OUTBOX)
        return len(cut)

    async def drop_outbox(
        self,
        ids: Collection[int],
        *,
        now: datetime,
    ) -> Counter[str]:
        found = [self._db.outbox[row_id] for row_id in set(ids) if row_id in self._db.outbox]
        dropped = [row for row in found if row.state in (OutboxState.FAILED, OutboxState.WAITING)]
        for row in dropped:
            if row.state is OutboxState.WAITING:
                end_message(self._db, row, OutboxState.DROPPED)
            row.state = OutboxState.DROPPED
            row.finished_at = now
        if dropped:
            self._db.notify(Notice.OUTBOX)
        return Counter(row.message.target.channel for row in dropped)

    async def retry_outbox(self, ids: Collection[int], *, now: datetime) -> int:
        found = [self._db.outbox[row_id] for row_id in set(ids) if row_id in self._db.outbox]
        ended = [row for row in found if row.state in (OutboxState.FAILED, OutboxState.DROPPED)]
        for row in ended:
            row.state = OutboxState.WAITING
            row.attempts = 0
            row.finished_at = None
            row.next_attempt_at = now
            line = self._db.unsent.get(row.chat, {}) | {row.id: row}
            self._db.unsent[row.chat] = dict(sorted(line.items()))
        if ended:
            self._db.notify(Notice.OUTBOX)
        return len(ended)

    def _heads(self, places: Collection[Place]) -> Iterator[OutboxRecord]:
        """Yield the oldest unsent row of each chat, if it is pending."""
        wanted = set(places)
        for (channel, account, _), line in self._db.unsent.items():
            head = _head(line)
            if (channel, account) in wanted and head.state is OutboxState.WAITING:
                yield head

    def _together(self, head: OutboxRecord) -> list[OutboxRecord]:
        """Return a row with the other unsent rows of its album."""
        album = head.message.album
        if not album:
            return [head]
        line = self._db.unsent.get(head.chat, {})
        return [row for row in line.values() if row.message.album == album]

    def _claimed(self, row: OutboxRow, wanted: OutboxState) -> OutboxRecord | None:
        """Return the record to change; None if this claim has changed it already.

        Raises ``Fenced``.
        """
        record = self._db.outbox.get(row.id)
        if record is not None and record.fence == row.fence:
            if record.state is OutboxState.SENDING:
                return record
            if record.state is wanted:
                return None
        raise Fenced(f"outbox row {row.id} was claimed or settled by somebody else")


def end_message(db: MemoryDatabase, record: OutboxRecord, state: OutboxState) -> None:
    """End a row, which blocks no later one of its chat any more."""
    record.state = state
    record.owner = None
    line = db.unsent[record.chat]
    del line[record.id]
    if not line:
        del db.unsent[record.chat]


def _head(line: dict[int, OutboxRecord]) -> OutboxRecord:
    """Return the oldest row of a chat's queue, which is in order of ids."""
    return next(iter(line.values()))


def _claimed_row(row: OutboxRecord, node: NodeId) -> OutboxRow:
    """Claim a row, perhaps again."""
    row.attempts += row.state is OutboxState.WAITING
    row.state = OutboxState.SENDING
    row.owner = node
    row.fence += 1
    return row.row()


def _is_answer(row: OutboxRecord, session: SessionKey) -> bool:
    """Return whether a row waits and belongs to an answer in a session."""
    said = row.message
    waits = row.state is OutboxState.WAITING and row.session == session
    is_others = said.run_id is None or said.occurrence is not None or said.heartbeat_run is not None
    # What finishes a growing reply is sent, or that would stay open.
    return waits and not is_others and said.draft is None and said.lost is None
