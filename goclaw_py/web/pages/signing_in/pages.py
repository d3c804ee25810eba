"""Signing in to the dashboard, by token or elsewhere, and out (SPEC SEC-6, SEC-10)."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from goclaw_py.core.actors import acting
from goclaw_py.records import SignInMethod
from goclaw_py.web.front import WebAccess
from goclaw_py.web.guard import SIGN_IN_PATH, is_by_proxy
from goclaw_py.web.openid.client import START_PATH
from goclaw_py.web.pages.services import PageServices, back_to, form
from goclaw_py.web.pages.signing_in.openid import OpenIdPages
from goclaw_py.web.sign_ins import TokenRefusal
from goclaw_py.web.signin import COOKIE, cookie_of

_WRONG: Final = "This is not the token."
_BLOCKED: Final = "There were too many wrong tokens. Try again in half a minute."
_EXPIRED: Final = "Your sign-in has expired, so nothing was done. Sign in, and send the form again."


class SignInPages:
    """The sign-in page, its form, and signing out; without a token they lead to the first page."""

    def __init__(self, service: PageServices, access: WebAccess) -> None:
        self._service = service
        self._access = access
        self._sign_ins = access.sign_ins
        self._openid: OpenIdPages | None = None
        if access.openid is not None and access.sign_ins is not None:
            self._openid = OpenIdPages(
                service, access.openid, access.sign_ins, self._question, own_place
            )

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(SIGN_IN_PATH, self._ask, methods=["GET"]),
            Route(SIGN_IN_PATH, self._answer, methods=["POST"]),
            Route("/logout", self._leave, methods=["POST"]),
            *(self._openid.routes() if self._openid is not None else ()),
        ]

    def _question(
        self, request: Request, wanted: str, error: str = "", status: int = 200
    ) -> Response:
        if not error and request.query_params.get("form") == "yes":  # from ``web.guard``
            error = _EXPIRED
        place, client = own_place(wanted), self._access.openid
        facts: dict[str, object] = {"title": "Sign in", "path": "", "next": place, "error": error}
        facts["openid"] = None
        if client is not None:
            # Not relative: the provider leads back to this address, which has to have the cookie.
            address = f"{client.public_url}{START_PATH}?{urlencode({'next': place})}"
            facts["openid"] = {"label": client.label, "address": address}
        return self._service.answer(request, "login.html", facts, status)

    async def _ask(self, request: Request) -> Response:
        if self._sign_ins is None or is_by_proxy(request.scope):
            return RedirectResponse("/", status_code=303)
        return self._question(request, request.query_params.get("next", ""))

    async def _answer(self, request: Request) -> Response:
        sign_ins = self._sign_ins
        if sign_ins is None:
            return RedirectResponse("/", status_code=303)
        given = await form(request)
        found = await sign_ins.admit(given.get("token", "").strip().encode(), request.scope)
        if isinstance(found, TokenRefusal):
            error, status = (_BLOCKED, 429) if found.is_blocked else (_WRONG, 403)
            return self._question(request, given.get("next", ""), error, status)
        secret = await sign_ins.begin(
            found.actor,
            request.headers.get("user-agent", ""),
            method=found.method,
            expires_at=found.expires_at,
        )
        path, _, query = own_place(given.get("next", "")).partition("?")
        response = back_to(path, "welcome", **dict(parse_qsl(query)))
        # A browser says with each form from where it comes: by that we know of a proxy's TLS.
        is_tls = urlsplit(request.headers.get("origin", "")).scheme == "https"
        response.set_cookie(
            COOKIE,
            secret,
            max_age=sign_ins.lasts_s,
            httponly=True,
            samesite="strict",
            secure=is_tls,
        )
        return response

    async def _leave(self, request: Request) -> Response:
        response = await self._left(request)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    async def _left(self, request: Request) -> Response:
        """Sign the browser out, and return the next page, which links to others who signed it in.

        It is a link: forms of this site lead to no other one.
        """
        if self._sign_ins is None:
            return RedirectResponse("/", status_code=303)
        ended = await self._sign_ins.end(cookie_of(request.scope["headers"]))
        facts: dict[str, object] = {"title": "Sign out", "path": "", "person": ""}
        person, proxy = acting(), self._access.proxy
        if proxy is not None and person is not None and is_by_proxy(request.scope):
            facts |= {"person": person.name, "sign_out_url": proxy.sign_out_url}
            return self._service.answer(request, "sign_out.html", facts)
        was_elsewhere = ended is not None and ended.method is SignInMethod.OPENID
        address = ""
        if was_elsewhere and self._openid is not None:
            address = await self._openid.sign_out_address()
        if address and self._openid is not None:
            facts |= {"provider": self._openid.label, "sign_out_url": address}
            return self._service.answer(request, "sign_out.html", facts)
        return back_to(SIGN_IN_PATH, "left")


def own_place(wanted: str) -> str:
    r"""Return a path of this site, perhaps with a query; anything else becomes the first page.

    Browsers read ``//host`` and ``/\\host`` as another site, and skip control characters.
    """
    place = wanted.partition("#")[0]
    is_ours = place.startswith("/") and not place.startswith(("//", "/\\"))
    return place if is_ours and place.isprintable() else "/"
