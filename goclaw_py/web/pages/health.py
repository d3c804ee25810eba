"""The page of readiness, channels and warnings, and that of explanations."""

from __future__ import annotations

import platform

from starlette.routing import Route

from goclaw_py.core.errors import NotFound, StoreUnavailable
from goclaw_py.core.text import sentence
from goclaw_py.core.web_links import OWN_CHANNELS
from goclaw_py.observability.readiness import Health
from goclaw_py.operations.nodes.operations import NodesView
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query


async def _nodes(service: PageServices) -> NodesView | None:
    """Return all nodes of the database, None while it is unavailable."""
    try:
        return await service.control.nodes.list()
    except StoreUnavailable:
        return None


def routes(service: PageServices, health: Health | None) -> list[Route]:
    """Return the health page, and that of ``goclaw why`` (SPEC OPS-4)."""

    async def load(_query: Query) -> Facts:
        status = await service.control.lanes.status()
        return {
            "status": status,
            "nodes": await _nodes(service),
            "checks": () if health is None else health.readiness().checks,
            "python": platform.python_version(),
            "alone": all(one.name in OWN_CHANNELS for one in status.channels),
        }

    async def explain(query: Query) -> Facts:
        """Explain what ``about`` names, without it the gateway as a whole."""
        try:
            return {"why": await service.control.why(query.get("about")), "unknown": ""}
        except NotFound as error:
            # A person who searches has not made a mistake: the page stays, with its field.
            return {"why": None, "unknown": sentence(error.text), "alike": error.names}

    return [
        *service.routes(Page("/health", "health", "Health", load, every_s=3.0)),
        *service.routes(Page("/why", "why", "Why?", explain, ("about",), every_s=5.0)),
    ]
