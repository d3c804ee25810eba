"""Runs, sessions and their history."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.errors import Fenced, NeverBegan
from goclaw_py.core.ids import NodeId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.requests import Mode
from goclaw_py.ports.agent import HistoryEntry
from goclaw_py.ports.store import Begun, NewRun, Run, RunEnd, Session, StoredEntry
from goclaw_py.store.memory.tables import Part, RunRecord, SessionRecord
from goclaw_py.store.text import storable


class Runs(Part):
    """Implements ``RunStore``."""

    async def begin_run(self, run: NewRun, *, node: NodeId) -> Begun:
        """Beginning the same run again counts no second attempt.

        A run of a session whose chat was given another id begins in the session of the new one.
        """
        run = storable(run)
        session = self._own_session(run, node)
        run = replace(run, session=session.key)
        known = self._db.runs.get(run.id)
        if known is None:
            self._db.runs[run.id] = RunRecord(run, node, session.fence, session.epoch)
            session.active.add(run.id)
            session.last_active_at = max(session.last_active_at, run.started_at)
            for row_id in set(run.inbox) & self._db.pending.keys():
                self._db.pending[row_id].run_id = run.id
                self._db.pending[row_id].attempts += 1
            unsure = self._take_draft(run)
        elif known.node != node or known.end is not None:
            raise Fenced(f"run {run.id} is not this node's any more")
        else:
            own = self._db.drafts.get(run.id)
            unsure = own is not None and own.external_id is None
        draft = self._db.drafts.get(run.id)
        return Begun(
            tuple(stored.entry for stored in session.current()),
            draft=None if draft is None else draft.external_id,
            unsure=unsure,
        )

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """The history goes to the epoch in which the run began, even after a reset."""
        end = storable(end)
        run = self._db.runs.get(end.id)
        if run is None:
            raise NeverBegan(f"run {end.id} never began")
        if run.end is not None and run.end.outcome is Outcome.LOST:
            raise Fenced(f"run {end.id} was given up: {run.end.error or 'its node was dead'}")
        if run.end is not None and run.node == node and node in self._db.nodes:
            return
        session = self._db.sessions[run.new.session]
        if (run.node, session.owner, session.fence) != (node, node, run.fence):
            raise Fenced(f"session {session.key} has changed hands since {end.id} began")
        self._db.end_run(run, end)
        if end.outcome is Outcome.INTERRUPTED:
            self._db.free_rows({end.id}, attempts_back=1)
        else:
            self._db.hand_over(end.taken_in, run)
            for row in self._db.rows_of({end.id}):
                self._db.end_row(row, end.outcome, end.reason, end.finished_at)
        draft = self._db.drafts.get(end.id)
        finished = [message.draft for message in end.say if message.draft]
        if draft is not None and draft.external_id in finished:
            del self._db.drafts[end.id]
        written = (StoredEntry(entry, end.finished_at, end.id) for entry in end.history)
        self._db.remember(session, run.epoch, written)
        self._db.enqueue(end.say, session=session.key, now=end.finished_at)
        if draft is not None or end.taken_in:
            self._db.close_forsaken_drafts(end.finished_at)

    async def runs(
        self, *, limit: int = 50, session: SessionKey | None = None, active: bool = False
    ) -> list[Run]:
        """Looks at all of them."""
        session = storable(session)
        found = [
            run
            for run in self._db.runs.values()
            if (session is None or run.new.session == session) and not (active and run.end)
        ]
        found.sort(key=lambda run: (run.new.started_at, run.new.id), reverse=True)
        return [_run(run) for run in found[:limit]]

    async def find_run(self, prefix: str) -> list[Run]:
        """The prefix is compared character by character; nothing in it is a pattern."""
        prefix = storable(prefix)
        found = sorted(run_id for run_id in self._db.runs if run_id.startswith(prefix))
        return [_run(self._db.runs[run_id]) for run_id in found[:2]]

    async def sessions(self, *, limit: int = 50) -> list[Session]:
        """A message, a run and a reset are activity."""
        records = sorted(
            self._db.sessions.values(),
            key=lambda session: (session.last_active_at, session.key),
            reverse=True,
        )
        return [_session(record) for record in records[:limit]]

    async def session(self, key: SessionKey) -> Session | None:
        """None if nobody ever wrote or ran there."""
        record = self._db.sessions.get(storable(key))
        return None if record is None else _session(record)

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """Empty for a session that does not exist."""
        record = self._db.sessions.get(storable(key))
        entries = [] if record is None else record.current()
        return entries[max(0, len(entries) - limit) :]

    async def reset_session(self, key: SessionKey, *, now: datetime) -> None:
        """A session that does not exist has a fresh history already."""
        record = self._db.sessions.get(storable(key))
        if record is not None:
            record.epoch += 1
            record.last_active_at = max(record.last_active_at, now)

    async def choose_mode(self, key: SessionKey, mode: Mode | None) -> None:
        """Stays through a reset."""
        record = self._db.sessions.get(storable(key))
        if record is not None:
            record.mode = mode

    async def note(
        self, key: SessionKey, entry: HistoryEntry, *, rows: Collection[int], now: datetime
    ) -> None:
        """Without rows it is added in any case, if the session exists."""
        session = self._db.sessions.get(storable(key))
        ended = [self._db.pending[row] for row in set(rows) if row in self._db.pending]
        for row in ended:
            self._db.end_row(row, Outcome.COMPLETED, None, now)
        if session is not None and (ended or not rows):
            self._db.remember(session, session.epoch, [StoredEntry(storable(entry), now, None)])

    def _take_draft(self, run: NewRun) -> bool:
        """Give a run the draft that an earlier one for its messages left; whether one is unsure."""
        found = [draft for draft in self._db.drafts.values() if draft.inbox & set(run.inbox)]
        # Of several the newest whose id is known. Sorting twice: instants cannot be negated.
        found.sort(key=lambda draft: draft.run_id)
        found.sort(key=lambda draft: draft.opened_at, reverse=True)
        found.sort(key=lambda draft: draft.external_id is None)
        for draft in found:
            del self._db.drafts[draft.run_id]
        if found:
            taken = replace(found[0], run_id=run.id, inbox=frozenset(run.inbox))
            self._db.drafts[run.id] = taken
        # The others wait for no message any more, so they are closed as forsaken.
        left_over = [draft for draft in found[1:] if draft.external_id is not None]
        for draft in left_over:
            self._db.drafts[draft.run_id] = replace(draft, inbox=frozenset())
        if left_over:
            self._db.close_forsaken_drafts(run.started_at)
        return any(draft.external_id is None for draft in found)

    def _own_session(self, run: NewRun, node: NodeId) -> SessionRecord:
        """The run's session, claimed for the node. Raises ``Fenced``; then it is not made."""
        key = run.session
        if key not in self._db.sessions:
            key = self._db.moved.get(key, key)
        session = self._db.sessions.get(key) or SessionRecord(
            key, run.agent, run.target, run.started_at, run.started_at
        )
        if session.owner != node and not self._db.claim(session, node, run.started_at):
            owner = session.owner or "nobody"
            raise Fenced(f"session {key} belongs to {owner}, not {node}")
        return self._db.sessions.setdefault(key, session)


def _run(record: RunRecord) -> Run:
    new, end = record.new, record.end
    begun = Run(
        id=new.id,
        session=new.session,
        agent=new.agent,
        trigger=new.trigger,
        lane=new.lane,
        node=record.node,
        started_at=new.started_at,
        finished_at=None,
        outcome=None,
        reason=None,
        error=None,
        usage=None,
        model=new.model,
        parent=new.parent,
    )
    if end is None:
        return begun
    return replace(
        begun,
        finished_at=end.finished_at,
        outcome=end.outcome,
        reason=end.reason,
        error=end.error,
        usage=end.usage,
    )


def _session(record: SessionRecord) -> Session:
    return Session(
        key=record.key,
        agent=record.agent,
        target=record.target,
        created_at=record.created_at,
        last_active_at=record.last_active_at,
        owner=record.owner,
        fence=record.fence,
        waiting=len(record.pending),
        entries=len(record.current()),
    )
