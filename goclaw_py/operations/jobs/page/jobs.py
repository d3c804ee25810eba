"""The pages of jobs: the list, and a job with its history (SPEC CRON-11, CRON-12).

Forms are in ``job_form``.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.display_names import address
from goclaw_py.core.errors import JobError, NotFound, UnknownJob
from goclaw_py.core.ids import AgentName, Owner
from goclaw_py.core.targets import Maker, chat_of, target_text
from goclaw_py.core.text import cost, count, first_words, sentence, visible_line
from goclaw_py.core.time.texts import at
from goclaw_py.operations.jobs.models import JobChange, Requester, RunNow, StartedNow
from goclaw_py.records import JobOrder, JobQuery
from goclaw_py.schedule.jobs import texts
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence, OccurrenceStatus
from goclaw_py.schedule.jobs.models import SLUG, Job, JobState, Payload, TargetKind
from goclaw_py.schedule.jobs.policy import JobPolicy
from goclaw_py.schedule.jobs.view_texts import (
    kind_and_text,
    obstacle,
    plan,
    policy_text,
    trouble,
    waits,
    why_words,
)
from goclaw_py.web.api.error_json import status_of
from goclaw_py.web.pages.filters import (
    ORDER,
    Field,
    ListFilters,
    Tab,
    back_to_rows,
    given,
    of_agent,
    page_number,
    params_of,
    query_of,
)
from goclaw_py.web.pages.parameters import place
from goclaw_py.web.pages.services import (
    ENDED,
    Facts,
    Page,
    PageServices,
    Query,
    back_to,
    changed_notice,
    fields,
    form,
)

SHOWN: Final = 50
BATCH: Final = 1000
"""The number of jobs that are read at once where all that match are changed."""
_SHOWN_CHARS: Final = 160
BY: Final = Requester(owner=None, maker=Maker.OPERATOR)
"""Users of the dashboard are operators."""

AHEAD: Final = 5
STATISTICS_DAYS: Final = 30


_STATES: Final = ("", *(state.value for state in JobState))
_NEXT_RUN: Final = "next_run"
_ORDERS: Final = {
    _NEXT_RUN: "next run first",
    JobOrder.LAST_RUN.value: "last run first",
    JobOrder.NAME.value: "by name",
}
_KINDS: Final = {"at": "once", "every": "interval", "cron": "cron"}
_FILTERS: Final = ("state", "agent", "kind", "owner", "name", ORDER)
_ACTIONS: Final = {
    "run": ("Run now", "Run {} now? Those that have ended are left out."),
    "pause": ("Pause", "Pause {}?"),
    "resume": ("Resume", "Resume {}? Disabled ones run again, too."),
    "delete": ("Delete", "Delete {}?"),
}
"""The buttons for selected jobs, each with its question."""
_CHANGES: Final = {
    "run": (JobState.ACTIVE, JobState.PAUSED),
    "pause": (JobState.ACTIVE,),
    "resume": (JobState.PAUSED, JobState.DISABLED),
}
"""The states of selected jobs that an action changes; others change a job in any state.

