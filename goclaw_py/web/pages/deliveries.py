"""The page of messages that could not be delivered or answered, and of all others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.model.display_names import address
from goclaw_py.ports.control import Control
from goclaw_py.ports.store import OutboxState
from goclaw_py.web.api.wire import MAX_ROW_ID
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, fields, form

SHOWN: Final = 50

_STATES: Final = {
    "failed": OutboxState.DEAD,
    "waiting": OutboxState.PENDING,
    "sending": OutboxState.SENDING,
    "sent": OutboxState.SENT,
    "dropped": OutboxState.DROPPED,
}

Act = Callable[[Collection[int]], Awaitable[int]]


def routes(service: PageServices) -> list[Route]:
    """Return the page, and the forms to retry and drop."""
    control = service.control

    async def look(query: Query) -> Facts:
        show = query.get("show", "failed")
        state = _STATES.get(show, OutboxState.DEAD)
        before = _row(query["before"]) if "before" in query else None
        rows, letters = await asyncio.gather(
            control.outbox(limit=SHOWN + 1, state=state, before=before),
            control.dead_letters(waiting=show == "waiting", limit=SHOWN),
        )
        return {
            "show": show if show in _STATES else "failed",
            "states": tuple(_STATES),
            "rows": rows[:SHOWN],
            "next": rows[SHOWN - 1].id if len(rows) > SHOWN else None,
            "named": [
                *(address(row.message.target) for row in rows),
                *(one.session for one in letters),
            ],
            "letters": letters if show in ("failed", "waiting") else (),
        }

    def act(how: Act, notice: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            given = await form(request)
            done = await how([_row(given.get("id", ""))])
            return back_to("/deliveries", notice if done else "nothing")

        return answer

    acts: dict[str, tuple[Act, str]] = {
        "/outbox/retry": (control.retry_outbox, "retried"),
        "/outbox/drop": (control.drop_outbox, "dropped"),
        "/inbox/retry": (control.retry_dead_letters, "retried"),
        "/inbox/drop": (control.dismiss_dead_letters, "dropped"),
    }
    page = Page("/deliveries", "deliveries", "Deliveries", look, ("show", "before"), every_s=3.0)
    return [
        *service.routes(page),
        Route("/deliveries/all", _all(control), methods=["POST"]),
        Route("/deliveries/selected", _selected(control), methods=["POST"]),
        *(
            Route(f"/deliveries{path}", act(how, notice), methods=["POST"])
            for path, (how, notice) in acts.items()
        ),
    ]


def _all(control: Control) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that retries all failed messages, as many as an API page has."""

    async def answer(request: Request) -> Response:
        await form(request)
        rows, letters = await asyncio.gather(
            control.outbox(limit=1000, state=OutboxState.DEAD), control.dead_letters(limit=1000)
        )
        done = await control.retry_outbox([row.id for row in rows]) if rows else 0
        done += await control.retry_dead_letters([one.row.id for one in letters]) if letters else 0
        return back_to("/deliveries", "retried" if done else "nothing")

    return answer


def _selected(control: Control) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that retries or drops the selected messages, as far as they still fail."""

    async def answer(request: Request) -> Response:
        given = await fields(request)
        ids = {
            kind: [_row(value) for name, value in given if name == kind] for kind in ("out", "in")
        }
        retries = ("do", "retry") in given
        if not retries and ("do", "drop") not in given:
            raise HTTPException(422, "do: retry or drop")
        outgoing = control.retry_outbox if retries else control.drop_outbox
        incoming = control.retry_dead_letters if retries else control.dismiss_dead_letters
        done = await outgoing(ids["out"]) if ids["out"] else 0
        done += await incoming(ids["in"]) if ids["in"] else 0
        return back_to("/deliveries", ("retried" if retries else "dropped") if done else "nothing")

    return answer


def _row(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MAX_ROW_ID:
        return int(text)
    raise HTTPException(422, "a message has a number")
