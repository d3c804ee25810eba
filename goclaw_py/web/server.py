"""HTTP servers, as tasks of the gateway (recipe: uvicorn without its signal handling)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from goclaw_py.web.api.wire import ApiError, dump

GRACE_S: Final = 2
"""Seconds that requests may take after ``stop``."""

KEEP_ALIVE_S: Final = 130
"""Seconds that a connection may be idle between two requests.

Longer than in reverse proxies (nginx 60 s, Caddy 120 s): they must close first, otherwise a request
may meet a connection that is being closed.
"""

HEAD_S: Final = 10.0
"""Seconds for the head of a stranger's request."""

MAX_HEAD_BYTES: Final = 64 * 1024
"""The size of a stranger's request without its body."""

MAX_CONNECTIONS: Final = 512
"""The number of strangers' connections; further ones are told to retry."""

_HARD_MAX_CONNECTIONS = MAX_CONNECTIONS + 64
_LAST_S = 1.0


class _Uvicorn(uvicorn.Server):
    """A server without signal handling, which belongs to the gateway."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Answering(HttpToolsProtocol):
    """A connection whose HTTP errors have the API's form."""

    def send_400_response(self, msg: str) -> None:
        del msg
        body = dump(ApiError, ApiError("this is not a valid HTTP request"))
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)
        )
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        served: Any = _busy if app is service_unavailable else app
        super()._start_asgi_task(cycle, served)


async def _busy(_scope: Scope, _receive: Receive, send: Send) -> None:
    body = dump(ApiError, ApiError("too many connections are open; try again later"))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Guarded(_Answering):
    """A stranger's connection, with limits that uvicorn lacks.

    Without them an incomplete request would hold a connection forever, and endless headers would
    fill the memory.
    """

    cycle: RequestResponseCycle | None  # type: ignore[assignment]  # None before the first one
    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > _HARD_MAX_CONNECTIONS:
            transport.abort()
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget_head()
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self.transport.abort()
        elif self._deadline is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_S, self.transport.abort)

    def _forget_head(self) -> None:
        self._head_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class HttpServer:
    """Serves an ASGI app on listening sockets.

    Args:
        app: The app. Its requests are cancelled ``GRACE_S`` after the stop.
        sockets: Closed at the end.
        on_stop: Called at ``stop``, perhaps twice, to end endless responses.
        strangers: Whether anybody can connect: then connections have limits.
    """

    def __init__(
        self,
        app: ASGIApp,
        *sockets: socket.socket,
        on_stop: Callable[[], None] = lambda: None,
        strangers: bool = False,
    ) -> None:
        self._sockets = list(sockets)
        self._on_stop = on_stop
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                # It would take a method for an app of an older interface.
                interface="asgi3",
                http=_Guarded if strangers else _Answering,
                limit_concurrency=MAX_CONNECTIONS if strangers else None,
                timeout_keep_alive=KEEP_ALIVE_S,
                log_config=None,
                # Its warnings are about what clients send: strangers would fill the log.
                log_level=logging.ERROR,
                access_log=False,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    async def run(self) -> None:
        """Serve until ``stop`` or a cancellation. Nothing is left open then."""
        serving = asyncio.create_task(self._serve(), name="http")
        try:
            # Cancelling uvicorn itself leaves its connections open.
            await asyncio.shield(serving)
        finally:
            self.stop()
            await serving

    def stop(self) -> None:
        """Accept no new requests and let those in progress end."""
        self._on_stop()
        self._server.should_exit = True

    async def _serve(self) -> None:
        try:
            await self._server.serve(self._sockets)
        finally:
            state = self._server.server_state
            # Those that were cancelled after ``GRACE_S`` have not ended yet.
            if state.tasks:
                await asyncio.wait(state.tasks, timeout=_LAST_S)
            for connection in list(state.connections):
                connection.transport.abort()
            # An aborted connection is closed in the loop's next turn.
            await asyncio.sleep(0)
