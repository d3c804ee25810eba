"""What nodes own, and what they ask each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from goclaw_py.model.ids import LaneName, NodeId
from goclaw_py.ports.store import NodeCall


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
    """``lane_slots``, each lane in the order of its line."""

    lanes: dict[LaneName, dict[int, PlaceRecord]] = field(default_factory=dict)
    last_id: int = 0

    def of(self, lane: LaneName) -> dict[int, PlaceRecord]:
        """The line of a lane."""
        return self.lanes.setdefault(lane, {})

    def enter(self, lane: LaneName, node: NodeId) -> None:
        """One more waits."""
        self.last_id += 1
        self.of(lane)[self.last_id] = PlaceRecord(node)

    def remove(self, nodes: Collection[NodeId]) -> None:
        """Give back what these nodes had."""
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
    """``node_calls``, in the order of their numbers."""

    rows: dict[int, CallRecord] = field(default_factory=dict)
    last_id: int = 0

    def enter(self, node: NodeId, question: str, now: datetime) -> int:
        """A new question; its number."""
        self.last_id += 1
        self.rows[self.last_id] = CallRecord(node, NodeCall(self.last_id, question, now))
        return self.last_id

    def forget(self, before: datetime) -> None:
        """Forget what was asked before an instant."""
        self.rows = {key: one for key, one in self.rows.items() if one.call.asked_at >= before}

    def remove(self, nodes: Collection[NodeId]) -> None:
        """Forget what these nodes were asked."""
        self.rows = {key: one for key, one in self.rows.items() if one.node not in nodes}
