"""Questions of runs to people about their tool calls."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

from goclaw_py.core.approvals import Approval, Decision, ToolGrant, about_approval
from goclaw_py.core.ids import AgentName, ApprovalId, OccurrenceId, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, stop_reason
from goclaw_py.core.pagination import FOUND
from goclaw_py.core.run_steps import DecisionStep
from goclaw_py.records import WAITING_APPROVALS, ApprovalQuery, Notice, RunEnd
from goclaw_py.schedule.jobs.execution_models import Why
from goclaw_py.store import rules
from goclaw_py.store.text import storable
from tests.support.memory_store.access_requests import show
from tests.support.memory_store.approval_tables import ApprovalRecord
from tests.support.memory_store.pages import newest
from tests.support.memory_store.tables import InboxRecord, MemoryDatabase, MemoryPart


def ask(db: MemoryDatabase, end: RunEnd) -> None:
    """Store the questions of a run that ends; its messages or job wait for the answers."""
    run, root = db.runs[end.id].new, db.runs[end.id].new
    while root.task is None and root.parent is not None and root.parent in db.runs:
        root = db.runs[root.parent].new
    for one in end.approvals:
        approval = Approval(
            one.id,
            run.id,
            root.payer or root.session,
            run.agent,
            one.request,
            one.target,
            end.finished_at,
            one.expires_at,
            context=storable(one.context),
        )
        db.approvals.questions.setdefault(one.id, ApprovalRecord(approval, root.id))
    is_answered = db.approvals.is_answered(end.id)
    if not is_answered:
        _park_rows(db, end.id)
    row = None if run.occurrence is None else db.cron.logs.get(run.occurrence)
    if row is not None and row.node == db.runs[run.id].node:
        db.cron.wait(row, run.session, None if is_answered else Why.APPROVAL)
        if is_answered:
            db.notify(Notice.CRON)


async def stop_questions(
    db: MemoryDatabase, occurrence: OccurrenceId, now: datetime | None
) -> None:
    """Answer the questions of an occurrence that has ended; without ``now`` as of the questions."""
    runs = db.cron.runs.get(occurrence, ())
    for record in tuple(db.approvals.questions.values()):
        if record.root in runs and record.approval.decision is None:
            await _answer(db, record, Decision.STOPPED, "", now or record.approval.asked_at)


async def _answer(
    db: MemoryDatabase, record: ApprovalRecord, decision: Decision, by: str, now: datetime
) -> Approval:
    """Store an answer, and show it in the messages that asked."""
    record.approval = replace(record.approval, decision=decision, decided_at=now, decided_by=by)
    about = about_approval(record.approval.id)
    edited = partial(rules.answered, decision=decision, by=by)
    await show(db, about, edited, now)
    return record.approval


class MemoryApprovals(MemoryPart):
    """Implements ``ApprovalStore``."""

    async def approval(self, approval_id: ApprovalId) -> Approval | None:
        record = self._db.approvals.questions.get(approval_id)
        return None if record is None else record.approval

    async def find_approvals(self, prefix: str) -> list[Approval]:
        prefix = storable(prefix)
        found = sorted(one for one in self._db.approvals.questions if one.startswith(prefix))
        # The whole id is the first of them.
        most = 1 if found[:1] == [prefix] else FOUND
        return [self._db.approvals.questions[one].approval for one in found[:most]]

    async def approvals(self, query: ApprovalQuery = WAITING_APPROVALS) -> list[Approval]:
        found = (
            record.approval
            for record in self._db.approvals.questions.values()
            if (
                query.session in (None, record.approval.session)
                or (query.asked_in is not None and query.asked_in == record.approval.target)
            )
            and not (query.waiting and record.approval.decision)
        )
        return newest(found, query.limit, query.before)

    async def decide_approval(
        self, approval_id: ApprovalId, decision: Decision, *, by: str, now: datetime
    ) -> Approval | None:
        record = self._db.approvals.questions.get(approval_id)
        if record is None or record.approval.decision is not None:
            return None
        if (record.approval.expires_at <= now) != (decision is Decision.EXPIRED):
            return None
        done = await _answer(self._db, record, decision, storable(by), now)
        step = DecisionStep(done.request.call_id, decision)
        self._db.runs[done.run_id].steps.append(step)
        if decision.grants:
            session = None if decision is Decision.ALWAYS else done.session
            grant = ToolGrant(done.agent, done.request.tool, session, now, by)
            self._db.approvals.grants.setdefault((done.agent, session, done.request.tool), grant)
        if self._db.approvals.is_answered(record.root):
            if _unpark_rows(self._db, record.root):
                self._db.notify(Notice.INBOX)
            elif self._db.runs[record.root].new.task is not None:
                self._db.notify(Notice.SUBAGENTS)
            if self._db.cron.answered(self._db.runs[record.root].new.occurrence):
                self._db.notify(Notice.CRON)
        return done

    async def expire_approvals(self, *, now: datetime) -> int:
        over = [
            record.approval.id
            for record in self._db.approvals.questions.values()
            if record.approval.decision is None and record.approval.expires_at <= now
        ]
        for approval_id in over:
            await self.decide_approval(approval_id, Decision.EXPIRED, by="", now=now)
        return len(over)

    async def stop_approvals(
        self, session: SessionKey, *, everything: bool, sender: str | None, now: datetime
    ) -> int:
        waiting = [
            record
            for record in self._db.approvals.questions.values()
            if record.approval.session == session
            and record.approval.decision is None
            and self._db.runs[record.root].new.occurrence is None
            and sender in (None, self._db.runs[record.root].asked.sender)
        ]
        waiting.sort(key=lambda record: (record.approval.asked_at, record.root))
        turns = list(dict.fromkeys(record.root for record in waiting))
        turns = turns if everything else turns[:1]
        for record in waiting:
            if record.root in turns:
                await _answer(self._db, record, Decision.STOPPED, "", now)
        stopped = [(run, row) for run in turns for row in _unpark_rows(self._db, run)]
        for run, row in stopped:
            row.run_id = run
            self._db.end_row(row, Outcome.CANCELLED, stop_reason(everything=everything), now)
        if turns:
            said = [
                rules.StoppedMessage(run, row.received_at, row.message.text) for run, row in stopped
            ]
            owner = self._db.sessions[session]
            words = {
                one.approval.run_id: one.approval.context.said
                for one in waiting
                if one.approval.run_id == one.root
            }
            self._db.remember(owner, owner.epoch, rules.stopped_while_waiting(said, words, now))
            self._db.close_abandoned_drafts(now)
        return len(turns)

    async def is_granted(self, agent: AgentName, session: SessionKey, tool: str) -> bool:
        return any((agent, key, tool) in self._db.approvals.grants for key in (None, session))

    async def grants(self) -> list[ToolGrant]:
        grants = self._db.approvals.grants.values()
        return sorted(grants, key=lambda one: (one.agent, one.tool, one.session or ""))

    async def revoke_grant(self, agent: AgentName, tool: str, session: SessionKey | None) -> bool:
        return self._db.approvals.grants.pop((agent, session, tool), None) is not None


def _park_rows(db: MemoryDatabase, run: RunId) -> None:
    """Let the messages of a run, with those that it has taken in, wait for answers."""
    rows = db.rows_of({run})
    own = {row.id for row in rows}
    taken = [row for row in db.pending.values() if row.joined in own]
    db.free_rows({run}, attempts_back=1)
    for row in (*rows, *taken):
        row.last_run = run
        del db.pending[row.id], db.sessions[row.session].pending[row.id]
        row.is_parked = True


def _unpark_rows(db: MemoryDatabase, run: RunId) -> list[InboxRecord]:
    """Make the messages of a run pending again, in order, and return them."""
    rows = [row for row in db.inbox.values() if row.is_parked and row.last_run == run]
    for row in rows:
        row.is_parked = False
        db.pending[row.id] = db.sessions[row.session].pending[row.id] = row
    return rows
