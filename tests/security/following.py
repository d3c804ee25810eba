"""The scope of a request, and a client that follows an event stream behind a guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goclaw_py.web.api.streams import ClosedStream

HOME = "192.0.2.1"


def scope_with(
    *headers: tuple[bytes, bytes], path: str = "/api/events", address: str = HOME
) -> dict[str, Any]:
    """The scope of a GET request for this machine."""
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers],
        "client": (address, 1),
        "asgi": {"spec_version": "2.3"},
    }


class Follower:
    """An app with one event stream, and the client that reads it until it ends."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        """The bodies of what was sent."""
        self._said = asyncio.Queue[bytes]()
        self._ended = asyncio.Event()

    def say(self, text: bytes) -> None:
        """Let the app send an event."""
        self._said.put_nowait(text)

    def follow(self, guard: ASGIApp, scope: Scope) -> asyncio.Task[None]:
        """Request the stream; the task ends with it."""
        return asyncio.create_task(self._serve(guard, scope))

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What stands behind the guard."""
        await ClosedStream(self._events())(scope, receive, send)

    async def _serve(self, guard: ASGIApp, scope: Scope) -> None:
        await guard(scope, self._receive, self._send)

    async def _events(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._said.get()

    async def _receive(self) -> Message:
        await self._ended.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        assert not self._ended.is_set()
        self.sent.append(message.get("body", b""))
        if message["type"] == "http.response.body" and not message["more_body"]:
            self._ended.set()
