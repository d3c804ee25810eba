"""Tables of leases, lane slots and calls."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from goclaw_py.core.ids import LaneName, NodeId
from goclaw_py.records import NodeCall


@dataclass(slots=True)
class LeaseRecord:
    """A row of ``leases``."""

    owner: NodeId | None = None
    fence: int = 0


@dataclass(slots=True)
class PlaceRecord:
    """A row of ``lane_slots``."""

    node: NodeId
    granted: bool = False


@dataclass(slots=True)
class PlaceTable:
    """``lane_slots``, each lane in queue order."""

    lanes: dict[LaneName, dict[int, PlaceRecord]] = field(default_factory=dict)
    last_id: int = 0

    def of(self, lane: LaneName) -> dict[int, PlaceRecord]:
        """Return the slots and requests of a lane."""
        return self.lanes.setdefault(lane, {})

    def enter(self, lane: LaneName, node: NodeId) -> None:
        """Add a request."""
        self.last_id += 1
        self.of(lane)[self.last_id] = PlaceRecord(node)

    def remove(self, nodes: Collection[NodeId]) -> None:
        """Remove the slots and requests of these nodes."""
        for lane, line in self.lanes.items():
            self.lanes[lane] = {key: one for key, one in line.items() if one.node not in nodes}


@dataclass(slots=True)
class CallRecord:
    """A row of ``node_calls``."""

    node: NodeId
    call: NodeCall
    answer: str | None = None


@dataclass(slots=True)
class CallTable:
    """``node_calls``, in order of their numbers."""

    rows: dict[int, CallRecord] = field(default_factory=dict)
    last_id: int = 0

    def enter(self, node: NodeId, question: str, now: datetime) -> int:
        """Add a call; return its number."""
        self.last_id += 1
        self.rows[self.last_id] = CallRecord(node, NodeCall(self.last_id, question, now))
        return self.last_id

    def forget(self, before: datetime) -> None:
        """Delete calls older than an instant."""
        self.rows = {key: one for key, one in self.rows.items() if one.call.asked_at >= before}

    def remove(self, nodes: Collection[NodeId]) -> None:
        """Delete the calls to these nodes."""
        self.rows = {key: one for key, one in self.rows.items() if one.node not in nodes}
