"""The times at which jobs are due, and what became of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from goclaw_py.jobs.execution_models import (
    JobStats,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    UnreportedOccurrence,
)
from goclaw_py.model.errors import Fenced, StoreError, UnknownJob
from goclaw_py.model.ids import JobId, NodeId, OccurrenceId, SessionKey
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.pagination import Cursor
from goclaw_py.ports.store import Notice
from goclaw_py.store import job_rules, rules
from goclaw_py.store.job_reading import log_unreadable
from goclaw_py.store.postgres.claims import ClaimEnding, check_alive, end_claims
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.jobs import rows as job_rows
from goclaw_py.store.postgres.pages import place
from goclaw_py.store.postgres.part import PostgresPart, enqueue, notify
from goclaw_py.store.postgres.pool import Connection, Pool, Row
from goclaw_py.store.postgres.runs.endings import LockedOccurrences, let_go
from goclaw_py.store.sql import queries

_SQL = queries("occurrences")


_MOST_WAITING = 1000
"""So many occurrences that wait for a session one call claims."""


class PostgresOccurrences(PostgresPart):
    """Implements the rest of ``JobStore``.

    Ends that come while others are being committed share the next transaction.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._ends = self._ending(Group(self._end))

    async def next_job_due(self) -> datetime | None:
        """Reads the first entry of an index."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["next_due"])
        due_at: datetime | None = None if row is None else row["due_at"]
        return due_at

    async def crowd(self, *, until: datetime, most: int) -> int:
        """Reads so many entries of an index."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["crowd"], until, most)
        return 0 if row is None else int(row["jobs"])

    async def withdrawn(self, ids: Collection[OccurrenceId]) -> set[OccurrenceId]:
        """See ``JobStore``."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["withdrawn"], list(ids))
        return {OccurrenceId(row["id"]) for row in found}

    async def claim_due(
        self,
        node: NodeId,
        *,
        now: datetime,
        ids: Sequence[OccurrenceId],
        until: datetime | None = None,
        messages_only: bool = False,
    ) -> list[OccurrenceClaim]:
        """Costs as much as there is due."""
        until = now if until is None else until
        async with self._pool.transaction() as connection:
            found = await connection.fetch(
                _SQL["claim_due"], node, until, len(ids), list(ids), now, messages_only
            )
            if not found[0]["alive"]:
                raise Fenced(f"node {node} is not alive")
            return await _readable(connection, found, now)

    async def wait_for_sessions(
        self, sessions: Mapping[OccurrenceId, SessionKey], *, node: NodeId, now: datetime
    ) -> set[OccurrenceId]:
        """As a rule nothing is elsewhere: then one statement reads, and nothing is locked."""
        asked = (list(sessions), list(sessions.values()), node, now)
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["elsewhere"], *asked)
        if not all(row["lost"] for row in found):
            async with self._pool.transaction() as connection:
                await connection.fetch(_SQL["lock_sessions"], [row["session"] for row in found])
                found = await connection.fetch(_SQL["elsewhere"], *asked)
                waiting = [(row["id"], row["session"]) for row in found if not row["lost"]]
                if waiting:
                    await connection.fetch(
                        _SQL["wait"], *map(list, zip(*waiting, strict=True)), node
                    )
                    await notify(connection, [Notice.CRON])
        return {OccurrenceId(row["id"]) for row in found}

    async def claim_waiting(
        self, node: NodeId, *, now: datetime, unheld: bool = True
    ) -> list[OccurrenceClaim]:
        """Reads an index of those that wait."""
        async with self._pool.transaction() as connection:
            found = await connection.fetch(_SQL["claim_waiting"], node, now, unheld, _MOST_WAITING)
            claimed = await _readable(connection, found, now)
        return [replace(one, waited=True) for one in claimed]

    async def waiting_occurrences(self) -> list[OccurrenceClaim]:
        """The same index."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["waiting"])
        read = (job_rows.claimed(row, row["claimed_at"]) for row in found)
        return [replace(one, waited=True) for one in read if isinstance(one, OccurrenceClaim)]

    async def claim_now(
        self, node: NodeId, job_id: JobId, *, now: datetime, occurrence: OccurrenceId
    ) -> OccurrenceClaim | None:
        """The schedule waits until it has ended."""
        async with self._pool.transaction() as connection:
            await check_alive(connection, node)
            row = await connection.row(_SQL["lock_job"], job_id)
            if row is None:
                raise UnknownJob(job_id)
            if row["running"] not in (None, occurrence):
                return None
            job = replace(job_rows.readable_job(row), running=occurrence)
            if row["running"] is None:
                await connection.fetch(_SQL["claim_now"], job_id, occurrence, now, node)
        return OccurrenceClaim(occurrence, job, now, now, by_hand=True)

    async def end_occurrence(
        self, end: OccurrenceEnd, say: Sequence[OutboundMessage] = (), *, node: NodeId | None
    ) -> None:
        """One that is not known any more, since its job's log was deleted, counts as ended."""
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
        """What is not this node's is left alone.

        One by hand, and one whose job was changed so that it is due at another time, ends for good.
        """
        async with self._pool.transaction() as connection:
            pairs = await connection.fetch(_SQL["jobs_of"], list(ids))
            await let_go(connection, pairs, [node], status)

    async def release_unclaimed(self, known: Collection[OccurrenceId], *, node: NodeId) -> None:
        """What ends meanwhile has ended."""
        async with self._pool.transaction() as connection:
            pairs = await connection.fetch(_SQL["unknown_to"], node, list(known))
            await let_go(connection, pairs, [node], OccurrenceStatus.SKIPPED)
            await connection.fetch(_SQL["wait_again"], node, list(known))

    async def log_of(
        self,
        job: JobId | None = None,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        """The order is that of the times at which they were due."""
        page = (limit, *place(before))
        async with self._pool.connection() as connection:
            if job is not None:
                found = await connection.fetch(_SQL["log_of_job"], *page, status, job)
            elif status is not None:
                found = await connection.fetch(_SQL["log_with_status"], *page, status)
            else:
                found = await connection.fetch(_SQL["log"], *page)
        return [job_rows.logged(row) for row in found]

    async def logged(self, occurrence: OccurrenceId) -> LoggedOccurrence | None:
        """None if it is not kept any more."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["logged"], occurrence)
        return None if row is None else job_rows.logged(row)

    async def told_in(self, occurrence: OccurrenceId, target: Target) -> bool:
        """Also what is not sent yet."""
        place = (target.channel, target.account, target.chat)
        async with self._pool.connection() as connection:
            return await connection.row(_SQL["told_in"], occurrence, *place) is not None

    async def settle_results(self, *, now: datetime) -> list[UnreportedOccurrence]:
        """Reads some small indexes if there is nothing to settle."""
        since = now - job_rules.DIED_WITHIN
        async with self._pool.connection() as connection:
            jobs = [row["job"] for row in await connection.fetch(_SQL["unsettled"], since)]
        if jobs:
            async with self._pool.transaction() as connection:
                await connection.fetch(_SQL["lock_jobs"], jobs)
                await connection.fetch(_SQL["mark_undelivered"], jobs, since)
                deleted = await connection.fetch(_SQL["delete_delivered"], jobs)
                await connection.fetch(_SQL["supersede"], jobs, now)
                if deleted:
                    await notify(connection, [Notice.CRON])
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["untold"], job_rules.MOST_UNTOLD)
        return [one for row in found if (one := job_rows.untold(row)) is not None]

    async def tell_result(
        self, occurrence: OccurrenceId, say: Sequence[OutboundMessage], *, now: datetime
    ) -> bool:
        """What is said does not count as a message of the occurrence."""
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["tell_result"], occurrence, now) is None:
                return False
            await enqueue(connection, say, session=None, now=now)
        return True

    async def sweep_jobs(self, *, now: datetime) -> int:
        """Waits for nobody: what somebody else has locked is left for the next sweep."""
        before, most = now - job_rules.KEPT, job_rules.MOST_SWEPT
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_SQL["sweep_log"], before, most)
            jobs = await connection.fetch(_SQL["sweep_jobs"], before, most)
            if jobs:
                await notify(connection, [Notice.CRON])
        return len(rows) + len(jobs)

    async def job_stats(self, job: JobId | None, *, since: datetime) -> JobStats:
        """What has not ended for good does not count."""
        timed = list(job_rules.TIMED)
        async with self._pool.connection() as connection:
            if job is None:
                row = await connection.row(_SQL["stats"], since, timed)
            else:
                row = await connection.row(_SQL["stats_of_job"], since, timed, job)
        assert row is not None
        return job_rows.stats(row)


async def _readable(
    connection: Connection, found: Sequence[Row], now: datetime
) -> list[OccurrenceClaim]:
    """What was claimed; ends what this release cannot read."""
    read = [job_rows.claimed(row, now) for row in found if row["id"] is not None]
    flawed = [one for one in read if isinstance(one, OccurrenceEnd)]
    if flawed:
        await (await LockedOccurrences.of(connection, flawed)).end(connection, flawed)
    for end in flawed:
        log_unreadable(end)
    return [one for one in read if isinstance(one, OccurrenceClaim)]
