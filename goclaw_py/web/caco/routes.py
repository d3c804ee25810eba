"""``/api/schedule`` and messages to sessions, as in *caco* (SPEC CRON-19).

Schedules are the operator's jobs: slugs are unique within an owner, so jobs of people in chats are
not available here. ``/api/jobs`` has all jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute

from goclaw_py.core.errors import (
    JobChanged,
    JobError,
    NotYours,
    SlugTaken,
    StoreUnavailable,
    TooManyJobs,
    UnknownJob,
)
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.session_keys import job_of
from goclaw_py.core.targets import TARGET_FORM, Maker, parse_target
from goclaw_py.operations.control import Control
from goclaw_py.operations.jobs.models import (
    UNCHANGED,
    JobChange,
    JobDraft,
    Requester,
    RunNow,
    Unchanged,
)
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.operations.sessions.operations import Sessions
from goclaw_py.records import JobQuery, Session
from goclaw_py.schedule.jobs.models import (
    OPERATOR,
    SLUG,
    Job,
    JobState,
    JobTarget,
    Payload,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.policy import JobPolicy, SessionKind
from goclaw_py.schedule.jobs.view_texts import kind_and_text
from goclaw_py.web.api.error_json import DISPATCH_FAILED
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import MAX_LIMIT
from goclaw_py.web.caco.texts import PROMPT_REQUIRED, error_text, not_found, words
from goclaw_py.web.caco.wire import (
    CacoError,
    CacoMessageBody,
    Deleted,
    Executed,
    MessageAccepted,
    PatchBody,
    Put,
    PutBody,
    ScheduleView,
    SessionConfig,
    Wire,
    Wrong,
    moment,
    schedule_from,
    view_of,
)
from goclaw_py.web.content import NOT_JSON, is_json

BY: Final = Requester(owner=OPERATOR, maker=Maker.OPERATOR)
EVERYBODY: Final = Requester(owner=None, maker=Maker.OPERATOR)

_Given = tuple[JobTarget, PeerKind]
"""A target, and whether it is a direct chat or a group."""

Slug = Annotated[str, Path(examples=["daily-standup"])]
KeyPath = Annotated[str, Path(min_length=1, max_length=512)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]

_CONFLICTS = (JobChanged, SlugTaken, TooManyJobs)
_REFUSED: Final = {
    RunNow.ALREADY_RUNNING: "Schedule is already running",
    RunNow.AT_CAPACITY: "As many jobs run as are allowed",
    RunNow.NO_WORK: "There is no work for this schedule",
    RunNow.OFF: "No jobs run here: there is no gateway, or the scheduler is switched off",
}
_FAULTS: Final[dict[int | str, dict[str, Any]]] = {
    code: {"model": CacoError} for code in (400, 404, 409, 413, 503)
}


class _Route(APIRoute):
    """Uses the statuses and error texts of *caco*."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestValidationError as error:
                if not is_json(request):
                    return _fault(415, CacoError(error=NOT_JSON))
                return _fault(400, CacoError(error=words(error.errors())))
            except Wrong as error:
                return _fault(400, CacoError(error=str(error)))
            except UnknownJob:
                return _fault(404, CacoError(error=not_found(request.path_params.get("slug", ""))))
            except _CONFLICTS as error:
                return _fault(409, CacoError(error=str(error)))
            except JobError as error:
                text, detail = error_text(error)
                return _fault(400, CacoError(error=text, detail=detail))

        return handle


def _answer(value: Wire) -> Response:
    return Response(value.model_dump_json(by_alias=True), media_type="application/json")


def _fault(status: int, fault: CacoError) -> Response:
    body = fault.model_dump_json(by_alias=True, exclude_none=True)
    return Response(body, status_code=status, media_type="application/json")


def schedule_routes(control: Control) -> APIRouter:
    """Return the routes below ``/api/schedule``."""
    api = APIRouter(route_class=_Route, responses=_FAULTS, tags=["schedule"])
    _looking(api, control)
    _changing(api, control)
    return api


def _looking(api: APIRouter, control: Control) -> None:
    @api.get("", response_model=list[ScheduleView])
    async def schedules(limit: Limit = MAX_LIMIT, offset: Offset = 0) -> Response:
        """List all schedules of the operator, the next one to run first."""
        service = control.jobs
        page = await service.search(JobQuery(owner=OPERATOR, limit=limit, offset=offset), BY)
        profile = (await service.scheduler()).profile
        shown = (view_of(job, profile).model_dump_json(by_alias=True) for job in page.jobs)
        return Response(f"[{','.join(shown)}]", media_type="application/json")

    @api.get("/{slug}", response_model=ScheduleView)
    async def schedule(slug: Slug) -> Response:
        """Get a schedule, with its state."""
        service = control.jobs
        return _answer(view_of(await _found(service, slug), (await service.scheduler()).profile))


