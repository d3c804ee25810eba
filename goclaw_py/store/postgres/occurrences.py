"""The times at which jobs are due, and what became of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from goclaw_py.core.errors import Fenced, StoreError, UnknownJob
from goclaw_py.core.ids import JobId, NodeId, OccurrenceId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.occurrence import Claimed, JobStats, Logged, Status
from goclaw_py.ports.store import EndedOccurrence, Notice
from goclaw_py.store import job_rules
from goclaw_py.store.postgres import job_rows
from goclaw_py.store.postgres.endings import Locked, let_go
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.part import Part
from goclaw_py.store.postgres.pool import Connection, Pool
from goclaw_py.store.postgres.rows import outbox_columns
from goclaw_py.store.sql import queries

_SQL = queries("occurrences")


class _Ending(NamedTuple):
    ends: Sequence[EndedOccurrence]
    node: NodeId


class Occurrences(Part):
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

    async def claim_due(
        self, node: NodeId, *, now: datetime, limit: int, ids: Sequence[OccurrenceId]
    ) -> list[Claimed]:
        """Costs as much as there is due."""
        most = min(limit, len(ids))
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["claim_due"], node, now, most, list(ids[:most]))
        if not found[0]["alive"]:
            raise Fenced(f"node {node} is not alive")
        return [job_rows.claimed(row, now) for row in found if row["id"] is not None]

    async def claim_now(
        self, node: NodeId, job_id: JobId, *, now: datetime, occurrence: OccurrenceId
    ) -> Claimed | None:
        """The schedule waits until it has ended."""
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["lock_node"], node) is None:
                raise Fenced(f"node {node} is not alive")
            row = await connection.row(_SQL["lock_job"], job_id)
            if row is None:
                raise UnknownJob(job_id)
            if row["running"] is not None:
                return None
            await connection.fetch(_SQL["claim_now"], job_id, occurrence, now, node)
        job = replace(job_rows.job(row), running=occurrence)
        return Claimed(occurrence, job, now, now, by_hand=True)

    async def end_occurrences(self, ends: Sequence[EndedOccurrence], *, node: NodeId) -> None:
        """One that is not known any more, since its job's log was deleted, counts as ended."""
        await self._ends(_Ending(ends, node))

    async def _end(self, endings: Sequence[_Ending]) -> list[StoreError | None]:
        async with self._pool.transaction() as connection:
            locked = await Locked.of(
                connection, [one.end for ending in endings for one in ending.ends]
            )
            refused = [
                next(filter(None, (locked.refusal(one.end, node) for one in ends)), None)
                for ends, node in endings
            ]
            first: dict[OccurrenceId, EndedOccurrence] = {}
            for ending, error in zip(endings, refused, strict=True):
                for one in ending.ends if error is None else ():
                    if locked.is_open(one.end):
                        first.setdefault(one.end.id, one)
            await locked.end(connection, [one.end for one in first.values()])
            await _say(connection, list(first.values()))
        return [*refused]

    async def give_back(
        self, ids: Collection[OccurrenceId], *, node: NodeId, status: Status
    ) -> None:
        """What is not this node's is left alone.

        One by hand, and one whose job was changed so that it is due at another time, ends for good.
        """
        async with self._pool.transaction() as connection:
            pairs = await connection.fetch(_SQL["jobs_of"], list(ids))
            await let_go(connection, pairs, [node], status)

    async def log_of(
        self, job: JobId | None = None, *, limit: int = 50, status: Status | None = None
    ) -> list[Logged]:
        """The order is that of the times at which they were due."""
        async with self._pool.connection() as connection:
            if job is None:
                found = await connection.fetch(_SQL["log"], limit, status)
            else:
                found = await connection.fetch(_SQL["log_of_job"], limit, status, job)
        return [job_rows.logged(row) for row in found]

    async def logged(self, occurrence: OccurrenceId) -> Logged | None:
        """None if it is not kept any more."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["logged"], occurrence)
        return None if row is None else job_rows.logged(row)

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


async def _say(connection: Connection, ended: Sequence[EndedOccurrence]) -> None:
    """Put what is said about occurrences into the outbox, and tell the senders."""
    said: list[tuple[datetime, OutboundMessage]] = [
        (one.end.finished_at, message)
        for one in ended
        for message in job_rules.marked(one.say, one.end.id)
    ]
    if said:
        await connection.fetch(
            _SQL["say"],
            Notice.OUTBOX,
            [at for at, _ in said],
            *outbox_columns([message for _, message in said]),
        )
