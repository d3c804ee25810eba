"""The chat in the browser: a terminal of the console (CHAN-9)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from goclaw_py.model.errors import NotFound
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.session_keys import DEFAULT_ACCOUNT, chat_of, is_chat_name
from goclaw_py.model.web_links import (
    FIRST_CONVERSATION,
    WEB,
    WEB_PLACE,
    chat_of_guest,
    conversation_of,
)
from goclaw_py.ports.agent import HistoryEntry, Role
from goclaw_py.ports.control import Control, QueueView
from goclaw_py.ports.store import Session, StoredEntry, StoredRun, Unanswered
from goclaw_py.web.pages.markdown import html_of
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, form

SHOWN: Final = 50
CHATS: Final = 100
EXPORTED: Final = 5000
"""The most entries in an exported conversation: the newest."""

_FOUND: Final = 1000
_CONSOLE: Final = "console"
_ANSWERED: Final = (None, Outcome.COMPLETED)


@dataclass(frozen=True, slots=True)
class ChatOwner:
    """The conversations that a page shows, and their sessions: the operator's, or a guest's.

    What a guest names is a conversation of theirs, whatever it is, so that no name leads to a chat
    of somebody else (SPEC CHAN-13).

    Args:
        guest: The name of the guest; "" is the operator, at the console.
    """

    control: Control
    guest: str = ""

    def name(self, query: Query) -> str:
        """Return the conversation that an address names. Raises ``HTTPException`` (422)."""
        name = query.get("name", FIRST_CONVERSATION if self.guest else "browser")
        try:
            self._target(name)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        return name

    async def session(self, name: str) -> Session | None:
        """Return the most recently active session of a conversation."""
        target = self._target(name)
        found = await self._found(target.chat)
        return next((one for one in found if chat_of(one.key) == target), None)

    async def names(self) -> dict[str, datetime]:
        """Return when each conversation was last active, the most recent one first."""
        chats: dict[str, datetime] = {}
        for session in await self._found(self.guest):
            target = chat_of(session.key)
            if target is not None and (name := self._name(target)) is not None:
                chats.setdefault(name, session.last_active_at)
        return chats

    def _target(self, name: str) -> Target:
        if self.guest:
            return Target(*WEB_PLACE, chat_of_guest(self.guest, name))
        if not is_chat_name(name):
            raise ValueError("a chat name has 1 to 64 characters of A-Z a-z 0-9 . _ -")
        return Target(_CONSOLE, DEFAULT_ACCOUNT, name)

    def _name(self, target: Target) -> str | None:
        return conversation_of(self.guest, target.chat) if self.guest else target.chat

    async def _found(self, part: str) -> list[Session]:
        # The search finds parts of names, too.
        channel, most = (WEB, _FOUND) if self.guest else (_CONSOLE, CHATS)
        return await self.control.sessions(limit=most, search=f":{channel}:direct:{part}")


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the conversation.

    Args:
        run: At the last entry of a run this run, whose tool calls are shown before it.
        problem: Why there is no answer, "" if there is one or may come.
    """

    entry: StoredEntry
    run: StoredRun | None = None
    problem: str = ""


def lines_of(
    history: list[StoredEntry],
    runs: list[StoredRun],
    queue: QueueView | None,
    *,
    tells_errors: bool = True,
) -> list[Line]:
    """Return a conversation: its history, and the messages without an answer.

    A message that ended before the history begins belongs to an earlier conversation.
    ``tells_errors``: a message without an answer has the text of the error.
    """
    if not tells_errors:
        runs = [replace(run, error=None) for run in runs]
    by_id = {run.id: run for run in runs}
    last = {one.run_id: one for one in history if one.run_id}
    found = [
        _line(one, by_id.get(one.run_id) if one.run_id and last[one.run_id] is one else None)
        for one in history
    ]
    if queue is not None:
        ended = [one for one in queue.unanswered if history and one.received_at >= history[0].at]
        missing = [one for one in (*ended, *queue.messages) if one.run_id not in last]
        found += [_missing(one, by_id.get(one.run_id) if one.run_id else None) for one in missing]
    return sorted(found, key=lambda line: line.entry.at)