def _changing(api: APIRouter, control: Control) -> None:
    @api.put("/{slug}", response_model=Put)
    async def put(slug: Slug, body: PutBody) -> Response:
        """Create or replace a schedule.

        For an existing one, missing ``enabled``, ``sessionConfig``, ``target`` and time zone stay
        as they are. A new one without ``target`` keeps its results in its session.
        """
        service = control.jobs
        _same(slug, body)
        default = (await service.scheduler()).profile.default_prompt
        prompt = _prompt(body.prompt if body.prompt is not None else default)
        whole, target = body.model_copy(update={"prompt": prompt}), await _target(control, body)
        after, created = await _put(service, slug, whole, target)
        return _answer(Put(slug=slug, next_run=moment(after.next_run_at), created=created))

    @api.patch("/{slug}", response_model=ScheduleView)
    async def patch(slug: Slug, body: PatchBody) -> Response:
        """Change a schedule; ``schedule`` is given as a whole or not at all."""
        service = control.jobs
        _same(slug, body)
        before = await _found(service, slug)
        base = (await service.scheduler()).profile.policy
        change = _change(base, before, body, await _target(control, body))
        after = await service.edit(before.id, change, BY)
        return _answer(view_of(after, (await service.scheduler()).profile))

    @api.delete("/{slug}", response_model=Deleted)
    async def delete(slug: Slug) -> Response:
        """Delete a schedule; a run in progress finishes."""
        service = control.jobs
        await service.delete((await _found(service, slug)).id, BY)
        return _answer(Deleted(slug=slug))

    @api.post("/{slug}/run", response_model=Executed)
    async def run(slug: Slug) -> Response:
        """Run a schedule in any state now; its next run does not change."""
        service = control.jobs
        started = await service.run_now((await _found(service, slug)).id, BY)
        if isinstance(started, RunNow):
            return _fault(409, CacoError(error=_REFUSED[started], code=started.name))
        session = started.session or None
        return _answer(Executed(slug=slug, run_id=started.run, session_id=session))


def message_routes(control: Control) -> APIRouter:
    """Return ``POST /api/sessions/{key}/messages``."""
    faults: dict[int | str, dict[str, Any]] = {**_FAULTS, 500: {"model": CacoError}}
    del faults[503]
    api = APIRouter(route_class=_Route, responses=faults, tags=["schedule"])

    @serve(api, Sessions.send_message, response_model=MessageAccepted)
    async def send(key: KeyPath, body: CacoMessageBody, *, queue: bool = False) -> Response:
        """Send a message to the agent as if it came from the session's chat.

        409 with ``SESSION_BUSY`` if the session is busy and ``queue`` is false; with ``NOT_A_CHAT``
        for a session without a chat, such as that of a subagent. The answer in a job's session goes
        to the job's target, or only into the history if it has none. An accepted message survives a
        crash.
        """
        if body.prompt is not None and body.message is not None:
            raise Wrong("prompt: give prompt or message, not both")
        text = _prompt(body.prompt if body.prompt is not None else body.message)
        try:
            sent = await control.sessions.send_message(key, text, queue=queue)
        except StoreUnavailable as error:
            return _fault(500, CacoError(error=str(error), code=DISPATCH_FAILED))
        return _answer(MessageAccepted(session_id=sent.session, run_id=sent.run))

    return api


async def _put(
    service: JobService, slug: str, body: PutBody, target: _Given | None
) -> tuple[Job, bool]:
    """Return the job for a body, and whether it was created. Raises ``JobError``."""
    base = (await service.scheduler()).profile.policy
    try:
        before = await _found(service, slug)
    except UnknownJob:
        try:
            return await service.create(_draft(base, slug, body, target), BY), True
        except SlugTaken:
            # Another request has made it meanwhile.
            before = await _found(service, slug)
    return await service.edit(before.id, _change(base, before, body, target), BY), False


async def _target(control: Control, body: PatchBody) -> _Given | None:
    """Return the target that a body gives, with the kind of its chat. Raises ``Wrong``."""
    text = body.target
    if text is None:
        return None
    if text in tuple(TargetKind):
        return TargetKind(text), PeerKind.DIRECT
    target = parse_target(text)
    if target is None:
        raise Wrong(f"target: must be last, none, or {TARGET_FORM}")
    place = (target.channel, target.account, target.chat)
    known = await control.people.chats()
    peers = (chat.peer for chat in known if (chat.channel, chat.account, chat.chat) == place)
    return target, next(peers, PeerKind.DIRECT)


