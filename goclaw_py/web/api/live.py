"""What runs do, as an event stream (SPEC OPS-2)."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from goclaw_py.ports.control import Control
from goclaw_py.runs.live_events import LiveEvent
from goclaw_py.web.api.streams import EventStream
from goclaw_py.web.api.wire import LIVE_EVENTS, Encoder

GATHER_S: Final = 0.1
"""How long events are gathered for one write, in seconds: many programs may follow many runs."""

Part = Annotated[str | None, Query(min_length=1, max_length=512)]

Seen = Annotated[str | None, Header(alias="Last-Event-ID", max_length=256)]

_SCHEMA = {
    "description": "The data of each server-sent event.",
    "oneOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in LIVE_EVENTS.values()],
}
"""FastAPI describes one document in an answer, not a stream of them."""

_EXAMPLE = {
    "at": "2026-01-02T03:04:05Z",
    "session": "agent:main:telegram:direct:100",
    "runs": [],
    "kind": "now",
    "id": "5f0e7a3b9c1d-1",
}


def live_routes(control: Control, closing: asyncio.Event) -> APIRouter:
    """The route below ``/api``; ``closing`` ends the streams."""
    api = APIRouter(tags=["runs"])
    encode = Encoder()

    @api.get(
        "/runs/events",
        response_class=StreamingResponse,
        response_model=LiveEvent,
        responses={
            200: {"content": {EventStream.media_type: {"schema": _SCHEMA, "example": _EXAMPLE}}}
        },
    )
    async def events(session: Part = None, last_event_id: Seen = None) -> EventStream:
        """What runs do from now on, as server-sent events; `kind` is the name of the event.

        Of all sessions, or of the one with this unique part of a key, its subagents and delegates
        included. The first event, `now`, tells what is not done at this moment. With the header
        `Last-Event-ID` first comes what has happened since that event: browsers send it when they
        connect again. The newest events are kept for a minute after the last reader has gone; what
        is not there any more is told as `missed`.
        """
        found = control.follow(session, after=last_event_id)
        # Before there is an answer, so that what is wrong with the question gets a status.
        first = await anext(found)
        return EventStream(found, closing, encode(first), encode, GATHER_S)

    return api
