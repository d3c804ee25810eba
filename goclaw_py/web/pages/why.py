"""Why something did or did not happen: the same answer as ``goclaw why`` (SPEC OPS-4)."""

from __future__ import annotations

from starlette.routing import Route

from goclaw_py.web.pages.desk import Desk, Facts, Page, Query


def routes(desk: Desk) -> list[Route]:
    """One page; ``about`` names what is asked about, without it the gateway as a whole."""

    async def look(query: Query) -> Facts:
        return {"why": await desk.control.why(query.get("about"))}

    return desk.routes(Page("/why", "why", "Why?", look, ("about",), every_s=5.0))
