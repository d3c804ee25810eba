"""Tables of jobs and occurrences in memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Literal

from goclaw_py.core.ids import JobId, NodeId, OccurrenceId, Owner, RunId, SessionKey
from goclaw_py.records import NewRun
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.schedule.jobs.execution_models import (
    UNTOLD,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    Why,
)
from goclaw_py.schedule.jobs.job_json import job_json
from goclaw_py.schedule.jobs.models import FixedMessage, Job, JobState
from tests.support.memory_store import sql_rules

_Moment = tuple[JobId, datetime]
"""A job and a time at which it is due."""


class JobTables:
    """The tables ``cron_jobs``, ``job_runs`` and ``owner_zones``."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, Job] = {}
        self.logs: dict[OccurrenceId, LoggedOccurrence] = {}
        """Without runs and delivery."""
        self.zones: dict[Owner, str] = {}
        self.runs: dict[OccurrenceId, list[RunId]] = {}
        """The runs of each occurrence, in order of their starts."""
        self.delivers: dict[JobId, tuple[OccurrenceId, bool]] = {}
        """Jobs that are deleted once their result is delivered, and whether their log is too."""
        self.waiting: dict[OccurrenceId, SessionKey] = {}
        """Unclaimed occurrences that wait, with the session of their run."""
        self.waited: dict[OccurrenceId, SessionKey] = {}
        """Claimed manual occurrences that have waited for a session."""
        self._slugs: dict[Owner, dict[str, JobId]] = {}
        self._of_job: dict[JobId, dict[OccurrenceId, None]] = {}
        self._open: dict[_Moment, OccurrenceId] = {}
        """Scheduled occurrences that have not ended."""
        self._line: list[tuple[datetime, JobId]] = []
        """A heap of all jobs that may be claimed; it also contains outdated entries."""

    # ------------------------------------------------------------------ jobs

    def slugs(self, owner: Owner) -> dict[str, JobId]:
        return self._slugs.get(owner, {})

    def put(self, job: Job) -> None:
        """Store a job."""
        self._forget_slug(job.id)
        self.jobs[job.id] = job
        self._slugs.setdefault(job.owner, {})[job.spec.slug] = job.id
        if job.next_run_at is not None and job_rules.is_free(job):
            heapq.heappush(self._line, (job.next_run_at, job.id))
        if len(self._line) > 2 * len(self.jobs) + 64:
            self._line = [
                (each.next_run_at, each.id)
                for each in self.jobs.values()
                if each.next_run_at is not None and job_rules.is_free(each)
            ]
            heapq.heapify(self._line)

    def remove(self, job: JobId, *, forget: bool) -> None:
        """Remove a job, with ``forget`` also its log."""
        self.delivers.pop(job, None)
        self._forget_slug(job)
        del self.jobs[job]
        if forget:
            self.forget(job)

    def forget(self, job: JobId) -> None:
        """Remove the log of a job."""
        for row in tuple(self._of_job.get(job, ())):
            self._drop(row)

    def _forget_slug(self, job: JobId) -> None:
        known = self.jobs.get(job)
        if known is not None:
            slugs = self._slugs[known.owner]
            del slugs[known.spec.slug]
            if not slugs:
                del self._slugs[known.owner]

    # ------------------------------------------------------------------ claims

    def first(self) -> Job | None:
        """Return the job that is due first, of those that may be claimed."""
        while self._line:
            due_at, job_id = self._line[0]
            job = self.jobs.get(job_id)
            if job is not None and job_rules.is_free(job) and job.next_run_at == due_at:
                return job
            heapq.heappop(self._line)
        return None

    def newest(self, job: JobId) -> LoggedOccurrence | None:
        """Return the occurrence of a job that was due last."""
        rows = (self.logs[one] for one in self._of_job.get(job, ()))
        return max(rows, key=lambda row: (row.scheduled_at, row.id), default=None)

    def first_message(self, until: datetime) -> Job | None:
        """Return the first due job with a message as payload, if it is due by then."""
        due = (job for job in self.due(until) if isinstance(job.spec.payload, FixedMessage))
        return min(due, key=lambda job: (job.next_run_at, job.id), default=None)

    def due(self, until: datetime) -> Collection[Job]:
        """Return the jobs that may be claimed and are due by then, unordered."""
        found: dict[JobId, Job] = {}
        places = [0]
        while places:
            place = places.pop()
            # No entry of a heap is earlier than the one above it.
            if place < len(self._line) and self._line[place][0] <= until:
                due_at, job_id = self._line[place]
                job = self.jobs.get(job_id)
                if job is not None and job_rules.is_free(job) and job.next_run_at == due_at:
                    found[job_id] = job
                places += (2 * place + 1, 2 * place + 2)
        return found.values()

    def is_wanted(self, row_id: OccurrenceId) -> bool:
        """Return whether the job of a claimed occurrence is still due at its time."""
        row = self.logs.get(row_id)
        return row is not None and job_rules.is_wanted(self.jobs.get(row.job), row)

    def claim(
        self,
        job: Job,
        node: NodeId,
        now: datetime,
        fresh: OccurrenceId,
        attempts: Callable[[OccurrenceId], int],
        lost: Callable[[OccurrenceId], int] | None,
    ) -> OccurrenceClaim:
        """Claim a due job: continue a released occurrence, or create one with the id ``fresh``.

        ``lost`` counts its lost runs; None if each lost claim counts.
        """
        assert job.next_run_at is not None
        left = self._open.get((job.id, job.next_run_at))
        if left is None:
            return self.enter(job, node, now, fresh, manual=False)
        row = self.logs[left]
        job = replace(job, running=row.id)
        self.put(job)
        claims = row.claims + (row.status is OccurrenceStatus.LOST)
        if lost is not None:
            claims = 1 + lost(row.id)
        self.logs[row.id] = replace(
            row,
            status=OccurrenceStatus.RUNNING,
            slug=job.spec.slug,
            owner=job.owner,
            node=node,
            claimed_at=now,
            claims=claims,
            attempts=attempts(row.id),
            definition=job_json(job),
        )
        return OccurrenceClaim(
            row.id,
            job,
            row.scheduled_at,
            now,
            claims=claims,
            attempts=attempts(row.id),
            interrupted=row.status is OccurrenceStatus.INTERRUPTED,
            stopped=row.why is Why.STOPPED,
        )

    def enter(
        self, job: Job, node: NodeId, now: datetime, fresh: OccurrenceId, *, manual: bool
    ) -> OccurrenceClaim:
        """Claim a job without a run, with a new occurrence."""
        due_at = now if manual or job.next_run_at is None else job.next_run_at
        job = replace(job, running=fresh)
        self.put(job)
        self.logs[fresh] = LoggedOccurrence(
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
        if not manual:
            self._open[job.id, due_at] = fresh
        return OccurrenceClaim(fresh, job, due_at, now, manual=manual)

    def wait(
        self, row: LoggedOccurrence, session: SessionKey, why: Literal[Why.APPROVAL] | None = None
    ) -> None:
        """Let a claimed occurrence wait for a session, or for an answer to a question of its run.

        Its job stays marked as running.
        """
        self.waiting[row.id] = session
        self.waited.pop(row.id, None)
        self.logs[row.id] = replace(
            row,
            status=OccurrenceStatus.WAITING,
            why=why,
            node=None,
            waits_for=session if why is None else None,
        )

    def answered(self, row_id: OccurrenceId | None) -> bool:
        """Let an occurrence wait only for its session; return False if it waits for no answer."""
        row = None if row_id is None else self.logs.get(row_id)
        if row is None or row.why is not Why.APPROVAL:
            return False
        self.wait(row, self.waiting[row.id])
        return True

    def in_line(self) -> list[LoggedOccurrence]:
        """Return the occurrences that wait, the first due first."""
        rows = map(self.logs.__getitem__, self.waiting)
        return sorted(rows, key=lambda row: (row.scheduled_at, row.id))

    def claim_waiting(self, row: LoggedOccurrence, node: NodeId, attempts: int) -> None:
        session = self.waiting.pop(row.id)
        if row.manual:
            self.waited[row.id] = session
        self.logs[row.id] = replace(
            row, status=OccurrenceStatus.RUNNING, node=node, waits_for=None, attempts=attempts
        )

    # ------------------------------------------------------------------ ends

    def end(self, row: LoggedOccurrence, end: OccurrenceEnd) -> None:
        """End an occurrence and update its job."""
        self._close(
            replace(
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
        )
        job = self.jobs.get(row.job)
        if job is not None:
            how = job_rules.applied(job, end, row.scheduled_at, manual=row.manual)
            update = end.update if how is job_rules.AppliedEnd.ALL else None
            self.delivers.pop(job.id, None)
            if update is not None and update.delete and not update.when_delivered:
                self.remove(job.id, forget=update.forget)
            else:
                self.put(job_rules.after(job, end, how))
                if update is not None and update.delete:
                    self.delivers[job.id] = (row.id, update.forget)
        self._prune(row.job, end.keep)

    def undelivered(self, row: LoggedOccurrence, error: str) -> None:
        self.logs[row.id] = replace(row, status=OccurrenceStatus.UNDELIVERED, error=error)
        if self.delivers.get(row.job, ("", False))[0] == row.id:
            del self.delivers[row.job]
        job = self.jobs.get(row.job)
        if job is not None and job.last_run_at == (row.started_at or row.finished_at):
            status = OccurrenceStatus.UNDELIVERED.value
            self.jobs[job.id] = replace(job, last_status=status, last_error=error)

    def delete_delivered(self, open_: Collection[OccurrenceId]) -> int:
        """Delete the jobs whose results are delivered; ``open_`` are not delivered yet."""
        over = [
            (job, forget)
            for job, (occurrence, forget) in self.delivers.items()
            if occurrence not in open_
            and self.jobs[job].state is JobState.COMPLETED
            and self.jobs[job].running is None
        ]
        for job, forget in over:
            self.remove(job, forget=forget)
        return len(over)

    def unreported(self, now: datetime) -> list[LoggedOccurrence]:
        """Return undelivered results, the oldest first; of each job only the newest."""
        newest: dict[JobId, LoggedOccurrence] = {}
        rows = [r for r in self.logs.values() if r.status in UNTOLD and r.told_at is None]
        for row in sorted(rows, key=lambda row: (row.scheduled_at, row.id)):
            if (older := newest.pop(row.job, None)) is not None:
                self.logs[older.id] = replace(older, told_at=now)
            newest[row.job] = row
        return list(newest.values())

    def left_of(self, job: JobId) -> list[LoggedOccurrence]:
        """Return the released occurrences of a job that was deleted or rescheduled."""
        rows = map(self.logs.__getitem__, self._ids(job))
        return [
            row
            for row in rows
            if (not row.manual or (row.why is Why.APPROVAL and job not in self.jobs))
            and row.node is None
            and row.finished_at is None
            and not self.is_wanted(row.id)
        ]

    def let_go(
        self, row: LoggedOccurrence, status: OccurrenceStatus, now: datetime, began: datetime | None
    ) -> None:
        """Release an occurrence; it ends if its job was deleted or rescheduled.

        The job shows this result unless it has run since.
        """
        if row.status is OccurrenceStatus.WAITING:
            del self.waiting[row.id]
            why, status = Why.BUSY, OccurrenceStatus.SKIPPED
            if row.why is Why.APPROVAL:
                why, status = Why.STOPPED, OccurrenceStatus.CANCELLED
            row = replace(row, why=why, waits_for=None)
        row = replace(row, status=status, node=None)
        again = not row.manual and self.is_wanted(row.id)
        if again:
            self.logs[row.id] = row
        else:
            row = replace(row, finished_at=now, started_at=row.started_at or began)
            self._close(row)
        job = self.jobs.get(row.job)
        if job is not None:
            self.put(job_rules.released(job, row))

    def _close(self, row: LoggedOccurrence) -> None:
        self.logs[row.id] = replace(row, waits_for=None)
        self.waiting.pop(row.id, None)
        self.waited.pop(row.id, None)
        if self._open.get((row.job, row.scheduled_at)) == row.id:
            del self._open[row.job, row.scheduled_at]

    # ------------------------------------------------------------------ the log

    def log(self, job: JobId | None) -> list[LoggedOccurrence]:
        rows = self.logs.values() if job is None else map(self.logs.__getitem__, self._ids(job))
        return sorted(rows, key=lambda row: (row.scheduled_at, row.id), reverse=True)

    def claimed_by(self, nodes: Collection[NodeId]) -> list[LoggedOccurrence]:
        """Return the occurrences that these nodes have claimed."""
        return [row for row in self.logs.values() if row.node is not None and row.node in nodes]

    def not_claimed_by(self, nodes: Collection[NodeId]) -> list[LoggedOccurrence]:
        """Return the unfinished occurrences that none of these nodes has, and that do not wait."""
        rows = [row for row in self.logs.values() if row.finished_at is None]
        return [row for row in rows if row.node not in nodes and row.id not in self.waiting]

    def forget_run(self, run: NewRun) -> None:
        """Record that a run was deleted, also for its occurrence."""
        if run.occurrence is not None:
            self.runs.pop(run.occurrence, None)

    def rename_owner(self, job: JobId, owner: Owner) -> None:
        """Change the owner of a job's occurrences."""
        for row in self._ids(job):
            self.logs[row] = replace(self.logs[row], owner=owner)

    def rename_session(self, old: SessionKey, new: SessionKey) -> None:
        """Rename the session for which occurrences wait."""
        for row in [one for one, session in self.waiting.items() if session == old]:
            self.waiting[row] = new
            waits_for = None if self.logs[row].waits_for is None else new
            self.logs[row] = replace(self.logs[row], waits_for=waits_for)

    def _ids(self, job: JobId) -> Iterator[OccurrenceId]:
        return iter(self._of_job.get(job, ()))

    def _prune(self, job: JobId, keep: int) -> None:
        if len(self._of_job.get(job, ())) > keep:
            for row in self.log(job)[keep:]:
                if row.finished_at is not None:
                    self._drop(row.id)

    def sweep_log(self, before: datetime) -> int:
        """Delete some occurrences that ended before an instant; return how many."""
        old = [
            row
            for row in self.logs.values()
            if row.finished_at is not None and max(row.scheduled_at, row.finished_at) < before
        ]
        old.sort(key=lambda row: (row.scheduled_at, row.id))
        swept = old[: job_rules.MOST_SWEPT]
        for row in swept:
            self._drop(row.id)
        return len(swept)

    def sweep_jobs(self, before: datetime) -> int:
        over = [(_last_seen(job), job.id) for job in self.jobs.values() if self._is_over(job)]
        swept = [job for last, job in sorted(over) if last < before][: job_rules.MOST_SWEPT]
        for job in swept:
            self.remove(job, forget=False)
        return len(swept)

    def _is_over(self, job: Job) -> bool:
        return job.state in sql_rules.OVER and job.running is None and job.id not in self._of_job

    def _drop(self, row_id: OccurrenceId) -> None:
        row = self.logs.pop(row_id)
        self.waiting.pop(row_id, None)
        self.waited.pop(row_id, None)
        rows = self._of_job[row.job]
        del rows[row_id]
        if not rows:
            del self._of_job[row.job]
        if self._open.get((row.job, row.scheduled_at)) == row_id:
            del self._open[row.job, row.scheduled_at]


def _last_seen(job: Job) -> datetime:
    """Return when a job last ran or was changed."""
    return max(job.updated_at, job.last_run_at or job.updated_at)
