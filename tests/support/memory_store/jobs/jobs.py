"""Jobs and occurrences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from goclaw_py.core.errors import BadJob, SlugTaken, TooManyJobs, UnknownJob
from goclaw_py.core.ids import JobId, NodeId, OccurrenceId, Owner, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.pagination import FOUND, Cursor
from goclaw_py.core.run_steps import ResponseStep
from goclaw_py.records import AHEAD_AT_ONCE, JobPage, JobQuery, Notice, OutboxState
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.schedule.jobs.execution_models import (
    UNTOLD,
    JobStats,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    UnreportedOccurrence,
    Why,
)
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.store import job_reading, rules
from goclaw_py.store.text import storable
from tests.support.memory_store.approvals import stop_questions
from tests.support.memory_store.claims import check_holder, end_left, end_occurrence, let_go
from tests.support.memory_store.pages import newest
from tests.support.memory_store.tables import MemoryPart, OutboxRecord


class MemoryJobs(MemoryPart):
    """Implements ``GatewayJobStore``."""

    async def add_job(self, job: Job, *, most: int | None) -> None:
        job = storable(job)
        same = self._db.cron.slugs(job.owner).get(job.spec.slug)
        if same == job.id:
            return
        if same is not None:
            raise SlugTaken(job.spec.slug)
        if most is not None:
            self._check_number(job.owner, most)
        self._db.cron.put(job)
        self._db.notify(Notice.CRON)

    async def job(self, job_id: JobId) -> Job | None:
        job = self._db.cron.jobs.get(storable(job_id))
        return None if job is None else job_reading.shown(job)

    async def find_jobs(self, text: str, *, owner: Owner | None = None) -> list[Job]:
        text, owner = storable(text), storable(owner)
        jobs = [job for job in self._db.cron.jobs.values() if owner in (None, job.owner)]
        found = [job for job in jobs if job.spec.slug == text]
        found = found or [job for job in jobs if job.id == text]
        if not found and len(text) >= job_rules.FEWEST:
            found = [job for job in jobs if job.id.startswith(text)]
        return [job_reading.shown(job) for job in sorted(found, key=lambda job: job.id)[:FOUND]]

    async def jobs(self, query: JobQuery) -> JobPage:
        query = storable(query)
        found = job_rules.page(self._db.cron.jobs.values(), query)
        return replace(found, jobs=tuple(map(job_reading.shown, found.jobs)))

    async def job_counts(self, query: JobQuery) -> dict[JobState, int]:
        query = replace(storable(query), states=())
        return dict(
            Counter(
                job.state for job in self._db.cron.jobs.values() if job_rules.matches(job, query)
            )
        )

    async def slugs(self, owner: Owner, prefix: str) -> frozenset[str]:
        mine = self._db.cron.slugs(storable(owner))
        return frozenset(slug for slug in mine if slug.startswith(storable(prefix)))

    async def change_job(self, job: Job, *, most: int | None = None) -> bool:
        job = storable(job)
        known = self._db.cron.jobs.get(job.id)
        if known is None or known.revision != job.revision:
            return False
        if (flaw := job_reading.flaw(known)) is not None:
            raise flaw
        if self._db.cron.slugs(known.owner).get(job.spec.slug, job.id) != job.id:
            raise SlugTaken(job.spec.slug)
        if most is not None and job_rules.comes_to_count(known.state, job.state):
            self._check_number(known.owner, most)
        changed = job_rules.edited(known, job)
        self._db.cron.put(changed)
        await end_left(self._db, job.id)
        self._db.notify(Notice.CRON)
        return True

    def _check_number(self, owner: Owner, most: int) -> None:
        mine = (self._db.cron.jobs[one] for one in self._db.cron.slugs(owner).values())
        if sum(one.state in job_rules.COUNTED for one in mine) >= most:
            raise TooManyJobs(owner, most)

    async def delete_job(self, job_id: JobId, *, forget: bool) -> bool:
        job_id = storable(job_id)
        if job_id not in self._db.cron.jobs:
            return False
        self._db.cron.remove(job_id, forget=False)
        await end_left(self._db, job_id)
        if forget:
            self._db.cron.forget(job_id)
        self._db.notify(Notice.CRON)
        return True

    async def zone_of(self, owner: Owner) -> str | None:
        return self._db.cron.zones.get(storable(owner))

    async def choose_zone(self, owner: Owner, zone: str | None) -> None:
        self._db.cron.zones.pop(storable(owner), None)
        if zone is not None:
            self._db.cron.zones[storable(owner)] = storable(zone)

    # ------------------------------------------------------------------ occurrences

    async def next_job_due(self) -> datetime | None:
        job = self._db.cron.first()
        return None if job is None else job.next_run_at

    async def jobs_ahead(self, *, now: datetime, after: str = "") -> list[Job]:
        ids = sorted(one for one in self._db.cron.jobs if one > after)
        found = (self._db.cron.jobs[one] for one in ids)
        newest_of = self._db.cron.newest
        ahead = (job for job in found if job_rules.may_be_ahead(job, newest_of(job.id), now))
        return list(islice((job for job in ahead if job_reading.flaw(job) is None), AHEAD_AT_ONCE))

    async def replan_job(self, job: Job, next_run_at: datetime) -> bool:
        known = self._db.cron.jobs.get(job.id)
        read = (job.revision, job.next_run_at, JobState.ACTIVE, None)
        if known is None or read != (
            known.revision,
            known.next_run_at,
            known.state,
            known.running,
        ):
            return False
        self._db.cron.put(replace(known, next_run_at=next_run_at))
        await end_left(self._db, job.id)
        self._db.notify(Notice.CRON)
        return True

    async def crowd(self, *, until: datetime, most: int) -> int:
        return min(len(self._db.cron.due(until)), most)

    async def withdrawn(self, ids: Collection[OccurrenceId]) -> set[OccurrenceId]:
        return {one for one in storable(tuple(ids)) if not self._db.cron.is_wanted(one)}

    async def claim_due(
        self,
        node: NodeId,
        *,
        now: datetime,
        ids: Sequence[OccurrenceId],
        until: datetime | None = None,
        messages_only: bool = False,
        without_runs: bool = False,
    ) -> list[OccurrenceClaim]:
        self._db.check_alive(node)
        until = now if until is None else until
        claimed: list[OccurrenceClaim] = []
        for fresh in ids:
            cron = self._db.cron
            job = cron.first_message(until) if messages_only else cron.first()
            if job is None or job.next_run_at is None or job.next_run_at > until:
                break
            lost = None if without_runs else self._lost
            one = self._db.cron.claim(job, node, now, fresh, self._attempts, lost)
            if (flaw := job_reading.flaw(job)) is None:
                claimed.append(replace(one, called=self._called(one.id)))
            else:
                off = job_reading.switched_off(one.id, job.id, job.revision, cause=flaw, now=now)
                end_occurrence(self._db, off)
                job_reading.log_unreadable(off)
        return claimed

    async def wait_for_sessions(
        self, sessions: Mapping[OccurrenceId, SessionKey], *, node: NodeId, now: datetime
    ) -> set[OccurrenceId]:
        gone: set[OccurrenceId] = set()
        waits = False
        for one, session in storable(tuple(sessions.items())):
            key, row = self._db.present_key(session), self._db.cron.logs.get(one)
            if row is None or row.node != node:
                gone.add(one)
            elif self._is_elsewhere(key, node, now):
                self._db.cron.wait(row, key)
                gone.add(one)
                waits = True
        if waits:
            self._db.notify(Notice.CRON)
        return gone

    async def claim_waiting(
        self, node: NodeId, *, now: datetime, unheld: bool = True
    ) -> list[OccurrenceClaim]:
        if node not in self._db.nodes:
            return []
        rows = [
            row
            for row in self._db.cron.in_line()
            if row.why is None
            and self._may_begin(self._db.cron.waiting[row.id], node, now, unheld=unheld)
        ]
        for row in rows:
            self._db.cron.claim_waiting(row, node, self._attempts(row.id))
        return [self._waited(self._db.cron.logs[row.id]) for row in rows]

    async def waiting_occurrences(
        self, *, asking_in: SessionKey | None = None
    ) -> list[OccurrenceClaim]:
        return [
            self._waited(row)
            for row in self._db.cron.in_line()
            if asking_in is None
            or (row.why is Why.APPROVAL and self._db.cron.waiting[row.id] == asking_in)
        ]

    async def occurrences_elsewhere(self, nodes: Collection[NodeId]) -> list[OccurrenceClaim]:
        return [self._waited(row) for row in self._db.cron.not_claimed_by(nodes)]

    def _may_begin(self, key: SessionKey, node: NodeId, now: datetime, *, unheld: bool) -> bool:
        session = self._db.sessions.get(key)
        if session is not None and session.owner == node:
            return True
        return unheld and not self._is_elsewhere(key, node, now)

    def _is_elsewhere(self, key: SessionKey, node: NodeId, now: datetime) -> bool:
        """Return whether another live node owns a session or has a run in it."""
        session = self._db.sessions.get(key)
        if session is None:
            return False
        if session.owner != node and self._db.is_live(session.owner, now):
            return True
        return any(self._db.runs[run].node != node for run in session.active)

    async def claim_now(
        self, node: NodeId, job_id: JobId, *, now: datetime, occurrence: OccurrenceId
    ) -> OccurrenceClaim | None:
        self._db.check_alive(node)
        job = self._db.cron.jobs.get(storable(job_id))
        if job is None:
            raise UnknownJob(job_id)
        if job.running not in (None, occurrence):
            return None
        if (flaw := job_reading.flaw(job)) is not None:
            raise flaw
        return self._db.cron.enter(job, node, now, occurrence, manual=True)

    async def end_occurrence(
        self, end: OccurrenceEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId | None
    ) -> None:
        end, say = storable((end, tuple(say)))
        check_holder("occurrence", self._db.cron.logs.get(end.id), node)
        if end_occurrence(self._db, end):
            await stop_questions(self._db, end.id, end.finished_at)
            said = rules.marked(say, occurrence=end.id)
            self._db.enqueue(said, session=None, now=end.finished_at)

    async def give_back(
        self, ids: Collection[OccurrenceId], *, node: NodeId, status: OccurrenceStatus
    ) -> None:
        rows = [self._db.cron.logs[one] for one in set(ids) if one in self._db.cron.logs]
        mine = [row for row in rows if row.node == node]
        let_go(self._db, mine, status)
        if mine:
            self._db.notify(Notice.CRON)

    async def release_unclaimed(self, known: Collection[OccurrenceId], *, node: NodeId) -> None:
        ids = [
            row.id
            for row in self._db.cron.logs.values()
            if row.node == node and not row.manual and row.id not in known
        ]
        await self.give_back(ids, node=node, status=OccurrenceStatus.SKIPPED)
        for one, session in tuple(self._db.cron.waited.items()):
            if one not in known and (row := self._db.cron.logs[one]).node == node:
                self._db.cron.wait(row, session)

    async def log_of(
        self,
        job: JobId | None = None,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        rows = (row for row in self._db.cron.log(job) if status in (None, row.status))
        found = newest(rows, limit, before)
        told = self._deliveries({row.id for row in found})
        return [self._shown(row, told[row.id]) for row in found]

    async def logged(self, occurrence: OccurrenceId) -> LoggedOccurrence | None:
        row = self._db.cron.logs.get(storable(occurrence))
        return None if row is None else self._shown(row, self._deliveries({row.id})[row.id])

    async def sweep_jobs(self, *, now: datetime) -> int:
        before = now - job_rules.KEPT
        rows, jobs = self._db.cron.sweep_log(before), self._db.cron.sweep_jobs(before)
        if jobs:
            self._db.notify(Notice.CRON)
        return rows + jobs

    async def settle_results(self, *, now: datetime) -> list[UnreportedOccurrence]:
        tables, since = self._db.cron, now - job_rules.DIED_WITHIN
        said: dict[OccurrenceId, list[OutboxRecord]] = defaultdict(list)
        for row in self._db.outbox.values():
            if row.message.occurrence is not None:
                said[row.message.occurrence].append(row)
        for one, rows in said.items():
            died = [
                row
                for row in rows
                if row.state is OutboxState.FAILED and row.finished_at and row.finished_at >= since
            ]
            if died and one in tables.logs and tables.logs[one].status is OccurrenceStatus.OK:
                tables.undelivered(tables.logs[one], died[0].error or "")
        open_ = {one for one, rows in said.items() if any(row.state in _OPEN for row in rows)}
        if tables.delete_delivered(open_):
            self._db.notify(Notice.CRON)
        dead = {
            one: row.message.target
            for one, rows in said.items()
            for row in reversed(rows)
            if row.state is OutboxState.FAILED
        }
        found = [
            UnreportedOccurrence(
                row.id, job, row.scheduled_at, row.output, row.error, dead.get(row.id)
            )
            for row in tables.unreported(now)
            if (row.status is OccurrenceStatus.NO_ROUTE or row.id in dead)
            and (job := _readable(row)) is not None
        ]
        return found[: job_rules.MOST_UNTOLD]

    async def notify_result(
        self, occurrence: OccurrenceId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        row = self._db.cron.logs.get(storable(occurrence))
        if row is None or row.status not in UNTOLD or row.told_at is not None:
            return False
        self._db.cron.logs[row.id] = replace(row, told_at=now)
        self._db.enqueue(storable(tuple(say)), session=None, now=now)
        return True

    async def was_notified_in(self, occurrence: OccurrenceId, target: Target) -> bool:
        chat = target.whole_chat
        return any(
            row.message.occurrence == occurrence and row.message.target.whole_chat == chat
            for row in self._db.outbox.values()
        )

    async def job_stats(self, job: JobId | None, *, since: datetime) -> JobStats:
        rows = self._db.cron.log(job)
        return job_rules.stats(row for row in rows if row.scheduled_at >= since)

    def _attempts(self, occurrence: OccurrenceId) -> int:
        return self._db.attempts(self._db.cron.runs.get(occurrence, ()))

    def _lost(self, occurrence: OccurrenceId) -> int:
        ends = (self._db.runs[run].end for run in self._db.cron.runs.get(occurrence, ()))
        return sum(end is not None and end.outcome is Outcome.LOST for end in ends)

    def _waited(self, row: LoggedOccurrence) -> OccurrenceClaim:
        """Return the claim of an occurrence; the node that claimed it first could read its job."""
        return OccurrenceClaim(
            row.id,
            replace(job_reading.read_job(row.definition), running=row.id),
            row.scheduled_at,
            row.claimed_at,
            claims=row.claims,
            attempts=row.attempts,
            manual=row.manual,
            waited=True,
            began_at=self._db.began(self._db.cron.runs.get(row.id, ())),
        )

    def _called(self, occurrence: OccurrenceId) -> tuple[str, ...]:
        """See ``OccurrenceClaim.called``."""
        cut = (Outcome.LOST, Outcome.INTERRUPTED)
        runs = [self._db.runs[run] for run in self._db.cron.runs.get(occurrence, ())]
        ends = [
            run.end for run in runs if not any(isinstance(step, ResponseStep) for step in run.steps)
        ]
        calls = [call for end in ends if end and end.outcome in cut for call in end.tools]
        return tuple(sorted({call.name for call in calls if call.side_effects}))

    def _deliveries(self, ids: Collection[OccurrenceId]) -> dict[OccurrenceId, str]:
        states: dict[OccurrenceId, list[OutboxState]] = defaultdict(list)
        for row in self._db.outbox.values():
            if row.message.occurrence in ids and row.message.occurrence is not None:
                states[row.message.occurrence].append(row.state)
        return {one: job_rules.delivery(states[one]) for one in ids}

    def _shown(self, row: LoggedOccurrence, delivery: str) -> LoggedOccurrence:
        runs = tuple(self._db.cron.runs.get(row.id, ()))
        began = row.started_at or self._db.began(runs)
        return replace(row, runs=runs, started_at=began, delivery=delivery)


_OPEN = (OutboxState.WAITING, OutboxState.SENDING, OutboxState.FAILED)


def _readable(row: LoggedOccurrence) -> Job | None:
    try:
        return job_reading.read_job(row.definition)
    except BadJob:
        return None
