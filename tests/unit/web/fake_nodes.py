"""Stands for the gateways on one database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from goclaw_py.core.ids import NodeId
from goclaw_py.operations.control import NodesView
from goclaw_py.operations.lookup import only
from goclaw_py.records import Node, NodeState

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SETTINGS = {"lanes": "0a1b2c3d4e5f"}
HERE = Node(
    NodeId("0190-here"), "alpha/boot/pid", 41, "1.0", AT - timedelta(hours=2),
    AT + timedelta(seconds=8), NodeState(2, 5, places=("telegram/default",), settings=SETTINGS),
)  # fmt: skip
DRAINING = Node(
    NodeId("0191-drains"), "beta", 42, "1.1", AT - timedelta(hours=1), AT + timedelta(seconds=5),
    NodeState(1, draining=True, skew_s=300.0),
)  # fmt: skip
DEAD = Node(NodeId("0192-dead"), "gamma", 43, "1.0", AT, AT - timedelta(seconds=4))


@dataclass
class FakeNodes:
    """The part of ``FakeControl`` that is about nodes. ``called`` notes what is asked."""

    called: Callable[..., None]
    found: list[Node] = field(default_factory=lambda: [HERE, DRAINING, DEAD])

    def view(self) -> NodesView:
        """All of them."""
        self.called("nodes")
        return NodesView(AT, HERE.id, tuple(self.found))

    def drain(self, node: str) -> Node:
        """Note which one."""
        self.called("drain", node)
        live = [one for one in self.found if one.lease_until > AT]
        return only(
            live, lambda one: node in one.id, lambda one: one.id, f"live node {node!r}", "nodes"
        )
