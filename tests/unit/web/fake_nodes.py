"""Stands for the gateways on one database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from goclaw_py.core.ids import NodeId
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
class FakeNodeStore:
    """The nodes of ``FakeControl``. ``called`` notes what is asked. Each call is answered."""

    called: Callable[..., None]
    found: list[Node] = field(default_factory=lambda: [HERE, DRAINING, DEAD])

    async def nodes(self) -> list[Node]:
        self.called("nodes")
        return list(self.found)

    async def ask(self, node: NodeId, question: str, *, now: datetime) -> int:
        del now
        self.called("ask", node, question)
        return 1

    async def answer_to(self, call: int) -> str:
        del call
        return '{"answer": {}}'
