"""The TCP server: the hooks of channels, and the guarded API and dashboard."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from goclaw_py.ports.channel import Hook
from goclaw_py.web.api.routes import closing_of
from goclaw_py.web.guard import Guard
from goclaw_py.web.hooks import HookApp
from goclaw_py.web.server import HttpServer

if TYPE_CHECKING:
    from goclaw_py.web.guests.entrance import Guests

_OF_THE_API: Final = ("/api/", "/healthz", "/readyz", "/metrics", "/openapi.json")


@dataclass(frozen=True, slots=True)
class WebAccess:
    """Access to API and dashboard over TCP; see ``Guard``."""

    address: str
    hosts: tuple[str, ...] = ()
    token: str = field(default="", repr=False)
    now_s: Callable[[], float] = time.time
    public_url: str = ""
    """The address for people elsewhere, without a slash at its end."""


class ApiOrDashboard:
    """Dispatches to the API for programs, or to the dashboard for everything else."""

    def __init__(self, api: ASGIApp, site: ASGIApp) -> None:
        self._api = api
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_api = scope["type"] != "http" or scope["path"].startswith(_OF_THE_API)
        await (self._api if is_api else self._site)(scope, receive, send)


def tcp_server(
    listener: socket.socket,
    hooks: Iterable[Hook],
    app: FastAPI,
    access: WebAccess | None,
    site: ASGIApp | None = None,
    guests: Guests | None = None,
) -> HttpServer:
    """Create the server for a TCP socket; without ``access`` it serves only hooks.

    ``site`` serves everything outside of the API, ``guests`` the browsers of invited people.
    """
    hook_app = HookApp(hooks)
    if access is None:
        return HttpServer(hook_app, listener, strangers=True)
    guard = Guard(
        app if site is None else ApiOrDashboard(app, site),
        address=access.address,
        hosts=access.hosts,
        token=access.token,
        guests=guests,
        now_s=access.now_s,
    )
    # Its event streams end with the server, as those on the unix socket do.
    closing: asyncio.Event = closing_of(app)

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        # Hooks authenticate their callers themselves.
        is_hook = scope["type"] == "http" and hook_app.serves(scope["path"])
        await (hook_app if is_hook else guard)(scope, receive, send)

    def stop() -> None:
        closing.set()
        if guests is not None:
            guests.close()

    return HttpServer(front, listener, on_stop=stop, strangers=True)
