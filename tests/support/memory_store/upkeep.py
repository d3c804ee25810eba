"""Deletion of old rows."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.records import NameKind, OutboxState
from goclaw_py.records.upkeep import RetentionReport
from goclaw_py.store import upkeep_rules
from goclaw_py.store.upkeep_rules import (
    FINISHED_KEPT,
    REQUESTS_KEPT,
    RUNS_KEPT,
    SESSIONS_KEPT,
    UNMENTIONED_KEPT,
    UNSEEN_KEPT,
)
from tests.support.memory_store import sql_rules
from tests.support.memory_store.outbox import end_message
from tests.support.memory_store.tables import (
    InboxRecord,
    MemoryPart,
    OutboxRecord,
    RunRow,
    SessionRecord,
)
from tests.support.memory_store.usage import counted_messages


class MemoryUpkeep(MemoryPart):
    """Implements ``UpkeepStore``."""

    async def sweep_inbox(self, *, now: datetime, after: int = 0) -> RetentionReport:
        behind = (row for row in self._db.inbox.values() if row.id > after)
        looked = [row for row, _ in zip(behind, range(upkeep_rules.MOST_SWEPT), strict=False)]
        gone = [row for row in looked if self._is_over(row, now) and not self._is_needed(row)]
        self._db.deleted_messages += counted_messages(gone)
        for row in gone:
            self._forget_dead_letter(row)
        last = (looked[-1].id, looked[-1].received_at) if looked else None
        return upkeep_rules.swept(len(gone), len(looked), last, now)

    async def sweep_outbox(self, *, now: datetime, after: int = 0) -> RetentionReport:
        behind = (row for row in self._db.outbox.values() if row.id > after)
        looked = [row for row, _ in zip(behind, range(upkeep_rules.MOST_SWEPT), strict=False)]
        gone = [row for row in looked if _is_done_with(row, now) and not self._is_referred_to(row)]
        self._db.deleted_messages += counted_messages(gone)
        for row in gone:
            del self._db.outbox[row.id]
            self._db.heartbeat_runs.forget_message(row.id, row.message)
        last = (looked[-1].id, looked[-1].created_at) if looked else None
        return upkeep_rules.swept(len(gone), len(looked), last, now)

    async def end_unread(self, *, now: datetime) -> int:
        before, old = now - upkeep_rules.UNREAD_KEPT, list[OutboxRecord]()
        for (channel, _, _), line in self._db.unsent.items():
            if channel in upkeep_rules.READ_LATER:
                unread = [row for row in line.values() if self._is_in_history(row)]
                newest = unread[-upkeep_rules.MOST_UNREAD :]
                old += [row for row in unread if row.created_at < before or row not in newest]
        old = sorted((row for row in old if row.owner is None), key=lambda row: row.id)
        for row in old[: upkeep_rules.MOST_SWEPT]:
            end_message(self._db, row, OutboxState.SENT)
            row.external_id, row.error, row.finished_at = "", None, now
        return len(old[: upkeep_rules.MOST_SWEPT])

    async def sweep_runs(self, *, now: datetime) -> int:
        before = now - RUNS_KEPT
        old = [run for run in self._db.runs.values() if self._is_forgettable(run, before)]
        old.sort(key=lambda run: (run.new.started_at, run.new.id))
        for run in old[: upkeep_rules.MOST_SWEPT]:
            del self._db.runs[run.new.id]
            self._db.cron.forget_run(run.new)
            self._db.heartbeat_runs.forget_run(run.new)
        return len(old[: upkeep_rules.MOST_SWEPT])

    async def sweep_message_counts(self, *, now: datetime) -> int:
        counted = self._db.deleted_messages
        kept = [one for one in counted if one[0] >= now - RUNS_KEPT]
        self._db.deleted_messages = kept
        return len(counted) - len(kept)

    async def sweep_sessions(self, *, now: datetime) -> int:
        before = now - SESSIONS_KEPT
        runs = sorted(self._db.runs.values(), key=lambda run: (run.new.started_at, run.new.id))
        last = {run.new.session: run.end for run in runs}
        idle = [
            session
            for session in self._db.sessions.values()
            if self._is_idle(session, before)
            and not ((end := last.get(session.key)) and end.finished_at >= before)
        ]
        idle.sort(key=lambda session: (session.last_active_at, session.key))
        left = left_steps = upkeep_rules.MOST_SWEPT
        sessions = 0
        for session in idle[: upkeep_rules.MOST_SESSIONS]:
            session.history.sort(key=lambda record: (record.epoch, record.id))
            entries = min(left, len(session.history))
            del session.history[:entries]
            left -= entries
            mine = [run for run in runs if run.new.session == session.key]
            for run in mine:
                steps = min(left_steps, len(run.steps))
                del run.steps[:steps]
                left_steps -= steps
            if not session.history and not any(run.steps for run in mine):
                del self._db.sessions[session.key]
                sessions += 1
        return 2 * upkeep_rules.MOST_SWEPT - left - left_steps + sessions

    async def sweep_incidents(self, *, now: datetime) -> int:
        old = [
            incident.key
            for incident in self._db.incidents.values()
            if incident.key.startswith(upkeep_rules.WARNINGS)
            and incident.since < now - upkeep_rules.WARNINGS_KEPT
        ][: upkeep_rules.MOST_SWEPT]
        for key in old:
            del self._db.incidents[key]
        return len(old)

    async def sweep_requests(self, *, now: datetime) -> int:
        old = [
            (request.expires_at, key)
            for key, request in self._db.requests.items()
            if request.expires_at < now - REQUESTS_KEPT
        ]
        for _, key in sorted(old)[: upkeep_rules.MOST_SWEPT]:
            del self._db.requests[key]
            self._db.kept.pop(key, None)
        return len(old[: upkeep_rules.MOST_SWEPT])

    async def sweep_unmentioned(self, *, now: datetime) -> int:
        before = now - UNMENTIONED_KEPT
        rows = self._db.unmentioned.items()
        old = [key for key, row in rows if row.received_at < before][: upkeep_rules.MOST_SWEPT]
        for key in old:
            del self._db.unmentioned[key]
        return len(old)

    async def sweep_names(self, *, now: datetime) -> int:
        before = now - upkeep_rules.NAMES_KEPT
        old = [
            key
            for key, (name, at) in self._db.names.items()
            if at < before and name.kind is NameKind.SEEN
        ]
        for key in old[: upkeep_rules.MOST_SWEPT]:
            del self._db.names[key]
        return len(old[: upkeep_rules.MOST_SWEPT])

    async def sweep_setting_edits(self, *, now: datetime) -> int:
        before = now - upkeep_rules.SETTING_EDITS_KEPT
        table = self._db.setting_edits
        newest = {edit.path: edit for edit in table}
        used = {edit.id for edit in newest.values() if edit.value is not None}
        old = [edit for edit in table if edit.at < before and edit.id not in used]
        for edit in old[: upkeep_rules.MOST_SWEPT]:
            table.remove(edit)
        return len(old[: upkeep_rules.MOST_SWEPT])

    async def sweep_web_links(self, *, now: datetime) -> int:
        before = now - upkeep_rules.WEB_LINKS_KEPT
        old = [key for key, link in self._db.web_links.items() if link.expires_at < before]
        for key in old[: upkeep_rules.MOST_SWEPT]:
            del self._db.web_links[key]
        return len(old[: upkeep_rules.MOST_SWEPT])

    async def sweep_audit(self, *, before: datetime) -> int:
        old = [one for one in self._db.audit if one.at < before]
        old = sorted(old, key=lambda one: (one.at, one.id))[: upkeep_rules.MOST_SWEPT]
        for one in old:
            self._db.audit.remove(one)
        return len(old)

    async def sweep_sign_ins(self, *, now: datetime) -> int:
        old = [key for key, (one, *_) in self._db.sign_ins.items() if one.expires_at < now]
        for key in old[: upkeep_rules.MOST_SWEPT]:
            del self._db.sign_ins[key]
        return len(old[: upkeep_rules.MOST_SWEPT])

    # ------------------------------------------------------------------ what is too old

    def _is_over(self, row: InboxRecord, now: datetime) -> bool:
        waits = row.is_unanswered and row.outcome in sql_rules.LETTERS and not row.dismissed
        kept = UNSEEN_KEPT if waits else FINISHED_KEPT
        return row.finished_at is not None and row.finished_at < now - kept

    def _is_forgettable(self, run: RunRow, before: datetime) -> bool:
        """Return whether a run is too old, and no kept row refers to it."""
        if run.end is None or max(run.new.started_at, run.end.finished_at) >= before:
            return False
        is_told_of = (
            run.new.occurrence in self._db.cron.logs
            or run.new.heartbeat_run in self._db.heartbeat_runs.rows
        )
        return not is_told_of and run.new.id not in self._db.drafts

    def _is_idle(self, session: SessionRecord, before: datetime) -> bool:
        """Return whether a session was idle, has nothing waiting, and will not be used again."""
        job = sql_rules.job_of(session.key)
        is_left = job is not None and job not in self._db.cron.jobs
        return (
            (is_left or sql_rules.is_of_one_run(session.key))
            and session.last_active_at < before
            and session.owner is None
            and not session.active
            and not session.pending
            and not session.unanswered
        )

    # ------------------------------------------------------------------ what is needed

    def _is_needed(self, row: InboxRecord) -> bool:
        """Return whether a draft or a run in progress belongs to a message."""
        run = None if row.run_id is None else self._db.runs.get(row.run_id)
        works = run is not None and run.end is None
        return works or any(row.id in draft.inbox for draft in self._db.drafts.values())

    def _is_in_history(self, row: OutboxRecord) -> bool:
        """Return whether a message is an answer to somebody, which its session has too."""
        message = row.message
        of_others = message.occurrence is not None or message.heartbeat_run is not None
        return row.session is not None and message.run_id is not None and not of_others

    def _is_referred_to(self, row: OutboxRecord) -> bool:
        """Return whether a stored occurrence or heartbeat run refers to a message."""
        message = row.message
        return (
            message.occurrence in self._db.cron.logs
            or message.heartbeat_run in self._db.heartbeat_runs.rows
        )

    def _forget_dead_letter(self, row: InboxRecord) -> None:
        target = row.message.target
        del self._db.inbox[row.id]
        del self._db.known[target.channel, target.account, row.message.external_id]
        session = self._db.sessions.get(row.session)
        if row.is_unanswered and session is not None:
            session.unanswered.remove(row)


def _is_done_with(row: OutboxRecord, now: datetime) -> bool:
    kept = UNSEEN_KEPT if row.state is OutboxState.FAILED else FINISHED_KEPT
    return row.finished_at is not None and row.finished_at < now - kept
