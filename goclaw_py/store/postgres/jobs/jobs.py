"""Jobs and occurrences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.errors import Fenced, SlugTaken, StoreError, TooManyJobs, UnknownJob
from goclaw_py.core.ids import JobId, NodeId, OccurrenceId, Owner, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.pagination import Cursor
from goclaw_py.records import AHEAD_AT_ONCE, MOST_COUNTED, JobPage, JobQuery, Notice
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.schedule.jobs.execution_models import (
    JobStats,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    UnreportedOccurrence,
)
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.store import rules
from goclaw_py.store.job_reading import log_unreadable
from goclaw_py.store.postgres.claims import (
    ClaimEnding,
    LockedOccurrences,
    check_alive,
    end_claims,
    end_left,
    release_occurrences,
)
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.jobs import rows
from goclaw_py.store.postgres.pages import place
from goclaw_py.store.postgres.part import PostgresPart, enqueue, notify
from goclaw_py.store.postgres.pool import Connection, Pool, Row
from goclaw_py.store.postgres.rows import TargetColumns
from goclaw_py.store.sql import queries

_SQL = queries("jobs")
_LOG = queries("occurrences")
_LAST_CHARACTER = chr(0x10FFFF)


_MOST_WAITING = 1000
"""The number of waiting occurrences that one call claims."""


class PostgresJobs(PostgresPart):
    """Implements ``GatewayJobStore``. Ends that come during a transaction share the next one."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._ends = self._ending(Group(self._end))

    async def add_job(self, job: Job, *, most: int | None) -> None:
        """Store a job; repeating it after a lost response changes nothing."""
        owner, slug = job.owner, job.spec.slug
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock_owner"], owner)
            added = await connection.row(
                _SQL["add"], rows.packed(job), owner, slug, list(job_rules.COUNTED), most
            )
            if added is not None:
                await notify(connection, [Notice.CRON])
                return
            same = await connection.row(_SQL["named"], owner, slug)
        if same is None:
            assert most is not None, "only the limit keeps out a job with a new slug"
            raise TooManyJobs(owner, most)
        if same["id"] != job.id:
            raise SlugTaken(slug)

    async def job(self, job_id: JobId) -> Job | None:
        row = await self._pool.row(_SQL["job"], job_id)
        return None if row is None else rows.job(row)

    async def find_jobs(self, text: str, *, owner: Owner | None = None) -> list[Job]:
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["with_slug"], text, owner)
            if not found:
                last = text + _LAST_CHARACTER if len(text) >= job_rules.FEWEST else text
                found = await connection.fetch(_SQL["with_id"], text, last, owner)
        return _jobs(found)

    async def jobs(self, query: JobQuery) -> JobPage:
        """Lists are read from indexes; other conditions filter their rows."""
        # One more than is asked for: whether others follow.
        page = (query.limit + 1, query.offset, MOST_COUNTED)
        if (listed := _list(query)) is not None:
            found = await self._pool.fetch(listed[0], *page, *listed[1:])
        else:
            found = await self._pool.fetch(
                _SQL["search"] if query.owner is None else _SQL["search_of_owner"],
                *page,
                *_conditions(query),
                query.order,
            )
        there = [row for row in found if row["id"] is not None]
        total = max(found[0]["total"], query.offset + len(there)) if there else found[0]["total"]
        return JobPage(tuple(_jobs(there[: query.limit])), total)

    async def job_counts(self, query: JobQuery) -> dict[JobState, int]:
        found = await self._pool.fetch(_SQL["counts"], *_conditions(replace(query, states=())))
        return {JobState(row["state"]): row["jobs"] for row in found}

    async def slugs(self, owner: Owner, prefix: str) -> frozenset[str]:
        found = await self._pool.fetch(_SQL["slugs"], owner, prefix, prefix + _LAST_CHARACTER)
        return frozenset(row["slug"] for row in found)

    async def change_job(self, job: Job, *, most: int | None = None) -> bool:
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock_owner"], job.owner)
            known = await connection.row(_SQL["lock"], job.id)
            if known is None or (known["owner"], known["revision"]) != (job.owner, job.revision):
                return False
            # What another release wrote would be lost.
            rows.readable_job(known)
            same = await connection.row(_SQL["named"], job.owner, job.spec.slug)
            if same is not None and same["id"] != job.id:
                raise SlugTaken(job.spec.slug)
            if most is not None and job_rules.comes_to_count(JobState(known["state"]), job.state):
                counted = await connection.row(
                    _SQL["count"], job.owner, list(job_rules.COUNTED), most
                )
                if counted is None:
                    raise TooManyJobs(job.owner, most)
            await connection.fetch(_SQL["change"], job.id, rows.packed(job))
            if (known["state"], known["next_run_at"]) != (job.state, job.next_run_at):
                await end_left(connection, job.id)
            await notify(connection, [Notice.CRON])
        return True

    async def delete_job(self, job_id: JobId, *, forget: bool) -> bool:
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["delete"], job_id) is None:
                return False
            await end_left(connection, job_id)
            if forget:
                await connection.fetch(_SQL["forget"], job_id)
            await notify(connection, [Notice.CRON])
        return True

    async def zone_of(self, owner: Owner) -> str | None:
        row = await self._pool.row(_SQL["zone"], owner)
        return None if row is None else str(row["zone"])

    async def choose_zone(self, owner: Owner, zone: str | None) -> None:
        if zone is None:
            await self._pool.fetch(_SQL["forget_zone"], owner)
        else:
            await self._pool.fetch(_SQL["choose_zone"], owner, zone)

    # ------------------------------------------------------------------ occurrences

    async def next_job_due(self) -> datetime | None:
        row = await self._pool.row(_LOG["next_due"])
        due_at: datetime | None = None if row is None else row["due_at"]
        return due_at

    async def jobs_ahead(self, *, now: datetime, after: str = "") -> list[Job]:
        found = await self._pool.fetch(_LOG["ahead"], now, after, AHEAD_AT_ONCE)
        return [rows.readable_job(row) for row in found if rows.is_readable(row)]

    async def replan_job(self, job: Job, next_run_at: datetime) -> bool:
        async with self._pool.transaction() as connection:
            read = (job.id, job.revision, job.next_run_at)
            if await connection.row(_LOG["replan"], *read, next_run_at) is None:
                return False
            await end_left(connection, job.id)
            await notify(connection, [Notice.CRON])
        return True

    async def crowd(self, *, until: datetime, most: int) -> int:
        row = await self._pool.row(_LOG["crowd"], until, most)
        return 0 if row is None else int(row["jobs"])

    async def withdrawn(self, ids: Collection[OccurrenceId]) -> set[OccurrenceId]:
        found = await self._pool.fetch(_LOG["withdrawn"], list(ids))
        return {OccurrenceId(row["id"]) for row in found}

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
        until = now if until is None else until
        async with self._pool.transaction() as connection:
            found = await connection.fetch(
                _LOG["claim_due"],
                node,
                until,
                len(ids),
                list(ids),
                now,
                messages_only,
                without_runs,
            )
            if not found[0]["alive"]:
                raise Fenced(f"node {node} is not alive")
            return await _readable(connection, found, now)

    async def wait_for_sessions(
        self, sessions: Mapping[OccurrenceId, SessionKey], *, node: NodeId, now: datetime
    ) -> set[OccurrenceId]:
        """Usually no session is owned by another node: then one statement reads, without locks."""
        asked = (list(sessions), list(sessions.values()), node, now)
        found = await self._pool.fetch(_LOG["elsewhere"], *asked)
        if not all(row["lost"] for row in found):
            async with self._pool.transaction() as connection:
                await connection.fetch(_LOG["lock_sessions"], [row["session"] for row in found])
                found = await connection.fetch(_LOG["elsewhere"], *asked)
                waiting = [(row["id"], row["session"]) for row in found if not row["lost"]]
                if waiting:
                    await connection.fetch(
                        _LOG["wait"], *map(list, zip(*waiting, strict=True)), node
                    )
                    await notify(connection, [Notice.CRON])
        return {OccurrenceId(row["id"]) for row in found}

    async def claim_waiting(
        self, node: NodeId, *, now: datetime, unheld: bool = True
    ) -> list[OccurrenceClaim]:
        async with self._pool.transaction() as connection:
            found = await connection.fetch(_LOG["claim_waiting"], node, now, unheld, _MOST_WAITING)
            claimed = await _readable(connection, found, now)
        return rows.waited(found, claimed)

    async def waiting_occurrences(
        self, *, asking_in: SessionKey | None = None
    ) -> list[OccurrenceClaim]:
        found = await self._pool.fetch(_LOG["waiting"], asking_in)
        read = (rows.claimed(row, row["claimed_at"]) for row in found)
        return rows.waited(found, [one for one in read if isinstance(one, OccurrenceClaim)])

    async def occurrences_elsewhere(self, nodes: Collection[NodeId]) -> list[OccurrenceClaim]:
        found = await self._pool.fetch(_LOG["not_claimed_by"], list(nodes))
        read = (rows.claimed(row, row["claimed_at"]) for row in found)
        return [one for one in read if isinstance(one, OccurrenceClaim)]

    async def claim_now(
        self, node: NodeId, job_id: JobId, *, now: datetime, occurrence: OccurrenceId
    ) -> OccurrenceClaim | None:
        async with self._pool.transaction() as connection:
            await check_alive(connection, node)
            row = await connection.row(_LOG["lock_job"], job_id)
            if row is None:
                raise UnknownJob(job_id)
            if row["running"] not in (None, occurrence):
                return None
            job = replace(rows.readable_job(row), running=occurrence)
            if row["running"] is None:
                await connection.fetch(_LOG["claim_now"], job_id, occurrence, now, node)
        return OccurrenceClaim(occurrence, job, now, now, manual=True)

    async def end_occurrence(
        self, end: OccurrenceEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId | None
    ) -> None:
        await self._ends(ClaimEnding(end, say, node))

    async def _end(self, endings: Sequence[ClaimEnding[OccurrenceEnd]]) -> list[StoreError | None]:
        return await end_claims(
            self._pool,
            LockedOccurrences,
            endings,
            lambda one: rules.marked(one.say, occurrence=one.end.id),
        )

    async def give_back(
        self, ids: Collection[OccurrenceId], *, node: NodeId, status: OccurrenceStatus
    ) -> None:
        async with self._pool.transaction() as connection:
            pairs = await connection.fetch(_LOG["jobs_of"], list(ids))
            await release_occurrences(connection, pairs, [node], status)

    async def release_unclaimed(self, known: Collection[OccurrenceId], *, node: NodeId) -> None:
        async with self._pool.transaction() as connection:
            pairs = await connection.fetch(_LOG["unknown_to"], node, list(known))
            await release_occurrences(connection, pairs, [node], OccurrenceStatus.SKIPPED)
            await connection.fetch(_LOG["wait_again"], node, list(known))

    async def log_of(
        self,
        job: JobId | None = None,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        page = (limit, *place(before))
        if job is not None:
            found = await self._pool.fetch(_LOG["log_of_job"], *page, status, job)
        elif status is not None:
            found = await self._pool.fetch(_LOG["log_with_status"], *page, status)
        else:
            found = await self._pool.fetch(_LOG["log"], *page)
        return [rows.logged(row) for row in found]

    async def logged(self, occurrence: OccurrenceId) -> LoggedOccurrence | None:
        row = await self._pool.row(_LOG["logged"], occurrence)
        return None if row is None else rows.logged(row)

    async def was_notified_in(self, occurrence: OccurrenceId, target: Target) -> bool:
        place = (target.channel, target.account, target.chat)
        return await self._pool.row(_LOG["has_message_in"], occurrence, *place) is not None

    async def settle_results(self, *, now: datetime) -> list[UnreportedOccurrence]:
        """Reads a few small indexes if there is nothing to settle."""
        since = now - job_rules.DIED_WITHIN
        jobs = [row["job"] for row in await self._pool.fetch(_LOG["unsettled"], since)]
        if jobs:
            async with self._pool.transaction() as connection:
                await connection.fetch(_LOG["lock_jobs"], jobs)
                await connection.fetch(_LOG["mark_undelivered"], jobs, since)
                deleted = await connection.fetch(_LOG["delete_delivered"], jobs)
                await connection.fetch(_LOG["supersede"], jobs, now)
                if deleted:
                    await notify(connection, [Notice.CRON])
        found = await self._pool.fetch(_LOG["not_notified"], job_rules.MOST_UNTOLD)
        return [one for row in found if (one := rows.unreported(row)) is not None]

    async def notify_result(
        self, occurrence: OccurrenceId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        async with self._pool.transaction() as connection:
            if await connection.row(_LOG["mark_result_notified"], occurrence, now) is None:
                return False
            await enqueue(connection, say, session=None, now=now)
        return True

    async def sweep_jobs(self, *, now: datetime) -> int:
        """Skip rows that another process has locked."""
        before, most = now - job_rules.KEPT, job_rules.MOST_SWEPT
        async with self._pool.connection() as connection:
            swept = await connection.fetch(_LOG["sweep_log"], before, most)
            jobs = await connection.fetch(_LOG["sweep_jobs"], before, most)
            if jobs:
                await notify(connection, [Notice.CRON])
        return len(swept) + len(jobs)

    async def job_stats(self, job: JobId | None, *, since: datetime) -> JobStats:
        timed = list(job_rules.TIMED)
        if job is None:
            row = await self._pool.row(_LOG["stats"], since, timed)
        else:
            row = await self._pool.row(_LOG["stats_of_job"], since, timed, job)
        assert row is not None
        return rows.stats(row)


async def _readable(
    connection: Connection, found: Sequence[Row], now: datetime
) -> list[OccurrenceClaim]:
    """Return the readable claims; end the others."""
    read = [rows.claimed(row, now) for row in found if row["id"] is not None]
    flawed = [one for one in read if isinstance(one, OccurrenceEnd)]
    if flawed:
        await (await LockedOccurrences.of(connection, flawed)).end(connection, flawed)
    for end in flawed:
        log_unreadable(end)
    return [one for one in read if isinstance(one, OccurrenceClaim)]


def _conditions(query: JobQuery) -> tuple[object, ...]:
    """Return the conditions of a query as arguments."""
    place = TargetColumns.of(query.target)
    return (
        query.owner,
        query.agent,
        query.name.casefold(),
        list(query.states),
        list(query.kinds),
        query.notify,
        place.channel,
        place.account,
        place.chat,
        query.created_after,
        query.created_before,
        query.next_run_before,
    )


def _list(query: JobQuery) -> tuple[str, ...] | None:
    """Return the statement for a list with an index, and its argument; None if there is none."""
    bare = replace(query, owner=None, states=(), limit=1, offset=0)
    if bare != JobQuery(limit=1):
        return None
    match query.owner, query.states:
        case None, ():
            return (_SQL["all"],)
        case owner, () if owner is not None:
            return _SQL["all_of_owner"], owner
        case None, (state,) if state is not JobState.ACTIVE:
            return _SQL["all_of_state"], state
    return None


def _jobs(found: Sequence[Row]) -> list[Job]:
    return [rows.job(row) for row in found]
