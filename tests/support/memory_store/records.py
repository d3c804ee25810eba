"""Reading runs and sessions, for operators and budgets."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import fields, replace
from datetime import datetime

from goclaw_py.core.ids import AgentName, JobId, RunId, SessionKey
from goclaw_py.core.messages import Role
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.pagination import FOUND, Cursor
from goclaw_py.core.run_events import NO_USAGE, Usage
from goclaw_py.core.session_keys import announcement_id, first_run, job_of
from goclaw_py.records import (
    ALL_RUNS,
    MOST_RUNS_COUNTED,
    MOST_RUNS_ORDERED,
    MOST_RUNS_SEARCHED,
    NEWEST_RUNS,
    NEWEST_SESSIONS,
    PROMPT_CHARS,
    InterruptedSubagent,
    RunDensity,
    RunFilter,
    RunQuery,
    RunSpan,
    Session,
    SessionQuery,
    SessionState,
    StoredEntry,
    StoredRun,
    SubagentTask,
)
from goclaw_py.schedule.jobs.models import Program
from goclaw_py.store import job_reading
from goclaw_py.store.text import storable
from tests.support.memory_store.pages import newest
from tests.support.memory_store.tables import CUT, MemoryPart, RunRow, SessionRecord
from tests.support.run_filters import has


class MemoryRunRecords(MemoryPart):
    """Implements the reading methods of ``RunStore``."""

    async def runs(self, query: RunQuery = NEWEST_RUNS) -> list[StoredRun]:
        found = (run for run in self._queried(query) if not (query.active and run.outcome))
        if (order := query.order) is not None:
            newest_first = await self.runs(replace(query, order=None, before=None, limit=10**9))
            ended = [run for run in newest_first if run.outcome is not None][:MOST_RUNS_ORDERED]
            active = [run for run in newest_first if run.outcome is None]
            wanted = sorted([*ended, *active], key=lambda run: run.place_in(order), reverse=True)
            return wanted[: query.limit]
        if not query.search:
            return newest(found, query.limit, query.before)
        searched = newest(found, MOST_RUNS_SEARCHED, query.before)
        # Of bytes only A to Z have a small letter, as in the database.
        text = storable(query.search).encode().lower()
        return [
            one
            for one in searched
            if any(text in prompt.encode().lower() for prompt in self._prompts_of(one))
        ][: query.limit]

    async def run_prompts(self, runs: Collection[RunId]) -> dict[RunId, str]:
        stored = map(_run, self._db.runs.values())
        found = {run.id: self._prompts_of(run) or self._asked_of(run) for run in stored}
        return {run: found[run][0][:PROMPT_CHARS] for run in runs if found.get(run)}

    def _prompts_of(self, run: StoredRun) -> list[str]:
        """Return what a run was asked, as its session has it."""
        session = self._db.sessions.get(run.session)
        history = [] if session is None else session.history
        entries = (one.entry for one in sorted(history, key=lambda one: one.id))
        return [
            one.entry.text
            for one in entries
            if one.run_id == run.id and one.entry.role is Role.USER
        ]

    def _asked_of(self, run: StoredRun) -> list[str]:
        """Return what a run without history was asked, as its messages, job or task have it."""
        stored = self._db.runs[run.id].new
        if stored.inbox and stored.inbox[0] in self._db.inbox:
            return [self._db.inbox[stored.inbox[0]].message.text]
        row = self._db.cron.logs.get(stored.occurrence) if stored.occurrence else None
        if row is not None:
            payload = job_reading.read_job(row.definition).spec.payload
            return [] if isinstance(payload, Program) else [payload.text]
        return [stored.task.prompt] if stored.task else []

    async def run_density(
        self, since: datetime, until: datetime, *, parts: int, only: RunFilter = ALL_RUNS
    ) -> list[RunDensity]:
        bounds = [since + (until - since) * number / parts for number in range(parts + 1)]
        counts = Counter(
            (run.lane, bisect_right(bounds, run.started_at) - 1, run.outcome)
            for run in self._matching(only)
            if since <= run.started_at < until
        )
        return [RunDensity(*where, runs) for where, runs in counts.items()]

    async def run_counts(
        self, query: RunQuery = NEWEST_RUNS, *, most: int = MOST_RUNS_COUNTED
    ) -> dict[Outcome | None, int]:
        any_outcome = replace(query, only=replace(query.only, outcome=None))
        found = list(self._queried(any_outcome))
        ended = newest((run for run in found if run.outcome is not None), most, None)
        active = (run for run in found if run.outcome is None)
        return dict(Counter(run.outcome for run in (*ended, *active)))

    def _queried(self, query: RunQuery) -> Iterator[StoredRun]:
        session = storable(query.session)
        return (
            run
            for run in self._matching(query.only)
            if session in (None, run.session)
            and (query.since is None or run.started_at >= query.since)
        )

    def _matching(self, only: RunFilter) -> Iterator[StoredRun]:
        wanted = {one.name: storable(getattr(only, one.name)) for one in fields(only)}
        return (
            run
            for run in map(_run, self._db.runs.values())
            if all(has(run, name, value) for name, value in wanted.items())
        )

    async def runs_between(
        self,
        since: datetime,
        until: datetime,
        *,
        limit: int = 2000,
        only: RunFilter = ALL_RUNS,
        after: Cursor | None = None,
    ) -> list[RunSpan]:
        found = (
            _span(run)
            for run in self._matching(only)
            if run.started_at < until
            and (run.finished_at is None or max(run.started_at, run.finished_at) >= since)
        )
        later = (span for span in found if after is None or span.cursor > after)
        return sorted(later, key=lambda span: span.cursor)[:limit]

    async def run_history(self, run: RunId) -> list[StoredEntry]:
        run = storable(run)
        known = self._db.runs.get(run)
        session = None if known is None else self._db.sessions.get(known.new.session)
        found = [] if session is None else [s for s in session.history if s.entry.run_id == run]
        return [
            replace(one.entry, resets=max(one.epoch, -1 - one.epoch))
            for one in sorted(found, key=lambda one: one.id)
        ]

    async def find_run(self, prefix: str) -> list[StoredRun]:
        prefix = storable(prefix)
        found = sorted(run_id for run_id in self._db.runs if run_id.startswith(prefix))
        # The whole id is the first of them.
        most = 1 if prefix in self._db.runs else FOUND
        return [_run(self._db.runs[run_id]) for run_id in found[:most]]

    async def sessions(self, query: SessionQuery = NEWEST_SESSIONS) -> list[Session]:
        query = storable(query)
        text = query.search.lower()
        found = (
            one
            for one in self._db.sessions.values()
            if text in self._searched(one) and self._matches(one, query)
        )
        return newest(map(self._session, found), query.limit, query.before)

    def _searched(self, session: SessionRecord) -> str:
        """Return the text in which a session is searched."""
        words: list[str] = [session.key]
        if (target := session.target) is not None:
            seen, _ = self._db.names.get(target.whole_chat, (None, None))
            words += ["", ""] if seen is None else [seen.name, f"@{seen.username or ''}"]
            words += [self._db.topics[target].name] if target in self._db.topics else []
        if (job := self._db.cron.jobs.get(job_of(session.key) or JobId(""))) is not None:
            words += [job.spec.name, job.spec.slug]
        return "\n".join(words).lower()

    def _matches(self, session: SessionRecord, query: SessionQuery) -> bool:
        channel = None if session.target is None else session.target.channel
        match query.state:
            case SessionState.RUNNING:
                unfinished = bool(session.active)
            case SessionState.WAITING:
                unfinished = self._waiting(session) > 0
            case _:
                unfinished = True
        return (
            unfinished and query.agent in (None, session.agent) and query.channel in (None, channel)
        )

    def _session(self, record: SessionRecord) -> Session:
        return Session(
            key=record.key,
            agent=record.agent,
            target=record.target,
            created_at=record.created_at,
            last_active_at=record.last_active_at,
            owner=record.owner,
            fence=record.fence,
            waiting=self._waiting(record),
            running=sum(row.run_id is not None for row in record.pending.values()),
            entries=len(record.current()),
            summaries=record.summaries,
            pinned=record.pinned,
        )

    def _waiting(self, session: SessionRecord) -> int:
        """Count the messages that no run answers, with those that wait for a person."""
        rows = self._db.inbox.values()
        parked = [row for row in rows if row.is_parked and row.session == session.key]
        return sum(row.run_id is None for row in session.pending.values()) + len(parked)

    async def session(self, key: SessionKey) -> Session | None:
        record = self._db.sessions.get(storable(key))
        return None if record is None else self._session(record)

    async def history(
        self, key: SessionKey, *, limit: int = 200, whole: bool = False
    ) -> list[StoredEntry]:
        record = self._db.sessions.get(storable(key))
        entries = [] if record is None else record.history if whole else record.current()
        found = [replace(one.entry, resets=one.epoch) for one in entries if one.epoch >= 0]
        return found[max(0, len(found) - limit) :]

    async def spent(
        self,
        *,
        since: datetime,
        payer: SessionKey | None = None,
        agent: AgentName | None = None,
    ) -> Usage:
        key = None if payer is None else self._db.present_key(storable(payer))
        used = NO_USAGE
        # What a run uses that works is known to its own process.
        for run in (_run(one) for one in self._db.runs.values() if one.end is not None):
            counts = run.started_at >= since and agent in (None, run.agent)
            if counts and key in (None, run.payer) and run.usage is not None:
                used = used.plus(run.usage)
        return used

    async def interrupted_subagents(self, *, since: datetime) -> list[InterruptedSubagent]:
        found = [
            (record.end.finished_at, run_id, record)
            for run_id, record in self._db.runs.items()
            if record.end is not None
            and record.end.outcome in CUT
            and record.end.finished_at >= since
            and record.new.trigger is Trigger.SUBAGENT
            and record.new.task is not None
            and record is self._runs_in(record.new.session)[-1]
            and not self._db.approvals.holds(run_id)
            and not self._is_announced(record)
        ]
        last = [record for _, _, record in sorted(found, key=lambda one: one[:2])[:100]]
        return [self._interrupted(record, record.new.task) for record in last if record.new.task]

    def _interrupted(self, record: RunRow, task: SubagentTask) -> InterruptedSubagent:
        ends = [run.end for run in self._runs_in(record.new.session)]
        crashes = sum(end is not None and end.outcome is Outcome.LOST for end in ends)
        calls, _ = self._db.interrupted_work(record.new.id)
        return InterruptedSubagent(_run(record), task, crashes, calls)

    async def spawned(self, call_key: str) -> RunId | None:
        runs = (record.new for record in self._db.runs.values())
        found = (run.id for run in runs if run.call_key == call_key and run.task is not None)
        return next(found, None)

    def _runs_in(self, session: SessionKey) -> list[RunRow]:
        """Return the runs of a session, the oldest first."""
        found = (record for record in self._db.runs.values() if record.new.session == session)
        return sorted(found, key=lambda record: record.new.id)

    def _is_announced(self, run: RunRow) -> bool:
        """Return whether the result of a subagent was announced in its chat."""
        target = run.new.target
        name = announcement_id(first_run(run.new.session))
        return target is None or (target.channel, target.account, name) in self._db.known


def _run(record: RunRow) -> StoredRun:
    new, end = record.new, record.end
    begun = StoredRun(
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
        payer=new.payer or new.session,
        submitted_at=new.submitted_at or new.started_at,
        target=new.target,
        occurrence=new.occurrence,
        sender=record.asked.sender,
        follows=record.follows,
    )
    if end is None:
        known = record.known
        return replace(begun, usage=known.usage, model=known.model or new.model, tools=known.tools)
    return replace(
        begun,
        finished_at=end.finished_at,
        outcome=end.outcome,
        reason=end.reason,
        error=end.error,
        usage=end.usage,
        model=end.model or new.model,
        first_text_at=end.first_text_at,
        tools=end.tools,
        notes=end.notes,
    )


def _span(run: StoredRun) -> RunSpan:
    return RunSpan(
        id=run.id,
        session=run.session,
        agent=run.agent,
        lane=run.lane,
        trigger=run.trigger,
        outcome=run.outcome,
        parent=run.parent,
        submitted_at=run.submitted_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        cost_usd=None if run.usage is None else run.usage.cost_usd,
    )