def _line(entry: StoredEntry, run: StoredRun | None) -> Line:
    if run is None or run.outcome in _ANSWERED:
        return Line(entry, run)
    return Line(entry, run, _problem(run.outcome, run.reason, run.error))


def _missing(one: Unanswered, run: StoredRun | None) -> Line:
    entry = HistoryEntry(Role.USER, one.message.text)
    problem = _problem(one.outcome, one.reason, run.error if run else None) if one.outcome else ""
    return Line(StoredEntry(entry, one.received_at, one.run_id), run, problem)


def _problem(outcome: Outcome | None, reason: Reason | None, error: str | None) -> str:
    words = (outcome or "").replace("_", " "), (reason or "").replace("_", " "), error
    return ": ".join(filter(None, words))


def routes(service: PageServices, owner: ChatOwner | None = None) -> list[Route]:
    """Return the page, whose script uses the routes of terminals, its export and its formatter."""
    control = service.control
    chats = owner or ChatOwner(control)

    async def look(query: Query) -> Facts:
        name = chats.name(query)
        session, names = await asyncio.gather(chats.session(name), chats.names())
        queue = await control.queue(session.key) if session else None
        waits_for = queue.waiting[0].waits_for if queue and queue.waiting else None
        facts = {"chat": name, "session": session, "chats": names, "waiting": _waiting(queue)}
        return {**facts, "waits_for": waits_for, "guest": chats.guest}

    page = Page("/chat", "chat", "Chat", look, ("name",))

    async def show(request: Request) -> Response:
        query = {"name": chats.name(request.query_params)}
        facts, lines = await asyncio.gather(
            service.facts(page, query), _lines(chats, query["name"])
        )
        # Long texts take up to 0.2 s each to format: other work goes on meanwhile.
        whole = {**facts, "lines": lines}
        return await asyncio.to_thread(service.answer, request, "chat.html", whole)

    async def export(request: Request) -> Response:
        name = chats.name(request.query_params)
        session = await chats.session(name)
        if session is None:
            raise NotFound(f"there is no conversation {name}")
        history = await control.history(session.key, limit=EXPORTED)
        return Response(
            _markdown(name, history),
            media_type="text/markdown",
            headers={"Content-Disposition": f'attachment; filename="{name}.md"'},
        )

    async def markdown(request: Request) -> Response:
        text = (await form(request)).get("text", "")
        return HTMLResponse(await asyncio.to_thread(html_of, text))

    return [
        Route("/chat", show),
        service.live_route(page),
        Route("/chat/export", export),
        Route("/chat/markdown", markdown, methods=["POST"]),
    ]


async def _lines(chats: ChatOwner, name: str) -> list[Line]:
    session = await chats.session(name)
    if session is None:
        return []
    control = chats.control
    history, runs, queue = await asyncio.gather(
        control.history(session.key, limit=SHOWN),
        control.runs(limit=SHOWN, session=session.key),
        control.queue(session.key),
    )
    # The text of an error is for the operator.
    return lines_of(history, runs, queue, tells_errors=not chats.guest)


def _waiting(queue: QueueView | None) -> list[Unanswered]:
    """Return the messages that no run answers yet, the next one first."""
    if queue is None:
        return []
    running: set[RunId | None] = {run.id for run in queue.running}
    return [one for one in queue.messages if one.run_id not in running]


def _markdown(name: str, history: list[StoredEntry]) -> str:
    """Return a conversation as a Markdown file."""
    said = (
        f"\n## {one.entry.role}, {one.at:%Y-%m-%d %H:%M:%S} UTC\n\n{one.entry.text}\n"
        for one in history
    )
    return f"# Chat {name}\n" + "".join(said)
