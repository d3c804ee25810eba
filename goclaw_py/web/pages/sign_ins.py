"""The page of browsers that are signed in (SPEC SEC-6, SEC-8)."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.errors import NotFound
from goclaw_py.web.guard import sign_in_of
from goclaw_py.web.pages.services import PageServices, back_to, form
from goclaw_py.web.sign_ins import SignIns

PAGE = "/sign-ins", "Sign-ins"
"""The page in the menu, if there is a token."""


def routes(service: PageServices, sign_ins: SignIns) -> list[Route]:
    """Return the page, and its forms."""
    path, title = PAGE

    async def show(request: Request) -> Response:
        found = await service.control.sign_ins()
        facts = {"title": title, "path": path, "sign_ins": found, "own": sign_in_of(request.scope)}
        return service.answer(request, "sign_ins.html", facts)

    async def end(request: Request) -> Response:
        fields = await form(request)
        wanted = fields.get("sign_in", "")
        if not wanted and fields.get("all") != "yes":
            raise HTTPException(422, "a sign-in has an id")
        try:
            if wanted:
                await service.control.end_sign_in(wanted)
            else:
                await service.control.end_sign_ins()
        except NotFound:
            return back_to(path, "nothing")
        sign_ins.forget()
        return back_to(path, "signed-out")

    return [Route(path, show, methods=["GET"]), Route(f"{path}/end", end, methods=["POST"])]
