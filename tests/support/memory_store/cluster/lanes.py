"""Lanes that all nodes share."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.ids import NodeId
from goclaw_py.records import LaneGrant, LaneShare, Notice
from goclaw_py.store import rules
from tests.support.memory_store.tables import MemoryPart


class MemoryLanes(MemoryPart):
    """Implements ``LaneStore``."""

    async def share(self, node: NodeId, share: LaneShare, *, now: datetime) -> LaneGrant:
        if node not in self._db.nodes:
            return LaneGrant()
        line = self._db.lane_permits.of(share.lane)
        own = {key: one for key, one in line.items() if one.node == node}
        asked = rules.lane_request(
            share,
            [key for key, one in own.items() if one.granted],
            [key for key, one in own.items() if not one.granted],
        )
        for key in asked.given_up:
            del line[key]
        for _ in range(asked.more):
            self._db.lane_permits.enter(share.lane, node)
        free = max(share.size - sum(one.granted for one in line.values()), 0)
        waiting = [key for key, one in line.items() if not one.granted]
        given = [key for key in waiting if self._db.is_live(line[key].node, now)][:free]
        for key in given:
            line[key].granted = True
        if any(line[key].node != node for key in given):
            self._db.notify(Notice.LANES)
        here = (key for key in given if line[key].node == node)
        elsewhere = sum(one.granted and one.node != node for one in line.values())
        return LaneGrant((*asked.had, *here), elsewhere)
