"""The chat in the browser: a terminal of the console (CHAN-9)."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.session_keys import is_chat_name
from goclaw_py.ports.store import Session, StoredEntry
from goclaw_py.web.pages.markdown import html_of
from goclaw_py.web.pages.services import Facts, PageServices, Query, form

SHOWN: Final = 50
_CONSOLE: Final = ":console:direct:"


def routes(service: PageServices) -> list[Route]:
    """Return the page, whose script uses the routes of terminals, and what formats its texts."""

    async def show(request: Request) -> Response:
        name = _name(request.query_params)
        facts: Facts = {
            "title": "Chat",
            "path": "/chat",
            "chat": name,
            "history": await _history(service, name),
        }
        return service.answer(request, "chat.html", facts)

    async def markdown(request: Request) -> Response:
        return HTMLResponse(html_of((await form(request)).get("text", "")))

    return [
        Route("/chat", show),
        Route("/chat/markdown", markdown, methods=["POST"]),
    ]


def _name(query: Query) -> str:
    """Return the name of the chat. Raises ``HTTPException`` (422)."""
    name = query.get("name", "browser")
    if not is_chat_name(name):
        raise HTTPException(422, "a chat name has 1 to 64 characters of A-Z a-z 0-9 . _ -")
    return name


async def _session(service: PageServices, name: str) -> Session | None:
    """Return the most recently active session of a chat."""
    found = await service.control.sessions(limit=100, search=_CONSOLE + name)
    return next((one for one in found if one.key.endswith(_CONSOLE + name)), None)


async def _history(service: PageServices, name: str) -> list[StoredEntry]:
    """Return the history; empty without one, or while the database is unavailable."""
    try:
        session = await _session(service, name)
        return await service.control.history(session.key, limit=SHOWN) if session else []
    except StoreUnavailable:
        return []
