"""The chat in the browser: conversations of the console (CHAN-9)."""

from __future__ import annotations

import asyncio
from functools import partial
from operator import attrgetter
from typing import Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from goclaw_py.chat.outbound import approval_texts, texts
from goclaw_py.core.approvals import Approval, Decision
from goclaw_py.core.chat_commands import GUEST_MENU, MENU
from goclaw_py.core.errors import ApprovalClosed, NotFound, UnknownZone
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import Attachment, Role
from goclaw_py.core.session_keys import MAX_TITLE_CHARS, chat_of
from goclaw_py.core.text import truncate, visible_line
from goclaw_py.core.time.zones import zone
from goclaw_py.operations.approvals.page import LABELS
from goclaw_py.operations.sessions.operations import QueueView
from goclaw_py.records import ApprovalQuery, RunQuery, StoredEntry, ToolCall
from goclaw_py.schedule.jobs.models import MAX_TEXT_CHARS
from goclaw_py.web.pages.chat.conversations import Conversations, StoredConversation, by_day
from goclaw_py.web.pages.chat.files import file_address, is_picture
from goclaw_py.web.pages.chat.lines import AFRESH, SHOWN, Line, is_answered, lines_of, own_id
from goclaw_py.web.pages.chat.markdown import html_of
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form

EXPORTED: Final = 5000
"""The most entries in an exported conversation: the newest."""

_READS: Final = 3
"""How often a conversation is read whose messages end meanwhile."""
_MOST_SHOWN: Final = 800
"""The most entries of the history that are shown."""
_MAX_SEARCH_CHARS: Final = 256
_LINES_SHOWN: Final = 4
_CHARS_SHOWN: Final = 200
"""What is shown at first of an argument of a call that waits for an answer."""
_FEW_CHARS: Final = 40
"""As many characters more are shown, too."""
_GIVEN_CHARS: Final = 80

_PROMPTS: Final = (
    "What can you do for me?",
    "Remind me in 20 minutes to take a break",
    "Explain in three sentences how rainbows form",
)
_OFFLINE_PROMPTS: Final = ("help", "count to 10", "remind me in 1 minute to take a break")
"""Examples for the agent that needs no model: it understands few words."""


def routes(service: PageServices, conversations: Conversations) -> list[Route]:
    """Return the page, whose script uses the routes of terminals, and its forms."""
    pages = _ChatPages(service, conversations)
    of_everybody = [
        Route("/chat", pages.show),
        service.live_route(pages.page),
        Route("/chat/talk", pages.talk),
        Route("/chat/new", pages.start),
        Route("/chat/export", pages.export),
        Route("/chat/markdown", pages.markdown, methods=["POST"]),
        Route("/chat/delete", pages.confirm, methods=["GET"]),
        Route("/chat/delete", pages.delete, methods=["POST"]),
    ]
    if conversations.guest:
        return of_everybody
    return [
        *of_everybody,
        Route("/chat/rename", pages.rename, methods=["POST"]),
        Route("/chat/decide", pages.decide, methods=["POST"]),
        Route("/chat/fork", pages.fork, methods=["POST"]),
    ]


_ALL_ASKING: Final = ApprovalQuery(limit=1000)


