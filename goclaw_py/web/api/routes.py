"""The HTTP API: ``Control`` and ``Terminals`` as routes (SPEC OPS-1, OPS-2).

Responses are the records of the operations as JSON. Errors have ``{"error": …}``.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection
from typing import Any, get_origin

from fastapi import APIRouter, FastAPI, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from goclaw_py.chat.terminals import Terminals
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.text import requirement
from goclaw_py.observability.log_lines import Logs, NoLogs
from goclaw_py.observability.readiness import Health
from goclaw_py.operations.access.routes import sign_in_routes, token_routes
from goclaw_py.operations.approvals.routes import approval_routes
from goclaw_py.operations.audit.routes import audit_routes
from goclaw_py.operations.control import Control
from goclaw_py.operations.deliveries.routes import inbox_routes, outbox_routes
from goclaw_py.operations.heartbeats.routes import (
    agent_routes,
    heartbeat_routes,
    heartbeat_run_routes,
)
from goclaw_py.operations.jobs.routes.routes import (
    job_routes,
    occurrence_routes,
    scheduler_routes,
)
from goclaw_py.operations.lanes.routes import lane_routes
from goclaw_py.operations.nodes.routes import node_routes
from goclaw_py.operations.people.routes import people_routes
from goclaw_py.operations.runs.routes import run_routes
from goclaw_py.operations.sessions.routes import name_routes, session_routes
from goclaw_py.operations.settings.routes import settings_routes
from goclaw_py.operations.usage.routes import usage_routes
from goclaw_py.web.api.error_json import error_json, status_of
from goclaw_py.web.api.gateway import gateway_routes
from goclaw_py.web.api.health import alive_routes, health_routes
from goclaw_py.web.api.logs import log_routes
from goclaw_py.web.api.openapi import describe
from goclaw_py.web.api.streams import live_routes, terminal_routes
from goclaw_py.web.api.wire import MAX_BODY_BYTES, ApiError, dump
from goclaw_py.web.caco.routes import message_routes, schedule_routes
from goclaw_py.web.content import NOT_JSON, is_json
from goclaw_py.web.limits import BodyLimit
from goclaw_py.web.message_text import without_text
from goclaw_py.web.sealing import sealed

_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": ApiError} for code in (400, 403, 404, 409, 413, 422, 503)
}


class _Api(FastAPI):
    """Refuses repeated parameters; seals all answers, also of errors outside of middleware."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        send = sealed(send)
        # A dependency would cost each request as much as a tenth of a message.
        if scope["type"] == "http" and b"&" in scope["query_string"]:
            scope["app"] = self
            request = Request(scope)
            if wrong := _repeated(request):
                answer = await _on_error(request, HTTPException(400, wrong))
                await answer(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def make_api(
    control: Control,
    terminals: Terminals | None = None,
    *,
    release: str = "",
    health: Health | None = None,
    logs: Logs | None = None,
    agents: Collection[str] = (),
) -> FastAPI:
    """Create the app. Without ``terminals`` it has no chat routes, without ``health`` no probes.

    ``logs`` are the newest log lines of this process. ``agents`` may be chosen in a chat.
    """
    control = without_text(control)
    app = _Api(
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
    app.state.logs = logs or NoLogs()
    app.state.methods = []
    app.state.lists = []
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    _handle_errors(app)
    _include(app, alive_routes(), "")
    if health is not None:
        _include(app, health_routes(health), "", responses=None)
    live = live_routes(control, app.state.closing)
    _include(app, live, "/api")
    # Before the sessions: behind a key with slashes in it nothing else would be found.
    _include(app, message_routes(control), "", responses=None)
    _include(app, gateway_routes(control), "/api")
    _include(app, lane_routes(control), "")
    _include(app, node_routes(control), "")
    _include(app, log_routes(app.state.logs, app.state.closing), "/api")
    for of_noun in (
        *(settings_routes, audit_routes, approval_routes, people_routes, name_routes),
        *(sign_in_routes, token_routes, session_routes, run_routes, usage_routes),
        *(inbox_routes, outbox_routes),
    ):
        _include(app, of_noun(control), "")
    _include(app, schedule_routes(control), "/api/schedule", responses=None)
    for of_noun in (
        *(job_routes, occurrence_routes, scheduler_routes),
        *(heartbeat_routes, heartbeat_run_routes, agent_routes),
    ):
        _include(app, of_noun(control), "")
    if terminals is not None:
        chat = terminal_routes(terminals, app.state.closing, agents)
        _include(app, chat, "/api/chat")
    _include(app, describe(app), "", responses=None)
    return app


def make_chat_api(terminals: Terminals, closing: asyncio.Event) -> FastAPI:
    """Create an app with nothing but the chat routes; ``closing`` ends its streams."""
    app = _Api(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.methods = []
    app.state.lists = []
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    _handle_errors(app)
    _include(app, terminal_routes(terminals, closing), "/api/chat")
    return app


def _include(
    app: FastAPI,
    routes: APIRouter,
    prefix: str,
    responses: dict[int | str, dict[str, Any]] | None = _ERRORS,
) -> None:
    """Add routes, and store the methods of their paths."""
    app.include_router(routes, prefix=prefix, responses=responses)
    for route in routes.routes:
        if isinstance(route, APIRoute):
            pattern, _, _ = compile_path(prefix + route.path)
            app.state.methods.append((pattern, frozenset(route.methods or ())))
            if lists := _lists(route):
                app.state.lists.append((pattern, lists))


def closing_of(app: FastAPI) -> asyncio.Event:
    """The event that ends all event streams of an app."""
    closing: asyncio.Event = app.state.closing
    return closing


def logs_of(app: FastAPI) -> Logs:
    """The newest log lines of the process."""
    logs: Logs = app.state.logs
    return logs


def _lists(route: APIRoute) -> frozenset[str]:
    """Return the parameters that may be given several times."""
    return frozenset(
        field.alias
        for field in get_flat_params(route.dependant)
        if get_origin(field.field_info.annotation) is list
    )


def _repeated(request: Request) -> str:
    """Return what is wrong with parameters that are given twice and can count once, "" if none is.

    Any of the two may be meant.
    """
    given = Counter(name for name, _ in request.query_params.multi_items())
    repeated = {name: times for name, times in given.items() if times > 1}
    if not repeated:
        return ""
    known: list[tuple[re.Pattern[str], frozenset[str]]] = request.app.state.lists
    path = request.scope["path"]
    lists = next((names for pattern, names in known if pattern.match(path)), frozenset())
    wrong = [name for name in repeated if name not in lists]
    return "; ".join(f"{name}: is given {repeated[name]} times" for name in wrong)


def _handle_errors(app: FastAPI) -> None:
    """Let an app convert all errors."""
    for kind in (GoclawError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _on_error)


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
            if code == 400 and not is_json(request):
                code, text = 415, NOT_JSON
        case GoclawError():
            code, text, body = status_of(error), str(error), error_json(error)
        case _:
            # Starlette raises it again after this answer, so the server logs it and hangs up.
            code, text = 500, "internal error; the log of the gateway has the details"
            headers = {"Connection": "close"}
    body = body or dump(ApiError, ApiError(text))
    return Response(body, status_code=code, headers=headers, media_type="application/json")


def _methods(request: Request) -> list[str]:
    """Return the methods of a request's path; Starlette knows only those of its first route."""
    path = request.scope["path"]
    known: list[tuple[re.Pattern[str], frozenset[str]]] = request.app.state.methods
    return sorted({one for pattern, methods in known if pattern.match(path) for one in methods})


def _is_unreadable(detail: dict[str, Any]) -> bool:
    """Return whether the body as a whole is invalid, not a value in it."""
    return detail["type"] == "json_invalid" or tuple(detail["loc"]) == ("body",)


def _sentence(detail: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"][1:]) or "body"
    unknown = detail["type"] in ("extra_forbidden", "unexpected_keyword_argument")
    return f"{where}: {'unknown key' if unknown else requirement(detail['msg'])}"
