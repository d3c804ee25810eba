"""The gateways that share a database, in the API (SPEC OPS-2, NODE-1)."""

from __future__ import annotations

from fastapi import APIRouter

from goclaw_py.operations.control import Control
from goclaw_py.operations.nodes.operations import Nodes, NodesView
from goclaw_py.records import Node
from goclaw_py.web.api.serve import serve


def node_routes(control: Control) -> APIRouter:
    """Return the routes."""
    api = APIRouter(tags=["nodes"])

    @serve(api, Nodes.list)
    async def nodes() -> NodesView:
        """List the nodes of this database, the oldest first."""
        return await control.nodes.list()

    @serve(api, Nodes.drain)
    async def drain(node: str) -> Node:
        """Shut a node down gracefully, by its id or a unique part of it."""
        return await control.nodes.drain(node)

    return api
