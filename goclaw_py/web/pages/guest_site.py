"""The pages of invited people (SPEC CHAN-13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from operator import attrgetter
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from goclaw_py.model.errors import NotFound, TooManyConversations
from goclaw_py.model.web_links import chat_of_guest
from goclaw_py.ports.control import ChatEvent, Control, Terminals
from goclaw_py.ports.store import WebLink, WebLinkStore
from goclaw_py.web.api.routes import make_chat_api
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.pages import chat
from goclaw_py.web.pages.guests import Guests
from goclaw_py.web.pages.rendering import Assets, Pages, Read
from goclaw_py.web.pages.services import Hub, PageServices
from goclaw_py.web.pages.site import page_app, static_files

MOST_CONVERSATIONS: Final = 20
"""The number of conversations that a guest may begin."""


def make_guest_site(
    control: Control,
    terminals: Terminals,
    links: WebLinkStore,
    access: WebAccess,
    *,
    read: Read = attrgetter("text"),
) -> Guests:
    """Create the app of invited people. ``terminals`` is channel ``web``."""
    assets = Assets()
    pages = Pages(assets, read=read, signs_out=True, navigation=())
    static = Route("/static/{name}", static_files(assets))

    def app(service: PageServices, routes: Sequence[Route]) -> ASGIApp:
        return page_app(service, [static, *routes])

    def browser(link: WebLink, closing: asyncio.Event) -> ASGIApp:
        # Nothing here is shared with other guests: each has live parts and streams of its own.
        service = PageServices(control, Hub(closing), pages, access.now_s)
        chats = chat.ChatOwner(control, link.name)
        own = make_chat_api(GuestTerminals(terminals, chats), closing)
        routes = [Route("/", _to_chat), *chat.routes(service, chats)]
        return ApiOrDashboard(own, app(service, routes))

    entrance = PageServices(control, Hub(asyncio.Event()), pages, access.now_s)
    return Guests(links, lambda routes: app(entrance, routes), browser, entrance, access.now_s)


class GuestTerminals:
    """The terminals of a guest's conversations, by the names of these: no name leads elsewhere."""

    def __init__(self, terminals: Terminals, chats: chat.ChatOwner) -> None:
        self._terminals = terminals
        self._chats = chats

    def attach(self, chat: str) -> AsyncIterator[ChatEvent]:
        """See ``Terminals``. Raises ``NotFound`` for an impossible name."""
        return self._terminals.attach(self._chat(chat))

    async def say(self, chat: str, message_id: str, text: str) -> None:
        """See ``Terminals``. Raises ``NotFound`` and ``TooManyConversations``."""
        name = self._chat(chat)
        known = await self._chats.names()
        if chat not in known and len(known) >= MOST_CONVERSATIONS:
            raise TooManyConversations(
                f"you have {len(known)} conversations, which is the limit; continue one of them"
            )
        await self._terminals.say(name, message_id, text)

    def confirm(self, receipt: str) -> None:
        """See ``Terminals``."""
        self._terminals.confirm(receipt)

    def _chat(self, conversation: str) -> str:
        try:
            return chat_of_guest(self._chats.guest, conversation)
        except ValueError as error:
            raise NotFound(str(error)) from error


async def _to_chat(_request: Request) -> Response:
    return RedirectResponse("/chat", status_code=303)