The page of a job runs it in any state.
"""
MOST_STALE: Final = 5
"""The number of refused jobs that are named after an action; all are counted."""
_FAILED: Final = "failed"
_DELETED: Final = "job-deleted"
_STALE: Final = re.compile(r"([\w-]{1,64}):([a-z_]{1,32})", re.ASCII)
_REFUSED: Final[Mapping[RunNow, str]] = {
    RunNow.ALREADY_RUNNING: texts.IS_RUNNING,
    RunNow.AT_CAPACITY: texts.NO_ROOM,
    RunNow.NO_WORK: texts.NO_WORK,
    RunNow.OFF: texts.NOT_CARRIED_OUT,
}


def routes(service: PageServices) -> list[Route]:
    """Return the list, the page of a job, and their forms."""
    load, params = partial(_one, service), ("id", "status", "before")
    one = Page("/jobs/view", "job", "Job", load, params, 2.0, part="jobs/job_live.html")

    async def show(request: Request) -> Response:
        given = {key: request.query_params.get(key, "")[:512] for key in ("status", "before")}
        query = {key: value for key, value in given.items() if value}
        return await _show(request, query)

    async def _show(
        request: Request, query: Mapping[str, str], error: str = "", status: int = 200
    ) -> Response:
        whole = await service.facts(one, {**query, "id": request.path_params["job"][:512]})
        return service.answer(request, "jobs/job.html", {**whole, "error": error}, status)

    async def act(request: Request) -> Response:
        fields = await form(request)
        job = await found(service, request.path_params["job"])
        try:
            done = await _do(service, job.id, request.path_params["action"])
        except JobError as error:
            return await _show(request, {}, str(error), status_of(error))
        if isinstance(done, RunNow):
            return await _show(request, {}, _REFUSED[done], 409)
        stays = done != _DELETED and fields.get("back") != "list"
        # Its page shows its title, which an address cannot.
        notice = f"{done} {'this job' if stays else f'job {job.spec.slug}'}"
        if fields.get("back") == "list":
            return back_to_rows("/jobs", notice, fields.get("rows", ""), _FILTERS)
        return back_to("/jobs" if done == _DELETED else f"/jobs/{job.id}", notice)

    looks, filters = partial(_list, service), params_of(*_FILTERS, "stale")
    live, frame = "jobs/jobs_live.html", "jobs/jobs.html"
    page = Page("/jobs", "jobs", "Jobs", looks, filters, 2.0, part=live, frame=frame)
    return [
        *service.routes(page),
        *service.routes(one),
        Route("/jobs/selected", _selected(service), methods=["POST"]),
        Route("/jobs/{job}", show, methods=["GET"]),
        Route("/jobs/{job}/{action}", act, methods=["POST"]),
    ]


async def _do(service: PageServices, job: str, action: str) -> str | RunNow:
    """Execute a button; return its notice, or why it was not executed."""
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
            return _DELETED
        case _:
            raise HTTPException(404)


def _selected(service: PageServices) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that runs, pauses, resumes or deletes the selected jobs.

    The answer counts the jobs that were not changed, and names the first ones that refused.
    """

    async def answer(request: Request) -> Response:
        sent = await fields(request)
        ids = list(dict.fromkeys(value for name, value in sent if name == "job"))
        action = dict(sent).get("do", "")
        if action not in _ACTIONS or len(ids) > SHOWN:
            raise HTTPException(422, f"do: {', '.join(_ACTIONS)}; job: at most {SHOWN} ids")
        if dict(sent).get("every"):
            filters = await _filters(service, query_of(dict(sent).get("rows", "")))
            # All of them are read before the first one changes, and so moves in the list.
            asked, ids = replace(_job_query(filters), limit=BATCH), []
            while page := (await service.control.jobs.search(asked, BY)).jobs:
                ids += [job.id for job in page]
                asked = replace(asked, offset=len(ids))
        notice, refused = await _change_all(service, ids, action)
        more = {"stale": ",".join(refused[:MOST_STALE])} if refused else {}
        return back_to_rows("/jobs", notice, dict(sent).get("rows", ""), _FILTERS, **more)

    return answer


async def _change_all(
    service: PageServices, ids: Iterable[str], action: str
) -> tuple[str, list[str]]:
    """Execute a button for jobs one by one; return the notice, and the jobs that refused."""
    word, changed, left, refused = "", 0, Counter[str](), list[str]()
    for one in ids:
        try:
            job = await found(service, one)
            if job.id != one:
                raise NotFound(one)  # the beginning of an id, or a slug
            if job.state not in _CHANGES.get(action, JobState):
                is_open = job.state in (JobState.ACTIVE, JobState.PAUSED)
                left[f"{job.state} already" if is_open else ENDED] += 1
                continue
            done = await _do(service, one, action)
        except NotFound:
            left["deleted already"] += 1
            continue
        except JobError:
            done = _FAILED
        if isinstance(done, RunNow) or done == _FAILED:
            refused.append(f"{one}:{done}")
        else:
            word, changed = done, changed + 1
    things = count(changed, "job") if changed else ""
    return changed_notice(word, things, left | {"refused": len(refused)}), refused


async def _stale(service: PageServices, text: str) -> list[tuple[str, str, str]]:
    """Return the selected jobs in an address that refused: id, title, and why.

    Deleted jobs have no title.
    """

    async def reason(job_id: str, word: str) -> tuple[str, str, str]:
        try:
            job = await found(service, job_id)
        except NotFound as error:
            # No such job, or no id but the beginning of several.
            return job_id, "", sentence(str(error))
        if word == _FAILED:
            return job.id, _title(job), f"it is still {job.state}. Its own buttons say why."
        refused = next((one for one in RunNow if one == word), None)
        words = f"it is {job.state}." if refused is None else _REFUSED[refused]
        return job.id, _title(job), words

    return await asyncio.gather(*(reason(*one) for one in _STALE.findall(text)[:MOST_STALE]))


async def _filters(service: PageServices, query: Query) -> ListFilters:
    fields = (
        await of_agent(service.control, query),
        Field("kind", "Schedule", _KINDS),
        *given(query, "owner", "Owner", _place_of(query.get("owner", ""))),
        Field("name", "Name", placeholder="part of a name"),
        Field(ORDER, "Order", _ORDERS, default=_NEXT_RUN),
    )
    return ListFilters("/jobs", "jobs", query, fields, _STATES, "state")


def _job_query(filters: ListFilters) -> JobQuery:
    """Return what filters select."""
    values, state = filters.values, filters.show
    return JobQuery(
        owner=Owner(values["owner"]) if "owner" in values else None,
        agent=AgentName(values["agent"]) if values["agent"] else None,
        name=values["name"],
        states=(JobState(state),) if state else (),
        kinds=(values["kind"],) if values["kind"] else (),
        limit=SHOWN,
        order=next((one for one in JobOrder if one == values[ORDER]), None),
    )


