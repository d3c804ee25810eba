"""How beats end, or are given back, within the transactions of others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Self

import orjson

from goclaw_py.heartbeat.models import HeartbeatRunEnd, HeartbeatRunStatus
from goclaw_py.model.ids import HeartbeatRunId, NodeId
from goclaw_py.ports.store import Notice
from goclaw_py.store import heartbeat_rules
from goclaw_py.store.postgres.claims import LockedClaims
from goclaw_py.store.postgres.heartbeat import rows as beat_rows
from goclaw_py.store.postgres.part import notify
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("heartbeat_runs")


class LockedHeartbeatRuns(LockedClaims[HeartbeatRunEnd]):
    """Beats that are about to end, locked with their heartbeats."""

    what = "beat"

    @classmethod
    async def of(cls, connection: Connection, ends: Iterable[HeartbeatRunEnd]) -> Self:
        """See ``LockedClaims``. After the occurrences of jobs."""
        agents = {storable(end.id): storable(end.agent) for end in ends}
        if not agents:
            return cls({})
        locked = await connection.fetch(
            _SQL["lock_heartbeat_runs"], list(agents), list(set(agents.values()))
        )
        return cls({row["id"]: row for row in locked})

    async def store(self, connection: Connection, ends: Mapping[str, HeartbeatRunEnd]) -> None:
        """See ``LockedClaims``."""
        await end_heartbeat_runs(connection, ends.values())


async def end_heartbeat_runs(
    connection: Connection,
    ends: Collection[HeartbeatRunEnd],
    holders: Sequence[NodeId | None] | None = None,
) -> set[HeartbeatRunId]:
    """End beats that are open, each of another heartbeat; nothing is said of them.

    Those that name a holder which does not hold them are refused. Returns these.
    """
    if not ends:
        return set()
    told = await connection.row(
        _SQL["end"],
        orjson.dumps(
            [
                beat_rows.end_line(*one)
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


async def give_back(connection: Connection, held: Sequence[Row]) -> None:
    """Let the beats of locked heartbeats be claimed again, and tell everybody."""
    if held:
        await connection.fetch(
            _SQL["give_back"],
            [row["heartbeat_run"] for row in held],
            [row["agent"] for row in held],
        )
        await notify(connection, [Notice.CRON])


async def leave_behind(
    connection: Connection, nodes: Sequence[NodeId], now: datetime, *, died: bool
) -> None:
    """Let others claim what some locked nodes had in hand.

    Where they ``died`` while its agent worked, it is lost. The runs of the nodes have ended.
    """
    held = await connection.fetch(_SQL["lock_held"], list(nodes), None)
    if not held:
        return
    attempts: dict[str, int] = {}
    if died:
        found = await connection.fetch(_SQL["attempts"], [row["heartbeat_run"] for row in held])
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
        for row in held
        if row["heartbeat_run"] in attempts
    }
    await end_heartbeat_runs(connection, lost.values())
    await give_back(connection, [row for row in held if row["heartbeat_run"] not in lost])
    await notify(connection, [Notice.CRON])
