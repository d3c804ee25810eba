"""Chats of the console over HTTP: one event stream for each terminal (SPEC CHAN-9)."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse

from goclaw_py.model.session_keys import CHAT_NAME
from goclaw_py.ports.control import Terminals
from goclaw_py.web.api.streams import EventStream
from goclaw_py.web.api.wire import ATTACHED, ConfirmBody, SayBody

Chat = Annotated[str, Path(pattern=f"^{CHAT_NAME}$")]


def terminal_routes(terminals: Terminals, closing: asyncio.Event) -> APIRouter:
    """The routes below ``/api/chat``; ``closing`` ends the streams."""
    api = APIRouter()

    @api.get("/{chat}/events", response_class=StreamingResponse)
    async def events(chat: Chat) -> EventStream:
        """What happens in a chat, as server-sent events; the terminal is attached meanwhile."""
        return EventStream(terminals.attach(chat), closing, ATTACHED)

    @api.post("/{chat}/messages", status_code=204)
    async def say(chat: Chat, body: SayBody) -> None:
        """Take a line; it is committed when this answers."""
        await terminals.say(chat, body.message_id, body.text)

    @api.post("/{chat}/confirm", status_code=204)
    async def confirm(chat: Chat, body: ConfirmBody) -> None:  # noqa: ARG001  (part of the path)
        """The person has seen a message."""
        terminals.confirm(body.receipt)

    return api
