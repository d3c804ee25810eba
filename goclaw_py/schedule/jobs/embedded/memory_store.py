"""The jobs of ``JobScheduler`` in memory (SPEC CRON-21).

It promises what ``PostgresStore`` promises for the same calls; the contract tests compare them. It
has no sessions, runs and messages, because handlers have none.

A job that may be claimed stands in ``_line``, sorted by its due time, so a look costs no more with
ten thousand jobs than with ten. An occurrence is in ``_log`` until its job has had ``keep`` newer
ones.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from goclaw_py.core.errors import Fenced, RunNotStarted, SlugTaken, TooManyJobs, UnknownJob
from goclaw_py.core.ids import JobId, NodeId, OccurrenceId, Owner, SessionKey
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.pagination import FOUND, Cursor
from goclaw_py.core.storable import storable
from goclaw_py.records import (
    AHEAD_AT_ONCE,
    JobPage,
    JobQuery,
    Node,
    NodeState,
    Notice,
    RecoveryReport,
    Renewed,
    RunEnd,
)
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.schedule.jobs.execution_models import (
    JobStats,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
)
from goclaw_py.schedule.jobs.job_json import job_json
from goclaw_py.schedule.jobs.models import FixedMessage, Job, JobState

_newest = attrgetter("cursor")


class MemoryStore:
    """Jobs that end with the process; implements ``JobStorage``.

    Several schedulers over one store share its jobs, one after the other or at the same time. No
    method waits, so each is atomic.
    """

    def __init__(self) -> None:
        self._jobs: dict[JobId, Job] = {}
        self._slugs: dict[tuple[Owner, str], JobId] = {}
        self._line: list[tuple[datetime, JobId]] = []
        self._log: dict[OccurrenceId, LoggedOccurrence] = {}
        self._of_job: dict[JobId, dict[OccurrenceId, None]] = {}
        """The log of each job, which may be deleted."""
        self._zones: dict[Owner, str] = {}
        self._nodes: dict[NodeId, Node] = {}
        self._listeners: list[Callable[[Notice], None]] = []

    def on_notice(self, callback: Callable[[Notice], None]) -> None:
        self._listeners.append(callback)

    async def close(self) -> None:
        """Do nothing: what is stored ends with the object. For programs with a choice of stores."""

    def _notify(self, *notices: Notice) -> None:
        """Call all listeners in the event loop, after the present step."""
        loop = asyncio.get_running_loop()
        for notice in notices:
            for listener in self._listeners:
                loop.call_soon(listener, notice)

    # ------------------------------------------------------------------ jobs

    async def add_job(self, job: Job, *, most: int | None) -> None:
        job = storable(job)
        same = self._slugs.get((job.owner, job.spec.slug))
        if same == job.id:
            return
        if same is not None:
            raise SlugTaken(job.spec.slug)
        self._check_number(job.owner, most)
        self._store(job)
        self._notify(Notice.CRON)

    async def find_jobs(self, text: str, *, owner: Owner | None = None) -> list[Job]:
        text = storable(text)
        jobs = [job for job in self._jobs.values() if owner in (None, job.owner)]
        found = [job for job in jobs if job.spec.slug == text]
        found = found or [job for job in jobs if job.id == text]
        if not found and len(text) >= job_rules.FEWEST:
            found = [job for job in jobs if job.id.startswith(text)]
        return sorted(found, key=lambda job: job.id)[:FOUND]

    async def jobs(self, query: JobQuery) -> JobPage:
        return job_rules.page(self._jobs.values(), storable(query))

    async def job_counts(self, query: JobQuery) -> dict[JobState, int]:
        query = replace(storable(query), states=())
        return Counter(j.state for j in self._jobs.values() if job_rules.matches(j, query))

    async def slugs(self, owner: Owner, prefix: str) -> frozenset[str]:
        mine = (slug for whose, slug in self._slugs if whose == owner)
        return frozenset(slug for slug in mine if slug.startswith(prefix))

    async def change_job(self, job: Job, *, most: int | None = None) -> bool:
        job = storable(job)
        known = self._jobs.get(job.id)
        if known is None or known.revision != job.revision:
            return False
        if self._slugs.get((known.owner, job.spec.slug), job.id) != job.id:
            raise SlugTaken(job.spec.slug)
        if job_rules.comes_to_count(known.state, job.state):
            self._check_number(known.owner, most)
        changed = job_rules.edited(known, job)
        self._plan(changed)
        return True

    def _plan(self, job: Job) -> None:
        """Store a changed job; its released occurrence ends unless it is due at the same time."""
        self._store(job)
        self._end_left(job.id)
        self._notify(Notice.CRON)

    async def delete_job(self, job_id: JobId, *, forget: bool) -> bool:
        if job_id not in self._jobs:
            return False
        self._remove(job_id)
        self._end_left(job_id)
        if forget:
            self._forget(self._rows(job_id))
        self._notify(Notice.CRON)
        return True

    def _check_number(self, owner: Owner, most: int | None) -> None:
        if most is None or len(self._jobs) < most:
            return
        mine = (job for job in self._jobs.values() if job.owner == owner)
        if sum(job.state in job_rules.COUNTED for job in mine) >= most:
            raise TooManyJobs(owner, most)

    def _store(self, job: Job) -> None:
        if job.id in self._jobs:
            self._remove(job.id)
        self._jobs[job.id] = job
        self._slugs[job.owner, job.spec.slug] = job.id
        if job.next_run_at is not None and job_rules.is_free(job):
            insort(self._line, (job.next_run_at, job.id))

    def _remove(self, job_id: JobId) -> None:
        job = self._jobs.pop(job_id)
        del self._slugs[job.owner, job.spec.slug]
        if job.next_run_at is not None and job_rules.is_free(job):
            del self._line[bisect_left(self._line, (job.next_run_at, job.id))]

    async def zone_of(self, owner: Owner) -> str | None:
        return self._zones.get(owner)

    async def choose_zone(self, owner: Owner, zone: str | None) -> None:
        self._zones.pop(owner, None)
        if zone is not None:
            self._zones[owner] = zone

    # ------------------------------------------------------------------ claims

    async def next_job_due(self) -> datetime | None:
        return self._line[0][0] if self._line else None

    async def crowd(self, *, until: datetime, most: int) -> int:
        return min(self._due_by(until), most)

    def _due_by(self, until: datetime) -> int:
        """Return how many jobs at the head of the line are due by then."""
        return bisect_right(self._line, until, key=lambda place: place[0])

    async def jobs_ahead(self, *, now: datetime, after: str = "") -> list[Job]:
        ids = sorted(job_id for job_id in self._jobs if job_id > after)
        jobs = [self._jobs[job_id] for job_id in ids]
        ahead = [job for job in jobs if job_rules.may_be_ahead(job, self._last(job.id), now)]
        return ahead[:AHEAD_AT_ONCE]

    def _last(self, job_id: JobId) -> LoggedOccurrence | None:
        return max(self._rows(job_id), key=_newest, default=None)

    async def replan_job(self, job: Job, next_run_at: datetime) -> bool:
        known = self._jobs.get(job.id)
        if known is None or not job_rules.is_free(known):
            return False
        if (known.revision, known.next_run_at) != (job.revision, job.next_run_at):
            return False
        self._plan(replace(known, next_run_at=next_run_at))
        return True

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
        del without_runs  # there are none
        self._check_live(node)
        line = self._line[: self._due_by(now if until is None else until)]
        due = [self._jobs[job_id] for _, job_id in line]
        if messages_only:
            due = [job for job in due if isinstance(job.spec.payload, FixedMessage)]
        return [self._claim(job, node, now, fresh) for job, fresh in zip(due, ids, strict=False)]

    def _claim(self, job: Job, node: NodeId, now: datetime, fresh: OccurrenceId) -> OccurrenceClaim:
        """Continue a released occurrence of a due job, or create one with the id ``fresh``."""
        left = next((row for row in self._left(job.id) if job_rules.is_wanted(job, row)), None)
        if left is None:
            return self._enter(job, node, now, fresh, manual=False)
        claims = left.claims + (left.status is OccurrenceStatus.LOST)
        job = replace(job, running=left.id)
        self._store(job)
        self._log[left.id] = replace(
            left,
            status=OccurrenceStatus.RUNNING,
            slug=job.spec.slug,
            node=node,
            claimed_at=now,
            claims=claims,
            definition=job_json(job),
        )
        was_cut = left.status is OccurrenceStatus.INTERRUPTED
        return OccurrenceClaim(left.id, job, left.scheduled_at, now, claims, interrupted=was_cut)

    def _enter(
        self, job: Job, node: NodeId, now: datetime, fresh: OccurrenceId, *, manual: bool
    ) -> OccurrenceClaim:
        """Claim an idle job with a new occurrence."""
        due_at = now if manual or job.next_run_at is None else job.next_run_at
        job = replace(job, running=fresh)
        self._store(job)
        self._log[fresh] = LoggedOccurrence(
            fresh,
            job.id,
            job.spec.slug,
            job.owner,
            due_at,
            now,
            None,
            None,
            OccurrenceStatus.RUNNING,
            manual=manual,
            node=node,
            definition=job_json(job),
        )
        self._of_job.setdefault(job.id, {})[fresh] = None
        return OccurrenceClaim(fresh, job, due_at, now, manual=manual)

    async def claim_now(
        self, node: NodeId, job_id: JobId, *, now: datetime, occurrence: OccurrenceId
    ) -> OccurrenceClaim | None:
        self._check_live(node)
        job = self._jobs.get(job_id)
        if job is None:
            raise UnknownJob(job_id)
        if job.running not in (None, occurrence):
            return None
        return self._enter(job, node, now, occurrence, manual=True)

    async def withdrawn(self, ids: Collection[OccurrenceId]) -> set[OccurrenceId]:
        rows = {one: self._log.get(one) for one in ids}
        return {
            one
            for one, row in rows.items()
            if row is None or not job_rules.is_wanted(self._jobs.get(row.job), row)
        }

    async def wait_for_sessions(
        self, sessions: Mapping[OccurrenceId, SessionKey], *, node: NodeId, now: datetime
    ) -> set[OccurrenceId]:
        """Return none: a handler has no session that another node could own."""
        del sessions, node, now
        return set()

    async def claim_waiting(
        self, node: NodeId, *, now: datetime, unheld: bool = True
    ) -> list[OccurrenceClaim]:
        """Return none, as above."""
        del node, now, unheld
        return []

    # ------------------------------------------------------------------ ends

    async def end_occurrence(
        self, end: OccurrenceEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId | None
    ) -> None:
        del say  # a handler has no chats
        end, row = storable(end), self._log.get(end.id)
        if row is None or row.finished_at is not None:
            return
        if row.node != node:
            raise Fenced(f"occurrence {row.id} is not this node's any more")
        self._log[row.id] = replace(
            row,
            status=end.status,
            why=end.why,
            finished_at=end.finished_at,
            started_at=end.started_at or row.started_at,
            attempts=end.attempts,
            node=None,
            output=end.output,
            error=end.error,
            usage=end.usage,
        )
        job = self._jobs.get(row.job)
        if job is not None:
            how = job_rules.applied(job, end, row.scheduled_at, manual=row.manual)
            if how is job_rules.AppliedEnd.ALL and end.update is not None and end.update.delete:
                self._remove(job.id)
                if end.update.forget:
                    self._forget(self._rows(job.id))
            else:
                self._store(job_rules.after(job, end, how))
        if len(self._of_job.get(row.job, ())) > end.keep:
            rows = sorted(self._rows(row.job), key=_newest, reverse=True)
            self._forget([old for old in rows[end.keep :] if old.finished_at is not None])

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """Raise ``RunNotStarted``: a handler has no run."""
        del node
        raise RunNotStarted(end.id)

    async def give_back(
        self, ids: Collection[OccurrenceId], *, node: NodeId, status: OccurrenceStatus
    ) -> None:
        rows = [row for one in set(ids) if (row := self._log.get(one)) and row.node == node]
        for row in rows:
            self._release(row, status)
        if rows:
            self._notify(Notice.CRON)

    async def release_unclaimed(self, known: Collection[OccurrenceId], *, node: NodeId) -> None:
        ids = [row.id for row in self._claimed_by([node]) if not row.manual and row.id not in known]
        await self.give_back(ids, node=node, status=OccurrenceStatus.SKIPPED)

    def _release(
        self, row: LoggedOccurrence, status: OccurrenceStatus, now: datetime | None = None
    ) -> None:
        """Release an occurrence; one that cannot be claimed again ends at ``now``, or its claim."""
        job = self._jobs.get(row.job)
        row = replace(row, status=status, node=None)
        if row.manual or not job_rules.is_wanted(job, row):
            row = replace(row, finished_at=now or row.claimed_at)
        self._log[row.id] = row
        if job is not None:
            self._store(job_rules.released(job, row))

    def _end_left(self, job_id: JobId) -> None:
        for row in list(self._left(job_id)):
            if not job_rules.is_wanted(self._jobs.get(job_id), row):
                self._release(row, row.status)

    # ------------------------------------------------------------------ the log

    async def log_of(
        self,
        job: JobId | None = None,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        found = (row for row in self._rows(job) if status in (None, row.status))
        rows = (row for row in found if before is None or row.cursor < before)
        return sorted(rows, key=_newest, reverse=True)[:limit]

    async def logged(self, occurrence: OccurrenceId) -> LoggedOccurrence | None:
        return self._log.get(occurrence)

    async def job_stats(self, job: JobId | None, *, since: datetime) -> JobStats:
        return job_rules.stats(row for row in self._rows(job) if row.scheduled_at >= since)

    def _rows(self, job: JobId | None) -> Collection[LoggedOccurrence]:
        if job is None:
            return self._log.values()
        return [self._log[one] for one in self._of_job.get(job, ())]

    def _left(self, job_id: JobId) -> list[LoggedOccurrence]:
        """Return the released occurrences of a job that have not ended."""
        rows = self._rows(job_id)
        return [row for row in rows if row.node is None and row.finished_at is None]

    def _claimed_by(self, nodes: Collection[NodeId]) -> list[LoggedOccurrence]:
        return [row for row in self._log.values() if row.node is not None and row.node in nodes]

    def _forget(self, rows: Collection[LoggedOccurrence]) -> None:
        for row in rows:
            del self._log[row.id], self._of_job[row.job][row.id]
            if not self._of_job[row.job]:
                del self._of_job[row.job]

    # ------------------------------------------------------------------ nodes

    async def time(self) -> datetime | None:
        return None

    async def join(self, node: Node) -> None:
        known = self._nodes.get(node.id, node)
        self._nodes[node.id] = replace(known, lease_until=node.lease_until)
        self._notify(Notice.NODES)

    async def renew(
        self,
        node: NodeId,
        *,
        until: datetime,
        state: NodeState | None = None,
        clock_set_back: bool = False,
    ) -> Renewed | None:
        known = self._nodes.get(node)
        if known is None:
            return None
        until = until if clock_set_back else max(known.lease_until, until)
        self._nodes[node] = replace(known, lease_until=until, state=state or known.state)
        return Renewed(among_others=len(self._nodes) > 1)

    async def end_lease(self, node: NodeId, *, now: datetime) -> None:
        if (known := self._nodes.get(node)) is not None:
            self._nodes[node] = replace(known, lease_until=now)

    async def leave(self, node: NodeId, *, now: datetime) -> None:
        if node in self._nodes:
            self._free([node], OccurrenceStatus.INTERRUPTED, now)

    async def nodes(self) -> list[Node]:
        return sorted(self._nodes.values(), key=lambda node: (node.started_at, node.id))

    async def recover(
        self,
        *,
        now: datetime,
        max_attempts: int,
        apology: str,
        only: Collection[NodeId] | None = None,
    ) -> RecoveryReport:
        del max_attempts, apology  # of messages
        expired = [node.id for node in await self.nodes() if not node.is_live(now)]
        dead = [node for node in expired if only is None or node in only]
        if dead:
            self._free(dead, OccurrenceStatus.LOST, now)
        return RecoveryReport(tuple(dead))

    def _free(self, nodes: Collection[NodeId], status: OccurrenceStatus, now: datetime) -> None:
        """Release what nodes have claimed, and remove them."""
        for row in self._claimed_by(nodes):
            self._release(row, status, now)
        for node in nodes:
            del self._nodes[node]
        self._notify(Notice.CRON, Notice.NODES)

    def _check_live(self, node: NodeId) -> None:
        if node not in self._nodes:
            raise Fenced(f"node {node} is not alive")
