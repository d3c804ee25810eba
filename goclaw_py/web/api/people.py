"""People who may talk to the agent, and the chats that they talk in (SPEC OPS-2, CHAN-5)."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from goclaw_py.ports.control import Control, PairingApplicant
from goclaw_py.ports.store import Chat, LastActivity, Person
from goclaw_py.web.api.answers import answer
from goclaw_py.web.api.paging import LINK, ChatBefore, HeardBefore, Limit, cursor, page
from goclaw_py.web.api.wire import MAX_LIMIT, AllowBody, ApproveBody, RevokeBody


def people_routes(control: Control) -> APIRouter:
    """The routes about people, below ``/api``."""
    api = APIRouter(tags=["people"])

    @api.get("/people", response_model=list[Person], responses=LINK)
    async def people(request: Request, before: ChatBefore, limit: Limit = MAX_LIMIT) -> Response:
        """Who may talk to the agent, the last one approved first."""
        found = await control.people(limit=limit + 1, before=before)
        return page(Person, found, limit, request, cursor)

    @api.post("/people/revoke", status_code=204)
    async def revoke(body: RevokeBody) -> None:
        """Forget a person."""
        await control.revoke(body.channel, body.account, body.sender_id)

    @api.get("/pairing", response_model=list[PairingApplicant])
    async def pairing() -> Response:
        """Who asked to talk to the agent."""
        return answer(list[PairingApplicant], await control.pairing_requests())

    @api.post("/pairing/approve", response_model=Person)
    async def approve(body: ApproveBody) -> Response:
        """Let the person with this pairing code talk."""
        return answer(Person, await control.approve(body.code, guest=body.guest))

    return api


def chat_routes(control: Control) -> APIRouter:
    """The routes about chats, below ``/api``."""
    api = APIRouter(tags=["people"])

    @api.get("/heard", response_model=list[LastActivity], responses=LINK)
    async def heard(request: Request, before: HeardBefore, limit: Limit = 50) -> Response:
        """Chats and threads in which somebody who may talk spoke, the last one first."""
        found = await control.heard(limit=limit + 1, before=before)
        return page(LastActivity, found, limit, request, cursor)

    @api.get("/chats", response_model=list[Chat], responses=LINK)
    async def chats(request: Request, before: ChatBefore, limit: Limit = MAX_LIMIT) -> Response:
        """Known chats, the last seen first."""
        found = await control.chats(limit=limit + 1, before=before)
        return page(Chat, found, limit, request, cursor)

    @api.post("/chats/allow", status_code=204)
    async def allow(body: AllowBody) -> None:
        """Decide whether the agent listens in a group; one never seen becomes known."""
        await control.allow_chat(body.channel, body.account, body.chat, allowed=body.allowed)

    return api
