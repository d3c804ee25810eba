"""People, groups, and guests of the web chat in the API (SPEC OPS-2, CHAN-5, CHAN-13)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator

from goclaw_py.core.web_links import guest_name
from goclaw_py.operations.control import Control
from goclaw_py.operations.people.operations import (
    DirectAccess,
    PairingApplicant,
    People,
    WebGuest,
    WebInvitation,
)
from goclaw_py.records import Chat, LastActivity, Person
from goclaw_py.web.api.paging import LINK, ChatBefore, HeardBefore, Limit, Page
from goclaw_py.web.api.serve import serve
from goclaw_py.web.api.wire import MAX_LIMIT, Body, Flag, Name, OneLine


class AllowBody(Body):
    """A chat, and whether it is allowed."""

    channel: OneLine
    account: OneLine
    chat: OneLine
    allowed: Flag


class ApproveBody(Body):
    """A pairing code; ``guest``: approve without owner rights."""

    code: Name
    guest: Flag = False


class RevokeBody(Body):
    """The person to remove."""

    channel: Name
    account: Name
    sender_id: Name
    forget: Flag = False


class InviteBody(Body):
    """The name of the person; ``again``: another link for an invited person."""

    name: Annotated[Name, AfterValidator(guest_name)]
    again: Flag = False


def people_routes(control: Control) -> APIRouter:
    """Return the routes."""
    api = APIRouter(tags=["people"])

    @serve(api, People.list, responses=LINK)
    async def people(page: Page, before: ChatBefore, limit: Limit = MAX_LIMIT) -> list[Person]:
        """List approved people, the most recently approved first."""
        return page.of(await control.people.list(limit=limit + 1, before=before), limit)

    @serve(api, People.revoke, status_code=204)
    async def revoke(body: RevokeBody) -> None:
        """Remove a person, with ``forget`` also the stored name."""
        await control.people.revoke(body.channel, body.account, body.sender_id, forget=body.forget)

    @serve(api, People.requests)
    async def requests(code: Name | None = None) -> list[PairingApplicant]:
        """List the people who request access; with `code` only the one who has this code."""
        return await control.people.requests(code=code)

    @serve(api, People.approve)
    async def approve(body: ApproveBody) -> Person:
        """Approve the person with this pairing code."""
        return await control.people.approve(body.code, guest=body.guest)

    @serve(api, People.activity, responses=LINK)
    async def heard(page: Page, before: HeardBefore, limit: Limit = 50) -> list[LastActivity]:
        """List the last activity of approved people per chat and thread, the newest first."""
        return page.of(await control.people.activity(limit=limit + 1, before=before), limit)

    @serve(api, People.direct_access)
    async def direct_access() -> list[DirectAccess]:
        """List who may write in direct chats by the settings alone, by account."""
        return await control.people.direct_access()

    @serve(api, People.chats, responses=LINK)
    async def chats(page: Page, before: ChatBefore, limit: Limit = MAX_LIMIT) -> list[Chat]:
        """List chats, the most recently seen first."""
        return page.of(await control.people.chats(limit=limit + 1, before=before), limit)

    @serve(api, People.allow_chat, status_code=204)
    async def allow(body: AllowBody) -> None:
        """Allow or deny a chat; one that is not stored is stored as a group."""
        allowed = body.allowed
        await control.people.allow_chat(body.channel, body.account, body.chat, allowed=allowed)

    _add_guests(api, control)
    return api


def _add_guests(api: APIRouter, control: Control) -> None:
    @serve(api, People.guests)
    async def guests() -> list[WebGuest]:
        """List the people who are invited to the web chat; `people/revoke` removes them."""
        return await control.people.guests()

    @serve(api, People.invite)
    async def invite(body: InviteBody) -> WebInvitation:
        """Invite a person to the web chat. The answer has the only copy of the link."""
        return await control.people.invite(body.name, again=body.again)
