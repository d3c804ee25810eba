"""The newest log lines of the gateway: a list, and a stream (SPEC OPS-5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from goclaw_py.observability.log_lines import LogFilter, Logs, LogTail
from goclaw_py.web.api.streams import ClosedStream, Seen
from goclaw_py.web.api.wire import MAX_LIMIT, PING, PING_S, dump

_LOOK_S: Final = 0.5
"""How often new lines are sent."""

_MAX_CHARS: Final = 512

Level = Annotated[
    Literal["", "debug", "info", "warning", "error", "critical"],
    Query(description="The lowest level."),
]
Words = Annotated[str, Query(max_length=_MAX_CHARS)]
Search = Annotated[
    str,
    Query(
        max_length=_MAX_CHARS,
        description="A text in the event or in a `name=value` of the line, in any case.",
    ),
]
Person = Annotated[str, Query(max_length=_MAX_CHARS, examples=["telegram/default/42"])]


# A plain function would run in a thread.
async def _only(
    level: Level = "",
    search: Search = "",
    agent: Words = "",
    run: Words = "",
    session: Words = "",
    person: Person = "",
) -> LogFilter:
    return LogFilter(level, search, agent, run, session, person)


Only = Annotated[LogFilter, Depends(_only)]
Number = Annotated[int, Query(ge=0, le=MAX_LIMIT)]
Place = Annotated[
    str, Query(max_length=64, description="Only lines after this `place` of an earlier response.")
]


async def follow(
    logs: Logs, only: LogFilter, *, limit: int, after: str, closing: asyncio.Event
) -> AsyncGenerator[LogTail | None]:
    """Yield new lines until ``closing`` is set; None if there were none for ``PING_S``."""
    loop = asyncio.get_running_loop()
    told_at = loop.time()
    while not closing.is_set():
        tail = logs.tail(only, limit=limit, after=after)
        after = tail.place
        if tail.lines or loop.time() - told_at >= PING_S:
            yield tail if tail.lines else None
            told_at = loop.time()
        try:
            async with asyncio.timeout(_LOOK_S):
                await closing.wait()
        except TimeoutError:
            continue


def log_routes(logs: Logs, closing: asyncio.Event) -> APIRouter:
    """Return the routes below ``/api``; ``closing`` ends the streams."""
    api = APIRouter(tags=["logs"])

    @api.get("/logs")
    async def lines(
        only: Only,
        limit: Number = 100,
        after: Place = "",
    ) -> LogTail:
        """Get the newest log lines of this gateway, the oldest first.

        Each is an object as in the JSON log. A gateway keeps its last 2,000 lines in memory; other
        nodes have their own. With `after`, the `place` of an earlier response, only new ones.
        """
        return logs.tail(only, limit=limit, after=after)

    @api.get("/logs/events", response_class=StreamingResponse)
    async def events(
        only: Only,
        limit: Number = 100,
        last_event_id: Seen = None,
    ) -> ClosedStream:
        """Follow the log lines of this gateway as server-sent events named `lines`.

        The first event has the newest `limit` lines. The data is as in the list.
        """
        found = follow(logs, only, limit=limit, after=last_event_id or "", closing=closing)
        return ClosedStream(_encoded(found), found)

    return api


async def _encoded(tails: AsyncGenerator[LogTail | None]) -> AsyncGenerator[bytes]:
    yield b"retry: 2000\n\n"
    async for tail in tails:
        if tail is None:
            yield PING
        else:
            place = tail.place.encode()
            yield b"id: %s\nevent: lines\ndata: %s\n\n" % (place, dump(LogTail, tail))
