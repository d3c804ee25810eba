"""The pages of sessions (OPS-3)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.display_names import address
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.session_keys import console_chat
from goclaw_py.core.text import first_words
from goclaw_py.records import RunQuery, SessionQuery, SessionState
from goclaw_py.web.pages.chat.lines import lines_of
from goclaw_py.web.pages.filters import (
    Field,
    ListFilters,
    Tab,
    channels,
    of_agent,
    one_of,
    params_of,
)
from goclaw_py.web.pages.parameters import place
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, back_to, form

SHOWN: Final = 50
HISTORY: Final = 100
NEWEST: Final = 20
"""The number of entries that are shown first: a screen or two."""

_STATES: Final = ("", *(state.value for state in SessionState))
_FILTERS: Final = ("agent", "channel", "search")


def routes(service: PageServices) -> list[Route]:
    """Return the list, a session, its reset, and its fork at a run."""
    control = service.control

    async def load(query: Query) -> Facts:
        session = await control.sessions.get(query.get("key", ""))
        named = [session.key, *([address(session.target)] if session.target else [])]
        history, queue, runs, names = await asyncio.gather(
            control.sessions.history(session.key, limit=HISTORY),
            control.sessions.queue(session.key),
            control.runs.list(RunQuery(limit=20, session=session.key)),
            control.sessions.names(named),
        )
        lines = lines_of(history, runs, None)
        # In the chat an answer stands below its question, whatever came between them.
        lines.sort(key=lambda line: line.entry.at)
        shown = lines if "all" in query else lines[-NEWEST:]
        facts = {"session": session, "lines": shown, "queue": queue, "runs": runs}
        chat = console_chat(session.key)
        return {
            "chat": chat,
            # As in the chat. What no chat has asked is the prompt of a job or of another agent.
            "asker": "You" if chat else names[named[1]] if session.target else "Prompt",
            "more": len(lines) - len(shown),
            "most": HISTORY,
            "path": "/sessions",
            "title": first_words(names[session.key], 90),
            "names": names,
            **facts,
        }

    async def reset(request: Request) -> Response:
        key = (await form(request)).get("key", "")
        session = await control.sessions.get(key)
        await control.sessions.reset(SessionKey(session.key))
        return back_to("/sessions/view", "reset", key=session.key)

    async def fork(request: Request) -> Response:
        """Copy a conversation up to the end of a run, and open the copy."""
        sent = await form(request)
        copy = await control.sessions.fork(SessionKey(sent.get("key", "")), at=sent.get("run", ""))
        if copy.chat is None:
            return back_to("/sessions/view", "forked", key=copy.session)
        return back_to("/chat", "forked", name=copy.chat)

    loader, params = partial(_load, service), params_of(*_FILTERS)
    part, frame = "sessions/page.html", "filtered.html"
    one, shown = "sessions/session.html", ("key", "all")
    return [
        *service.routes(
            Page("/sessions", "sessions", "Sessions", loader, params, 3.0, part=part, frame=frame)
        ),
        *service.routes(Page("/sessions/view", "session", "Session", load, shown, 2.0, part=one)),
        Route("/sessions/fork", fork, methods=["POST"]),
        Route("/sessions/reset", reset, methods=["POST"]),
    ]


async def _load(service: PageServices, query: Query) -> Facts:
    control = service.control
    before = place(query)
    fields = (
        await of_agent(control, query),
        one_of("channel", "Channel", await channels(service, query)),
        Field("search", "Search", placeholder="name or key"),
    )
    filters = ListFilters("/sessions", "sessions", query, fields, _STATES)
    values, show = filters.values, filters.show
    wanted = SessionQuery(
        agent=AgentName(values["agent"]) if values["agent"] else None,
        channel=values["channel"] or None,
        state=SessionState(show) if show else None,
        search=values["search"],
        limit=SHOWN + 1,
        before=before,
    )
    # To count all sessions reads all of them; a page of each tab says enough.
    of_tabs = [replace(wanted, before=None, state=one) for one in (None, *SessionState)]
    asked = list(dict.fromkeys((*of_tabs, wanted)))
    lists = dict(zip(asked, await asyncio.gather(*map(control.sessions.list, asked)), strict=True))
    found = lists[wanted]
    firsts = {one: lists[each] for one, each in zip(_STATES, of_tabs, strict=True)}
    tabs = [Tab(one, min(len(some), SHOWN), len(some) > SHOWN) for one, some in firsts.items()]
    filters = replace(filters, tabs=tuple(tabs))
    return {
        "running": {one.key for one in firsts[SessionState.RUNNING]},
        "sessions": found[:SHOWN],
        "next": found[SHOWN - 1].cursor if len(found) > SHOWN else None,
        "filters": filters,
        "named": [one.key for one in found[:SHOWN]],
    }
