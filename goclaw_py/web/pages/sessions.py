"""Conversations: what was said in them, what runs and waits there."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.model.ids import SessionKey
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form, place

SHOWN = 50
HISTORY = 100


def routes(service: PageServices) -> list[Route]:
    """The list, one of them, and its fresh start."""
    control = service.control

    async def look(query: Query) -> Facts:
        found = await control.sessions(limit=SHOWN + 1, before=place(query.get("before")))
        more = found[SHOWN - 1].cursor if len(found) > SHOWN else None
        return {"sessions": found[:SHOWN], "next": more}

    async def look_at(query: Query) -> Facts:
        session = await control.session(query.get("key", ""))
        history, queue, runs = await asyncio.gather(
            control.history(session.key, limit=HISTORY),
            control.queue(session.key),
            control.runs(limit=20, session=session.key),
        )
        facts = {"session": session, "history": history, "queue": queue, "runs": runs}
        return {"path": "/sessions", "shown": HISTORY, **facts}

    async def reset(request: Request) -> Response:
        key = (await form(request)).get("key", "")
        session = await control.session(key)
        await control.reset(SessionKey(session.key))
        return back_to("/sessions/view", "saved", key=session.key)

    return [
        *service.routes(Page("/sessions", "sessions", "Sessions", look, ("before",), every_s=3.0)),
        *service.routes(
            Page("/sessions/view", "session", "Session", look_at, ("key",), every_s=2.0)
        ),
        Route("/sessions/reset", reset, methods=["POST"]),
    ]
