"""The API, the dashboard and the pages of guests, created at the first request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from goclaw_py.core.concurrency import in_import_thread

if TYPE_CHECKING:
    from goclaw_py.web.guests.entrance import Guests


@dataclass(frozen=True, slots=True)
class WebApps:
    """The apps of a gateway; ``closing`` ends the event streams of API and dashboard."""

    api: ASGIApp
    closing: asyncio.Event
    site: ASGIApp | None = None
    guests: Guests | None = None


class AppsOnDemand:
    """Creates the apps when one of them gets the first request, in the import thread.

    The web framework, the routes and the templates take a third of a start and 25 MB, and many
    gateways never get a request. After an error the next request tries again.
    """

    def __init__(self, make: Callable[[], WebApps]) -> None:
        self._make = make
        self._apps: WebApps | None = None
        self._making: asyncio.Task[WebApps] | None = None
        self._closed = False

    async def api(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for the API."""
        apps = self._apps or await self._made()
        await apps.api(scope, receive, send)

    async def site(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for the dashboard."""
        apps = self._apps or await self._made()
        assert apps.site is not None
        await apps.site(scope, receive, send)

    async def guests(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of an invited person."""
        apps = self._apps or await self._made()
        assert apps.guests is not None
        await apps.guests(scope, receive, send)

    async def recheck_guests(self) -> None:
        """End the streams of guests whose sign-in has ended. Raises ``StoreUnavailable``."""
        if self._apps is not None and self._apps.guests is not None:
            await self._apps.guests.recheck()

    def close(self) -> None:
        """End all event streams, because a server stops."""
        self._closed = True
        if self._apps is not None:
            self._apps.closing.set()
            if self._apps.guests is not None:
                self._apps.guests.close()

    async def _made(self) -> WebApps:
        if self._making is None:
            self._making = asyncio.create_task(in_import_thread(self._make), name="web apps")
            self._making.add_done_callback(self._on_made)
        # One task for all requests: a client that disconnects must not cancel it for the others.
        return await asyncio.shield(self._making)

    def _on_made(self, making: asyncio.Task[WebApps]) -> None:
        self._making = None
        if making.cancelled() or making.exception() is not None:
            return
        self._apps = making.result()
        if self._closed:
            self.close()
