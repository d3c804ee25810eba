"""The record of one run: what was asked, which tools it used, what it said, what it cost."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.web.pages.services import Facts, Page, PageServices, Query

_SHOWN_TOOLS = 200


def routes(service: PageServices) -> list[Route]:
    """One page; its address has the id of the run, or the beginning of it."""

    async def look(query: Query) -> Facts:
        record = await service.control.run_record(query.get("id", ""))
        run = record.run
        return {
            "path": "/timeline",
            "run": run,
            "record": record,
            "tools": run.tools[:_SHOWN_TOOLS],
            "waited": run.started_at - run.submitted_at,
            "lasted": None if run.finished_at is None else run.finished_at - run.started_at,
        }

    page = Page("/runs/view", "run", "Run", look, ("id",), every_s=2.0)

    async def show(request: Request) -> Response:
        prefix = request.path_params["prefix"]
        if len(prefix) > 64:
            raise HTTPException(404)
        return service.answer(request, "run.html", await service.facts(page, {"id": prefix}))

    return [*service.routes(page), Route("/runs/{prefix}", show)]
