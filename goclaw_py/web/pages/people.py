"""The page of people with access, access requests, and groups."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.model.errors import NotFound
from goclaw_py.model.messages import PeerKind
from goclaw_py.ports.control import Control
from goclaw_py.ports.store import Chat, unapproved
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form, place

_ROLES = ("owner", "guest")

SHOWN: Final = 100
"""The number of people on a page."""


def routes(service: PageServices) -> list[Route]:
    """Return the page, and its forms."""
    control = service.control

    page = Page("/people", "people", "People", partial(_look, control), ("before",), 3.0)

    async def approve(request: Request) -> Response:
        fields = await form(request)
        code, role = fields.get("code", "").strip(), fields.get("role", "")
        if not code or role not in _ROLES:
            raise HTTPException(422, "enter the code and choose the role: owner or guest")
        try:
            await control.approve(code, guest=role == "guest")
        except NotFound as error:
            facts = await service.facts(page, {})
            typed = {"error": str(error), "code": code, "role": role}
            return service.answer(request, "people.html", {**facts, **typed}, 404)
        return back_to("/people", "approved")

    async def revoke(request: Request) -> Response:
        fields = await form(request)
        names = [fields.get(name, "") for name in ("channel", "account", "sender")]
        if not all(names):
            raise HTTPException(422, "a person has a channel, an account and an id")
        try:
            await control.revoke(*names)
        except NotFound:
            # Another person was faster, or the same person in another window.
            return back_to("/people", "nothing")
        return back_to("/people", "removed")

    async def allow(request: Request) -> Response:
        fields = await form(request)
        names = [fields.get(name, "") for name in ("channel", "account", "chat")]
        if not all(names) or fields.get("allowed") not in ("yes", "no"):
            raise HTTPException(422, "a group has a channel, an account and an id")
        channel, account, chat = names
        await control.allow_chat(channel, account, chat, allowed=fields["allowed"] == "yes")
        return back_to("/people", "saved")

    return [
        *service.routes(page),
        Route("/people/approve", approve, methods=["POST"]),
        Route("/people/revoke", revoke, methods=["POST"]),
        Route("/people/groups", allow, methods=["POST"]),
    ]


async def _look(control: Control, query: Query) -> Facts:
    before = place(query.get("before"), keys=3)
    known, shown, asking, chats, heard = await asyncio.gather(
        control.people(),
        control.people(limit=SHOWN + 1, before=before),
        control.pairing_requests(),
        control.chats(limit=200),
        control.heard(),
    )
    groups = [chat for chat in chats if chat.peer is not PeerKind.DIRECT]
    return {
        "people": shown[:SHOWN],
        "next": shown[SHOWN - 1].cursor if len(shown) > SHOWN else None,
        "unapproved": unapproved(known, chats),
        # Groups that the settings allow need no decision.
        "served": {(one.target.channel, one.target.account, one.target.chat) for one in heard},
        "asking": asking,
        "groups": sorted(groups, key=_undecided_first),
        # What the form shows; only the page after a mistake has more in it.
        "code": "",
        "role": "owner",
    }


def _undecided_first(chat: Chat) -> tuple[bool, float]:
    return chat.allowed is not None, -chat.last_seen_at.timestamp()
