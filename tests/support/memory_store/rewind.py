"""Steps of runs, undo and forks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, Target, external_id
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import LastTurn, NameKind, Notice, StoredStep, ToolCall
from goclaw_py.records.rewind import NO_MESSAGES, CommandAnswer
from goclaw_py.store.text import storable
from tests.support.memory_store.tables import (
    HistoryRecord,
    InboxRecord,
    MemoryPart,
    RunRow,
    SessionRecord,
)
from tests.support.memory_store.usage import counted_messages


class MemoryRewind(MemoryPart):
    """Implements ``RewindStore``."""

    async def run_steps(self, run: RunId) -> tuple[StoredStep, ...]:
        record = self._db.runs.get(storable(run))
        found = () if record is None else record.steps
        return tuple(StoredStep(run, number, step) for number, step in enumerate(found, 1))

    async def last_turn(self, key: SessionKey) -> LastTurn | None:
        session = self._db.sessions.get(storable(key))
        turn = [] if session is None else _last_turn(session)
        if session is None or not turn:
            return None
        first = turn[0]
        run = first.entry.run_id
        assert run is not None
        calls: tuple[ToolCall, ...] = ()
        if (record := self._db.runs.get(run)) is not None:
            calls, _ = self._db.interrupted_work(record.follows)
            calls += record.known.tools if record.end is None else record.end.tools
        text = first.entry.entry.text
        return LastTurn(run, text, calls, first.id <= session.summarized_upto)

    async def undo_turn(
        self,
        key: SessionKey,
        run: RunId,
        *,
        answer: CommandAnswer,
        again: Mapping[int, InboundMessage] = NO_MESSAGES,
        now: datetime,
        node: NodeId,
    ) -> bool:
        session = self._db.sessions.get(storable(key))
        if session is None or session.owner != node or session.active:
            return False
        turn = _last_turn(session)
        if answer.row not in self._db.pending or not turn or turn[0].entry.run_id != run:
            return False
        if turn[0].id <= session.summarized_upto:
            return False
        session.history = [
            replace(one, epoch=-1 - one.epoch, undone_at=now) if one in turn else one
            for one in session.history
        ]
        self._db.end_row(self._db.pending[answer.row], Outcome.COMPLETED, None, now)
        self._db.enqueue([storable(one) for one in answer.say], session=session.key, now=now)
        for row_id, message in again.items():
            self._answer_again(session, row_id, message, run)
        if again:
            self._db.notify(Notice.INBOX)
        return True

    def _answer_again(
        self, session: SessionRecord, row_id: int, message: InboundMessage, run: RunId
    ) -> None:
        row = self._db.inbox.get(row_id)
        if row is None or row.session != session.key or row.id in self._db.pending:
            return
        if row.is_unanswered:
            session.unanswered.remove(row)
        session.pending[row.id] = self._db.pending[row.id] = row
        row.run_id = row.finished_at = row.outcome = row.reason = row.dropped = row.joined = None
        row.attempts, row.dismissed, row.last_run = 0, False, run
        row.message = row.message.amended_by(storable(message))

    async def fork_session(
        self,
        key: SessionKey,
        new: SessionKey,
        target: Target,
        *,
        run: RunId | None = None,
        now: datetime,
    ) -> int:
        session = self._db.sessions.get(key)
        if session is None:
            return 0
        record = None if run is None else self._db.runs.get(run)
        copied, is_present = session.current(), True
        if record is not None and record.new.session == key:  # its chat may have another id now
            copied = self._read_by(session, record, with_own=True)
            is_present = record.epoch == session.epoch
        fork = SessionRecord(new, session.agent, target, now, now)
        self._db.sessions[new] = fork
        self._db.remember(fork, 0, [one.entry for one in copied])
        fork.pinned = session.pinned if is_present else ()
        if session.summarized_upto in [one.id for one in copied]:
            summarized = sum(one.id <= session.summarized_upto for one in copied)
            fork.summary, fork.summaries = session.summary, session.summaries
            fork.summarized_upto = fork.history[summarized - 1].id
        return len(copied)

    async def delete_session(self, key: SessionKey) -> bool:
        session = self._db.sessions.get(storable(key))
        if session is None:
            return True
        received = [row for row in self._db.inbox.values() if row.session == session.key]
        if session.active or any(row.outcome is None for row in received):
            return False
        del self._db.sessions[session.key]
        self._delete_rest(session, received)
        for run in self._db.runs.values():
            if run.new.session == session.key and run.end is not None:
                run.steps.clear()
                run.known = replace(run.known, tools=(), steps=())
                run.end = replace(run.end, tools=(), error=None, history=())
        return True

    def _delete_rest(self, session: SessionRecord, received: Sequence[InboxRecord]) -> None:
        """Delete title, grants, questions and messages of a deleted session."""
        db, key = self._db, session.key
        if session.target in db.names and db.names[session.target][0].kind is not NameKind.SEEN:
            del db.names[session.target]
        grants, questions = db.approvals.grants, db.approvals.questions
        db.approvals.grants = {one: grant for one, grant in grants.items() if one[1] != key}
        db.approvals.questions = {
            id_: asked for id_, asked in questions.items() if asked.approval.session != key
        }
        sent = [
            row
            for row in db.outbox.values()
            if row.session == key
            and row.finished_at is not None
            and not (row.message.occurrence or row.message.heartbeat_run)
        ]
        db.deleted_messages += counted_messages((*received, *sent))
        for row in received:
            del db.inbox[row.id]
            db.known.pop(external_id(row.message), None)
        for one in sent:
            del db.outbox[one.id]

    def _read_by(
        self, session: SessionRecord, run: RunRow, *, with_own: bool = False
    ) -> list[HistoryRecord]:
        """Return the entries that a run has read, in order."""

        def is_read(one: HistoryRecord) -> bool:
            if one.epoch not in (run.epoch, -1 - run.epoch):
                return False
            if one.entry.run_id == run.new.id:
                return with_own
            began = run.new.started_at
            writer = self._db.runs.get(one.entry.run_id or RunId(""))
            end = None if writer is None else writer.end
            stored_at = one.entry.at if end is None else end.finished_at
            return stored_at <= began and (one.undone_at is None or one.undone_at > began)

        return sorted(filter(is_read, session.history), key=lambda one: one.id)


def _last_turn(session: SessionRecord) -> list[HistoryRecord]:
    """Return the entries of the run that wrote last since the last reset."""
    current = [one for one in session.current() if one.entry.run_id is not None]
    return [one for one in current if one.entry.run_id == current[-1].entry.run_id]
