"""What runs do, as an event stream (SPEC OPS-2)."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from goclaw_py.core.live import LiveEvent
from goclaw_py.ports.control import Control
from goclaw_py.web.streams import EventStream
from goclaw_py.web.wire import LIVE_EVENTS, encode_event

Part = Annotated[str | None, Query(min_length=1, max_length=512)]

_SCHEMA = {
    "description": "The data of each server-sent event.",
    "oneOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in LIVE_EVENTS.values()],
}
"""FastAPI describes one document in an answer, not a stream of them."""


def live_routes(control: Control, closing: asyncio.Event) -> APIRouter:
    """The route below ``/api``; ``closing`` ends the streams."""
    api = APIRouter()

    @api.get(
        "/runs/events",
        response_class=StreamingResponse,
        response_model=LiveEvent,
        responses={200: {"content": {EventStream.media_type: {"schema": _SCHEMA}}}},
    )
    async def events(session: Part = None) -> EventStream:
        """What runs do from now on, as server-sent events; ``kind`` is the name of the event.

        Of all sessions, or of the one with this unique part of a key, its subagents and delegates
        included. The first event tells what is not done now.
        """
        found = control.follow(session)
        # Before there is an answer, so that what is wrong with the question gets a status.
        first = await anext(found)
        return EventStream(found, closing, encode_event(first))

    return api
