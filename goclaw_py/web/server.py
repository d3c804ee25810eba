"""HTTP servers, as tasks of the gateway (recipe: uvicorn without its signal handling)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from goclaw_py.web.api.wire import ApiError, dump
from goclaw_py.web.connections import (
    Connections,
    Streams,
    is_known,
    most_connections,
    peer_of,
    with_streams,
)
from goclaw_py.web.sealing import SEAL

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
"""The size of a request without its body; a larger one is refused with 431."""

UNKNOWN_KEEP_ALIVE_S: Final = 5
"""The same for a peer that has shown neither a token nor anything else that it may."""

BODY_S: Final = 30.0
"""Seconds for the body of a request of such a peer."""

STALL_S: Final = 30.0
"""Seconds for which an answer may wait to be read on."""

_LAST_S = 1.0

_LINGER_S: Final = 1.0
"""Seconds for reading on after a refusal: a close before would discard it on its way."""

_LINGER_BYTES: Final = 2**18


class _Uvicorn(uvicorn.Server):
    """A server without signal handling, which belongs to the gateway."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _HeadTooLarge(Exception):
    """A head over ``MAX_HEAD_BYTES`` was read; it ends the parser."""


class _Answering(HttpToolsProtocol):
    """A connection whose HTTP errors have the API's form, and whose requests find its streams."""

    _is_too_large = False
    _bytes_after = 0
    """What came after a refusal."""

    def __init__(self, streams: Streams, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        with_streams(self.app_state, streams)

    def data_received(self, data: bytes) -> None:
        if not self._is_too_large:
            super().data_received(data)
            return
        self._bytes_after += len(data)
        if self._bytes_after > _LINGER_BYTES:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        # A head that comes in one piece is here before anybody has counted what came.
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MAX_HEAD_BYTES:
            self._is_too_large = True
            raise _HeadTooLarge
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        del msg
        if self._is_too_large:
            self.refuse_head()
        else:
            self.refuse("400 Bad Request", "this is not a valid HTTP request")

    def refuse_head(self) -> None:
        """Answer a head that is too large, and read on for a moment."""
        self._is_too_large = True
        text = f"the head of the request is longer than {MAX_HEAD_BYTES} bytes"
        self._write("431 Request Header Fields Too Large", text)
        self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.abort)

    def refuse(self, status: str, error: str) -> None:
        """Answer outside of a request, and close the connection."""
        self._write(status, error)
        self.transport.close()

    def _write(self, status: str, error: str) -> None:
        body = dump(ApiError, ApiError(error))
        fields = b"".join(b"%s: %s\r\n" % each for each in SEAL)
        self.transport.write(
            b"HTTP/1.1 %s\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\nconnection: close\r\n%s\r\n%s"
            % (status.encode(), len(body), fields, body)
        )


class _Guarded(_Answering):
    """A stranger's connection, with limits that uvicorn lacks.

    Without them an incomplete request, or an answer that nobody reads, would hold a connection
    forever, and endless headers would fill the memory.
    """

    cycle: RequestResponseCycle | None  # type: ignore[assignment]  # None before the first one
    peer = ""
    _was_known = False
    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _body_of: RequestResponseCycle | None = None
    """The request whose body has its time limit."""

    def __init__(self, connections: Connections, streams: Streams, **of_uvicorn: Any) -> None:
        super().__init__(streams, **of_uvicorn)
        self._others = connections

    @property
    def is_known(self) -> bool:
        """See ``PeerConnection``; also while the answer to the first such request is on its way."""
        return self._was_known or (self.cycle is not None and is_known(self.cycle.scope))

    def evict(self) -> None:
        """End it at once."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.peer = peer_of(self.client)
        if self._others.add(self, self.loop.time()):
            self._end_in(HEAD_S)
        else:
            self.refuse("503 Service Unavailable", "too many connections are open; try again later")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self._is_too_large:
                self.refuse_head()
            elif self._deadline is None:
                self._end_in(HEAD_S)
        elif not cycle.more_body:
            self._go_on()
        elif self._body_of is not cycle:
            self._body_of, self._head_bytes = cycle, 0
            self._end_in(BODY_S, also_known=False)

    def on_response_complete(self) -> None:
        self._was_known = self.is_known
        self.timeout_keep_alive = KEEP_ALIVE_S if self._was_known else UNKNOWN_KEEP_ALIVE_S
        super().on_response_complete()
        self._others.begin_wait(self, self.loop.time())
        if self.transport.is_closing():
            # It ends when the answer is read, if it ever is.
            self._end_in(STALL_S)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._others.begin_wait(self, self.loop.time())
        self._end_in(STALL_S)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.cycle is not None and not self.cycle.response_complete:
            self._go_on()

    def timeout_keep_alive_handler(self) -> None:
        # It may have sent the next head by a half, or not read the answer before.
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.remove(self)
        self._forget_deadline()
        super().connection_lost(exc)

    def _go_on(self) -> None:
        self._head_bytes = 0
        self._forget_deadline()
        self._others.begin_work(self)

    def _end_in(self, seconds: float, *, also_known: bool = True) -> None:
        self._forget_deadline()
        self._deadline = self.loop.call_later(seconds, self._end, also_known)

    def _end(self, also_known: bool) -> None:  # noqa: FBT001 - a callback
        self._deadline = None
        if also_known or not self.is_known:
            self.transport.abort()

    def _forget_deadline(self) -> None:
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
        most = most_connections()
        http: Any = partial(_Answering, Streams(most))
        if strangers:
            http = partial(_Guarded, Connections(most), Streams(most))
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                # It would take a method for an app of an older interface.
                interface="asgi3",
                http=http,
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
