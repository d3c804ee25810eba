"""Event streams: iterators as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final, TypeVar

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from goclaw_py.core.live import LiveEvent
from goclaw_py.ports.control import ChatEvent
from goclaw_py.web.wire import PING, PING_S, encode_event

_TOGETHER: Final = 64
"""How many events may be in one write."""

E = TypeVar("E", bound=ChatEvent | LiveEvent)


class ClosedStream(StreamingResponse):
    """An answer of ready-made server-sent events.

    Args:
        body: The events.
        also: What they are made of. Both are closed at the end.
    """

    media_type = "text/event-stream"

    def __init__(self, body: AsyncIterator[bytes], *also: AsyncIterator[object]) -> None:
        self._sources: tuple[AsyncIterator[object], ...] = (body, *also)
        super().__init__(body, headers={"Cache-Control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. Whoever has hung up leaves an iterator that has stopped anywhere."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            for source in self._sources:
                await _close(source)


class EventStream(ClosedStream):
    """An answer of server-sent events; see ``stream``."""

    def __init__(
        self,
        events: AsyncIterator[E],
        closing: asyncio.Event,
        first: bytes,
        encode: Callable[[E], bytes] = encode_event,
    ) -> None:
        super().__init__(stream(events, closing, first, encode), events)


async def stream(
    events: AsyncIterator[E],
    closing: asyncio.Event,
    first: bytes,
    encode: Callable[[E], bytes] = encode_event,
) -> AsyncIterator[bytes]:
    """Server-sent events until ``closing`` is set, with signs of life in between.

    Those that are there at once go out together: writing costs more than encoding does.

    ``first`` is sent when ``events`` has taken its next step. ``events`` is closed at the end.
    """
    upcoming = asyncio.ensure_future(_next(events))
    closed = asyncio.ensure_future(closing.wait())
    try:
        # One turn of the loop lets the first step of the iterator attach the terminal.
        await asyncio.sleep(0)
        yield first
        while not closed.done():
            await asyncio.wait(
                {upcoming, closed}, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED
            )
            if upcoming.done():
                ready: list[bytes] = []
                while upcoming.done() and len(ready) < _TOGETHER:
                    event = upcoming.result()
                    if event is None:
                        if ready:
                            yield b"".join(ready)
                        return
                    ready.append(encode(event))
                    upcoming = asyncio.ensure_future(_next(events))
                    await asyncio.sleep(0)
                yield b"".join(ready)
            elif not closed.done():
                yield PING
    finally:
        closed.cancel()
        upcoming.cancel()
        with suppress(asyncio.CancelledError):
            await upcoming
        await _close(events)


async def _next(events: AsyncIterator[E]) -> E | None:
    return await anext(events, None)


async def _close(events: AsyncIterator[object]) -> None:
    # The ports promise an iterator; the generators that implement it want to be closed.
    if close := getattr(events, "aclose", None):
        await close()
