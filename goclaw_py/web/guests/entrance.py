"""Invited people over TCP: a browser with their cookie reaches their chat and nothing else.

The guard sends a browser here that has the cookie of a guest, also one that is not valid any more:
without a token it would otherwise get the dashboard (SPEC CHAN-13, SEC-1). Opening a link changes
nothing, because programs open links too, to show a preview; the button on its page uses the link.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from goclaw_py.core.actors import Actor, ActorKind, acts
from goclaw_py.core.errors import GoclawError
from goclaw_py.core.web_links import SECRET_BYTES, SIGN_IN_LASTS, WEB_PLACE, is_secret, secret_hash
from goclaw_py.records import WebLink, WebLinkStore
from goclaw_py.web.connections import address_of
from goclaw_py.web.pages.services import PageServices
from goclaw_py.web.signin import GUEST_COOKIE, JOIN, cookie_of

log = logging.getLogger(__name__)

MOST_REQUESTS: Final = 32
"""The number of requests and streams that a browser may have at once: others need room, too."""

_SIGNED_OUT: Final = "/signed-out"

_WRONG = "This link is not valid. Perhaps it was revoked: ask for a new one."
_EXPIRED = "This link has expired: ask for a new one."
_USED = "This link was used already, and works once: ask for another one for this browser."


@dataclass(slots=True)
class SignedInBrowser:
    """What a signed-in browser reaches; ``closing`` ends its streams.

    ``requests`` is the number of requests in progress, streams included.
    """

    app: ASGIApp
    closing: asyncio.Event
    requests: int = 0


MakeBrowserApp = Callable[[WebLink, asyncio.Event], ASGIApp]


class Guests:
    """The web app of invited people.

    Args:
        links: The stored links.
        entrance: Creates the app of browsers that are not signed in, from its routes.
        browser: Creates the app of a signed-in browser.
        service: Renders pages.
        now_s: Returns the Unix time in seconds.
    """

    def __init__(
        self,
        links: WebLinkStore,
        entrance: Callable[[list[Route]], ASGIApp],
        browser: MakeBrowserApp,
        service: PageServices,
        now_s: Callable[[], float],
    ) -> None:
        self._links = links
        self._make_app = browser
        self._service = service
        self._now_s = now_s
        self._browsers: dict[str, SignedInBrowser] = {}
        """By the hash of the cookie."""
        self._entrance = entrance(
            [
                Route(f"{JOIN}{{secret}}", self._ask, methods=["GET"]),
                Route(f"{JOIN}{{secret}}", self._join, methods=["POST"]),
                Route(_SIGNED_OUT, self._signed_out, methods=["GET"]),
                Route("/logout", self._leave, methods=["POST"]),
                Route(
                    "/{path:path}", self._refuse, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]
                ),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path: str = scope["path"]
        if path.startswith((JOIN, "/static/")) or path in ("/logout", _SIGNED_OUT):
            await self._entrance(scope, receive, send)
            return
        cookie = cookie_of(scope["headers"], GUEST_COOKIE)
        try:
            link = await self._link_of(cookie)
        except GoclawError as error:
            # The database is away. The entrance says so: it has the pages for errors.
            scope["failure"] = error
            link = None
        if link is None:
            await self._entrance(scope, receive, send)
            return
        browser = self._browser(secret_hash(cookie), link)
        if browser.requests >= MOST_REQUESTS:
            scope["failure"] = HTTPException(429, "this browser has too many pages open")
            await self._entrance(scope, receive, send)
            return
        browser.requests += 1
        try:
            with acts(_actor(link, scope)):
                await browser.app(scope, receive, send)
        finally:
            browser.requests -= 1

    async def recheck(self) -> None:
        """End the streams of browsers whose sign-in has ended. Raises ``StoreUnavailable``."""
        if not self._browsers:
            return
        now = self._now()
        found = await self._links.web_links()
        valid = {link.cookie_hash for link in found if link.expires_at > now}
        for cookie_hash in [each for each in self._browsers if each not in valid]:
            self._browsers.pop(cookie_hash).closing.set()

    def close(self) -> None:
        """End all streams: the server stops."""
        for browser in self._browsers.values():
            browser.closing.set()

    # ------------------------------------------------------------------ signing in

    async def _ask(self, request: Request) -> Response:
        """Show the page of a link, or why it cannot be used."""
        secret = request.path_params["secret"]
        wanted = secret_hash(secret) if is_secret(secret) else ""
        mine = await self._link_of(cookie_of(request.scope["headers"], GUEST_COOKIE))
        if mine is not None and mine.link_hash == wanted:
            return RedirectResponse("/chat", status_code=303)
        link = await self._links.web_link(wanted) if wanted else None
        if link is not None and link.used_at is None and link.expires_at > self._now():
            return self._question(request)
        return self._refusal(request, link)

    async def _join(self, request: Request) -> Response:
        """Use a link: sign this browser in.

        Wrong ones are not counted: nobody can guess 256 bits, and behind a reverse proxy a limit by
        address would lock everybody out.
        """
        secret = request.path_params["secret"]
        cookie, now = secrets.token_urlsafe(SECRET_BYTES), self._now()
        cookie_hash, until = secret_hash(cookie), now + SIGN_IN_LASTS
        link = None
        if is_secret(secret):
            link = await self._links.use_web_link(
                secret_hash(secret), cookie_hash, now=now, until=until
            )
        if link is None:
            return self._refusal(request, link)
        if link.cookie_hash != cookie_hash:
            mine = await self._link_of(cookie_of(request.scope["headers"], GUEST_COOKIE))
            if mine is not None and mine.link_hash == link.link_hash:
                return RedirectResponse("/chat", status_code=303)
            return self._refusal(request, link)
        log.info("web_guest_joined", extra={"person": link.name})
        response = RedirectResponse("/chat", status_code=303)
        # A browser says with each form from where it comes: by that we know of a proxy's TLS.
        is_tls = urlsplit(request.headers.get("origin", "")).scheme == "https"
        # Lax: with "strict" a link to the dashboard, in a mail, would come without the cookie.
        response.set_cookie(
            GUEST_COOKIE,
            cookie,
            max_age=int(SIGN_IN_LASTS.total_seconds()),
            httponly=True,
            samesite="lax",
            secure=is_tls,
        )
        return response

    async def _leave(self, request: Request) -> Response:
        """Sign this browser out."""
        cookie = cookie_of(request.scope["headers"], GUEST_COOKIE)
        if is_secret(cookie):
            await self._links.end_web_sign_in(secret_hash(cookie))
            if (browser := self._browsers.pop(secret_hash(cookie), None)) is not None:
                browser.closing.set()
        # Not a redirect: the next page may be the dashboard, where no token is set.
        response = self._out(request, is_over=True)
        response.delete_cookie(GUEST_COOKIE, httponly=True, samesite="lax")
        return response

    async def _signed_out(self, request: Request) -> Response:
        if await self._link_of(cookie_of(request.scope["headers"], GUEST_COOKIE)) is not None:
            return RedirectResponse("/chat", status_code=303)
        return self._out(request, is_over=False)

    async def _refuse(self, request: Request) -> Response:
        """Answer a browser whose sign-in has ended."""
        if (failure := request.scope.get("failure")) is not None:
            raise failure
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(_SIGNED_OUT, status_code=303)
        raise HTTPException(401, "this browser is signed out")

    def _question(self, request: Request, error: str = "", status: int = 200) -> Response:
        facts = {"title": "Invitation to a chat", "path": "", "error": error}
        return self._service.answer(request, "join.html", facts, status)

    def _refusal(self, request: Request, link: WebLink | None) -> Response:
        """Say why a link cannot be used; None is one that is not stored."""
        if link is None:
            return self._question(request, _WRONG, 404)
        return self._question(request, _EXPIRED if link.used_at is None else _USED, 410)

    def _out(self, request: Request, *, is_over: bool) -> Response:
        facts = {"title": "Signed out", "path": "", "is_over": is_over}
        return self._service.answer(request, "signed_out.html", facts)

    # ------------------------------------------------------------------ who it is

    async def _link_of(self, cookie: str) -> WebLink | None:
        if not is_secret(cookie):
            return None
        return await self._links.web_link_of_cookie(secret_hash(cookie), now=self._now())

    def _browser(self, cookie_hash: str, link: WebLink) -> SignedInBrowser:
        browser = self._browsers.get(cookie_hash)
        if browser is None:
            closing = asyncio.Event()
            browser = self._browsers[cookie_hash] = SignedInBrowser(
                self._make_app(link, closing), closing
            )
        return browser

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._now_s(), UTC)


def _actor(link: WebLink, scope: Scope) -> Actor:
    """Return the person of a browser; the rules of chats say what they may."""
    return Actor(ActorKind.PERSON, "/".join((*WEB_PLACE, link.name)), via=address_of(scope))
