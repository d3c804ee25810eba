"""The job form, with a preview of its runs (SPEC CRON-1, CRON-2)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from goclaw_py.core.display_names import address
from goclaw_py.core.errors import (
    BadJob,
    BadSchedule,
    JobChanged,
    JobError,
    NotFound,
    SlugTaken,
    StoreUnavailable,
    UnknownJob,
    UnknownZone,
)
from goclaw_py.core.ids import AgentName
from goclaw_py.core.targets import target_text
from goclaw_py.core.text import sentence
from goclaw_py.core.time.texts import at
from goclaw_py.operations.jobs.page import job_fields
from goclaw_py.operations.jobs.page.jobs import AHEAD, BY, found
from goclaw_py.schedule.jobs.models import Job
from goclaw_py.schedule.jobs.schedule import describe
from goclaw_py.web.api.error_json import status_of
from goclaw_py.web.pages.services import Facts, PageServices, back_to, form

_SUGGESTED: Final = 50
_FIELD_OF: Final = {"prompt": "text", "message": "text", "key": "session_key"}
"""The fields of job keys, where the names differ."""

_TIMING: Final = ("expression", "zone", "not_after")
"""The fields that determine when a job runs."""

_MEANWHILE: Final = "Your input is below. Saving it again replaces the current version."
_MARKED: Final = "It is not saved: correct the marked field"
_ALL_MARKED: Final = "It is not saved: correct the marked fields"
_GONE: Final = "Your input is below. You can create the job again."

_Refusal = JobError | NotFound | StoreUnavailable
"""Errors after which the form is shown again with its input."""

MANY_A_DAY: Final = 1000
"""The preview warns of a job with more runs than this."""

_CLOSE: Final = timedelta(days=1) / MANY_A_DAY


def routes(service: PageServices) -> list[Route]:
    """Return the form of a new job, of an existing job, and the preview of both."""

    async def new(request: Request) -> Response:
        typed = job_fields.blank(await service.control.jobs.zone(BY))
        return await _answer(service, request, typed, None)

    async def create(request: Request) -> Response:
        fields = await form(request)
        typed = job_fields.given(fields)
        if fields.get("do") == "preview":
            return await _answer(service, request, typed, None)
        try:
            job = await _create(service, typed)
        except (JobError, StoreUnavailable) as error:
            return await _answer(service, request, typed, None, error)
        return back_to(f"/jobs/{job.id}", "made")

    async def edit(request: Request) -> Response:
        job = await found(service, request.path_params["job"])
        return await _answer(service, request, job_fields.typed_of(job), job)

    async def save(request: Request) -> Response:
        fields = await form(request)
        typed = job_fields.given(fields)
        job: Job | None = None
        try:
            job = await found(service, request.path_params["job"])
            if fields.get("do") == "preview":
                return await _answer(service, request, typed, job)
            await _save(service, job, typed)
        except (JobError, NotFound, StoreUnavailable) as error:
            return await _answer(service, request, typed, job, error)
        return back_to(f"/jobs/{job.id}", "saved")

    async def preview(request: Request) -> Response:
        typed = job_fields.given(request.query_params)
        job = None
        with suppress(UnknownJob, NotFound, StoreUnavailable):
            job = await found(service, request.query_params.get("job", ""))
        facts = {"preview": await _preview(service, typed, job)}
        return HTMLResponse(service.render("jobs/job_preview.html", facts))

    return [
        Route("/jobs/new", new, methods=["GET"]),
        Route("/jobs/new", create, methods=["POST"]),
        Route("/jobs/preview", preview, methods=["GET"]),
        Route("/jobs/{job}/edit", edit, methods=["GET"]),
        Route("/jobs/{job}/edit", save, methods=["POST"]),
    ]


async def _create(service: PageServices, typed: job_fields.Typed) -> Job:
    jobs = service.control.jobs
    chats = await service.control.people.chats()
    zone, now = await jobs.zone(BY), (await jobs.scheduler()).now
    return await jobs.create(job_fields.draft_of(typed, chats, now=now, zone=zone), BY)


async def _save(service: PageServices, job: Job, typed: job_fields.Typed) -> None:
    jobs = service.control.jobs
    chats = await service.control.people.chats()
    now = (await jobs.scheduler()).now
    await jobs.edit(job.id, job_fields.change_of(job, typed, chats, now=now), BY)


async def _preview(
    service: PageServices, typed: job_fields.Typed, job: Job | None = None
) -> Facts | None:
    """Return the next runs of a job, or an error; None without a schedule.

    ``job`` is the one that is edited: an interval that stays goes on from its last run.
    """
    if not typed["expression"].strip():
        return None
    jobs = service.control.jobs
    try:
        zone = typed["zone"].strip() or await jobs.zone(BY)
        scheduler = await jobs.scheduler()
        draft = job_fields.timing_of(typed, now=scheduler.now, zone=zone)
        times = await jobs.preview(draft, BY, AHEAD)
        before = typed if job is None else job_fields.typed_of(job)
        if job is not None and all(typed[name] == before[name] for name in _TIMING):
            times = job.upcoming(scheduler.profile.policy, AHEAD) or times
        plan = describe(draft.schedule, draft.zone)
        a_day = 0
        if len(times) == AHEAD and times[-1] - times[0] < _CLOSE * (AHEAD - 1):
            # Others may come close together only at some hours.
            many = await jobs.preview(draft, BY, MANY_A_DAY + 1)
            if len(many) > MANY_A_DAY:
                a_day = round(timedelta(days=1) * MANY_A_DAY / (many[-1] - many[0]))
    except (JobError, StoreUnavailable) as error:
        return {"error": _sentence(error)}
    return {
        "error": "",
        "plan": plan,
        "times": [(at(each, draft.zone), each) for each in times],
        "a_day": a_day if a_day > MANY_A_DAY else 0,
        "uses_model": typed["does"] == "prompt",
    }


async def _answer(
    service: PageServices,
    request: Request,
    typed: Mapping[str, str],
    job: Job | None,
    error: _Refusal | None = None,
) -> Response:
    """Return the form; after an ``error``, with its text and the input.

    The input survives any change of ``job`` since the form was shown.
    """
    hint, action = "", request.url.path
    if isinstance(error, JobChanged) and job is not None:
        typed, hint = {**typed, "revision": str(job.revision)}, _MEANWHILE
    if isinstance(error, NotFound | UnknownJob):
        job, action = None, "/jobs/new"
        typed, hint = {**typed, "revision": ""}, _GONE
    is_new = action == "/jobs/new"
    preview = await _preview(service, typed, job)
    wrong = await _problems(service, typed, error)
    shown_there = "" if preview is None else str(preview["error"])
    if wrong and shown_there and wrong.keys().isdisjoint(_TIMING):
        wrong["expression"] = shown_there  # times that no schedule has are found by the preview
    # What is wrong with a schedule stands in the preview below it; all else at its field.
    at_preview = "expression" if shown_there and wrong.get("expression") == shown_there else ""
    if shown_there and not at_preview and wrong:
        preview = None
    facts: Facts = {
        "title": "New job" if is_new else f"Edit {'a job' if job is None else job.spec.title}",
        "path": "/jobs",
        "job": job,
        "is_new": is_new,
        "action": action,
        "typed": typed,
        # A script puts the zone of the browser there, if nobody has chosen another.
        "own_zone": is_new and typed == job_fields.blank("UTC"),
        # What is wrong stands at its field: there is no need to say it twice.
        "error": ""
        if error is None
        else (_MARKED if len(wrong) == 1 else _ALL_MARKED)
        if wrong
        else _sentence(error),
        "hint": hint,
        "wrong": wrong,
        "at_preview": at_preview,
        "preview": preview,
        **await _suggestions(service, typed),
    }
    status = 200 if error is None else status_of(error)
    return service.answer(request, "jobs/job_form.html", facts, status)


async def _problems(
    service: PageServices, typed: Mapping[str, str], error: _Refusal | None
) -> dict[str, str]:
    """Return what is wrong, by field: the ``error`` of a form, and what is wrong beside it."""
    field = _wrong(error)
    if error is None or field not in job_fields.SHOWN:
        return {}
    scheduler = await service.control.jobs.scheduler()
    zone = typed["zone"].strip() or await service.control.jobs.zone(BY)
    needs_text = typed["does"] == "message" or not scheduler.profile.default_prompt
    needs_text = needs_text and typed["does"] != "command"
    found = job_fields.problems(typed, now=scheduler.now, zone=zone, needs_text=needs_text)
    named = {**found, field: error}
    # The label of a field stands above it, so its key is not needed.
    return {
        name: sentence(one.allowed) if isinstance(one, BadJob) else _sentence(one)
        for name, one in named.items()
    }


async def _suggestions(service: PageServices, typed: Mapping[str, str]) -> dict[str, object]:
    """Return possible values, and the defaults of empty fields."""
    known = (*await service.control.heartbeats.agents(), AgentName(typed["agent"]))
    try:
        heard = await service.control.people.activity(limit=_SUGGESTED)
    except StoreUnavailable:
        heard = []
    profile = (await service.control.jobs.scheduler()).profile
    targets = {target_text(each.target): each.target for each in heard}
    names = await service.control.sessions.names(sorted(map(address, targets.values())))
    return {
        "agents": list(dict.fromkeys(name for name in known if name)),
        "targets": [(text, names[address(target)]) for text, target in targets.items()],
        "base": profile.policy,
        "profile": profile.name,
        "default_prompt": profile.default_prompt,
        "more": (*job_fields.POLICY, *job_fields.MORE),
    }


def _sentence(error: _Refusal) -> str:
    text = sentence(str(error))
    if isinstance(error, JobChanged):
        # The form says itself what to do: the input is still there.
        text = sentence(str(error).partition(";")[0])
    # The key of a job begins it as it is written everywhere.
    return str(error)[:1] + text[1:] if isinstance(error, BadJob) else text


def _wrong(error: _Refusal | None) -> str:
    """Return the field of an error, "" if it is about none."""
    match error:
        case BadJob(key=key):
            return _FIELD_OF.get(key, key)
        case UnknownZone():
            return "zone"
        case BadSchedule():
            return "expression"
        case SlugTaken():
            return "slug"
        case _:
            return ""
