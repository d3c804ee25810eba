"""Server-sent events: progress of runs, and chats of terminals (SPEC OPS-2, CHAN-9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from goclaw_py.chat.terminals import ChatEvent, Terminals, UploadedFile
from goclaw_py.core.errors import UnknownAgent
from goclaw_py.core.ids import AgentName
from goclaw_py.core.session_keys import CHAT_NAME
from goclaw_py.operations.control import Control
from goclaw_py.runs.events.live import LiveEvent
from goclaw_py.web.api.wire import (
    ATTACHED,
    LIVE_EVENTS,
    PING,
    PING_S,
    ApiError,
    ConfirmBody,
    PressBody,
    SayBody,
    dump,
    encode_event,
)
from goclaw_py.web.connections import stream_room

_MOST_TOGETHER: Final = 64
"""The largest number of events in a write."""

GATHER_S: Final = 0.1
"""Seconds for which events are collected for one write, for many readers of many runs."""

Part = Annotated[str | None, Query(min_length=1, max_length=512)]

Seen = Annotated[str | None, Header(alias="Last-Event-ID", max_length=256)]

_SCHEMA = {
    "description": "The data of each server-sent event.",
    "oneOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in LIVE_EVENTS.values()],
}
"""FastAPI describes one document per response, not a stream of them."""

_EXAMPLE = {
    "at": "2026-01-02T03:04:05Z",
    "session": "agent:main:telegram:direct:100",
    "runs": [],
    "kind": "now",
    "id": "5f0e7a3b9c1d-1",
}

Chat = Annotated[str, Path(pattern=f"^{CHAT_NAME}$")]

E = TypeVar("E", bound=ChatEvent | LiveEvent)


class ClosedStream(StreamingResponse):
    """A response of encoded server-sent events.

    Args:
        body: The events.
        also: Their source. Both are closed at the end.
    """

    media_type = "text/event-stream"

    def __init__(self, body: AsyncIterator[bytes], *also: AsyncIterator[object]) -> None:
        self._sources: tuple[AsyncIterator[object], ...] = (body, *also)
        super().__init__(body, headers={"Cache-Control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, and close the iterators after a disconnect."""
        try:
            with stream_room(scope) as has_room:
                await (super().__call__ if has_room else _no_room)(scope, receive, send)
        finally:
            for source in self._sources:
                await _close(source)


_no_room = Response(
    dump(ApiError, ApiError("too many event streams are open; close some of them")),
    503,
    media_type="application/json",
)


def event_stream(
    events: AsyncIterator[E], closing: asyncio.Event, first: bytes, gather_s: float = 0.0
) -> ClosedStream:
    """Return a response with server-sent events; see ``stream``."""
    return ClosedStream(stream(events, closing, first, gather_s), events)


async def stream(
    events: AsyncIterator[E], closing: asyncio.Event, first: bytes, gather_s: float = 0.0
) -> AsyncIterator[bytes]:
    """Yield server-sent events until ``closing`` is set, with pings in between.

    Events within ``gather_s`` seconds are sent together: writing costs more than encoding. While
    nothing can be written, few events are taken from ``events``.

    ``first`` is sent when ``events`` has executed its next step. ``events`` is closed at the end.
    """
    # One more waits until there is room.
    queue: asyncio.Queue[bytes] = asyncio.Queue(_MOST_TOGETHER - 1)

    async def encode_all() -> None:
        async for event in events:
            await queue.put(encode_event(event))

    encoding = asyncio.ensure_future(encode_all())
    closed = asyncio.ensure_future(closing.wait())
    try:
        # One turn of the loop lets the first step of the iterator attach the terminal.
        await asyncio.sleep(0)
        yield first
        while not closed.done():
            ready = await _next(queue, {encoding, closed}, gather_s)
            yield b"".join(ready) if ready or encoding.done() or closed.done() else PING
            if encoding.done() and queue.empty():
                await encoding
                return
    finally:
        closed.cancel()
        encoding.cancel()
        await asyncio.gather(encoding, closed, return_exceptions=True)
        await _close(events)


