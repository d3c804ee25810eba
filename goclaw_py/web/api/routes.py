"""The HTTP API: what ``Control`` and ``Terminals`` offer, as routes (SPEC OPS-1, OPS-2).

The answers are the dataclasses of the ports as JSON. Every other answer has ``{"error": …}``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.routing import compile_path

from goclaw_py.model.ids import LaneName
from goclaw_py.ports.control import (
    Control,
    Resized,
    Terminals,
)
from goclaw_py.ports.health import Health
from goclaw_py.ports.settings import Setting
from goclaw_py.scheduler.views import GatewayStatus, LanesView
from goclaw_py.web.api.answers import answer
from goclaw_py.web.api.errors import handle_errors
from goclaw_py.web.api.health import alive_routes, health_routes
from goclaw_py.web.api.heartbeats import agent_routes, beat_routes, heartbeat_routes
from goclaw_py.web.api.jobs import job_routes, occurrence_routes, scheduler_routes
from goclaw_py.web.api.live import live_routes
from goclaw_py.web.api.messages import inbox_routes, outbox_routes
from goclaw_py.web.api.nodes import node_routes
from goclaw_py.web.api.openapi import describe
from goclaw_py.web.api.people import chat_routes, people_routes
from goclaw_py.web.api.runs import run_routes, session_routes
from goclaw_py.web.api.terminals import terminal_routes
from goclaw_py.web.api.usage import usage_routes
from goclaw_py.web.api.why import why_routes
from goclaw_py.web.api.wire import (
    MAX_BODY_BYTES,
    ApiError,
    ResizeBody,
)
from goclaw_py.web.caco.routes import message_routes, schedule_routes
from goclaw_py.web.limits import BodyLimit
from goclaw_py.web.settings import settings_routes

LanePath = Annotated[str, Path(min_length=1, max_length=512, examples=["main"])]
_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": ApiError} for code in (400, 404, 409, 413, 422, 503)
}


def make_api(
    control: Control,
    terminals: Terminals | None = None,
    *,
    release: str = "",
    settings: Sequence[Setting] = (),
    health: Health | None = None,
) -> FastAPI:
    """Make the app. Without ``terminals`` there are no chat routes, without ``health`` no probes.

    ``settings`` are shown as they are: they must be without secrets.
    """
    app = FastAPI(
        title="goclaw_py",
        version=release or "0",
        docs_url=None,
        redoc_url=None,
        # It is made in the event loop there, which takes seconds: see ``describe``.
        openapi_url=None,
        # Behind a proxy that speaks TLS it would lead to plain HTTP, and a token with it.
        redirect_slashes=False,
    )
    app.state.closing = asyncio.Event()
    app.state.methods = []
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    handle_errors(app)
    _include(app, alive_routes(), "")
    if health is not None:
        _include(app, health_routes(health), "", responses=None)
    live = live_routes(control, app.state.closing)
    _include(app, live, "/api")
    # Before the sessions: behind a key with slashes in it nothing else would be found.
    _include(app, message_routes(control), "/api", responses=None)
    for routes in (_gateway, _lanes, node_routes, people_routes, chat_routes, why_routes):
        _include(app, routes(control), "/api")
    _include(app, session_routes(control), "/api/sessions")
    _include(app, run_routes(control), "/api/runs")
    _include(app, outbox_routes(control), "/api/outbox")
    _include(app, inbox_routes(control), "/api/inbox")
    _include(app, settings_routes(control, settings), "/api")
    _include(app, usage_routes(control), "/api/usage")
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
    _include(app, describe(app), "", responses=None)
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


def _gateway(control: Control) -> APIRouter:
    api = APIRouter(tags=["gateway"])

    @api.get("/status", response_model=GatewayStatus)
    async def status() -> Response:
        """What the gateway is doing."""
        return answer(GatewayStatus, await control.status())

    return api


def _lanes(control: Control) -> APIRouter:
    api = APIRouter(tags=["lanes"])

    @api.get("/lanes", response_model=LanesView)
    async def lanes() -> Response:
        """Who is in each lane and who waits for it."""
        return answer(LanesView, await control.lanes())

    @api.put("/lanes/{name:path}", response_model=Resized)
    async def resize(name: LanePath, body: ResizeBody) -> Response:
        """Give a lane another size until the gateway ends; no run is cancelled."""
        return answer(Resized, await control.resize_lane(LaneName(name), body.concurrency))

    return api
