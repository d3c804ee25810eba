"""Failed incoming messages, and edits of waiting ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import (
    ALL_DEAD_LETTERS,
    ALL_MESSAGES,
    DeadLetter,
    DeadLetterCounts,
    DeadLetterQuery,
    InboxKind,
    InboxRow,
    IncomingState,
    MessageFilter,
    Notice,
)
from goclaw_py.store.text import storable
from tests.support.memory_store import sql_rules
from tests.support.memory_store.tables import InboxRecord, MemoryPart


class MemoryDeadLetters(MemoryPart):
    """Implements the rest of ``InboxStore``."""

    async def amend(self, edit: InboxRow) -> bool:
        message = storable(edit.message)
        target = message.target
        own = self._db.inbox.get(edit.id)
        key = (target.channel, target.account, message.edits or "")
        original = self._db.known.get(key) if message.edits is not None else None
        if own is None or original is None or original is own or not _waits(original):
            return False
        if own.outcome not in (None, Outcome.COMPLETED):
            return False
        original.message = original.message.amended_by(message)
        if own.outcome is None:
            # It is brought in as it comes in.
            self._db.end_row(own, Outcome.COMPLETED, None, edit.received_at)
        return True

    async def last_version(
        self, channel: str, account: str, external_id: str, *, before: int
    ) -> InboundMessage | None:
        channel, account, name = storable((channel, account, external_id))
        versions = [
            row
            for key, row in self._db.known.items()
            if key[:2] == (channel, account) and row.id < before and _is_version(row.message, name)
        ]
        return max(versions, key=lambda row: row.id).message if versions else None

    async def is_known(self, channel: str, account: str, external_id: str) -> bool:
        return storable((channel, account, external_id)) in self._db.known

    async def dead_letters(self, query: DeadLetterQuery = ALL_DEAD_LETTERS) -> list[DeadLetter]:
        newest_first = reversed(self._letters(query.only, _KINDS[query.state]))
        found = [row for row in newest_first if query.before is None or row.id < query.before]
        return [_letter(row) for row in found[: query.limit]]

    async def dead_letter_counts(self, only: MessageFilter = ALL_MESSAGES) -> DeadLetterCounts:
        counted = (_is_letter, _is_waiting, _is_dismissed, _is_asking)
        return DeadLetterCounts(*(len(self._letters(only, kind)) for kind in counted))

    async def message_channels(self) -> frozenset[str]:
        received = {row.message.target.channel for row in self._db.inbox.values()}
        return frozenset(received | {channel for channel, *_ in self._db.chats})

    def _letters(
        self, only: MessageFilter, wanted: Callable[[InboxRecord], bool]
    ) -> list[InboxRecord]:
        only = storable(only)
        return [
            row
            for row in self._db.inbox.values()
            if row.kind is InboxKind.MESSAGE
            and wanted(row)
            and sql_rules.selects(
                only,
                row.message.target,
                row.received_at,
                row.message.text,
                self._db.sessions[row.session].target,
            )
        ]

    async def dead_letter(self, row_id: int) -> DeadLetter | None:
        found = self._db.inbox.get(row_id)
        return None if found is None else _letter(found)

    async def letter_named(self, channel: str, account: str, external_id: str) -> DeadLetter | None:
        found = self._db.known.get(storable((channel, account, external_id)))
        return None if found is None else _letter(found)

    async def letters_of(self, run: RunId) -> list[DeadLetter]:
        ids = {row.id for row in self._db.inbox.values() if row.run_id == run}
        if run in self._db.runs:
            ids |= {*self._db.runs[run].new.inbox}
        return [_letter(self._db.inbox[row]) for row in sorted(ids) if row in self._db.inbox]

    async def retry_dead_letters(self, ids: Collection[int], *, now: datetime) -> int:
        revived = [row for row in self._rows(ids) if row.is_unanswered]
        for row in revived:
            session = self._db.sessions[row.session]
            session.unanswered.remove(row)
            session.pending[row.id] = self._db.pending[row.id] = row
            row.run_id = row.finished_at = row.outcome = row.reason = row.dropped = None
            row.attempts = 0
            row.dismissed = False
        if revived:
            self._db.notify(Notice.INBOX)
        return len(revived)

    async def dismiss_dead_letters(self, ids: Collection[int], *, now: datetime) -> int:
        rows = [row for row in self._rows(ids) if not row.dismissed]
        seen = [row for row in rows if row.is_unanswered or _may_be_dropped(row)]
        for row in seen:
            if row.outcome is None:
                self._db.end_row(row, Outcome.CANCELLED, Reason.STOPPED, now)
            row.dismissed = True
        if seen:
            self._db.close_abandoned_drafts(now)
        return len(seen)

    def _rows(self, ids: Collection[int]) -> Iterable[InboxRecord]:
        return (self._db.inbox[row_id] for row_id in set(ids) if row_id in self._db.inbox)


def _is_version(message: InboundMessage, name: str) -> bool:
    own = message.external_id
    return own == name or (message.edits == name and own.startswith(f"{name}:"))


def _waits(row: InboxRecord) -> bool:
    return row.kind is InboxKind.MESSAGE and row.outcome is None and row.run_id is None


def _may_be_dropped(row: InboxRecord) -> bool:
    return _waits(row) and row.joined is None and row.dropped is None and not row.is_parked


def _is_letter(row: InboxRecord) -> bool:
    return row.outcome in sql_rules.LETTERS and not row.dismissed


def _is_dismissed(row: InboxRecord) -> bool:
    return row.dismissed


def _is_waiting(row: InboxRecord) -> bool:
    return row.outcome is None and row.run_id is None


def _is_asking(row: InboxRecord) -> bool:
    return _is_waiting(row) and _letter(row).row.asking_run is not None


def _is_running(row: InboxRecord) -> bool:
    return row.outcome is None and row.run_id is not None


def _letter(row: InboxRecord) -> DeadLetter:
    return DeadLetter(row.unanswered(), row.session, row.agent, row.attempts)


_KINDS = {
    IncomingState.FAILED: _is_letter,
    IncomingState.WAITING: _is_waiting,
    IncomingState.RUNNING: _is_running,
    IncomingState.DISMISSED: _is_dismissed,
}