class _ChatPages:
    """The responses of these routes."""

    def __init__(self, service: PageServices, conversations: Conversations) -> None:
        self._service = service
        self._control = service.control
        self._conversations = conversations
        self._parts = conversations.parts
        params = ("name", "agent", "search", "zone")
        self.page = Page("/chat", "chat", "Chat", self._load, params)

    async def _load(self, query: Query) -> Facts:
        guest = self._conversations.guest
        here = await self._conversations.find(
            self._conversations.name(query), query.get("agent", "")
        )
        key = here.session.key if here.session else None
        queue = await self._control.sessions.queue(key) if key else None
        search = query.get("search", "")[:_MAX_SEARCH_CHARS]
        chats = await self._conversations.all(search)
        # A guest answers no question about a tool, and sees none.
        waiting = [] if guest else await self._control.approvals.list(_ALL_ASKING)
        return {
            "here": here,
            "chats": by_day(chats, self._service.now(), _zone(query.get("zone", ""))),
            "search": search,
            "is_new": here.session is None and not search,
            **_waiting(queue),
            "is_busy": queue is not None and bool(queue.running or queue.messages),
            "asking": sorted(
                (one for one in waiting if one.session == key), key=attrgetter("asked_at", "id")
            ),
            "asks": {one.session for one in waiting},
            "guest": guest,
            "labels": LABELS,
            "about": approval_texts.about,
            "arguments": approval_texts.arguments,
            "folded": _folded,
            "agents": self._conversations.agents,
            "is_offline": self._parts.agents.get(here.agent) == "offline",
            "default_agent": self._parts.default,
            "max_title": MAX_TITLE_CHARS,
        }

    async def show(self, request: Request) -> Response:
        query = {"name": await self._shown(request.query_params)}
        for given in ("agent", "search", "zone"):
            if value := request.query_params.get(given):
                query[given] = value[:_MAX_SEARCH_CHARS]
        facts, talk = await asyncio.gather(
            self._service.facts(self.page, query), self._talk(query["name"])
        )
        uploads = self._parts.uploads
        whole = {
            **talk,
            **facts,
            "commands": GUEST_MENU if self._conversations.guest else MENU,
            "prompts": _OFFLINE_PROMPTS if facts["is_offline"] else _PROMPTS,
            "max_chars": MAX_TEXT_CHARS,
            "max_files": uploads.max_files if uploads else 0,
            "max_bytes": uploads.max_bytes if uploads else 0,
        }
        # Long texts take up to 0.2 s each to format: other work goes on meanwhile.
        return await asyncio.to_thread(self._service.answer, request, "chat.html", whole)

    async def _shown(self, query: Query) -> str:
        """Return the conversation in an address that may name none: then the newest one."""
        if query.keys() & {"name", "agent"} or not (newest := await self._conversations.all()):
            return self._conversations.name(query)
        return newest[0].name

    async def talk(self, request: Request) -> Response:
        """Return the lines of a conversation, as the whole page has them."""
        most = request.query_params.get("most", "")
        shown = min(int(most[:9]), _MOST_SHOWN) if most.isascii() and most.isdigit() else SHOWN
        facts = await self._talk(self._conversations.name(request.query_params), max(1, shown))
        html = await asyncio.to_thread(self._service.render, "chat_talk.html", facts)
        has_earlier = facts["is_cut"] and shown < _MOST_SHOWN
        return HTMLResponse(html, headers={"X-Earlier": "yes"} if has_earlier else {})

    async def _talk(self, name: str, shown: int = SHOWN) -> Facts:
        """Return what was said, and what the messages without an answer wait for."""
        here = await self._conversations.find(name)
        guest = self._conversations.guest
        facts: Facts = {
            "here": here,
            "guest": guest,
            "file_address": partial(file_address, guest=bool(guest)),
            "is_picture": is_picture,
            "afresh": AFRESH,
            "given": _given,
            "arguments": approval_texts.arguments,
        }
        if here.session is None:
            return {**facts, "lines": [], "is_cut": False, **_waiting(None)}
        key = here.session.key
        queue = await self._control.sessions.queue(key)
        reads = 0
        while True:
            history, runs, asides = await asyncio.gather(
                self._control.sessions.history(key, limit=shown, whole=True),
                self._control.runs.list(RunQuery(limit=shown, session=key)),
                self._control.sessions.asides(key, limit=shown),
            )
            waited = [one.id for one in queue.messages]
            if waited:
                queue = await self._control.sessions.queue(key)
            # One that has ended meanwhile may stand in the history too.
            reads += 1
            if reads == _READS or waited == [one.id for one in queue.messages]:
                break
        asked: list[Approval] = []
        if any(one.asking_run for one in queue.messages) or any(map(is_answered, asides)):
            asked = await self._control.approvals.list(
                ApprovalQuery(key, waiting=False, limit=shown)
            )
        has_earlier = len(history) == shown
        return {
            **facts,
            "lines": lines_of(
                history, runs, queue, asides, approvals=asked, has_earlier=has_earlier
            ),
            "is_reset": not here.session.entries,
            "is_cut": has_earlier,
            **_waiting(queue),
        }

    async def start(self, request: Request) -> Response:
        """Begin a conversation under a made name; it is stored with its first message."""
        name = await self._conversations.new_name(self._service.now())
        query = {"name": name}
        if agent := request.query_params.get("agent"):
            query["agent"] = (await self._conversations.find(name, agent)).agent
        return RedirectResponse(f"/chat?{urlencode(query)}", status_code=303)

    async def export(self, request: Request) -> Response:
        here = await self._stored(request.query_params)
        sessions = self._control.sessions
        history = await sessions.history(here.session.key, limit=EXPORTED, whole=True)
        return Response(
            _markdown(here, history),
            media_type="text/markdown",
            headers={"Content-Disposition": f'attachment; filename="{here.name}.md"'},
        )

    async def markdown(self, request: Request) -> Response:
        text = (await form(request)).get("text", "")
        return HTMLResponse(await asyncio.to_thread(html_of, text))

    async def rename(self, request: Request) -> Response:
        fields = await form(request)
        here = await self._stored(fields)
        try:
            await self._control.sessions.rename(here.session.key, fields.get("title", ""))
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        return back_to("/chat", "saved", name=here.name)

    async def confirm(self, request: Request) -> Response:
        here = await self._stored(request.query_params)
        facts = {"title": "Delete a conversation", "path": "/chat", "here": here}
        return self._service.answer(request, "chat_delete.html", facts)

    async def delete(self, request: Request) -> Response:
        here = await self._stored(await form(request))
        await self._control.sessions.delete(here.session.key)
        return back_to("/chat", "deleted")

    async def decide(self, request: Request) -> Response:
        """Answer a question of a tool in this conversation."""
        fields = await form(request)
        here = await self._stored(fields)
        waiting = await self._asking(here.session.key)
        asked = next((one for one in waiting if one.id == fields.get("id")), None)
        if asked is None:
            return back_to("/chat", "late", name=here.name)
        decision = fields.get("decision", "")
        if decision not in asked.request.decisions:
            raise HTTPException(422, "the question has other answers")
        try:
            await self._control.approvals.decide(asked.id, Decision(decision))
        except (ApprovalClosed, NotFound):
            # Another person was faster.
            return back_to("/chat", "late", name=here.name)
        return back_to("/chat", "answered", name=here.name)

    async def fork(self, request: Request) -> Response:
        """Begin a conversation with a copy of this one as it was when a run ended."""
        fields = await form(request)
        here = await self._stored(fields)
        made = await self._control.sessions.fork(here.session.key, at=fields.get("run") or None)
        title = truncate(f"Fork of {here.heading}", MAX_TITLE_CHARS)
        await self._control.sessions.rename(made.session, title)
        chat = chat_of(made.session)
        assert chat is not None  # forks are chats of the console
        return back_to("/chat", "forked", name=chat.chat)

    async def _asking(self, session: SessionKey) -> list[Approval]:
        return await self._control.approvals.list(ApprovalQuery(session))

    async def _stored(self, query: Query) -> StoredConversation:
        """Return the named conversation. Raises ``NotFound`` if nothing was said in it."""
        return await self._conversations.stored(self._conversations.name(query))


