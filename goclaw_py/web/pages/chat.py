"""The chat in the browser: a terminal of the console (CHAN-9)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from goclaw_py.model.errors import NotFound
from goclaw_py.model.ids import RunId
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.session_keys import is_chat_name
from goclaw_py.ports.agent import HistoryEntry, Role
from goclaw_py.ports.control import QueueView
from goclaw_py.ports.store import Session, StoredEntry, StoredRun, Unanswered
from goclaw_py.web.pages.markdown import html_of
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, form

SHOWN: Final = 50
CHATS: Final = 100
EXPORTED: Final = 5000
"""The most entries in an exported conversation: the newest."""

_CONSOLE: Final = ":console:direct:"
_ANSWERED: Final = (None, Outcome.COMPLETED)


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
    history: list[StoredEntry], runs: list[StoredRun], queue: QueueView | None
) -> list[Line]:
    """Return a conversation: its history, and the messages without an answer.

    A message that ended before the history begins belongs to an earlier conversation.
    """
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


def routes(service: PageServices) -> list[Route]:
    """Return the page, whose script uses the routes of terminals, its export and its formatter."""
    control = service.control

    async def look(query: Query) -> Facts:
        name = _name(query)
        session, chats = await asyncio.gather(_session(service, name), _chats(service))
        queue = await control.queue(session.key) if session else None
        waits_for = queue.waiting[0].waits_for if queue and queue.waiting else None
        facts = {"chat": name, "session": session, "chats": chats, "waiting": _waiting(queue)}
        return {**facts, "waits_for": waits_for}

    page = Page("/chat", "chat", "Chat", look, ("name",))

    async def show(request: Request) -> Response:
        query = {"name": _name(request.query_params)}
        facts, lines = await asyncio.gather(
            service.facts(page, query), _lines(service, query["name"])
        )
        # Long texts take up to 0.2 s each to format: other work goes on meanwhile.
        whole = {**facts, "lines": lines}
        return await asyncio.to_thread(service.answer, request, "chat.html", whole)

    async def export(request: Request) -> Response:
        name = _name(request.query_params)
        session = await _session(service, name)
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


def _name(query: Query) -> str:
    """Return the name of the chat. Raises ``HTTPException`` (422)."""
    name = query.get("name", "browser")
    if not is_chat_name(name):
        raise HTTPException(422, "a chat name has 1 to 64 characters of A-Z a-z 0-9 . _ -")
    return name


async def _session(service: PageServices, name: str) -> Session | None:
    """Return the most recently active session of a chat."""
    found = await service.control.sessions(limit=CHATS, search=_CONSOLE + name)
    return next((one for one in found if one.key.endswith(_CONSOLE + name)), None)


async def _chats(service: PageServices) -> dict[str, datetime]:
    """Return when each chat of the console was last active, the most recent one first."""
    found = await service.control.sessions(limit=CHATS, search=_CONSOLE)
    chats: dict[str, datetime] = {}
    for session in found:
        _, is_console, name = session.key.partition(_CONSOLE)
        if is_console:
            chats.setdefault(name, session.last_active_at)
    return chats


async def _lines(service: PageServices, name: str) -> list[Line]:
    session = await _session(service, name)
    if session is None:
        return []
    history, runs, queue = await asyncio.gather(
        service.control.history(session.key, limit=SHOWN),
        service.control.runs(limit=SHOWN, session=session.key),
        service.control.queue(session.key),
    )
    return lines_of(history, runs, queue)


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
