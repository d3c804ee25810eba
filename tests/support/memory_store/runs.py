"""Runs, sessions and their history."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.approvals import Decision
from goclaw_py.core.errors import Fenced, LeaseExpired, RunNotStarted
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, InboundMessage, Role
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_steps import NewMessagesStep
from goclaw_py.core.session_keys import run_of_announcement
from goclaw_py.records import (
    InboxKind,
    NewRun,
    RunEnd,
    RunSoFar,
    RunStartResult,
    StoredEntry,
    Summary,
)
from goclaw_py.scheduler.models import Mode
from goclaw_py.store import rules
from goclaw_py.store.text import storable
from tests.support.memory_store import sql_rules
from tests.support.memory_store.approvals import ask, stop_questions
from tests.support.memory_store.claims import check_holder, end_heartbeat_run, end_occurrence
from tests.support.memory_store.tables import CUT, MemoryPart, RunRow, SessionRecord


class MemoryRuns(MemoryPart):
    """Implements ``RunStore``, except the methods of ``MemoryRunRecords``."""

    async def begin_run(self, run: NewRun, *, node: NodeId) -> RunStartResult:
        run = storable(run)
        is_new = run.id not in self._db.runs
        if is_new and not (self._has_time(run, node) and self._may_continue(run)):
            raise Fenced(f"run {run.id} is not this node's any more")
        ended = frozenset(row for row in run.inbox if self._has_ended(row, run.id))
        if is_new and run.inbox and ended.issuperset(run.inbox):
            raise Fenced(f"all that run {run.id} would answer has ended")
        session = self._own_session(run, node)
        payer = None if run.payer is None else self._db.present_key(run.payer)
        run = replace(run, session=session.key, payer=payer)
        known = self._db.runs.get(run.id)
        if known is None:
            self._db.runs[run.id] = RunRow(
                run, node, session.fence, session.epoch, self._asked(run), follows=self._last(run)
            )
            if run.occurrence is not None:
                self._db.cron.runs.setdefault(run.occurrence, []).append(run.id)
            self._db.heartbeat_runs.began(run)
            session.active.add(run.id)
            session.last_active_at = max(session.last_active_at, run.started_at)
            for row_id in (set(run.inbox) & self._db.pending.keys()) - ended:
                self._db.pending[row_id].run_id = self._db.pending[row_id].last_run = run.id
                self._db.pending[row_id].attempts += 1
            for dropped in run.dropped:
                passed = self._db.pending.get(dropped.row)
                if passed is not None and passed.run_id is None:
                    passed.dropped = dropped
            self._assign_draft(run)
        elif known.node != node or known.end is not None:
            raise Fenced(f"run {run.id} is not this node's any more")
        draft = self._db.drafts.get(run.id)
        follows = self._db.runs[run.id].follows
        if any(
            one.root == follows and one.approval.decision is Decision.STOPPED
            for one in self._db.approvals.questions.values()
        ):
            follows = None
        calls, used = self._db.interrupted_work(follows)
        read = [one for one in session.current() if one.id > session.summarized_upto]
        return RunStartResult(
            tuple(one.entry.entry for one in read),
            draft=None if draft is None else draft.external_id,
            lost=None if draft is None else draft.lost,
            places=tuple(one.id for one in read),
            summary=session.summary,
            pinned=session.pinned,
            ended=ended,
            cut_calls=calls,
            cut_usage=used,
            steps=tuple(step for one in self._db.continued(follows) for step in one.steps),
            is_restarted=self._is_restarted(follows),
        )

    def _is_restarted(self, run: RunId | None) -> bool:
        known = None if run is None else self._db.runs.get(run)
        end = None if known is None else known.end
        return end is not None and rules.is_restarted(end.outcome, end.reason)

    def _last(self, run: NewRun) -> RunId | None:
        """Return the previous run for the same messages, occurrence or heartbeat run."""
        rows = [self._db.inbox[row] for row in run.inbox if row in self._db.inbox]
        known = [row.last_run for row in rows if row.last_run is not None]
        if not known and run.occurrence is not None:
            known = self._db.cron.runs.get(run.occurrence, [])
        if not known and run.heartbeat_run is not None:
            known = self._db.heartbeat_runs.runs.get(run.heartbeat_run, [])
        if not known and run.call_key:
            runs = self._db.runs.values()
            known = [each.new.id for each in runs if each.new.call_key == run.call_key]
        if not known and run.task is not None:
            known = [
                run_id for run_id, each in self._db.runs.items() if each.new.session == run.session
            ]
        return max(known, default=None)

    def _may_continue(self, run: NewRun) -> bool:
        """Return whether a run is none of a background subagent that is running or has ended."""
        if run.task is None:
            return True
        ends = [one.end for one in self._db.runs.values() if one.new.session == run.session]
        return all(end is not None and end.outcome in CUT for end in ends)

    async def note_run(self, run: RunId, known: RunSoFar, *, node: NodeId) -> None:
        record = self._db.runs.get(storable(run))
        if record is None or record.node != node or record.end is not None:
            raise Fenced(f"run {run} is not this node's any more")
        before, known = record.known, storable(known)
        record.known = RunSoFar(
            known.tools, known.usage or before.usage, known.model or before.model
        )
        record.steps += known.steps[max(0, len(record.steps) - known.seq) :]
        own = [row.id for row in self._db.rows_of({record.new.id})]
        for step in known.steps:
            for row_id in step.rows if isinstance(step, NewMessagesStep) else ():
                taken = self._db.pending.get(row_id)
                if taken is not None and taken.run_id is None:
                    taken.joined = min(own, default=None)

    def _has_ended(self, row_id: int, run: RunId) -> bool:
        """Return whether a row had ended, or was stopped or dropped, before this run started."""
        row = self._db.inbox.get(row_id)
        if row is None or row.run_id == run:
            return row is None
        return row_id not in self._db.pending or row.dropped is not None

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        end = storable(end)
        run = self._run_to_end(end, node)
        if run is None:
            return
        session = self._db.sessions[run.new.session]
        if end.summary is not None and run.epoch == session.epoch:
            _summarize(session, end.summary)
        self._db.end_run(run, end)
        # After the run, since its usage counts. Only who ends an occurrence speaks of it.
        if await self._has_ended_before(end):
            end = replace(end, say=())
        if end.outcome is Outcome.INTERRUPTED:
            if end.reason is Reason.APPROVAL:
                ask(self._db, end)
            self._db.free_rows({end.id}, attempts_back=1)
        else:
            self._assign_rows(end.taken_in, run)
            for row in self._db.rows_of({end.id}):
                self._db.end_row(row, end.outcome, end.reason, end.finished_at)
        draft = self._db.drafts.get(end.id)
        finished = [None, *(message.draft for message in end.say)]
        runs_again = end.outcome is Outcome.INTERRUPTED and end.reason is not Reason.APPROVAL
        waits = runs_again and bool(draft and self._db.is_wanted(draft))
        if draft is not None and draft.external_id in finished and not waits:
            # Of one without id the run itself knows best whether it was posted.
            del self._db.drafts[end.id]
        asked_at = end.asked_at or run.new.submitted_at or run.new.started_at
        written = (
            StoredEntry(one, asked_at if one.role is Role.USER else end.finished_at, end.id)
            for one in end.history
        )
        self._db.remember(session, run.epoch, written)
        said = rules.marked(
            end.say, occurrence=run.new.occurrence, heartbeat_run=run.new.heartbeat_run
        )
        self._db.enqueue(said, session=session.key, now=end.finished_at)
        if draft is not None or end.taken_in:
            self._db.close_abandoned_drafts(end.finished_at)

    async def _has_ended_before(self, end: RunEnd) -> bool:
        """End what a run worked for; return whether that had ended before."""
        before = end.heartbeat_run is not None and not end_heartbeat_run(
            self._db, end.heartbeat_run
        )
        if end.occurrence is not None:
            before |= not end_occurrence(self._db, end.occurrence)
            await stop_questions(self._db, end.occurrence.id, end.finished_at)
        return before

    async def reset_session(self, key: SessionKey, *, now: datetime) -> None:
        record = self._db.sessions.get(storable(key))
        if record is not None:
            record.epoch += 1
            record.last_active_at = max(record.last_active_at, now)
            record.summary, record.summarized_upto, record.summaries = "", 0, 0
            record.pinned = ()
            for grant in [one for one in self._db.approvals.grants if one[1] == record.key]:
                del self._db.approvals.grants[grant]
        self._db.move_unmentioned(storable(key), None)

    async def pin(self, key: SessionKey, pinned: Collection[str], *, run: RunId) -> bool:
        key, begun = storable(key), self._db.runs.get(storable(run))
        if begun is None or begun.end is not None:
            return False
        session = self._db.sessions[begun.new.session]
        if begun.epoch != session.epoch or session.key not in (key, self._db.moved.get(key)):
            return False
        session.pinned = storable(tuple(pinned))
        return True

    async def choose_mode(self, key: SessionKey, mode: Mode | None) -> None:
        record = self._db.sessions.get(storable(key))
        if record is not None:
            record.mode = mode

    async def note(
        self, key: SessionKey, entry: HistoryEntry, *, rows: Collection[int], now: datetime
    ) -> None:
        session = self._db.sessions.get(storable(key))
        ended = [self._db.pending[row] for row in set(rows) if row in self._db.pending]
        for row in ended:
            self._db.end_row(row, Outcome.COMPLETED, None, now)
        if session is not None and (ended or not rows):
            self._db.remember(session, session.epoch, [StoredEntry(storable(entry), now, None)])

    def _assign_rows(self, rows: Collection[int], run: RunRow) -> None:
        """Assign pending rows without a run to a run."""
        pending = self._db.pending
        free = [row for row in rows if row in pending and pending[row].run_id is None]
        for row in free:
            pending[row].run_id = run.new.id
        run.new = replace(run.new, inbox=(*run.new.inbox, *free))

    def _run_to_end(self, end: RunEnd, node: NodeId) -> RunRow | None:
        """Return the run to end; None if this node has ended it.

        Raises ``RunNotStarted`` and ``Fenced``.
        """
        run = self._db.runs.get(end.id)
        if run is None or run.new.session not in self._db.sessions:
            raise RunNotStarted(f"run {end.id} never began")
        if run.end is not None and run.end.outcome is Outcome.LOST is not end.outcome:
            raise Fenced(f"run {end.id} was given up: {run.end.error or 'its node was dead'}")
        if run.end is not None and run.node == node and node in self._db.nodes:
            return None
        session = self._db.sessions[run.new.session]
        if (run.node, session.owner, session.fence) != (node, node, run.fence):
            raise Fenced(f"session {session.key} has changed hands since {end.id} began")
        if end.occurrence is not None:
            check_holder("occurrence", self._db.cron.logs.get(end.occurrence.id), node)
        if end.heartbeat_run is not None:
            check_holder(
                "heartbeat_run", self._db.heartbeat_runs.rows.get(end.heartbeat_run.id), node
            )
        return run

    def _asked(self, run: NewRun) -> sql_rules.RunOrigin:
        """Return the person and the job of a run, from its parent where it has none itself."""
        above = self._db.runs.get(run.parent) if run.parent is not None else None
        row = self._db.inbox.get(run.inbox[0]) if run.inbox else None
        sender = None if row is None else self._sender(row.message)
        log = None if run.occurrence is None else self._db.cron.logs.get(run.occurrence)
        inherited = sql_rules.NOBODY if above is None else above.asked
        return sql_rules.RunOrigin(
            inherited.sender if sender is None else sender,
            inherited.job if log is None else log.job,
        )

    def _sender(self, message: InboundMessage) -> str | None:
        """Return the sender of a message; for a subagent's result, the sender of its task."""
        if message.source != "subagent":
            return sql_rules.sender_of(message)
        subagent = self._db.runs.get(run_of_announcement(message.external_id))
        return None if subagent is None else subagent.asked.sender

    def _has_time(self, run: NewRun, node: NodeId) -> bool:
        """Return whether the occurrence or heartbeat run of a run is claimed by this node."""
        if run.heartbeat_run is not None:
            heartbeat_run = self._db.heartbeat_runs.rows.get(run.heartbeat_run)
            if heartbeat_run is None or heartbeat_run.node != node:
                return False
        if run.occurrence is None:
            return True
        row = self._db.cron.logs.get(run.occurrence)
        return row is not None and row.node == node

    def _assign_draft(self, run: NewRun) -> None:
        """Give a run the draft of an earlier run for its messages."""
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
        # The others wait for no message any more, so they are closed as abandoned.
        for draft in found[1:]:
            self._db.drafts[draft.run_id] = replace(draft, inbox=frozenset())
        if found[1:]:
            self._db.close_abandoned_drafts(run.started_at)

    def _own_session(self, run: NewRun, node: NodeId) -> SessionRecord:
        """Return the run's session, claimed for the node.

        Raises ``Fenced`` or ``LeaseExpired``; then a new session is not stored.
        """
        key = self._db.present_key(run.session)
        session = self._db.sessions.get(key) or SessionRecord(
            key, run.agent, run.target, run.started_at, run.started_at
        )
        # Who took its messages up owned the session then; another node has had it since.
        is_late = not self._is_next(session, run)
        if session.owner != node and (is_late or not self._db.claim(session, node, run.started_at)):
            is_known = node in self._db.nodes  # else it was declared dead
            if is_known and not is_late and not self._db.is_live(node, run.started_at):
                raise LeaseExpired(f"the lease of node {node} has ended")
            owner = session.owner or "nobody"
            raise Fenced(f"session {key} belongs to {owner}, not {node}")
        return self._db.sessions.setdefault(key, session)

    def _is_next(self, session: SessionRecord, run: NewRun) -> bool:
        """Return whether the rows of a run are pending and no older row waits."""
        if not run.inbox:
            return True
        older = (
            row.id
            for row in session.pending.values()
            if row.kind is InboxKind.MESSAGE and not row.dropped and row.id < max(run.inbox)
        )
        return self._db.pending.keys() >= set(run.inbox) >= set(older)


def _summarize(session: SessionRecord, summary: Summary) -> None:
    """Store a summary, unless the present one covers as many entries."""
    places = [record.id for record in session.current()]
    if summary.upto in places and summary.upto > session.summarized_upto:
        session.summary, session.summarized_upto = summary.text, summary.upto
        session.summaries += 1
