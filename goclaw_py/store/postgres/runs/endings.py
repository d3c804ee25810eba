"""How occurrences of jobs end, or are given back, within the transactions of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Self

import orjson

from goclaw_py.jobs.execution_models import OccurrenceEnd, OccurrenceStatus
from goclaw_py.model.ids import JobId, NodeId, OccurrenceId
from goclaw_py.ports.store import Notice
from goclaw_py.store.postgres.claims import LockedClaims
from goclaw_py.store.postgres.jobs import rows as job_rows
from goclaw_py.store.postgres.part import notify
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("occurrences")


class LockedOccurrences(LockedClaims[OccurrenceEnd]):
    """Occurrences that are about to end, locked with their jobs."""

    what = "occurrence"

    @classmethod
    async def of(cls, connection: Connection, ends: Iterable[OccurrenceEnd]) -> Self:
        """See ``LockedClaims``."""
        pairs = {(storable(end.id), storable(end.job)) for end in ends}
        return cls(await _lock(connection, pairs))

    async def store(self, connection: Connection, ends: Mapping[str, OccurrenceEnd]) -> None:
        """See ``LockedClaims``."""
        jobs = [self._rows[id_]["job"] for id_ in ends]
        lines = orjson.dumps([job_rows.end_line(end) for end in ends.values()]).decode()
        await connection.fetch(_SQL["end"], lines, list(ends), jobs)
        await connection.fetch(_SQL["prune"], jobs, [end.keep for end in ends.values()])


async def let_go(
    connection: Connection,
    pairs: Sequence[Row],
    nodes: Sequence[NodeId],
    status: OccurrenceStatus,
    now: datetime | None = None,
) -> None:
    """Let occurrences be claimed again that are these nodes', and tell everybody.

    ``pairs`` name them and their jobs; without ``now`` those that cannot be claimed again end with
    the last of their runs.
    """
    locked = await _lock(connection, {(row["id"], row["job"]) for row in pairs})
    mine = [row["id"] for row in locked.values() if row["node"] in nodes]
    if mine:
        await connection.fetch(_SQL["let_go"], mine, status, now)
        await notify(connection, [Notice.CRON])


async def end_left(connection: Connection, job: JobId) -> None:
    """End what was given back of a locked job that has other plans by now, or is gone.

    Nobody would claim it, and it would stay open for ever (SPEC CRON-11).
    """
    left = await connection.fetch(_SQL["left_of"], job)
    if left:
        await connection.fetch(_SQL["let_go"], [row["id"] for row in left], None, None)


async def let_go_of(
    connection: Connection, nodes: Sequence[NodeId], status: OccurrenceStatus, now: datetime
) -> None:
    """Let others claim what some locked nodes did not end."""
    pairs = await connection.fetch(_SQL["claimed_by"], nodes)
    await let_go(connection, pairs, nodes, status, now)


async def _lock(
    connection: Connection, pairs: Iterable[tuple[OccurrenceId, str]]
) -> dict[str, Row]:
    """Lock occurrences after their jobs, which may be gone."""
    known = dict(pairs)
    if not known:
        return {}
    locked = await connection.fetch(_SQL["lock"], list(known), list(set(known.values())))
    return {row["id"]: row for row in locked}
