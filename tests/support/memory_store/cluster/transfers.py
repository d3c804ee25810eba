"""Moving everything that belongs to a chat with a new id."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import RunEnd
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.store import rules
from tests.support.memory_store.tables import MemoryDatabase, RunRow, SessionRecord


class MemoryTransfers:
    """A move from the chat ``old`` to the id ``new``."""

    def __init__(self, database: MemoryDatabase, old: Target, new: str) -> None:
        self._db = database
        self._old = old
        self._new = new

    def move(self, now: datetime) -> bool:
        """Move. Returns False if nothing belongs to the old chat."""
        sessions = [
            session for session in self._db.sessions.values() if self._is_here(session.target)
        ]
        renamed: dict[SessionKey, SessionKey] = {}
        for session in sessions:
            assert session.target is not None
            key = rules.moved_key(
                session.key, session.agent, self._old, session.target.thread, self._new
            )
            if key != session.key:
                renamed[session.key] = key
                self._merge(session, self._entered(session, key), now)
            else:
                self._retarget(session)
        moved = [
            self._retarget_runs(),
            self._retarget_outbox(renamed),
            self._drop_drafts(),
            self._move_chat(),
            self._move_request(),
            self._move_topics(),
            self._move_jobs(now),
            self._move_heartbeat_runs(),
        ]
        self._retarget_approvals()
        return bool(sessions) or any(moved)

    def _is_here(self, target: Target | None) -> bool:
        return target is not None and target.whole_chat == self._old

    def _moved(self, target: Target) -> Target:
        return replace(target, chat=self._new)

    # ------------------------------------------------------------------ sessions

    def _entered(self, old: SessionRecord, key: SessionKey) -> SessionRecord:
        fresh = SessionRecord(key, old.agent, old.target, old.created_at, old.created_at)
        return self._db.sessions.setdefault(key, fresh)

    def _merge(self, old: SessionRecord, new: SessionRecord, now: datetime) -> None:
        merged = rules.merged(old.claim, new.claim)
        if old.owner not in (None, merged.owner):
            self._end_runs(old, now)
        for session in (old, new):
            self._realign_runs(session, merged)
        self._merge_history(old, new, merged.epoch)
        rows = self._db.inbox.values()
        parked = [row for row in rows if row.is_parked and row.session == old.key]
        for row in (*old.pending.values(), *old.unanswered, *parked):
            row.session = new.key
        self._move_approvals(old.key, new.key)
        self._db.cron.rename_session(old.key, new.key)
        self._db.move_unmentioned(old.key, new.key)
        for run in self._db.runs.values():
            if run.new.session == old.key:
                run.new = replace(run.new, session=new.key)
            if run.new.payer == old.key:
                run.new = replace(run.new, payer=new.key)
        new.pending.update(old.pending)
        new.unanswered.extend(old.unanswered)
        new.active |= old.active
        new.owner, new.fence, new.epoch = merged.owner, merged.fence, merged.epoch
        new.created_at = min(old.created_at, new.created_at)
        new.last_active_at = max(old.last_active_at, new.last_active_at)
        new.mode = new.mode or old.mode
        new.summary = rules.merged_summary(old.summary, new.summary)
        new.summaries += old.summaries
        new.pinned = tuple(rules.merged_pins(old.pinned, new.pinned))
        if old.heard and (new.heard is None or old.heard.at > new.heard.at):
            new.heard = old.heard
        self._retarget(new)
        del self._db.sessions[old.key]
        self._remember_move(old.key, new.key)

    def _move_approvals(self, old: SessionKey, new: SessionKey) -> None:
        for record in self._db.approvals.questions.values():
            if record.approval.session == old:
                record.approval = replace(record.approval, session=new)
        grants = self._db.approvals.grants
        for agent, session, tool in [key for key in grants if key[1] == old]:
            grant = grants.pop((agent, session, tool))
            grants.setdefault((agent, new, tool), replace(grant, session=new))

    def _retarget_approvals(self) -> None:
        for record in self._db.approvals.questions.values():
            target = record.approval.target
            if target is not None and self._is_here(target):
                record.approval = replace(record.approval, target=self._moved(target))

    def _end_runs(self, session: SessionRecord, now: datetime) -> None:
        """End the runs of a session's owner, which loses the session."""
        active = [self._db.runs[run_id] for run_id in session.active]
        cut = [run for run in active if run.node == session.owner]
        for run in cut:
            lost = RunEnd(run.new.id, Outcome.LOST, now, error=rules.MOVED_AWAY)
            self._db.end_run(run, lost)
        self._db.free_rows({run.new.id for run in cut}, attempts_back=1)

    def _realign_runs(self, session: SessionRecord, merged: rules.Claim) -> None:
        """Let runs in progress continue in the merged session."""
        for run_id in session.active:
            run = self._db.runs[run_id]
            if (run.node, run.fence) == (merged.owner, session.fence):
                run.fence = merged.fence
            if run.epoch == session.epoch:
                run.epoch = merged.epoch

    def _merge_history(self, old: SessionRecord, new: SessionRecord, epoch: int) -> None:
        """Merge two histories: first what a summary covers, the rest by the ends of runs."""
        current = [(one, session) for session in (old, new) for one in session.current()]
        ends: dict[RunId | int, datetime] = {}
        for one, _ in current:
            run = one.entry.run_id or one.id
            ends[run] = max(one.entry.at, ends.get(run, one.entry.at))
        present = [
            (one.id > there.summarized_upto, ends[one.entry.run_id or one.id], one.id, one.entry)
            for one, there in current
        ]
        past = [
            record
            for session in (old, new)
            for record in session.history
            if record.epoch != session.epoch
        ]
        present.sort(key=lambda one: one[:3])
        new.history = past
        summarized = [entry for is_read, _, _, entry in present if not is_read]
        self._db.remember(new, epoch, summarized)
        new.summarized_upto = self._db.last_history_id if summarized else 0
        self._db.remember(new, epoch, [entry for is_read, _, _, entry in present if is_read])

    def _remember_move(self, old: SessionKey, new: SessionKey) -> None:
        self._db.moved.pop(new, None)
        for key, at in self._db.moved.items():
            if at == old:
                self._db.moved[key] = new
        self._db.moved[old] = new

    # ------------------------------------------------------------------ what names the chat

    def _retarget(self, session: SessionRecord) -> None:
        """Change the targets of a session and its messages to the new chat."""
        if session.target is not None:
            session.target = self._moved(session.target)
        if session.heard is not None:
            session.heard = replace(session.heard, target=self._moved(session.heard.target))
        for row in (*session.pending.values(), *session.unanswered):
            if self._is_here(row.message.target):
                target = self._moved(row.message.target)
                row.message = replace(row.message, target=target, message_id=None, reply_to=None)

    def _retarget_runs(self) -> bool:
        """Move runs in progress, and runs of moved sessions."""
        found = [run for run in self._db.runs.values() if self._is_here(run.new.target)]
        moved = [run for run in found if run.end is None or self._is_of_new_chat(run)]
        for run in moved:
            assert run.new.target is not None
            run.new = replace(run.new, target=self._moved(run.new.target))
        return bool(moved)

    def _is_of_new_chat(self, run: RunRow) -> bool:
        session = self._db.sessions.get(run.new.session)
        target = None if session is None else session.target
        return target is not None and target.chat == self._new

    def _retarget_outbox(self, renamed: dict[SessionKey, SessionKey]) -> bool:
        old = self._old.channel, self._old.account, self._old.chat
        new = self._old.channel, self._old.account, self._new
        moved = self._db.unsent.pop(old, {})
        for row in moved.values():
            target = self._moved(row.message.target)
            row.message = replace(row.message, target=target, reply_to=None, draft=None, lost=None)
            if row.session is not None:
                row.session = renamed.get(row.session, row.session)
        if moved:
            line = self._db.unsent.get(new, {}) | moved
            self._db.unsent[new] = dict(sorted(line.items()))
        return bool(moved)

    def _drop_drafts(self) -> bool:
        gone = [draft for draft in self._db.drafts.values() if self._is_here(draft.target)]
        for draft in gone:
            del self._db.drafts[draft.run_id]
        return bool(gone)

    def _move_chat(self) -> bool:
        old = self._db.chats.pop((self._old.channel, self._old.account, self._old.chat), None)
        if old is None:
            return False
        key = self._old.channel, self._old.account, self._new
        new = self._db.chats.get(key)
        self._db.chats[key] = (
            replace(old, chat=self._new)
            if new is None
            else replace(
                new,
                name=new.name or old.name,
                allowed=old.allowed if new.allowed is None else new.allowed,
                first_seen_at=min(old.first_seen_at, new.first_seen_at),
                last_seen_at=max(old.last_seen_at, new.last_seen_at),
                unmentioned_at=max(
                    filter(None, (old.unmentioned_at, new.unmentioned_at)), default=None
                ),
            )
        )
        return True

    def _move_request(self) -> bool:
        """Move the group's access request, unless the new id has one."""
        place = self._old.channel, self._old.account
        request = self._db.requests.get((*place, self._old.chat))
        if request is None or not request.is_group:
            return False
        del self._db.requests[(*place, self._old.chat)]
        self._db.kept.pop((*place, self._old.chat), None)
        sender = replace(request.sender, id=self._new)
        moved = replace(request, sender=sender, chat=self._new)
        self._db.requests.setdefault((*place, self._new), moved)
        self._db.kept.setdefault((*place, self._new), [])
        return True

    def _move_topics(self) -> bool:
        old = [topic for topic in self._db.topics.values() if self._is_here(topic.target)]
        for topic in old:
            del self._db.topics[topic.target]
            target = self._moved(topic.target)
            self._db.topics.setdefault(target, replace(topic, target=target))
        return bool(old)

    def _move_heartbeat_runs(self) -> bool:
        """Move the alert targets of heartbeat runs. Alerts keep their keys with the old chat."""
        moved = [row for row in self._db.heartbeat_runs.rows.values() if self._is_here(row.target)]
        for row in moved:
            assert row.target is not None
            self._db.heartbeat_runs.rows[row.id] = replace(row, target=self._moved(row.target))
        return bool(moved)

    def _move_jobs(self, now: datetime) -> bool:
        """Move the chat's jobs, jobs with the chat as target, and its owner's time zone."""
        owners = job_rules.moved_owners(self._old, self._new)
        found = [
            (job, job_rules.retargeted(job, self._old, self._new))
            for job in sorted(self._db.cron.jobs.values(), key=lambda job: job.id)
        ]
        moved = [two for two in found if two[0] is not two[1] or two[0].owner in owners]
        for before, job in moved:
            owner, slug = owners.get(job.owner, job.owner), job.spec.slug
            if owner != before.owner:
                slug = job_rules.free_slug(slug, self._db.cron.slugs(owner))
                self._db.cron.rename_owner(job.id, owner)
            self._db.cron.put(
                replace(
                    job,
                    owner=owner,
                    spec=replace(job.spec, slug=slug),
                    revision=job.revision + 1,
                    updated_at=now,
                )
            )
        for old, new in owners.items():
            zone = self._db.cron.zones.pop(old, None)
            if zone is not None:
                self._db.cron.zones.setdefault(new, zone)
        return bool(moved)
