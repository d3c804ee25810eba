"""The pages of invited people (SPEC CHAN-13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from goclaw_py.chat.terminals import ChatEvent, TerminalMessage, Terminals, UploadedFile
from goclaw_py.core.errors import NotFound, TooManyConversations, UnknownAgent
from goclaw_py.core.ids import AgentName
from goclaw_py.operations.control import Control
from goclaw_py.records import WebLink, WebLinkStore
from goclaw_py.web.api.routes import make_chat_api
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.guests.entrance import Guests
from goclaw_py.web.pages.chat import files, page
from goclaw_py.web.pages.chat.conversations import GuestConversations, SiteParts
from goclaw_py.web.pages.hub import Hub
from goclaw_py.web.pages.rendering import Assets, Pages
from goclaw_py.web.pages.services import PageServices
from goclaw_py.web.pages.site import page_app, static_files

MOST_CONVERSATIONS: Final = 20
"""The number of conversations that a guest may begin."""


def make_guest_site(
    control: Control,
    terminals: Terminals,
    links: WebLinkStore,
    access: WebAccess,
    *,
    parts: SiteParts | None = None,
) -> Guests:
    """Create the app of invited people.

    ``terminals`` and the uploads of ``parts`` are channel ``web``; its agent is the default one.
    """
    assets, given = Assets(), parts or SiteParts()
    pages = Pages(assets, read=given.read, signs_out=True, navigation=())
    static = Route("/static/{name}", static_files(assets))

    def app(service: PageServices, routes: Sequence[Route]) -> ASGIApp:
        return page_app(service, [static, *routes])

    def browser(link: WebLink, closing: asyncio.Event) -> ASGIApp:
        # Nothing here is shared with other guests: each has live parts and streams of its own.
        service = PageServices(control, Hub(closing), pages, access.now_s)
        conversations = GuestConversations(control, given, link.name)
        api = make_chat_api(GuestTerminals(terminals, conversations), closing)
        routes = [
            Route("/", _to_chat),
            *page.routes(service, conversations),
            *files.routes(service, conversations),
        ]
        return ApiOrDashboard(api, app(service, routes))

    entrance = PageServices(control, Hub(asyncio.Event()), pages, access.now_s)
    return Guests(links, lambda routes: app(entrance, routes), browser, entrance, access.now_s)


class GuestTerminals:
    """The terminals of a guest's conversations, by the names of these: no name leads elsewhere."""

    def __init__(self, terminals: Terminals, conversations: GuestConversations) -> None:
        self._terminals = terminals
        self._conversations = conversations

    async def attach(self, chat: str) -> AsyncIterator[ChatEvent]:
        """See ``Terminals``. Files have no paths: a guest is told of no folder of this machine."""
        events = self._terminals.attach(self._chat(chat))
        try:
            async for event in events:
                if isinstance(event, TerminalMessage) and event.file is not None:
                    path = files.guest_path(event.file)
                    yield replace(event, file=replace(event.file, path=path))
                else:
                    yield event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def say(
        self,
        chat: str,
        message_id: str,
        text: str,
        *,
        agent: AgentName | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> None:
        """See ``Terminals``. Raises ``NotFound``, ``UnknownAgent`` and ``TooManyConversations``."""
        _refuse(agent)
        # Whoever learns the reference of somebody else's upload must not get the file by it.
        if not all(one.ref.startswith(f"{self._conversations.guest}.") for one in files):
            raise NotFound("an attached file is no longer stored; attach it again")
        name, known = self._chat(chat), await self._conversations.all()
        if len(known) >= MOST_CONVERSATIONS and chat not in {one.name for one in known}:
            raise TooManyConversations(
                f"you have {len(known)} conversations, which is the limit; continue one of them"
            )
        await self._terminals.say(name, message_id, text, files=files)

    async def press(
        self,
        chat: str,
        press_id: str,
        *,
        receipt: str,
        data: str,
        agent: AgentName | None = None,
    ) -> None:
        """See ``Terminals``. Raises ``NotFound`` and ``UnknownAgent``."""
        _refuse(agent)
        await self._terminals.press(self._chat(chat), press_id, receipt=receipt, data=data)

    def confirm(self, receipt: str) -> None:
        self._terminals.confirm(receipt)

    def _chat(self, conversation: str) -> str:
        try:
            return self._conversations.chat(conversation).chat
        except ValueError as error:
            raise NotFound(str(error)) from error


def _refuse(agent: AgentName | None) -> None:
    """Raise ``UnknownAgent`` if a guest has chosen an agent."""
    if agent is not None:
        raise UnknownAgent(agent)


async def _to_chat(_request: Request) -> Response:
    return RedirectResponse("/chat", status_code=303)
