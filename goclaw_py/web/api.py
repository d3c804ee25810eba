"""The HTTP API: what ``Control`` and ``Terminals`` offer, as routes (SPEC OPS-1, OPS-2).

The answers are the dataclasses of the ports as JSON. Every other answer has ``{"error": …}``.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from goclaw_py.core.errors import GoclawError, HeartbeatError, JobError
from goclaw_py.core.ids import LaneName, SessionKey
from goclaw_py.core.status import ActiveRuns, LanesView, Status
from goclaw_py.ports.control import (
    Asking,
    Control,
    NotAChat,
    QueueView,
    Resized,
    SessionBusy,
    StopReport,
    Terminals,
)
from goclaw_py.ports.store import (
    Chat,
    Heard,
    Letter,
    OutboxRow,
    OutboxState,
    Person,
    Run,
    Session,
    StoredEntry,
)
from goclaw_py.web import heartbeat_faults
from goclaw_py.web.heartbeats import agent_routes, beat_routes, heartbeat_routes
from goclaw_py.web.job_faults import STATUS_OF as JOB_STATUS_OF
from goclaw_py.web.job_faults import JobFault, fault_of
from goclaw_py.web.jobs import job_routes, occurrence_routes, scheduler_routes
from goclaw_py.web.limits import BodyLimit
from goclaw_py.web.live import live_routes
from goclaw_py.web.schedule import ListedSession, listed, message_routes, schedule_routes
from goclaw_py.web.terminals import terminal_routes
from goclaw_py.web.wire import (
    CODE_OF,
    MAX_BODY_BYTES,
    MAX_LIMIT,
    MAX_ROW_ID,
    STATUS_OF,
    AllowBody,
    ApiError,
    ApproveBody,
    CodedError,
    Dropped,
    ResizeBody,
    Retried,
    RevokeBody,
    RowsBody,
    StopBody,
    dump,
)

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
KeyPath = Annotated[str, Path(min_length=1, max_length=512)]
RowPath = Annotated[int, Path(ge=0, le=MAX_ROW_ID)]
_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": ApiError} for code in (400, 404, 409, 413, 422, 503)
}


def make_api(control: Control, terminals: Terminals | None = None, *, release: str = "") -> FastAPI:
    """Make the app. Without ``terminals`` there are no chat routes."""
    app = FastAPI(title="goclaw_py", version=release or "0", docs_url=None, redoc_url=None)
    app.state.closing = asyncio.Event()
    app.state.methods = []
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    for kind in (GoclawError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _on_error)
    _include(app, _health(), "")
    live = live_routes(control, app.state.closing)
    _include(app, live, "/api")
    # Before the sessions: behind a key with slashes in it nothing else would be found.
    _include(app, message_routes(control), "/api", responses=None)
    for routes in (_gateway, _lanes, _runs, _outbox, _inbox, _people, _chats):
        _include(app, routes(control), "/api")
    _include(app, schedule_routes(control), "/api/schedule", responses=None)
    _include(app, job_routes(control), "/api/jobs")
    _include(app, occurrence_routes(control), "/api/occurrences")
    _include(app, scheduler_routes(control), "/api/scheduler")
    _include(app, heartbeat_routes(control), "/api/heartbeats")
    _include(app, beat_routes(control), "/api/beats")
    _include(app, agent_routes(control), "/api/agents")
    if terminals is not None:
        chat = terminal_routes(terminals, app.state.closing)
        _include(app, chat, "/api/chat")
    return app


def _include(
    app: FastAPI,
    routes: APIRouter,
    prefix: str,
    responses: dict[int | str, dict[str, Any]] | None = _ERRORS,
) -> None:
    """Add routes, and remember what can be done at their paths."""
    app.include_router(routes, prefix=prefix, responses=responses)
    for route in routes.routes:
        if isinstance(route, APIRoute):
            pattern, _, _ = compile_path(prefix + route.path)
            app.state.methods.append((pattern, frozenset(route.methods or ())))


def closing_of(app: FastAPI) -> asyncio.Event:
    """The event that ends all event streams of an app."""
    closing: asyncio.Event = app.state.closing
    return closing


def answer(kind: Any, value: object) -> Response:
    """Write a value the way the wire has it; FastAPI would check it once more."""
    return Response(dump(kind, value), media_type="application/json")


async def _on_error(request: Request, error: Exception) -> Response:
    headers = None
    body = None
    match error:
        case HTTPException():
            code, text, headers = error.status_code, str(error.detail), error.headers
            if code == 405:
                headers = {"Allow": ", ".join(_methods(request))}
        case RequestValidationError():
            code = 400 if any(map(_is_unreadable, error.errors())) else 422
            text = "; ".join(_sentence(detail) for detail in error.errors())
        case JobError():
            code = next(code for kind, code in JOB_STATUS_OF if isinstance(error, kind))
            text, body = str(error), dump(JobFault, fault_of(error))
        case HeartbeatError():
            faults = heartbeat_faults
            code = next(code for kind, code in faults.STATUS_OF if isinstance(error, kind))
            text, body = str(error), dump(faults.HeartbeatFault, faults.fault_of(error))
        case SessionBusy() | NotAChat():
            code, text = 409, str(error)
            word = next(word for kind, word in CODE_OF if isinstance(error, kind))
            body = dump(CodedError, CodedError(text, word))
        case GoclawError():
            code = next((code for kind, code in STATUS_OF if isinstance(error, kind)), 500)
            text = str(error)
        case _:
            # Starlette raises it again after this answer, so the server logs it.
            code, text = 500, "internal error; the gateway's log has it"
    body = body or dump(ApiError, ApiError(text))
    return Response(body, status_code=code, headers=headers, media_type="application/json")


def _methods(request: Request) -> list[str]:
    """What can be done at the path of a request; Starlette knows only its first route."""
    path = request.scope["path"]
    known: list[tuple[re.Pattern[str], frozenset[str]]] = request.app.state.methods
    return sorted({one for pattern, methods in known if pattern.match(path) for one in methods})


def _is_unreadable(detail: dict[str, Any]) -> bool:
    """Whether the body as a whole is wrong, not a value in it."""
    return detail["type"] == "json_invalid" or tuple(detail["loc"]) == ("body",)


def _sentence(detail: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"][1:]) or "body"
    return f"{where}: {detail['msg']}"


def _health() -> APIRouter:
    api = APIRouter()

    @api.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Answers as long as the event loop turns."""
        return {"status": "ok"}

    @api.head("/healthz", include_in_schema=False)
    async def alive() -> Response:
        """The same for whoever needs no body, such as a load balancer."""
        return Response(media_type="application/json")

    return api


