"""Chats of the console over HTTP: one event stream for each terminal (SPEC CHAN-9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse

from goclaw_py.core.routing import CHAT_NAME
from goclaw_py.ports.control import ChatEvent, Terminals
from goclaw_py.web.wire import ATTACHED, PING, PING_S, ConfirmBody, SayBody, encode_event

Chat = Annotated[str, Path(pattern=f"^{CHAT_NAME}$")]


def terminal_routes(terminals: Terminals, closing: asyncio.Event) -> APIRouter:
    """The routes below ``/api/chat``; ``closing`` ends the streams."""
    api = APIRouter()

    @api.get("/{chat}/events", response_class=StreamingResponse)
    async def events(chat: Chat) -> StreamingResponse:
        """What happens in a chat, as server-sent events; the terminal is attached meanwhile."""
        return StreamingResponse(
            stream(terminals, chat, closing),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )

    @api.post("/{chat}/messages", status_code=204)
    async def say(chat: Chat, body: SayBody) -> None:
        """Take a line; it is committed when this answers."""
        await terminals.say(chat, body.message_id, body.text)

    @api.post("/{chat}/confirm", status_code=204)
    async def confirm(chat: Chat, body: ConfirmBody) -> None:  # noqa: ARG001  (part of the path)
        """The person has seen a message."""
        terminals.confirm(body.receipt)

    return api


async def stream(terminals: Terminals, chat: str, closing: asyncio.Event) -> AsyncIterator[bytes]:
    """Server-sent events of a chat until ``closing`` is set, with signs of life in between."""
    events = terminals.attach(chat)
    upcoming = asyncio.ensure_future(_next(events))
    closed = asyncio.ensure_future(closing.wait())
    try:
        # One turn of the loop lets the first step of the iterator attach the terminal.
        await asyncio.sleep(0)
        yield ATTACHED
        while not closed.done():
            await asyncio.wait(
                {upcoming, closed}, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED
            )
            if upcoming.done():
                event = upcoming.result()
                if event is None:
                    return
                upcoming = asyncio.ensure_future(_next(events))
                yield encode_event(event)
            elif not closed.done():
                yield PING
    finally:
        closed.cancel()
        upcoming.cancel()
        with suppress(asyncio.CancelledError):
            await upcoming
        await _close(events)


async def _next(events: AsyncIterator[ChatEvent]) -> ChatEvent | None:
    return await anext(events, None)


async def _close(events: AsyncIterator[ChatEvent]) -> None:
    # ``Terminals`` promises an iterator; the generators that implement it want to be closed.
    if close := getattr(events, "aclose", None):
        await close()
