"""The TCP server: the hooks of channels, and the guarded API and dashboard."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from goclaw_py.chat.channel import Hook
from goclaw_py.core.actors import acting, acts
from goclaw_py.records import Store
from goclaw_py.web.guard import Guard
from goclaw_py.web.hooks import HookApp
from goclaw_py.web.openid.client import OpenIdClient
from goclaw_py.web.proxies import TrustedProxy
from goclaw_py.web.server import HttpServer
from goclaw_py.web.sign_ins import SignIns

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
    proxy: TrustedProxy | None = None
    """Reverse proxies that sign people in; only with a token."""
    openid: OpenIdClient | None = None
    """How an OpenID provider knows us; only with a token."""
    sign_ins: SignIns | None = field(default=None, compare=False)
    """None without a token. Without a store, only programs are let in; see ``with_store``."""

    def __post_init__(self) -> None:
        if self.token and self.sign_ins is None:
            made = SignIns(None, self.token, self.now_s)
            object.__setattr__(self, "sign_ins", made)

    def with_store(self, store: Store) -> WebAccess:
        """Return the same access, with browsers that can sign in."""
        made = SignIns(store, self.token, self.now_s) if self.token else None
        return replace(self, sign_ins=made)


class ApiOrDashboard:
    """Dispatches to the API for programs, or to the dashboard for everything else."""

    def __init__(self, api: ASGIApp, site: ASGIApp) -> None:
        self._api = api
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_api = scope["type"] != "http" or scope["path"].startswith(_OF_THE_API)
        if is_api:
            await self._api(scope, receive, send)
            return
        actor = acting()
        with acts(None if actor is None else replace(actor, via=f"dashboard ({actor.via})")):
            await self._site(scope, receive, send)


def tcp_server(
    listener: socket.socket,
    hooks: Iterable[Hook],
    app: ASGIApp,
    access: WebAccess | None,
    guests: ASGIApp | None = None,
    *,
    on_stop: Callable[[], None] = lambda: None,
) -> HttpServer:
    """Create the server for a TCP socket; without ``access`` it serves only hooks.

    ``guests`` serves the browsers of invited people. ``on_stop`` ends event streams.
    """
    hook_app = HookApp(hooks)
    if access is None:
        return HttpServer(hook_app, listener, strangers=True)
    guard = Guard(
        app,
        address=access.address,
        hosts=access.hosts,
        sign_ins=access.sign_ins,
        guests=guests,
        proxy=access.proxy,
    )

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        # Hooks authenticate their callers themselves.
        is_hook = scope["type"] == "http" and hook_app.serves(scope["path"])
        await (hook_app if is_hook else guard)(scope, receive, send)

    return HttpServer(front, listener, on_stop=on_stop, strangers=True)
