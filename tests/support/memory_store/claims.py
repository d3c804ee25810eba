"""Ending and releasing claims of jobs and heartbeats."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import HeartbeatRunId, JobId, NodeId
from goclaw_py.core.run_events import Usage
from goclaw_py.records import Notice
from goclaw_py.schedule.heartbeat import grid
from goclaw_py.schedule.heartbeat.models import HeartbeatRun, HeartbeatRunEnd, HeartbeatRunStatus
from goclaw_py.schedule.jobs.execution_models import (
    LoggedOccurrence,
    OccurrenceEnd,
    OccurrenceStatus,
)
from goclaw_py.store import heartbeat_rules
from goclaw_py.store.text import storable
from tests.support.memory_store.approvals import stop_questions
from tests.support.memory_store.tables import MemoryDatabase


def check_holder(
    what: str, row: LoggedOccurrence | HeartbeatRun | None, node: NodeId | None
) -> None:
    """Raise ``Fenced`` if an unfinished row is not claimed by this node."""
    if row is not None and row.finished_at is None and row.node != node:
        raise Fenced(f"{what} {row.id} is not this node's any more")


def end_occurrence(database: MemoryDatabase, ended: OccurrenceEnd) -> bool:
    """End an occurrence. Returns False if it has ended or is not stored."""
    row = database.cron.logs.get(ended.id)
    if row is None or row.finished_at is not None:
        return False
    used = database.used(database.cron.runs.get(row.id, ()))
    database.cron.end(row, ended if used is None else replace(ended, usage=used))
    return True


def let_go(
    database: MemoryDatabase,
    rows: Collection[LoggedOccurrence],
    status: OccurrenceStatus,
    now: datetime | None = None,
) -> None:
    """Release occurrences; those that cannot be claimed again end at ``now``.

    Without ``now`` they end with their last run.
    """
    for row in rows:
        runs = database.cron.runs.get(row.id, ())
        ends = [end.finished_at for end in (database.runs[run].end for run in runs) if end]
        ended_at = now or max(ends, default=row.claimed_at)
        known = replace(row, usage=database.used(database.cron.runs.get(row.id, ())))
        database.cron.let_go(
            known, status, ended_at, database.began(database.cron.runs.get(row.id, ()))
        )


async def end_left(database: MemoryDatabase, job: JobId) -> None:
    """End released occurrences of a job that was deleted or rescheduled.

    They would never be claimed, and stay open forever (SPEC CRON-11).
    """
    for row in database.cron.left_of(job):
        let_go(database, [row], row.status)
        await stop_questions(database, row.id, None)


def end_heartbeat_run(database: MemoryDatabase, ended: HeartbeatRunEnd) -> bool:
    """End a heartbeat run. Returns False if it has ended or is not stored."""
    ended = storable(ended)
    row = database.heartbeat_runs.rows.get(ended.id)
    if row is None or row.finished_at is not None:
        return False
    database.heartbeat_runs.end(
        row,
        replace(
            ended,
            usage=_used(database, row.id) if ended.usage is None else ended.usage,
            started_at=ended.started_at
            or database.began(database.heartbeat_runs.runs.get(row.id, ())),
        ),
    )
    heartbeat = database.heartbeat_runs.heartbeats[row.agent]
    next_at = grid.due_from(heartbeat, wakes=False)
    if heartbeat.wake_at is not None or (next_at is not None and next_at <= ended.finished_at):
        database.notify(Notice.CRON)
    return True


def give_back(database: MemoryDatabase, rows: Collection[HeartbeatRun]) -> None:
    """Release claimed heartbeat runs, and send a notice."""
    for row in rows:
        database.heartbeat_runs.give_back(row, _used(database, row.id))
    if rows:
        database.notify(Notice.CRON)


def release_claims(
    database: MemoryDatabase,
    nodes: Collection[NodeId],
    now: datetime,
    *,
    died: bool,
    only: Collection[str] | None = None,
) -> None:
    """Release the unfinished claims of nodes, or ``only`` some of them.

    Runs in progress are lost if the nodes ``died``.
    """
    left = [one for one in database.cron.claimed_by(nodes) if only is None or one.id in only]
    let_go(database, left, OccurrenceStatus.LOST if died else OccurrenceStatus.INTERRUPTED, now)
    rows = database.heartbeat_runs.claimed_by(nodes)
    rows = [row for row in rows if only is None or row.id in only]
    began = {
        row.id: database.attempts(database.heartbeat_runs.runs.get(row.id, ())) for row in rows
    }
    lost = [row for row in rows if died and began[row.id]]
    for row in lost:
        last = HeartbeatRunEnd(
            row.id, row.agent, HeartbeatRunStatus.LOST, now, detail=heartbeat_rules.LOST
        )
        end_heartbeat_run(database, replace(last, attempts=began[row.id]))
    give_back(database, [row for row in rows if row not in lost])
    if left or lost:
        database.notify(Notice.CRON)


def _used(database: MemoryDatabase, heartbeat_run: HeartbeatRunId) -> Usage | None:
    """Return the usage of its agent runs and their child runs; None if all are unknown."""
    runs = (
        database.heartbeat_runs.runs.get(heartbeat_run, ()),
        database.heartbeat_runs.paid.get(heartbeat_run, ()),
    )
    return database.used([*runs[0], *runs[1]])