def _gateway(control: Control) -> APIRouter:
    api = APIRouter()

    @api.get("/status", response_model=Status)
    async def status() -> Response:
        """What the gateway is doing."""
        return answer(Status, await control.status())

    @api.get("/sessions", response_model=list[ListedSession])
    async def sessions(limit: Limit = 50) -> Response:
        """Sessions, the last active first; those of jobs with slug and next run."""
        found = await listed(control.jobs, await control.sessions(limit=limit))
        return answer(list[ListedSession], found)

    @api.get("/sessions/{key:path}/history", response_model=list[StoredEntry])
    async def history(key: KeyPath, limit: Limit = 200) -> Response:
        """A session's history since its last reset, oldest first."""
        entries = await control.history(SessionKey(key), limit=limit)
        return answer(list[StoredEntry], entries)

    @api.get("/sessions/{key:path}/queue", response_model=QueueView)
    async def queue(key: KeyPath) -> Response:
        """What runs, what waits and what got no answer, by any unique part of the session's key."""
        return answer(QueueView, await control.queue(key))

    @api.post("/sessions/{key:path}/stop", response_model=StopReport)
    async def stop(key: KeyPath, body: StopBody) -> Response:
        """Like ``/stop`` or ``/stopall`` in that session's chat."""
        report = await control.stop(SessionKey(key), everything=body.everything)
        return answer(StopReport, report)

    @api.post("/sessions/{key:path}/reset", status_code=204)
    async def reset(key: KeyPath) -> None:
        """Stop what runs and waits in a session and begin a fresh history."""
        await control.reset(SessionKey(key))

    @api.get("/sessions/{key:path}", response_model=Session)
    async def session(key: KeyPath) -> Response:
        """The session with this key or unique part of a key."""
        return answer(Session, await control.session(key))

    return api


def _lanes(control: Control) -> APIRouter:
    api = APIRouter()

    @api.get("/lanes", response_model=LanesView)
    async def lanes() -> Response:
        """Who is in each lane and who waits for it."""
        return answer(LanesView, await control.lanes())

    @api.put("/lanes/{name:path}", response_model=Resized)
    async def resize(name: KeyPath, body: ResizeBody) -> Response:
        """Give a lane another size until the gateway ends; no run is cancelled."""
        return answer(Resized, await control.resize_lane(LaneName(name), body.concurrency))

    return api


