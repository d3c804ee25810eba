"""Lanes that all nodes share."""

from __future__ import annotations

from goclaw_py.core.ids import NodeId
from goclaw_py.ports.store import LaneShare, Notice
from goclaw_py.store import rules
from goclaw_py.store.postgres.part import Part, notify
from goclaw_py.store.sql import queries

_SQL = queries("lanes")


class Lanes(Part):
    """Implements ``LaneStore``."""

    async def share(self, node: NodeId, share: LaneShare) -> list[int]:
        """A node that has not joined, or was declared dead, gets nothing."""
        lane = share.lane
        async with self._pool.transaction() as connection:
            if await connection.row(_SQL["lock"], lane, node) is None:
                return []
            own = await connection.fetch(_SQL["own"], lane, node)
            granted = [row["id"] for row in own if row["granted"]]
            waiting = [row["id"] for row in own if not row["granted"]]
            asked = rules.asked_of_lane(share, granted, waiting)
            if asked.given_up:
                await connection.fetch(_SQL["give_back"], node, asked.given_up)
            if asked.more:
                await connection.fetch(_SQL["line_up"], lane, node, asked.more)
            known = await connection.row(_SQL["taken"], lane)
            free = share.size - (0 if known is None else known["taken"])
            given = await connection.fetch(_SQL["grant"], lane, free) if free > 0 else []
            if any(row["node"] != node for row in given):
                await notify(connection, [Notice.LANES])
        return [*asked.had, *sorted(row["id"] for row in given if row["node"] == node)]