def _folded(value: str) -> tuple[str, str]:
    """Return the first lines of a value, which leave room for the buttons below, and the rest."""
    first = "".join(value.splitlines(keepends=True)[:_LINES_SHOWN])[:_CHARS_SHOWN]
    end = first.rfind(" ", len(first) - _FEW_CHARS) + 1 if len(first) == _CHARS_SHOWN else 0
    first = first[:end] or first
    return (first, value[len(first) :]) if len(value) > len(first) + _FEW_CHARS else (value, "")


def _given(call: ToolCall) -> str:
    """Return the short arguments of a call, such as ``to: ann, amount: 5``, or the only one."""
    given = approval_texts.arguments(call.arguments)
    short = [one for one in given if one[1] and visible_line(one[1][:_GIVEN_CHARS]) == one[1]]
    words = [short[0][1]] if len(short) == 1 else [f"{name}: {value}" for name, value in short]
    return truncate(", ".join(words), _GIVEN_CHARS)


def _waiting(queue: QueueView | None) -> Facts:
    places = waiting_places(queue)
    return {
        "waiting": places,
        "first": next(iter(places), None),
        "waits_for": queue.waiting[0].waits_for if queue and queue.waiting else None,
    }


def waiting_places(queue: QueueView | None) -> dict[str, str]:
    """Return the places of the messages that no run answers yet, the next one first, by their ids.

    One whose run waits for an approval is no longer in line.
    """
    if queue is None:
        return {}
    running: set[RunId | None] = {run.id for run in queue.running}
    waiting = [m for m in queue.messages if m.run_id not in running and m.asking_run is None]
    return {own_id(one): _place(number) for number, one in enumerate(waiting, 1)}


def _place(number: int) -> str:
    """Return a place in the line: "next", "2nd in line", "3rd in line", "4th in line"."""
    if number == 1:
        return "next"
    teens = number % 100 in (11, 12, 13)
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending} in line"


def _zone(name: str) -> ZoneInfo:
    """Return the time zone of a browser; UTC if there is no such zone."""
    try:
        return zone(name or "UTC")
    except UnknownZone:
        return zone("UTC")


def _markdown(here: StoredConversation, history: list[StoredEntry]) -> str:
    """Return a conversation as a Markdown file, in the words of the page."""
    said = "".join(_as_markdown(line, here.agent) for line in lines_of(history, [], None))
    return f"# {here.title or f'Chat {here.name}'}\n{said}"


def _as_markdown(line: Line, agent: AgentName) -> str:
    entry = line.entry.entry
    is_answer = entry.role is Role.ASSISTANT
    # What people have said has placeholders for its files already.
    files = entry.files if is_answer else ()
    names = (texts.file_name(Attachment(file.kind, "", file.name)) for file in files)
    origin = f" ({line.origin})" if line.origin else ""
    by = f"## {f'{agent}{origin}' if is_answer else 'You'}, {line.entry.at:%Y-%m-%d %H:%M:%S} UTC"
    text = "\n".join(filter(None, [line.text if is_answer else entry.text, *names]))
    fresh = f"*{AFRESH}*" if line.is_fresh else ""
    blocks = filter(None, [fresh, by, text, line.problem and f"*{line.problem}*"])
    return "".join(f"\n{block}\n" for block in blocks)
