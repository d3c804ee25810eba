"""Why something did or did not happen: the same answer as ``goclaw why`` (SPEC OPS-4)."""

from __future__ import annotations

from starlette.routing import Route

from goclaw_py.web.pages.services import Facts, Page, PageServices, Query


def routes(service: PageServices) -> list[Route]:
    """One page; ``about`` names what is asked about, without it the gateway as a whole."""

    async def look(query: Query) -> Facts:
        return {"why": await service.control.why(query.get("about"))}

    return service.routes(Page("/why", "why", "Why?", look, ("about",), every_s=5.0))
