"""Signing in: who shows the token once gets a cookie (SPEC SEC-1)."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from goclaw_py.web.pages.services import PageServices, back_to, form
from goclaw_py.web.signin import COOKIE, LASTS_S, make_cookie

SIGN_IN = "/login"


@dataclass(frozen=True, slots=True)
class SignInContext:
    """What a browser has to know. ``now_s`` tells the Unix time in seconds."""

    token: str = field(repr=False)
    now_s: Callable[[], float]


def sign_routes(service: PageServices, gate: SignInContext | None) -> list[Route]:
    """The page with the question, and what answers it; without a gate nothing is asked."""

    async def ask(request: Request) -> Response:
        if gate is None:
            return RedirectResponse("/", status_code=303)
        return _page(service, request, request.query_params.get("next", ""))

    async def answer(request: Request) -> Response:
        if gate is None:
            return RedirectResponse("/", status_code=303)
        given = await form(request)
        token = gate.token.encode()
        if not hmac.compare_digest(given.get("token", "").strip().encode(), token):
            return _page(service, request, given.get("next", ""), "This is not the token.")
        path, _, query = own_place(given.get("next", "")).partition("?")
        response = back_to(path, "welcome", **dict(parse_qsl(query)))
        # A browser says with each form from where it comes: by that we know of a proxy's TLS.
        is_tls = urlsplit(request.headers.get("origin", "")).scheme == "https"
        response.set_cookie(
            COOKIE,
            make_cookie(token, gate.now_s()),
            max_age=LASTS_S,
            httponly=True,
            samesite="strict",
            secure=is_tls,
        )
        return response

    async def leave(_request: Request) -> Response:
        response = RedirectResponse(SIGN_IN if gate else "/", status_code=303)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    return [
        Route(SIGN_IN, ask, methods=["GET"]),
        Route(SIGN_IN, answer, methods=["POST"]),
        Route("/logout", leave, methods=["POST"]),
    ]


def own_place(wanted: str) -> str:
    r"""A path of this site, maybe with a query; anything else becomes the first page.

    Browsers read ``//host`` and ``/\\host`` as another site, and skip control characters.
    """
    place = wanted.partition("#")[0]
    is_ours = place.startswith("/") and not place.startswith(("//", "/\\"))
    return place if is_ours and place.isprintable() else "/"


def _page(service: PageServices, request: Request, wanted: str, error: str = "") -> Response:
    facts = {"title": "Sign in", "path": "", "next": own_place(wanted), "error": error}
    return service.answer(request, "login.html", facts, 403 if error else 200)