def _runs(control: Control) -> APIRouter:
    api = APIRouter()

    @api.get("/runs", response_model=list[Run])
    async def runs(
        limit: Limit = 50,
        session: Annotated[str | None, Query(max_length=512)] = None,
        *,
        active: bool = False,
    ) -> Response:
        """Runs, the newest first."""
        key = SessionKey(session) if session is not None else None
        return answer(list[Run], await control.runs(limit=limit, session=key, active=active))

    @api.get("/runs/active", response_model=ActiveRuns)
    async def active() -> Response:
        """All requests that are not done: what works, and what waits for what."""
        return answer(ActiveRuns, await control.active())

    @api.get("/runs/{prefix}", response_model=Run)
    async def run(prefix: KeyPath) -> Response:
        """The run whose id starts with this."""
        return answer(Run, await control.run(prefix))

    return api


def _outbox(control: Control) -> APIRouter:
    api = APIRouter()

    @api.get("/outbox", response_model=list[OutboxRow])
    async def outbox(limit: Limit = 50, state: OutboxState | None = None) -> Response:
        """Messages on their way out, the newest first."""
        return answer(list[OutboxRow], await control.outbox(limit=limit, state=state))

    @api.get("/outbox/{row_id}", response_model=OutboxRow)
    async def one(row_id: RowPath) -> Response:
        """One message, whatever became of it."""
        return answer(OutboxRow, await control.outbox_row(row_id))

    @api.post("/outbox/retry", response_model=Retried)
    async def retry(body: RowsBody) -> Response:
        """Try dead and dropped messages again."""
        return answer(Retried, Retried(await control.retry_outbox(body.ids)))

    @api.post("/outbox/drop", response_model=Dropped)
    async def drop(body: RowsBody) -> Response:
        """Give up messages that are dead or wait."""
        return answer(Dropped, Dropped(await control.drop_outbox(body.ids)))

    return api


def _inbox(control: Control) -> APIRouter:
    api = APIRouter()

    @api.get("/inbox", response_model=list[Letter])
    async def inbox(limit: Limit = 50, *, waiting: bool = False) -> Response:
        """Messages that could not be worked on, or those that are not done; the newest first."""
        return answer(list[Letter], await control.letters(waiting=waiting, limit=limit))

    @api.get("/inbox/{row_id}", response_model=Letter)
    async def one(row_id: RowPath) -> Response:
        """One message that came in, whatever became of it."""
        return answer(Letter, await control.letter(row_id))

    @api.post("/inbox/retry", response_model=Retried)
    async def retry(body: RowsBody) -> Response:
        """Let messages that ended without an answer run again."""
        return answer(Retried, Retried(await control.retry_letters(body.ids)))

    @api.post("/inbox/drop", response_model=Dropped)
    async def drop(body: RowsBody) -> Response:
        """Show messages that ended without an answer no more."""
        return answer(Dropped, Dropped(await control.dismiss_letters(body.ids)))

    return api


def _people(control: Control) -> APIRouter:
    api = APIRouter()

    @api.get("/people", response_model=list[Person])
    async def people() -> Response:
        """Who may talk to the agent."""
        return answer(list[Person], await control.people())

    @api.post("/people/revoke", status_code=204)
    async def revoke(body: RevokeBody) -> None:
        """Forget a person."""
        await control.revoke(body.channel, body.account, body.sender_id)

    @api.get("/heard", response_model=list[Heard])
    async def heard(limit: Limit = 50) -> Response:
        """Chats and threads in which somebody who may talk spoke, the last one first."""
        return answer(list[Heard], await control.heard(limit=limit))

    @api.get("/pairing", response_model=list[Asking])
    async def pairing() -> Response:
        """Who asked to talk to the agent."""
        return answer(list[Asking], await control.pairing_requests())

    @api.post("/pairing/approve", response_model=Person)
    async def approve(body: ApproveBody) -> Response:
        """Let the person with this pairing code talk."""
        return answer(Person, await control.approve(body.code, guest=body.guest))

    return api


def _chats(control: Control) -> APIRouter:
    api = APIRouter()

    @api.get("/chats", response_model=list[Chat])
    async def chats(limit: Limit = MAX_LIMIT) -> Response:
        """Known chats, the last seen first."""
        return answer(list[Chat], await control.chats(limit=limit))

    @api.post("/chats/allow", status_code=204)
    async def allow(body: AllowBody) -> None:
        """Decide whether the agent listens in a group; one never seen becomes known."""
        await control.allow_chat(body.channel, body.account, body.chat, allowed=body.allowed)

    return api
