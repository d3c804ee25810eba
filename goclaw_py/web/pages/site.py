"""The dashboard as a web app, with sign-in (SPEC OPS-3, SEC-1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from goclaw_py.core.errors import GoclawError, NotFound
from goclaw_py.observability.readiness import Health
from goclaw_py.operations.access import page as access_page
from goclaw_py.operations.approvals import page as approvals_page
from goclaw_py.operations.audit import page as audit_page
from goclaw_py.operations.control import Control
from goclaw_py.operations.deliveries import page as deliveries_page
from goclaw_py.operations.heartbeats import page as heartbeats_page
from goclaw_py.operations.jobs.page import job_form
from goclaw_py.operations.jobs.page import jobs as jobs_page
from goclaw_py.operations.people import page as people_page
from goclaw_py.operations.runs import page as runs_page
from goclaw_py.operations.sessions import page as sessions_page
from goclaw_py.operations.settings import page as settings_page
from goclaw_py.operations.usage import page as usage_page
from goclaw_py.web.api.error_json import status_of
from goclaw_py.web.api.routes import closing_of, logs_of
from goclaw_py.web.api.wire import ApiError, dump
from goclaw_py.web.front import WebAccess
from goclaw_py.web.guard import FORBIDDEN, FORBIDDEN_PATH
from goclaw_py.web.message_text import without_text
from goclaw_py.web.pages import health as health_page
from goclaw_py.web.pages import logs as logs_page
from goclaw_py.web.pages import now
from goclaw_py.web.pages.chat import files as chat_files
from goclaw_py.web.pages.chat import page as chat_page
from goclaw_py.web.pages.chat.conversations import Conversations, SiteParts
from goclaw_py.web.pages.hub import Hub
from goclaw_py.web.pages.rendering import NAVIGATION, THEMES, Assets, Pages
from goclaw_py.web.pages.services import THEME_COOKIE, PageServices, form
from goclaw_py.web.pages.signing_in.pages import SignInPages, own_place
from goclaw_py.web.sealing import SEAL, sealed

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        # Pictures that are about to be sent, and the signs in form fields, which Pico has inside.
        "img-src 'self' blob: data:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    *SEAL,
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

_YEAR_S: Final = 365 * 86_400

_MODULES: Final = (
    now,
    runs_page,
    sessions_page,
    # Its paths are also such as those of a job look.
    job_form,
    jobs_page,
    heartbeats_page,
    deliveries_page,
    approvals_page,
    usage_page,
    settings_page,
    audit_page,
)
"""Modules of pages that need only the services."""


def make_site(
    control: Control,
    api: FastAPI,
    access: WebAccess,
    *,
    health: Health | None = None,
    parts: SiteParts | None = None,
) -> ASGIApp:
    """Create the app.

    Args:
        control: The operations for pages.
        api: Its streams and those of the site end together; both show the same log lines.
        access: The token and names.
        health: For the health page.
        parts: None: the chat has one agent, and no files.
    """
    control = without_text(control)
    assets, parts = Assets(), parts or SiteParts()
    absent = [path for path, _ in access_page.PAGES] if access.sign_ins is None else ()
    pages = Pages(assets, read=parts.read, signs_out=bool(access.token), absent=absent)
    closing = closing_of(api)
    service = PageServices(control, Hub(closing), pages, access.now_s)
    routes = [
        Route("/static/{name}", static_files(assets)),
        Route(FORBIDDEN_PATH, _forbid),
        *SignInPages(service, access).routes(),
    ]
    if access.sign_ins is not None:
        routes += access_page.routes(service, access.sign_ins)
    for module in _MODULES:
        routes += module.routes(service)
    routes += people_page.routes(service, access.public_url, has_token=bool(access.token))
    conversations = Conversations(control, parts)
    routes += chat_page.routes(service, conversations)
    routes += chat_files.routes(service, conversations)
    routes += health_page.routes(service, health)
    routes += logs_page.routes(service, logs_of(api), closing)
    return page_app(service, routes)


def page_app(service: PageServices, routes: Sequence[Route]) -> ASGIApp:
    """Return the app of some pages, with pages for errors, and headers that restrict browsers."""
    routes = [Route("/theme", _choose_theme, methods=["POST"]), *routes]
    handlers = _Faults(service)
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: handlers.refused,
            GoclawError: handlers.failed,
            Exception: handlers.broken,
        },
    )
    # Behind a proxy that speaks TLS it would lead to plain HTTP.
    app.router.redirect_slashes = False
    return _Sealed(app)


_TITLES: Final = {
    403: "Not allowed",
    404: "Not found",
    429: "Too many requests",
    500: "An error of goclaw",
    503: "Not available now",
}
"""The titles of pages for errors, by status."""


@dataclass(frozen=True, slots=True)
class _Faults:
    """Converts errors to pages for people, and to the API's form for programs."""

    service: PageServices

    async def refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = "there is no such page" if error.status_code == 404 else str(error.detail)
        return self._answer(request, error.status_code, text, error.headers)

    async def failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, GoclawError)
        is_page = "text/html" in request.headers.get("accept", "")
        # Its hint is for terminals: commands.
        text = error.text if is_page and isinstance(error, NotFound) else str(error)
        return self._answer(request, status_of(error, 409), text)

    async def broken(self, request: Request, _error: Exception) -> Response:
        # Starlette raises it again after this answer, so the server logs it.
        return self._answer(request, 500, "internal error; the log of the gateway has the details")

    def _answer(
        self, request: Request, status: int, text: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            facts = {
                "title": _TITLES.get(status, "Not possible"),
                "path": request.url.path,
                "error": text,
                "status": status,
                "back": _list_of(request.url.path, is_absent=status == 404)
                if self.service.has_menu
                else ("/", "the chat"),
            }
            answer = self.service.answer(request, "error.html", facts, status)
        else:
            body = dump(ApiError, ApiError(text))
            answer = Response(body, status, media_type="application/json")
        answer.headers.update(headers or {})
        return answer


def _list_of(path: str, *, is_absent: bool) -> tuple[str, str]:
    """Return address and name of the list of a page that failed; the first page if it has none."""
    for address, name in NAVIGATION:
        if path.startswith(f"{address}/") or (path == address and not is_absent):
            return address, name
    return "/", "Now"


class _Sealed:
    """Sets headers: browsers load and run only our files, and store no pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, sealed(send, _HEADERS))


def static_files(assets: Assets) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of style, scripts and icon."""

    async def serve(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in assets.contents:
            raise HTTPException(404)
        is_pinned = request.query_params.get("v") == assets.version
        keep = "public, max-age=31536000, immutable" if is_pinned else "no-cache"
        kind = assets.type_of(name)
        return Response(assets.contents[name], media_type=kind, headers={"Cache-Control": keep})

    return serve


async def _forbid(request: Request) -> Response:
    """Say why the guard refuses a request; see ``web.guard``."""
    text = getattr(request.state, FORBIDDEN, "")
    raise HTTPException(403, text) if text else HTTPException(404)


async def _choose_theme(request: Request) -> Response:
    """Keep a theme in the browser, and lead back to the page."""
    given = await form(request)
    came_from = urlsplit(request.headers.get("referer", ""))
    query = [pair for pair in parse_qsl(came_from.query) if pair[0] != "notice"]
    address = came_from.path + (f"?{urlencode(query)}" if query else "")
    response = RedirectResponse(own_place(address), status_code=303)
    if (theme := given.get("theme", "")) in {one for one, _, _ in THEMES}:
        # Lax: it also holds for who comes from a link elsewhere. Without a cookie the theme is
        # that of the system.
        lasts_s = _YEAR_S if theme else 0
        response.set_cookie(THEME_COOKIE, theme, lasts_s, httponly=True, samesite="lax")
    return response
