"""Jobs: the list, one of them, and what their buttons do (SPEC CRON-11). Forms: ``job_form``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.jobs import texts
from goclaw_py.jobs.models import NOT_IN_NAMES, SLUG, JobState
from goclaw_py.model.errors import JobError
from goclaw_py.model.ids import AgentName
from goclaw_py.ports.jobs import JobChange, RunNow, StartedNow
from goclaw_py.ports.store import JobQuery
from goclaw_py.web.api.error_json import status_of
from goclaw_py.web.pages.job_page import BY, found, look_at
from goclaw_py.web.pages.job_texts import line_of
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form

SHOWN: Final = 50

_FILTERS: Final = ("state", "agent", "name")
_REFUSED: Final[Mapping[RunNow, str]] = {
    RunNow.ALREADY_RUNNING: texts.IS_RUNNING,
    RunNow.AT_CAPACITY: texts.NO_ROOM,
    RunNow.NO_WORK: texts.NO_WORK,
    RunNow.OFF: texts.NOT_CARRIED_OUT,
}


def routes(service: PageServices) -> list[Route]:
    """The list, one job, and what is done with it."""

    async def look(query: Query) -> Facts:
        return await _list(service, query)

    async def look_one(query: Query) -> Facts:
        return await look_at(service, query)

    one = Page("/jobs/view", "job", "Job", look_one, ("id", "status", "before"), every_s=2.0)

    async def show(request: Request) -> Response:
        given = {key: request.query_params.get(key, "")[:512] for key in ("status", "before")}
        query = {key: value for key, value in given.items() if value}
        return await _show(request, query)

    async def _show(
        request: Request, query: Mapping[str, str], error: str = "", status: int = 200
    ) -> Response:
        whole = await service.facts(one, {**query, "id": request.path_params["job"][:512]})
        return service.answer(request, "job.html", {**whole, "error": error}, status)

    async def act(request: Request) -> Response:
        fields = await form(request)
        job = await found(service, request.path_params["job"])
        try:
            done = await _do(service, job.id, request.path_params["action"])
        except JobError as error:
            return await _show(request, {}, str(error), status_of(error))
        if isinstance(done, RunNow):
            return await _show(request, {}, _REFUSED[done], 409)
        if fields.get("back") == "list":
            kept = {key: fields[key] for key in (*_FILTERS, "page") if fields.get(key)}
            return back_to("/jobs", done, **kept)
        return back_to("/jobs" if done == "removed" else f"/jobs/{job.id}", done)

    page = Page("/jobs", "jobs", "Jobs", look, (*_FILTERS, "page"), every_s=2.0)
    return [
        *service.routes(page),
        *service.routes(one),
        Route("/jobs/{job}", show, methods=["GET"]),
        Route("/jobs/{job}/{action}", act, methods=["POST"]),
    ]


async def _do(service: PageServices, job: str, action: str) -> str | RunNow:
    """Do what a button says: the notice for that, or why it was not done."""
    jobs = service.control.jobs
    match action:
        case "run":
            started = await jobs.run_now(job, BY)
            if not isinstance(started, StartedNow):
                return started
            return "done" if started.run is None else "asked"
        case "pause":
            await jobs.edit(job, JobChange(state=JobState.PAUSED), BY)
            return "paused"
        case "resume":
            await jobs.edit(job, JobChange(state=JobState.ACTIVE), BY)
            return "resumed"
        case "delete":
            await jobs.delete(job, BY)
            return "removed"
        case _:
            raise HTTPException(404)


async def _list(service: PageServices, query: Query) -> Facts:
    jobs = service.control.jobs
    number = _page_number(query.get("page", ""))
    asked = JobQuery(
        agent=_agent(query.get("agent", "")),
        name=NOT_IN_NAMES.sub("", query.get("name", "")),
        states=tuple(state for state in JobState if state == query.get("state")),
        limit=SHOWN,
        offset=(number - 1) * SHOWN,
    )
    page = await jobs.search(asked, BY)
    return {
        "lines": [line_of(jobs, job) for job in page.jobs],
        "total": page.total,
        "enabled": jobs.enabled,
        "first": asked.offset + 1,
        "number": number,
        "filters": {key: query[key] for key in _FILTERS if key in query},
        "shown": dict(query),
        "states": list(JobState),
        "agents": service.control.heartbeats.agents,
    }


def _page_number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) <= 6 else 1


def _agent(text: str) -> AgentName | None:
    return AgentName(text) if SLUG.fullmatch(text) else None
