"""The page of log lines: the newest lines of this gateway, filtered, and followed (SPEC OPS-3).

The lines come from memory, so the page also works while the database is unavailable.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goclaw_py.core.display_names import KnownNames, display_name, short_id
from goclaw_py.core.text import first_words
from goclaw_py.observability.log_lines import (
    KEPT_LINES,
    LogFacts,
    LogFilter,
    Logs,
    LogTail,
    value_text,
)
from goclaw_py.web.api.logs import follow
from goclaw_py.web.api.streams import ClosedStream
from goclaw_py.web.api.wire import PING
from goclaw_py.web.pages.filters import Field, ListFilters, given, of_agent
from goclaw_py.web.pages.hub import event
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query, own_query

SHOWN: Final = 200

_FILTERS: Final = ("level", "search", "agent", "run", "session", "person")
_NEWEST_FIRST: Final = "newest"
_ORDERS: Final = {_NEWEST_FIRST: "newest first", "oldest": "newest last"}
_LEVELS: Final = {"info": "info and above", "warning": "warning and above", "error": "errors"}
_MEANINGS: Final = {"warning": "busy", "error": "bad", "critical": "bad"}
_HEAD: Final = frozenset({"timestamp", "level", "event", "session_name"})
_OURS: Final = ("goclaw_py.", "channels.")
_LAST: Final = ("exception", "logger")
_NAMED: Final = ("session", "sender")
"""The fields whose values have names."""
_PAGES: Final = {
    "run_id": "/runs/",
    "parent": "/runs/",
    "job": "/jobs/",
    "approval": "/approvals#approval-",
}
"""The pages of ids, by the field."""

_LONG: Final = 200
"""A longer text is shown by its beginning and can be opened."""

_UNFIT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that are invisible, or that change how the text around them looks."""


