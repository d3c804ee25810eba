"""The HTTP server, as one task of the gateway (recipe: uvicorn without its signal handling)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Final

import uvicorn
from fastapi import FastAPI

from goclaw_py.web.api import closing_of

GRACE_S: Final = 2
"""How long requests may go on after ``stop``, in seconds."""


class _Uvicorn(uvicorn.Server):
    """Signals belong to the gateway; uvicorn would take them and raise them again at its end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ApiServer:
    """Serves an app of ``make_api`` on sockets that listen already."""

    def __init__(self, app: FastAPI, *sockets: socket.socket) -> None:
        self._sockets = list(sockets)
        self._closing = closing_of(app)
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    async def run(self) -> None:
        """Serve until ``stop`` was called, or cancelled. Closes the sockets."""
        serving = asyncio.create_task(self._server.serve(self._sockets), name="http")
        try:
            # Cancelling uvicorn itself leaves its connections open.
            await asyncio.shield(serving)
        finally:
            self.stop()
            await serving

    def stop(self) -> None:
        """End event streams at once and take no new requests."""
        self._closing.set()
        self._server.should_exit = True
