"""Signing in by an OpenID provider: the way there, and back (SPEC SEC-10)."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from goclaw_py.core.actors import Actor
from goclaw_py.core.concurrency import in_import_thread
from goclaw_py.records import SignInMethod
from goclaw_py.web.attempts import Attempts
from goclaw_py.web.connections import address_of, peer_of
from goclaw_py.web.openid.client import (
    CALLBACK_PATH,
    LASTS_S,
    START_PATH,
    OpenIdClient,
    OpenIdFailure,
    SignInAttempt,
)
from goclaw_py.web.pages.services import PageServices
from goclaw_py.web.sign_ins import SignIns
from goclaw_py.web.signin import COOKIE, cookie_of

if TYPE_CHECKING:
    from goclaw_py.web.openid.provider import OpenIdProvider

log = logging.getLogger(__name__)

SIGNED_IN_FOR: Final = timedelta(days=1)
"""How long a sign-in is valid: then the provider is asked again whether the person has a role."""

_MOST_CODE: Final = 4_096
_BLOCKED: Final = "There were too many failed sign-ins. Try again in half a minute."
_NOT_OURS: Final = "This sign-in was not begun in this browser, or took too long. Begin again."

Question = Callable[[Request, str, str, int], Response]
"""Returns the sign-in page again: a request, the page wanted, what is wrong, the status."""


class OpenIdPages:
    """The pages that lead to the provider and back.

    Args:
        question: Returns the sign-in page.
        place: Returns a path of this site for what a browser sends as one.
    """

    def __init__(
        self,
        service: PageServices,
        client: OpenIdClient,
        sign_ins: SignIns,
        question: Question,
        place: Callable[[str], str],
    ) -> None:
        self._service = service
        self._client = client
        self._sign_ins = sign_ins
        self._question = question
        self._place = place
        self._provider: OpenIdProvider | None = None
        self._attempts = Attempts()
        # With this prefix no page of a neighbouring name can set it.
        self._cookie = "__Host-goclaw_openid" if client.is_tls else "goclaw_openid"

    @property
    def label(self) -> str:
        """What people call the provider."""
        return self._client.label

    def routes(self) -> list[Route]:
        """Return the routes of both pages."""
        return [Route(START_PATH, self._start), Route(CALLBACK_PATH, self._back)]

    async def sign_out_address(self) -> str:
        """Return where people sign out of the provider, too; "" if that is not known."""
        return await (await self._known_provider()).sign_out_address()

    async def _start(self, request: Request) -> Response:
        wanted = self._place(request.query_params.get("next", ""))
        attempt = SignInAttempt.begin(wanted)
        try:
            address = await (await self._known_provider()).address(attempt)
        except OpenIdFailure as error:
            return self._question(request, wanted, str(error), error.status)
        response = RedirectResponse(address, status_code=303)
        # Lax: it has to come back with the browser that the provider sends.
        response.set_cookie(
            self._cookie,
            attempt.cookie,
            max_age=LASTS_S,
            httponly=True,
            samesite="lax",
            secure=self._client.is_tls,
        )
        return response

    async def _back(self, request: Request) -> Response:
        attempt = SignInAttempt.read(cookie_of(request.scope["headers"], self._cookie))
        wanted = self._place("" if attempt is None else attempt.next)
        peer, now_s = peer_of(request.scope.get("client")), self._sign_ins.now_s()
        if self._attempts.blocked(peer, now_s) and not self._attempts.is_trusted(peer, now_s):
            return self._question(request, wanted, _BLOCKED, 429)
        try:
            person = await self._person(request, attempt)
        except OpenIdFailure as error:
            if error.status == 403:
                self._attempts.note_wrong(peer, now_s)
                facts = {"address": address_of(request.scope), "path": CALLBACK_PATH}
                log.warning("sign_in_refused", extra=facts | {"reason": str(error)})
            response = self._question(request, wanted, str(error), error.status)
        else:
            self._attempts.note_right(peer, now_s)
            response = await self._signed_in(request, person, wanted)
        secure = self._client.is_tls
        response.delete_cookie(self._cookie, httponly=True, samesite="lax", secure=secure)
        return response

    async def _person(self, request: Request, attempt: SignInAttempt | None) -> Actor:
        """Return who has signed in at the provider. Raises ``OpenIdFailure``."""
        state, code = _only(request, "state"), _only(request, "code")
        # Else somebody could sign this browser in as themselves, and read what is entered here.
        if attempt is None or not hmac.compare_digest(state.encode(), attempt.state.encode()):
            raise OpenIdFailure(_NOT_OURS, 400)
        if _only(request, "iss") not in ("", self._client.issuer):
            raise OpenIdFailure("The answer is that of another provider.", 400)
        if not 0 < len(code) <= _MOST_CODE:
            raise OpenIdFailure(f"{self._client.label} has not signed you in.", 400)
        provider = await self._known_provider()
        return await provider.sign_in(attempt, code, address_of(request.scope))

    async def _signed_in(self, request: Request, person: Actor, wanted: str) -> Response:
        ends_at = datetime.fromtimestamp(self._sign_ins.now_s(), UTC) + SIGNED_IN_FOR
        secret = await self._sign_ins.begin(
            person,
            request.headers.get("user-agent", ""),
            method=SignInMethod.OPENID,
            expires_at=ends_at,
        )
        # Not a redirect: a browser that comes from another site would not send the cookie then.
        facts = {"title": "Signed in", "path": "", "person": person.name, "next": wanted}
        response = self._service.answer(request, "signed_in.html", facts)
        response.set_cookie(
            COOKIE,
            secret,
            max_age=int(SIGNED_IN_FOR.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=self._client.is_tls,
        )
        return response

    async def _known_provider(self) -> OpenIdProvider:
        if self._provider is None:
            await in_import_thread(self._make_provider)
        assert self._provider is not None
        return self._provider

    def _make_provider(self) -> None:
        from goclaw_py.web.openid.provider import OpenIdProvider  # noqa: PLC0415 - takes 0.5 s

        # Of several that come at once, only the first one makes it: there is one such thread.
        self._provider = self._provider or OpenIdProvider(self._client, self._sign_ins.now_s)


def _only(request: Request, name: str) -> str:
    """Return a parameter that occurs once; "" if it is missing or repeated."""
    found = request.query_params.getlist(name)
    return found[0] if len(found) == 1 else ""