@dataclass(frozen=True, slots=True)
class LogField:
    """A field of a line; ``href`` is the page of what it names, ``whole`` its whole text."""

    name: str
    text: str
    href: str = ""
    whole: str = ""


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line as the page shows it. ``meaning`` is the colour of its level."""

    at: datetime | None
    level: str
    meaning: str
    event: str
    fields: tuple[LogField, ...]


@dataclass(frozen=True, slots=True)
class _ByNames(LogFilter):
    """A filter whose search finds people and sessions by the names that the page shows, too."""

    names: Mapping[str, str] = field(default_factory=dict)

    def words(self, facts: LogFacts) -> str:
        shown = (f"{key}={self.names.get(str(facts.get(key)), '')}" for key in _NAMED)
        return " ".join((LogFilter.words(self, facts), *shown))


def routes(service: PageServices, logs: Logs, closing: asyncio.Event) -> list[Route]:
    """Return the page and its event stream, which ends when ``closing`` is set."""

    async def filters_of(query: Query) -> ListFilters:
        fields = (
            Field("level", "Level", _LEVELS),
            Field("search", "Search", placeholder="text or name=value"),
            await of_agent(service.control, query),
            *given(query, "run", "Run", short_id(query.get("run", ""))),
            *given(query, "session", "Session"),
            *given(query, "person", "Person"),
            Field("order", "Order", _ORDERS, default=_NEWEST_FIRST),
        )
        return ListFilters("/logs", "lines", query, fields)

    async def only(filters: ListFilters) -> LogFilter:
        given = {name: one for name, one in filters.values.items() if name in _FILTERS}
        if not given.get("search"):
            return LogFilter(**given)
        kept = logs.tail(LogFilter(), limit=KEPT_LINES).lines
        return _ByNames(**given, names=await _names(service, kept))

    async def rows_of(tail: LogTail, filters: ListFilters) -> Facts:
        is_newest_first = filters.values["order"] == _NEWEST_FIRST
        lines = [*(reversed(tail.lines) if is_newest_first else tail.lines)]
        names = await _names(service, lines)
        return {
            "rows": [_row(line, names) for line in lines],
            "left_out": tail.left_out,
            "is_newest_first": is_newest_first,
        }

    async def load(query: Query) -> Facts:
        filters = await filters_of(query)
        tail = logs.tail(await only(filters), limit=SHOWN)
        status = await service.control.lanes.status()
        return {
            "node": status.node if status.peers else "",
            "peers": [peer.id for peer in status.peers],
            "filters": filters,
            "place": tail.place,
            "named": [query[name] for name in ("session", "person") if name in query],
            **await rows_of(tail, filters),
        }

    page = Page("/logs", "logs", "Logs", load, (*_FILTERS, "order"))

    async def live(request: Request) -> Response:
        filters = await filters_of(own_query(page, request))
        seen = request.headers.get("last-event-id") or request.query_params.get("after", "")
        tails = follow(logs, await only(filters), limit=SHOWN, after=seen, closing=closing)

        async def parts() -> AsyncGenerator[bytes]:
            yield b"retry: 2000\n\n"
            async for tail in tails:
                if tail is None:
                    yield PING
                    continue
                html = service.render("logs_lines.html", await rows_of(tail, filters))
                yield event(b"lines", tail.place, html.encode("utf-8", "replace"))

        return ClosedStream(parts(), tails)

    return [Route(page.path, service.show(page)), Route("/live/logs", live)]


async def _names(service: PageServices, lines: Iterable[LogFacts]) -> dict[str, str]:
    keys = {str(line[key]) for line in lines for key in _NAMED if line.get(key)}
    return await service.control.sessions.names(keys)


def _row(line: dict[str, Any], known: Mapping[str, str]) -> LogRow:
    try:
        at = datetime.fromisoformat(line.get("timestamp", ""))
    except ValueError:
        at = None
    level = str(line.get("level", ""))
    # The constant name of an event says enough; lines of libraries have none.
    is_ours = str(line.get("logger", "")).startswith(_OURS)
    hidden = _HEAD | {"logger"} if is_ours else _HEAD
    names = [name for name in line if name not in hidden and name not in _LAST]
    names += [name for name in _LAST if name in line and name not in hidden]
    fields = tuple(_field(name, line, known) for name in names if line[name] is not None)
    event_name = visible(str(line.get("event", "")))
    if len(event_name) > _LONG:
        # Lines of libraries have their text as event.
        fields = (LogField("event", first_words(event_name, _LONG), whole=event_name), *fields)
        event_name = first_words(event_name, _LONG)
    return LogRow(at, level, _MEANINGS.get(level, "idle"), event_name, fields)


def _field(name: str, line: dict[str, Any], known: Mapping[str, str]) -> LogField:
    value = line[name]
    whole = visible(value_text(value))
    path = quote(str(value), safe="")
    match name:
        case _ if name in _PAGES:
            return LogField(name, short_id(whole), _PAGES[name] + path, whole)
        case "session":
            # While the database is away, the line has the name that it was written with.
            named = known.get(str(value), whole)
            if named == display_name(str(value), KnownNames()):
                named = str(line.get("session_name") or named)
            shown = first_words(visible(named), _LONG)
            return LogField(name, shown, f"/sessions/view?key={path}", whole)
        case "occurrence" if "job" in line:
            return LogField(name, whole, f"/jobs/{quote(str(line['job']), safe='')}")
        case "sender":
            shown = first_words(visible(known.get(str(value), whole)), _LONG)
            return LogField(name, shown, f"/logs?person={path}", whole)
        case "heartbeat_run" if "agent" in line:
            agent = quote(str(line["agent"]), safe="")
            place = f"/heartbeats/{agent}?heartbeat_run={path}#chosen"
            return LogField(name, short_id(whole), place, whole)
        case "inbox" | "outbox" if isinstance(value, int):
            kind = "message" if name == "inbox" else "delivery"
            return LogField(name, whole, f"/why?about={kind}:{path}")
        case _ if len(whole) > _LONG or "\n" in whole:
            return LogField(visible(name), first_words(whole, _LONG), whole=whole)
        case _:
            return LogField(visible(name), whole)


def visible(text: str) -> str:
    r"""Return a text with control characters and marks of direction as escapes, as ``\x1b``."""
    return _UNFIT.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