async def _next(
    queue: asyncio.Queue[bytes], ends: Collection[asyncio.Future[Any]], gather_s: float
) -> list[bytes]:
    """Return the events for a write; none after ``PING_S`` without one, or at one of ``ends``."""
    getting = asyncio.ensure_future(queue.get())
    try:
        await asyncio.wait({getting, *ends}, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
        if not getting.done():
            return []
        if not (queue.full() or any(end.done() for end in ends)):
            await asyncio.sleep(gather_s)
    finally:
        getting.cancel()
    ready = [getting.result()]
    while not queue.empty():
        ready.append(queue.get_nowait())
    return ready


async def _close(events: AsyncIterator[object]) -> None:
    # The protocols promise an iterator; the generators that implement it want to be closed.
    if close := getattr(events, "aclose", None):
        await close()


def live_routes(control: Control, closing: asyncio.Event) -> APIRouter:
    """Return the route below ``/api``; ``closing`` ends the streams."""
    api = APIRouter(tags=["runs"])

    @api.get(
        "/runs/events",
        response_class=StreamingResponse,
        response_model=LiveEvent,
        responses={
            200: {"content": {ClosedStream.media_type: {"schema": _SCHEMA, "example": _EXAMPLE}}}
        },
    )
    async def events(session: Part = None, last_event_id: Seen = None) -> ClosedStream:
        """Follow runs from now on, as server-sent events; `kind` is the name of the event.

        Of all sessions, or of the one with this unique part of a key, or with a run whose id starts
        so, including its subagents and delegates. The first event, `now`, has all unfinished
        requests. With the header `Last-Event-ID`, which browsers send when they reconnect, the
        events since that one come first. Events are kept for a minute after the last reader has
        left; lost ones are reported as `missed`.
        """
        found = control.follow(session, after=last_event_id)
        # Before there is an answer, so that what is wrong with the question gets a status.
        first = await anext(found)
        return event_stream(found, closing, encode_event(first), GATHER_S)

    return api


def terminal_routes(
    terminals: Terminals, closing: asyncio.Event, agents: Collection[str] = ()
) -> APIRouter:
    """Return the routes below ``/api/chat``; ``closing`` ends the streams.

    ``agents`` are those that a message may choose.
    """
    api = APIRouter()

    def chosen(agent: str | None) -> AgentName | None:
        if agent is not None and agent not in agents:
            raise UnknownAgent(agent)
        return None if agent is None else AgentName(agent)

    @api.get("/{chat}/events", response_class=StreamingResponse)
    async def events(chat: Chat) -> ClosedStream:
        """Follow a chat as server-sent events; the terminal is attached meanwhile."""
        return event_stream(terminals.attach(chat), closing, ATTACHED)

    @api.post("/{chat}/messages", status_code=204)
    async def say(chat: Chat, body: SayBody) -> None:
        """Send a line; it is committed when this responds.

        Each agent has a conversation of its own in a chat. `files` are uploads of the dashboard.
        """
        await terminals.say(
            chat,
            body.message_id,
            body.text,
            agent=chosen(body.agent),
            files=[UploadedFile(one.ref, one.name) for one in body.files],
        )

    @api.post("/{chat}/press", status_code=204)
    async def press(chat: Chat, body: PressBody) -> None:
        """Press a button of a message; the answer comes as an event."""
        await terminals.press(
            chat,
            body.press_id,
            receipt=body.receipt,
            data=body.data,
            agent=chosen(body.agent),
        )

    @api.post("/{chat}/confirm", status_code=204)
    async def confirm(chat: Chat, body: ConfirmBody) -> None:  # noqa: ARG001  (part of the path)
        """Confirm that a message was shown."""
        terminals.confirm(body.receipt)

    return api