async def _found(service: JobService, slug: str) -> Job:
    """Return the operator's job with exactly this slug. Raises ``UnknownJob``."""
    if not SLUG.fullmatch(slug):
        raise UnknownJob(slug)
    # The service also takes an id, and the beginning of one.
    try:
        job = await service.get(slug, BY, is_slug=True)
    except NotYours as error:
        raise UnknownJob(slug) from error
    if job.spec.slug != slug:
        raise UnknownJob(slug)
    return job


def _same(slug: str, body: PatchBody) -> None:
    if not SLUG.fullmatch(slug):
        raise Wrong("slug: must be up to 64 characters of a-z 0-9 _ -, the first no sign")
    if body.slug not in (None, slug):
        raise Wrong("slug: must be that of the path")


def _prompt(text: str | None) -> str:
    if text is None or not text.strip():
        raise Wrong(PROMPT_REQUIRED)
    return text


def _draft(base: JobPolicy, slug: str, body: PutBody, given: _Given | None) -> JobDraft:
    target, peer = given or (TargetKind.NONE, PeerKind.DIRECT)
    config = body.session_config or SessionConfig()
    policy: dict[str, object] = {}
    if config.persist_session is not None:
        kind = SessionKind.JOB if config.persist_session else SessionKind.FRESH
        policy["session"] = kind.value
    return JobDraft(
        schedule=schedule_from(body.schedule, base.min_interval),
        payload=Prompt(_prompt(body.prompt), config.model or ""),
        slug=slug,
        zone=body.schedule.timezone or "",
        target=target,
        peer=peer,
        policy=policy,
        paused=body.enabled is False,
    )


def _change(base: JobPolicy, job: Job, body: PatchBody, given: _Given | None) -> JobChange:
    """Return the change for an edit of a job."""
    change = JobChange(payload=_payload(job, body))
    if given is not None:
        change = replace(change, target=given[0], peer=given[1])
    if body.schedule is not None:
        least_s = job.policy(base).min_interval
        change = replace(change, schedule=schedule_from(body.schedule, least_s))
        if body.schedule.timezone is not None:
            change = replace(change, zone=body.schedule.timezone)
    if body.enabled is not None and body.enabled is not (job.state is JobState.ACTIVE):
        state = JobState.ACTIVE if body.enabled else JobState.PAUSED
        change = replace(change, state=state)
    keeps = None if body.session_config is None else body.session_config.persist_session
    kept = job.policy(base).session is not SessionKind.FRESH
    if keeps is not None and keeps is not kept:
        kind = SessionKind.JOB if keeps else SessionKind.FRESH
        change = replace(change, session="", policy={"session": kind.value})
    return change


def _payload(job: Job, body: PatchBody) -> Payload | Unchanged:
    """Return the new payload. A job with another payload than a prompt keeps its kind."""
    given = body.session_config
    before = job.spec.payload
    if not isinstance(before, Prompt):
        kind, text = kind_and_text(before)
        if body.prompt is not None and _prompt(body.prompt) != text:
            raise Wrong(f"prompt: this schedule runs a {kind}, which stays as it is here")
        if given is not None and given.model:
            raise Wrong("sessionConfig.model: only a prompt is given to a model")
        return UNCHANGED
    text = before.text if body.prompt is None else _prompt(body.prompt)
    model = before.model
    if given is not None and "model" in given.model_fields_set:
        model = given.model or ""
    return Prompt(text, model)


# ---------------------------------------------------------------------------- sessions


@dataclass(frozen=True, slots=True)
class ListedSession(Session):
    """A session; for a job's session, with the job's slug and next run."""

    scheduleSlug: str | None = None  # noqa: N815  (as in caco)
    scheduleNextRun: str | None = None  # noqa: N815


async def listed(service: JobService, sessions: Sequence[Session]) -> list[ListedSession]:
    """Return the sessions with their jobs."""
    return list(await asyncio.gather(*(_listed(service, session) for session in sessions)))


async def _listed(service: JobService, session: Session) -> ListedSession:
    plain = {field.name: getattr(session, field.name) for field in fields(Session)}
    job = await _job_of(service, session.key)
    if job is None:
        return ListedSession(**plain)
    return ListedSession(
        **plain, scheduleSlug=job.spec.slug, scheduleNextRun=moment(job.next_run_at)
    )


async def _job_of(service: JobService, session: SessionKey) -> Job | None:
    job_id = job_of(session)
    if job_id is None:
        return None
    try:
        return await service.get(job_id, EVERYBODY)
    except UnknownJob:
        return None
