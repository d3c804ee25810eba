"""Lanes that all nodes share."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.ids import NodeId
from goclaw_py.records import LaneGrant, LaneShare, Notice
from goclaw_py.store import rules
from goclaw_py.store.postgres.part import PostgresPart, notify
from goclaw_py.store.sql import queries

_SQL = queries("lanes")


class PostgresLanes(PostgresPart):
    """Implements ``LaneStore``."""

    async def share(self, node: NodeId, share: LaneShare, *, now: datetime) -> LaneGrant:
        lane = share.lane
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["lock"], lane, node) is None:
                return LaneGrant()
            own = await connection.fetch(_SQL["own"], lane, node)
            granted = [row["id"] for row in own if row["granted"]]
            waiting = [row["id"] for row in own if not row["granted"]]
            asked = rules.lane_request(share, granted, waiting)
            if asked.given_up:
                await connection.fetch(_SQL["release"], node, asked.given_up)
            if asked.more:
                await connection.fetch(_SQL["enqueue_run"], lane, node, asked.more)
            known = await connection.row(_SQL["used"], lane, node)
            taken, elsewhere = (0, 0) if known is None else (known["taken"], known["elsewhere"])
            free = share.size - taken
            given = await connection.fetch(_SQL["grant"], lane, free, now) if free > 0 else []
            others = sum(row["node"] != node for row in given)
            if others:
                await notify(connection, [Notice.LANES])
        here = sorted(row["id"] for row in given if row["node"] == node)
        return LaneGrant((*asked.had, *here), elsewhere + others)
