"""The pages of browsers that are signed in, and of tokens (SPEC SEC-6, SEC-8)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import NotAccepted, NotFound
from goclaw_py.records.tokens import TokenExists
from goclaw_py.web.guard import sign_in_of
from goclaw_py.web.pages.services import Facts, PageServices, back_to, form
from goclaw_py.web.sign_ins import SignIns

PAGES: Final = (("/sign-ins", "Sign-ins"), ("/tokens", "API tokens"))
"""The pages in the menu, if there is a token of the settings."""

_ENDS: Final = {
    "": "never",
    "1": "in a day",
    "30": "in 30 days",
    "90": "in 90 days",
    "365": "in a year",
}


def routes(service: PageServices, sign_ins: SignIns) -> list[Route]:
    """Return the pages, and their forms."""
    return [*_sign_in_routes(service, sign_ins), *_token_routes(service)]


def _sign_in_routes(service: PageServices, sign_ins: SignIns) -> list[Route]:
    access, (path, title) = service.control.access, PAGES[0]

    async def show(request: Request) -> Response:
        found = await access.sign_ins()
        facts = {"title": title, "path": path, "sign_ins": found, "own": sign_in_of(request.scope)}
        return service.answer(request, "access/sign_ins.html", facts)

    async def end(request: Request) -> Response:
        fields = await form(request)
        wanted = fields.get("sign_in", "")
        if not wanted and fields.get("all") != "yes":
            raise HTTPException(422, "a sign-in has an id")
        try:
            if wanted:
                await access.end_sign_in(wanted)
            else:
                await access.end_sign_ins()
        except NotFound:
            return back_to(path, "nothing")
        sign_ins.forget()
        return back_to(path, f"signed-out {'1 browser' if wanted else 'all browsers'}")

    return [Route(path, show, methods=["GET"]), Route(f"{path}/end", end, methods=["POST"])]


def _token_routes(service: PageServices) -> list[Route]:
    access, (path, title) = service.control.access, PAGES[1]

    async def facts(**more: object) -> Facts:
        form_facts = {"roles": list(AccessRole), "ends": _ENDS, "typed": "", "error": ""}
        own = {"title": title, "path": path, "tokens": await access.tokens(), "now": service.now()}
        return {**own, **form_facts, **more}

    async def show(request: Request) -> Response:
        return service.answer(request, "access/tokens.html", await facts())

    async def create(request: Request) -> Response:
        given = await form(request)
        name, role, days = (given.get(key, "") for key in ("name", "role", "days"))
        if role not in {*AccessRole} or days not in _ENDS:
            raise HTTPException(422, "choose a role and an end")
        end = service.now() + timedelta(days=int(days)) if days else None
        try:
            made = await access.create_token(
                name, AccessRole(role), reads_text=given.get("text") == "yes", expires_at=end
            )
        except (NotAccepted, TokenExists) as error:
            status = 409 if isinstance(error, TokenExists) else 422
            again = await facts(typed=name, error=str(error))
            return service.answer(request, "access/tokens.html", again, status)
        shown = {"title": "New token", "path": path, "made": made}
        return service.answer(request, "access/token.html", shown)

    async def revoke(request: Request) -> Response:
        given = await form(request)
        if "name" not in given:
            raise HTTPException(422, "a token has a name")
        try:
            await access.revoke_token(given["name"])
        except NotFound:
            return back_to(path, "nothing")
        return back_to(path, f"revoked token {given['name']}")

    return [
        Route(path, show, methods=["GET"]),
        Route(f"{path}/create", create, methods=["POST"]),
        Route(f"{path}/revoke", revoke, methods=["POST"]),
    ]
