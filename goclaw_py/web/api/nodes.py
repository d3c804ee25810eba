"""The gateways on one database (SPEC NODE-1)."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from goclaw_py.ports.control import Control, NodesView
from goclaw_py.ports.store import Node
from goclaw_py.web.api.answers import answer


def node_routes(control: Control) -> APIRouter:
    """The routes about nodes, below ``/api``."""
    api = APIRouter(tags=["nodes"])

    @api.get("/nodes", response_model=NodesView)
    async def nodes() -> Response:
        """The gateways on this database, the oldest first."""
        return answer(NodesView, await control.nodes())

    @api.post("/nodes/{node}/drain", response_model=Node)
    async def drain(node: str) -> Response:
        """Let a node end as after SIGTERM; its id, or any unique part of it."""
        return answer(Node, await control.drain(node))

    return api