async def _list(service: PageServices, query: Query) -> Facts:
    jobs = service.control.jobs
    filters = await _filters(service, query)
    values, state = filters.values, filters.show
    number = page_number(query)
    asked = replace(_job_query(filters), offset=(number - 1) * SHOWN)
    page, counts, settings, stale = await asyncio.gather(
        jobs.search(asked, BY),
        jobs.counts(asked, BY),
        jobs.scheduler(),
        _stale(service, query.get("stale", "")),
    )
    whole = {"": sum(counts.values())} | {one.value: n for one, n in counts.items()}
    return {
        "jobs": page.jobs,
        "order": asked.order,
        "actions": _ACTIONS,
        "stale": stale,
        "plan": plan,
        "does": does,
        "titled": _title,
        "at": at,
        "remark": partial(remark, is_enabled=settings.enabled),
        "total": whole.get(state, 0),
        "enabled": settings.enabled,
        "number": number,
        "most": SHOWN,
        "filters": replace(filters, tabs=tuple(Tab(one, whole.get(one, 0)) for one in _STATES)),
        "place_of": _place_of,
        "named": [*{_place_of(job.owner) for job in page.jobs}, _place_of(values.get("owner", ""))],
    }


def _place_of(owner: str) -> str:
    """Return the key of the display name of an owner, the owner itself if that is no chat."""
    found = chat_of(Owner(owner))
    return owner if found is None else address(found[0])


def _title(job: Job) -> str:
    """Return the title of a job on one line; what turns its direction would turn its row, too."""
    return visible_line(job.spec.title) or job.spec.slug


async def found(service: PageServices, name: str) -> Job:
    """Return a job by id, prefix of an id, or slug. Raises ``NotFound``."""
    if not SLUG.fullmatch(name):
        raise NotFound("there is no such job")
    try:
        return await service.control.jobs.get(name, BY)
    except UnknownJob as error:
        raise NotFound(str(error)) from error


async def _one(service: PageServices, query: Query) -> Facts:
    """Return the facts of the job ``id``, with a page of its history."""
    jobs = service.control.jobs
    job = await found(service, query.get("id", ""))
    status = next((one for one in OccurrenceStatus if one == query.get("status")), None)
    before = place(query)
    settings = await jobs.scheduler()
    since = settings.now - timedelta(days=STATISTICS_DAYS)
    rows, stats, explained = await asyncio.gather(
        jobs.log(job.id, BY, limit=SHOWN + 1, status=status, before=before),
        jobs.stats(job.id, BY, since=since),
        service.control.why(f"job:{job.id}"),
    )
    more, rows = len(rows) > SHOWN, rows[:SHOWN]
    durations = [row.duration_s for row in rows if row.duration_s is not None]
    kind, text = kind_and_text(job.spec.payload)
    return {
        "title": job.spec.title,
        "path": "/jobs",
        "job": job,
        "plan": plan(job),
        "remark": remark(job, is_enabled=settings.enabled),
        "kind": kind,
        "text": text,
        "ahead": _ahead(job, settings.profile.policy),
        "place": _place(job),
        "at": at,
        "policy": "; ".join(
            f"{key} = {policy_text(key, one)}" for key, one in sorted(job.spec.policy.items())
        ),
        "stats": stats,
        "explained": explained,
        "days": STATISTICS_DAYS,
        "rows": rows,
        "why": _why,
        "cost": cost,
        "longest_s": max(durations, default=None),
        "next": rows[-1].cursor if more else None,
        "later": before is not None,
        "statuses": list(OccurrenceStatus),
        "status": status,
    }


def _ahead(job: Job, base: JobPolicy) -> list[tuple[str, datetime]]:
    """Return its next runs, in its zone and as instants."""
    if job.state is not JobState.ACTIVE:
        return []
    try:
        coming = job.upcoming(base, AHEAD)
    except JobError:
        # The schedule shows its own errors.
        return []
    return [(at(each, job.spec.zone), each) for each in coming]


def _why(row: LoggedOccurrence) -> str:
    """Return the reason of a result, "" if the status says it all."""
    return waits(row) or (why_words(row.why) if row.why else "")


def does(payload: Payload) -> str:
    """Return what a job does, in one line."""
    kind, text = kind_and_text(payload)
    return f"{kind}: {visible_line(first_words(text, _SHOWN_CHARS))}"


def remark(job: Job, *, is_enabled: bool) -> str:
    """Return why a job will not run, or its last error; "" if there is none."""
    if found := obstacle(job, is_enabled=is_enabled):
        return sentence(f"it will not run: {found}")
    return sentence(trouble(job))


def _place(job: Job) -> str:
    """Return the target of a job."""
    target = job.spec.target
    if not isinstance(target, TargetKind):
        return target_text(target)
    return "the chat that was used last" if target is TargetKind.LAST else "nowhere"
