"""Jobs in the API (SPEC CRON-2, CRON-11, CRON-12, SEC-3).

Callers of this API are operators. With ``asker`` a caller has only that owner's rights, as a person
unless ``maker`` says otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import Response

from goclaw_py.core.errors import BadJob
from goclaw_py.core.ids import AgentName, OccurrenceId, Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import TARGET_FORM, Maker, parse_target
from goclaw_py.operations.control import Control
from goclaw_py.operations.declare import declared
from goclaw_py.operations.jobs.answers import JobCounts, RanNow, RouteView, Times, ZoneView, ran_now
from goclaw_py.operations.jobs.models import JobSettingsView, Requester
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.operations.jobs.routes.bodies import (
    MAX_TIMES,
    ChangeBody,
    DraftBody,
    JobView,
    PageView,
    ZoneBody,
    change_of,
    draft_of,
)
from goclaw_py.records import JobOrder, JobQuery
from goclaw_py.schedule.jobs.execution_models import JobStats, LoggedOccurrence, OccurrenceStatus
from goclaw_py.schedule.jobs.job_json import job_json
from goclaw_py.schedule.jobs.models import Job, JobState, Notify
from goclaw_py.web.api.error_json import DetailedError
from goclaw_py.web.api.paging import LINK, Before, Limit, Page, Time
from goclaw_py.web.api.serve import serve

Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]
Count = Annotated[int, Query(ge=1, le=MAX_TIMES)]
Asked = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", examples=["standup"])]
Part = Annotated[str | None, Query(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
Kind = Annotated[list[str], Query(max_length=3)]
States = Annotated[list[JobState], Query(max_length=len(JobState))]

_FAULTS: Final[dict[int | str, dict[str, Any]]] = {
    code: {"model": DetailedError} for code in (403, 409)
}
_KINDS: Final = ("at", "every", "cron")


async def asker_of(
    asker: Part = None,
    asker_agent: Part = None,
    maker: Maker | None = None,
    chat: Part = None,
    peer: PeerKind = PeerKind.DIRECT,
) -> Requester:
    """Return the requester: a person, if an ``asker`` without a ``maker`` is given.

    Raises ``BadJob`` for an invalid chat.
    """
    if maker is None:
        maker = Maker.OPERATOR if asker is None else Maker.PERSON
    target = None if chat is None else parse_target(chat)
    if chat is not None and target is None:
        raise BadJob("chat", "must be a chat such as telegram:12345")
    return Requester(
        owner=None if asker is None else Owner(asker),
        maker=maker,
        agent=None if asker_agent is None else AgentName(asker_agent),
        chat=target,
        peer=peer,
    )


By = Annotated[Requester, Depends(asker_of)]


async def _query(
    owner: Part = None,
    agent: Part = None,
    name: Annotated[str, Query(max_length=256, pattern=r"^[^\x00]*$")] = "",
    state: States = (),  # type: ignore[assignment]  # FastAPI makes a list of it
    kind: Kind = (),  # type: ignore[assignment]
    notify: Notify | None = None,
) -> JobQuery:
    if unknown := set(kind).difference(_KINDS):
        raise BadJob("kind", f"{min(unknown)!r} is none of {', '.join(_KINDS)}")
    return JobQuery(
        owner=None if owner is None else Owner(owner),
        agent=None if agent is None else AgentName(agent),
        name=name,
        states=tuple(state),
        kinds=tuple(kind),
        notify=notify,
    )


def job_routes(control: Control) -> APIRouter:
    """Return the routes about jobs."""
    api = APIRouter(responses=_FAULTS, tags=["jobs"])
    _looking(api, control)
    _history(api, control)
    _changing(api, control)
    return api


def _looking(api: APIRouter, control: Control) -> None:
    @serve(api, JobService.search, response_model=PageView)
    async def search(
        query: Annotated[JobQuery, Depends(_query)],
        by: By,
        target: Part = None,
        limit: Limit = 50,
        offset: Offset = 0,
        order: JobOrder | None = None,
    ) -> Response:
        """List jobs, the next one to run first, or by name or last run; ``target`` is a chat."""
        query = replace(query, target=_target(target), limit=limit, offset=offset, order=order)
        page = await control.jobs.search(query, by)
        return _json({"jobs": [job_json(job) for job in page.jobs], "total": page.total})

    @serve(api, JobService.get, response_model=JobView)
    async def get(job: Asked, by: By, *, is_slug: bool = False) -> Response:
        """Get a job by id, prefix of its id, slug, or name; with ``is_slug`` not by name.

        A name that several open jobs have selects none. A finished job takes no precedence over
        open ones of its name.
        """
        return _job(await control.jobs.get(job, by, is_slug=is_slug))


def _history(api: APIRouter, control: Control) -> None:
    @serve(api, JobService.log, responses=LINK)
    async def log(
        page: Page,
        job: Asked,
        by: By,
        before: Before,
        limit: Limit = 50,
        status: OccurrenceStatus | None = None,
    ) -> list[LoggedOccurrence]:
        """List the occurrences of a job, the newest first."""
        rows = await control.jobs.log(job, by, limit=limit + 1, status=status, before=before)
        return page.of(rows, limit)

    @serve(api, JobService.stats)
    async def stats(job: Asked, since: Time, by: By) -> JobStats:
        """Get statistics of a job since a date."""
        return await control.jobs.stats(job, by, since=since)

    @api.get("/api/jobs/{job}/upcoming")
    async def upcoming(job: Asked, by: By, count: Count = 3) -> Times:
        """List the next runs of a job; none unless it is active."""
        service = control.jobs
        found = await service.get(job, by)
        base = (await service.scheduler()).profile.policy
        return Times(found.upcoming(base, count))

    @serve(api, JobService.no_route)
    async def route(job: Asked, by: By) -> RouteView:
        """Check whether the result of a job could be delivered now."""
        return RouteView(await control.jobs.no_route(job, by))


def _changing(api: APIRouter, control: Control) -> None:
    @serve(api, JobService.create, response_model=JobView, status_code=201)
    async def create(body: DraftBody, by: By) -> Response:
        """Create a job."""
        return _job(await control.jobs.create(draft_of(body), by), status_code=201)

    @serve(api, JobService.edit, response_model=JobView)
    async def edit(job: Asked, body: ChangeBody, by: By) -> Response:
        """Change a job."""
        return _job(await control.jobs.edit(job, change_of(body), by))

    @serve(api, JobService.delete, response_model=JobView)
    async def delete(job: Asked, by: By) -> Response:
        """Delete a job and return it."""
        return _job(await control.jobs.delete(job, by))

    @serve(api, JobService.run_now)
    async def run(job: Asked, by: By) -> RanNow:
        """Run a job in any state now."""
        return ran_now(await control.jobs.run_now(job, by))


def occurrence_routes(control: Control) -> APIRouter:
    """Return the routes about runs of jobs."""
    api = APIRouter(responses=_FAULTS, tags=["jobs"])

    @api.get(declared(JobService.log).without, responses=LINK)
    async def log(
        page: Page,
        by: By,
        before: Before,
        limit: Limit = 50,
        status: OccurrenceStatus | None = None,
    ) -> list[LoggedOccurrence]:
        """List the occurrences of all jobs, the newest first."""
        rows = await control.jobs.log(None, by, limit=limit + 1, status=status, before=before)
        return page.of(rows, limit)

    @serve(api, JobService.logged)
    async def one(occurrence: Asked, by: By) -> LoggedOccurrence:
        """Get an occurrence by its whole id."""
        return await control.jobs.logged(OccurrenceId(occurrence), by)

    return api


def scheduler_routes(control: Control) -> APIRouter:
    """Return the routes that are about no single job."""
    api = APIRouter(responses=_FAULTS, tags=["jobs"])

    @serve(api, JobService.scheduler)
    async def view() -> JobSettingsView:
        """Get the settings that apply to all jobs."""
        return await control.jobs.scheduler()

    @serve(api, JobService.counts)
    async def counts(
        query: Annotated[JobQuery, Depends(_query)], by: By, target: Part = None
    ) -> JobCounts:
        """Count the jobs of `GET /api/jobs` by state, whatever its `state`."""
        return JobCounts(await control.jobs.counts(replace(query, target=_target(target)), by))

    @api.get(declared(JobService.stats).without)
    async def stats(since: Time, by: By) -> JobStats:
        """Get statistics of all jobs since a date."""
        return await control.jobs.stats(None, by, since=since)

    @serve(api, JobService.preview)
    async def preview(body: DraftBody, by: By, count: Count = 3) -> Times:
        """Preview the runs of a new job."""
        return Times(await control.jobs.preview(draft_of(body), by, count))

    @serve(api, JobService.zone)
    async def zone(by: By) -> ZoneView:
        """Get the default time zone of new jobs."""
        return ZoneView(await control.jobs.zone(by))

    @serve(api, JobService.choose_zone)
    async def choose(body: ZoneBody, by: By) -> ZoneView:
        """Choose the default time zone; existing jobs keep theirs."""
        return ZoneView(await control.jobs.choose_zone(body.zone, by))

    return api


def _target(text: str | None) -> Target | None:
    target = None if text is None else parse_target(text)
    if text is not None and target is None:
        raise BadJob("target", f"must be {TARGET_FORM}")
    return target


def _json(value: dict[str, object], *, status_code: int = 200) -> Response:
    return Response(orjson.dumps(value), status_code=status_code, media_type="application/json")


def _job(job: Job, *, status_code: int = 200) -> Response:
    return _json(job_json(job), status_code=status_code)
