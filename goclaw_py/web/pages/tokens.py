"""The page of tokens with a name and a role (SPEC SEC-8)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.actors import AccessRole
from goclaw_py.core.errors import NotFound
from goclaw_py.records.tokens import BadToken, TokenExists
from goclaw_py.web.pages.services import Facts, PageServices, back_to, form

PAGE: Final = "/tokens", "Tokens"
"""The page in the menu, if there is a token of the settings."""

_ENDS: Final = {
    "": "never",
    "1": "in a day",
    "30": "in 30 days",
    "90": "in 90 days",
    "365": "in a year",
}


def routes(service: PageServices) -> list[Route]:
    """Return the page, and its forms."""
    path, title = PAGE

    async def facts(**more: object) -> Facts:
        found = await service.control.tokens()
        form_facts = {"roles": list(AccessRole), "ends": _ENDS, "typed": "", "error": ""}
        own = {"title": title, "path": path, "tokens": found, "now": service.now()}
        return {**own, **form_facts, **more}

    async def show(request: Request) -> Response:
        return service.answer(request, "tokens.html", await facts())

    async def create(request: Request) -> Response:
        given = await form(request)
        name, role, days = (given.get(key, "") for key in ("name", "role", "days"))
        if role not in {*AccessRole} or days not in _ENDS:
            raise HTTPException(422, "choose a role and an end")
        end = service.now() + timedelta(days=int(days)) if days else None
        try:
            made = await service.control.create_token(
                name, AccessRole(role), reads_text=given.get("text") == "yes", expires_at=end
            )
        except (BadToken, TokenExists) as error:
            status = 409 if isinstance(error, TokenExists) else 422
            again = await facts(typed=name, error=str(error))
            return service.answer(request, "tokens.html", again, status)
        return service.answer(
            request, "token.html", {"title": "New token", "path": path, "made": made}
        )

    async def revoke(request: Request) -> Response:
        given = await form(request)
        if "name" not in given:
            raise HTTPException(422, "a token has a name")
        try:
            await service.control.revoke_token(given["name"])
        except NotFound:
            return back_to(path, "nothing")
        return back_to(path, "revoked")

    return [
        Route(path, show, methods=["GET"]),
        Route(f"{path}/create", create, methods=["POST"]),
        Route(f"{path}/revoke", revoke, methods=["POST"]),
    ]
