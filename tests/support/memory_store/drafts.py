"""Drafts: messages that show a reply while it is streamed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from goclaw_py.core.errors import RunNotStarted
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Target
from goclaw_py.records import Draft, OutboxState
from goclaw_py.store.text import storable
from tests.support.memory_store.tables import DraftRecord, MemoryPart


class MemoryDrafts(MemoryPart):
    """Implements ``DraftStore``."""

    async def open_draft(self, run_id: RunId, target: Target, *, now: datetime) -> None:
        run_id = storable(run_id)
        run = self._db.runs.get(run_id)
        if run is None or run.end is not None:
            raise RunNotStarted(f"run {run_id} never began, or has ended")
        if run_id not in self._db.drafts:
            rows = {row.id: row.message.message_id for row in self._db.rows_of({run_id})}
            after = next((rows[row] for row in sorted(rows) if rows[row]), None)
            inbox = frozenset(rows)
            draft = DraftRecord(run_id, storable(target), inbox, now, run_id, after)
            self._db.drafts[run_id] = draft

    async def draft_posted(self, run_id: RunId, external_id: str) -> bool:
        run_id, external_id = storable(run_id), storable(external_id)
        draft = self._db.drafts.get(run_id)
        if draft is not None:
            draft.external_id = external_id
            return True
        return external_id in self._drafts_after(run_id)

    def _drafts_after(self, run_id: RunId) -> set[str | None]:
        """Return the drafts of a run and of its successors, including completed ones."""
        first = self._db.runs.get(run_id)
        if first is None:
            return set()
        later = {
            run.id
            for run in (record.new for record in self._db.runs.values())
            if run.session == first.new.session
            and (run.started_at, run.id) >= (first.new.started_at, first.new.id)
        }
        open_ones = {one.external_id for one in self._db.drafts.values() if one.run_id in later}
        said = (row.message for row in self._db.outbox.values())
        return open_ones | {one.draft for one in said if one.run_id in later and one.draft}

    async def own_messages(self, chat: Target, *, everywhere: bool = False) -> frozenset[str]:
        is_there = _near(chat, everywhere=everywhere)
        said = [(row.message.target, row.external_id) for row in self._db.outbox.values()]
        said += [(one.target, one.external_id) for one in self._db.drafts.values()]
        if everywhere:
            heard = (row.message for row in self._db.inbox.values())
            said += [(message.target, message.message_id) for message in heard]
        return frozenset(name for at, name in said if name and is_there(at))

    async def newest_before(
        self, chat: Target, at: datetime, *, everywhere: bool = False
    ) -> frozenset[str]:
        is_there = _near(chat, everywhere=everywhere)
        said = [
            row.external_id
            for row in self._db.outbox.values()
            if row.state is OutboxState.SENT and row.finished_at is not None
            if row.finished_at <= at and is_there(row.message.target)
        ]
        heard = [
            row.message.message_id
            for row in self._db.inbox.values()
            if row.received_at <= at and is_there(row.message.target)
        ]
        newest = [name for name in said if name is not None][-20:]
        return frozenset(newest + [name for name in heard if name is not None][-20:])

    async def drafts(self) -> list[Draft]:
        found = sorted(self._db.drafts.values(), key=lambda draft: (draft.opened_at, draft.run_id))
        return [Draft(draft.run_id, draft.target, draft.external_id) for draft in found]


def _near(chat: Target, *, everywhere: bool) -> Callable[[Target], bool]:
    """Return whether a target is in this chat, or ``everywhere`` in its account."""

    def place(target: Target) -> tuple[str, ...]:
        account = target.channel, target.account
        return account if everywhere else (*account, target.chat)

    wanted = storable(place(chat))
    return lambda target: place(target) == wanted
