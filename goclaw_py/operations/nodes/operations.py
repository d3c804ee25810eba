"""What operators do with the gateways that share a database (SPEC NODE-1)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from goclaw_py.cluster.rpc import DRAIN, NodeRpc
from goclaw_py.core.actors import Least
from goclaw_py.core.ids import NodeId
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.declare import operation
from goclaw_py.operations.lookup import only
from goclaw_py.operations.nodes import changes
from goclaw_py.records import Node, Store
from goclaw_py.records.bound import bind

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodesView:
    """The nodes of this database at one instant (SPEC NODE-1).

    Args:
        here: The node that answered, None if the database was read directly.
        nodes: The oldest first, including expired ones that are not recovered yet.
    """

    at: datetime
    here: NodeId | None
    nodes: tuple[Node, ...]

    def is_live(self, node: Node) -> bool:
        """Return whether the lease of a node is valid."""
        return node.is_live(self.at)

    def live_node(self, part: str) -> Node:
        """Return the live node with this id, or part of one. Raises ``NotFound``."""
        live = [one for one in self.nodes if self.is_live(one)]
        return only(live, part, lambda one: one.id, f"live node {part!r}", "nodes list")

    def health(self, node: Node) -> str:
        """Return the health of a node in one word: ``live``, ``draining`` or ``expired``."""
        return node.health(self.at)


class Nodes:
    """Every method may raise ``StoreUnavailable``, and ``NoGateway`` from another process.

    Args:
        gateway: The calls of the gateway that answers; None: the database is read directly.
    """

    def __init__(self, store: Store, clock: Clock, gateway: NodeRpc | None = None) -> None:
        self._store = store
        self._clock = clock
        self._here = None if gateway is None else gateway.node
        self._calls = gateway or NodeRpc(bind(store, lambda: NodeId("")), clock)

    @operation("GET /api/nodes", Least.VIEWER)
    async def list(self) -> NodesView:
        """Return the nodes of this database."""
        here = None if self._here is None else self._here()
        return NodesView(self._clock.now(), here, tuple(await self._store.nodes()))

    @operation("POST /api/nodes/{node}/drain", Least.ADMIN, changes.DRAIN)
    async def drain(self, node: str) -> Node:
        """Shut a node down gracefully, as SIGTERM does: runs in progress may finish.

        ``node`` is its id or a unique part of it. Raises ``NotFound`` and ``NodeSilent``.
        """
        found = (await self.list()).live_node(node)
        await self._calls.ask(found.id, DRAIN)
        log.info("node_drain_requested", extra={"node": found.id})
        return found
