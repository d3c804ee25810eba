"""Talking to an agent in the browser, by the channel that terminals have (SPEC CHAN-9)."""

from __future__ import annotations

import re
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.session_keys import CHAT_NAME
from goclaw_py.ports.store import StoredEntry
from goclaw_py.web.pages.services import PageServices

CHAT: Final = "browser"
"""The name of the chat unless the address says another one."""

SHOWN: Final = 50

LOOKED_AT: Final = 1000
"""So many sessions, the last active ones, are searched for what was said in a chat."""


def routes(service: PageServices) -> list[Route]:
    """The page; its script talks by the routes that terminals have."""

    async def show(request: Request) -> Response:
        name = request.query_params.get("name", CHAT)
        _check(name)
        facts = {"title": "Chat", "path": "/chat", "chat": name}
        return service.answer(
            request, "chat.html", facts | {"history": await _history(service, name)}
        )

    return [Route("/chat", show)]


def _check(name: str) -> None:
    if not re.fullmatch(CHAT_NAME, name):
        raise HTTPException(422, "a chat name has 1 to 64 characters of A-Z a-z 0-9 . _ -")


async def _history(service: PageServices, name: str) -> list[StoredEntry]:
    """What was said so far; nothing where nobody has said anything, or the database is away."""
    try:
        sessions = await service.control.sessions(limit=LOOKED_AT)
        for session in sessions:
            if session.key.endswith(f":console:direct:{name}"):
                return await service.control.history(session.key, limit=SHOWN)
    except StoreUnavailable:
        return []
    return []
