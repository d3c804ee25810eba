"""Ending and releasing claims of jobs and heartbeats, alone or in other transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import orjson

from goclaw_py.core.errors import Fenced, StoreError
from goclaw_py.core.ids import HeartbeatRunId, JobId, NodeId, OccurrenceId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.records import Notice, RunEnd
from goclaw_py.schedule.heartbeat.models import HeartbeatRunEnd, HeartbeatRunStatus
from goclaw_py.schedule.jobs.execution_models import OccurrenceEnd, OccurrenceStatus
from goclaw_py.store import heartbeat_rules
from goclaw_py.store.postgres.heartbeat import rows as heartbeat_run_rows
from goclaw_py.store.postgres.jobs import rows as job_rows
from goclaw_py.store.postgres.part import enqueue_each, notify
from goclaw_py.store.postgres.pool import Connection, Pool, Row
from goclaw_py.store.postgres.runs.approvals import stop_questions
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("claims")
_JOBS = queries("occurrences")
_HEARTBEAT_RUNS = queries("heartbeat_runs")


class EndOfClaim(Protocol):
    """The end of something that was claimed."""

    @property
    def id(self) -> str:
        """The id of its row."""

    @property
    def finished_at(self) -> datetime:
        """When it ended."""


EndT = TypeVar("EndT", bound=EndOfClaim)


@dataclass(frozen=True, slots=True)
class ClaimEnding(Generic[EndT]):
    """An end with its messages; ``node`` holds the claim, None: no node does."""

    end: EndT
    say: Sequence[OutboundMessage]
    node: NodeId | None


class LockedClaims(ABC, Generic[EndT]):
    """Claims that are about to end, locked until the end of the transaction."""

    what: ClassVar[str]

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows

    @classmethod
    @abstractmethod
    async def of(cls, connection: Connection, ends: Iterable[EndT]) -> Self:
        """Lock claims, after the sessions of their runs."""

    @abstractmethod
    async def store(self, connection: Connection, ends: Mapping[str, EndT]) -> None:
        """Store ends."""

    def is_open(self, end: EndT) -> bool:
        """Return whether it is stored and has not ended."""
        row = self._rows.get(storable(end.id))
        return row is not None and row["finished_at"] is None

    def refusal(self, end: EndT | None, node: NodeId | None) -> Fenced | None:
        """Return why a node cannot end it; None if it can, or if it has ended."""
        if end is None or not self.is_open(end):
            return None
        if self._rows[storable(end.id)]["node"] == node:
            return None
        return not_yours(self.what, end.id)

    async def end(self, connection: Connection, ends: Iterable[EndT]) -> None:
        """End those that have not ended, each once."""
        ending: dict[str, EndT] = {}
        for end in ends:
            if self.is_open(end):
                ending.setdefault(storable(end.id), storable(end))
        if ending:
            await self.store(connection, ending)


async def end_claims(
    pool: Pool,
    locking: type[LockedClaims[EndT]],
    endings: Sequence[ClaimEnding[EndT]],
    messages_of: Callable[[ClaimEnding[EndT]], Iterable[OutboundMessage]],
) -> list[StoreError | None]:
    """End claims in one transaction, each with its messages; return the refusals."""
    async with pool.transaction() as connection:
        locked = await locking.of(connection, [one.end for one in endings])
        refused = [locked.refusal(one.end, one.node) for one in endings]
        first: dict[str, ClaimEnding[EndT]] = {}
        for one, error in zip(endings, refused, strict=True):
            if error is None and locked.is_open(one.end):
                first.setdefault(storable(one.end.id), one)
        await locked.end(connection, [one.end for one in first.values()])
        said = [
            (one.end.finished_at, message) for one in first.values() for message in messages_of(one)
        ]
        await enqueue_each(connection, said)
    return [*refused]


async def check_alive(connection: Connection, node: NodeId) -> None:
    """Lock a node against recovery. Raises ``Fenced`` if it was recovered."""
    if await connection.row(_SQL["lock_node"], node) is None:
        raise Fenced(f"node {node} is not alive")


def not_yours(what: str, claim: str) -> Fenced:
    """Return the error for a node that does not hold a claim."""
    return Fenced(f"{what} {claim} is not this node's any more")


# -------------------------------------------------------------------- occurrences of jobs


class LockedOccurrences(LockedClaims[OccurrenceEnd]):
    """Occurrences that are about to end, locked with their jobs."""

    what = "occurrence"

    @classmethod
    async def of(cls, connection: Connection, ends: Iterable[OccurrenceEnd]) -> Self:
        pairs = {(storable(end.id), storable(end.job)) for end in ends}
        return cls(await _lock(connection, pairs))

    async def store(self, connection: Connection, ends: Mapping[str, OccurrenceEnd]) -> None:
        jobs = [self._rows[id_]["job"] for id_ in ends]
        lines = orjson.dumps([job_rows.end_line(end) for end in ends.values()]).decode()
        await connection.fetch(_JOBS["end"], lines, list(ends), jobs)
        now = max(end.finished_at for end in ends.values())
        await stop_questions(connection, [end.id for end in ends.values()], now)
        await connection.fetch(_JOBS["prune"], jobs, [end.keep for end in ends.values()])


async def release_occurrences(
    connection: Connection,
    pairs: Sequence[Row],
    nodes: Sequence[NodeId],
    status: OccurrenceStatus,
    now: datetime | None = None,
) -> None:
    """Release occurrences of these nodes, and send a notice.

    ``pairs`` contain their ids and their jobs. Those that cannot be claimed again end at ``now``,
    or without it with their last run.
    """
    locked = await _lock(connection, {(row["id"], row["job"]) for row in pairs})
    mine = [row["id"] for row in locked.values() if row["node"] in nodes]
    if mine:
        await connection.fetch(_JOBS["release"], mine, status, now)
        await notify(connection, [Notice.CRON])


async def end_left(connection: Connection, job: JobId) -> None:
    """End released occurrences of a locked job that was deleted or rescheduled.

    They would never be claimed, and stay open forever (SPEC CRON-11).
    """
    left = await connection.fetch(_JOBS["left_of"], job)
    if left:
        ids = [row["id"] for row in left]
        await connection.fetch(_JOBS["release"], ids, None, None)
        await stop_questions(connection, ids, None)


async def _lock(
    connection: Connection, pairs: Iterable[tuple[OccurrenceId, str]]
) -> dict[str, Row]:
    """Lock occurrences after their jobs, which may be deleted."""
    known = dict(pairs)
    if not known:
        return {}
    locked = await connection.fetch(_JOBS["lock"], list(known), list(set(known.values())))
    return {row["id"]: row for row in locked}


# -------------------------------------------------------------------- heartbeat runs


class LockedHeartbeatRuns(LockedClaims[HeartbeatRunEnd]):
    """Heartbeat runs that are about to end, locked with their heartbeats."""

    what = "heartbeat_run"

    @classmethod
    async def of(cls, connection: Connection, ends: Iterable[HeartbeatRunEnd]) -> Self:
        """See ``LockedClaims``. Locked after the occurrences of jobs."""
        agents = {storable(end.id): storable(end.agent) for end in ends}
        if not agents:
            return cls({})
        locked = await connection.fetch(
            _HEARTBEAT_RUNS["lock_heartbeat_runs"], list(agents), list(set(agents.values()))
        )
        return cls({row["id"]: row for row in locked})

    async def store(self, connection: Connection, ends: Mapping[str, HeartbeatRunEnd]) -> None:
        await end_heartbeat_runs(connection, ends.values())


async def end_heartbeat_runs(
    connection: Connection,
    ends: Collection[HeartbeatRunEnd],
    holders: Sequence[NodeId | None] | None = None,
) -> set[HeartbeatRunId]:
    """End unfinished runs of different heartbeats, without messages.

    Runs with a holder that does not hold them are refused, and returned.
    """
    if not ends:
        return set()
    told = await connection.row(
        _HEARTBEAT_RUNS["end"],
        orjson.dumps(
            [
                heartbeat_run_rows.end_line(*one)
                for one in zip(ends, holders or [None] * len(ends), strict=True)
            ]
        ).decode(),
        [end.id for end in ends],
        heartbeat_rules.KEPT_ROWS,
        heartbeat_rules.COUNTED,
    )
    assert told is not None
    if told["due"]:
        await notify(connection, [Notice.CRON])
    return set(told["refused"])


async def release_heartbeat_runs(connection: Connection, locked: Sequence[Row]) -> None:
    """Release the runs of locked heartbeats, and send a notice."""
    if locked:
        await connection.fetch(
            _HEARTBEAT_RUNS["release"],
            [row["heartbeat_run"] for row in locked],
            [row["agent"] for row in locked],
        )
        await notify(connection, [Notice.CRON])


# -------------------------------------------------------------------- both


async def release_claims(
    connection: Connection,
    nodes: Sequence[NodeId],
    now: datetime,
    *,
    died: bool,
    only: Sequence[str] | None = None,
) -> None:
    """Release the unfinished claims of locked nodes, whose agent runs have ended.

    A heartbeat run is lost if its node ``died`` while its agent was running. ``only`` are ids.
    """
    pairs = await connection.fetch(_JOBS["claimed_by"], nodes, only)
    status = OccurrenceStatus.LOST if died else OccurrenceStatus.INTERRUPTED
    await release_occurrences(connection, pairs, nodes, status, now)
    locked = await connection.fetch(_HEARTBEAT_RUNS["lock_claimed"], list(nodes), only)
    if not locked:
        return
    attempts: dict[str, int] = {}
    if died:
        found = await connection.fetch(
            _HEARTBEAT_RUNS["attempts"], [row["heartbeat_run"] for row in locked]
        )
        attempts = {row["heartbeat_run"]: row["attempts"] for row in found}
    lost = {
        row["heartbeat_run"]: HeartbeatRunEnd(
            row["heartbeat_run"],
            row["agent"],
            HeartbeatRunStatus.LOST,
            now,
            detail=heartbeat_rules.LOST,
            attempts=attempts[row["heartbeat_run"]],
        )
        for row in locked
        if row["heartbeat_run"] in attempts
    }
    await end_heartbeat_runs(connection, lost.values())
    await release_heartbeat_runs(
        connection, [row for row in locked if row["heartbeat_run"] not in lost]
    )
    await notify(connection, [Notice.CRON])


class RunSubjects:
    """The occurrences and heartbeat runs of ending agent runs, locked."""

    def __init__(
        self,
        ends: Sequence[RunEnd],
        of_jobs: LockedOccurrences,
        of_heartbeat_runs: LockedHeartbeatRuns,
    ) -> None:
        self._runs = {storable(end.id) for end in ends}
        self._of_jobs = of_jobs
        self._of_heartbeat_runs = of_heartbeat_runs

    @classmethod
    async def of(cls, connection: Connection, ends: Sequence[RunEnd]) -> Self:
        """Lock what ends with runs that have not ended yet."""
        return cls(
            ends,
            await LockedOccurrences.of(
                connection, [end.occurrence for end in ends if end.occurrence]
            ),
            await LockedHeartbeatRuns.of(
                connection, [end.heartbeat_run for end in ends if end.heartbeat_run]
            ),
        )

    def refusal(self, end: RunEnd, node: NodeId) -> StoreError | None:
        """Return why a node cannot end the subject of a run; None if it can, or if it has ended."""
        if storable(end.id) not in self._runs:
            return None
        return self._of_jobs.refusal(end.occurrence, node) or self._of_heartbeat_runs.refusal(
            end.heartbeat_run, node
        )

    def silenced(self, ends: Iterable[RunEnd]) -> list[RunEnd]:
        """Return the ends, without messages about subjects that have ended already."""
        silenced: list[RunEnd] = []
        seen: set[str] = set()
        for end in ends:
            over = set[str]()
            ending = set[str]()
            if storable(end.id) in self._runs and (job := end.occurrence):
                (ending if self._of_jobs.is_open(job) else over).add(storable(job.id))
            if storable(end.id) in self._runs and (heartbeat_run := end.heartbeat_run):
                (ending if self._of_heartbeat_runs.is_open(heartbeat_run) else over).add(
                    storable(heartbeat_run.id)
                )
            silenced.append(replace(end, say=()) if over or ending & seen else end)
            seen |= ending
        return silenced

    async def end(self, connection: Connection, ends: Iterable[RunEnd]) -> None:
        """End the subjects, after the runs, since these count for their usage."""
        mine = [end for end in ends if storable(end.id) in self._runs]
        await self._of_jobs.end(connection, [end.occurrence for end in mine if end.occurrence])
        await self._of_heartbeat_runs.end(
            connection, [end.heartbeat_run for end in mine if end.heartbeat_run]
        )
