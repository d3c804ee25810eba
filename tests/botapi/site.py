"""A port on which HTTP is answered, and which can be closed for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

HOST = "127.0.0.1"
_ROOM = 1 << 27
"""Bodies may be larger than the library allows by itself; ``wire`` has the limit."""


class Site:
    """Answers on ``port``; 0 becomes any free one."""

    def __init__(
        self, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], port: int = 0
    ) -> None:
        self.port = port
        self._handle = handle
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None

    @property
    def is_open(self) -> bool:
        return self._listener is not None

    async def open(self) -> None:
        """Answer from now on."""
        loop = asyncio.get_running_loop()
        # Without handler cancellation a poller that went away would still count as one.
        self._server = web.Server(
            self._handle, request_factory=_make_request, handler_cancellation=True, access_log=None
        )
        self._listener = await loop.create_server(self._server, HOST, self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    def go_away(self) -> None:
        """Refuse new connections and end those that there are, at once."""
        if self._listener is None or self._server is None:
            return
        self._listener.close()
        self._listener = None
        for connection in list(self._server.connections):
            if connection.transport is not None:
                connection.transport.abort()

    async def close(self) -> None:
        """Stop."""
        if self._listener is not None:
            self._listener.close()
        if self._server is not None:
            await self._server.shutdown(0.1)


def _make_request(
    message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_ROOM)
