"""Who may ask the API over TCP: the right name, the same site, the token (SPEC OPS-2, SEC-1).

A page of another site can make a browser send requests here, with a name of its own that leads to
this machine (DNS rebinding) or without reading the answer (cross-site requests). So the name in
``Host`` must be one of ours, an ``Origin`` must be the same as it, and a request that changes
something has to show where it comes from, or the token.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from goclaw_py.web.api.wire import ApiError, dump
from goclaw_py.web.signin import cookie_of, is_signed_in

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""What needs no token: it tells nothing but that something answers, and whether it can work."""

SIGN_IN_PATH: Final = "/login"
"""Where a browser shows the token; who asks for a page without it is sent there."""

_OPEN_PLACES: Final = ("/static/",)
"""Where nothing but files of the release lies."""

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE: Final = frozenset({b"same-origin", b"none"})
"""What a browser says of its own accord: this site's page asks, or the person does."""
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)", re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class RequestRefusal:
    """Why a request is not served."""

    status: int
    text: str


class Guard:
    """Lets only those requests through to ``app`` that may be served.

    Args:
        address: Where the app listens, as a name or an address. Where that stands for all
            addresses of the machine, the app may be called by any address: another site can give
            this machine a name, but no address.
        hosts: Further names by which it may be called, without ports.
        token: What callers have to know, "" for nothing: then only this machine may reach it.
        now_s: Tells the Unix time in seconds, by which a browser's sign-in ends.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        address: str,
        hosts: Iterable[str] = (),
        token: str = "",
        now_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._app = app
        self._names = {_plain(name) for name in (*_LOCAL, *hosts)}
        self._by_any_address = _is_any(address)
        if not self._by_any_address:
            self._names.add(_plain(address))
        self._token = token.encode()
        self._now_s = now_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There are no web sockets here, so nobody has thought about who may open one.
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self.refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        if refusal.status == 401 and _wants_page(scope):
            # What was typed into a form is lost, but the way to its page is not.
            here = _place(scope) if scope["method"] == "GET" else _referrer(scope)
            target = f"{SIGN_IN_PATH}?{urlencode({'next': here})}"
            await RedirectResponse(target, status_code=303)(scope, receive, send)
            return
        headers = {"connection": "close"}
        if refusal.status == 401:
            headers["www-authenticate"] = 'Bearer realm="goclaw"'
        body = dump(ApiError, ApiError(refusal.text))
        response = Response(body, refusal.status, headers, media_type="application/json")
        await response(scope, receive, send)

    def refusal(self, scope: Scope) -> RequestRefusal | None:
        """Why this request is not served; None if it is."""
        host = _only(scope, b"host")
        authority = None if host is None else _authority(host)
        if authority is None:
            return RequestRefusal(
                400, "a request needs one Host header with a name and maybe a port"
            )
        if not self._is_ours(authority[0]):
            return RequestRefusal(
                421,
                f"{authority[0]} is not a name of this gateway; use localhost or its address, "
                "or add the name to web.hosts",
            )
        origins = _all(scope, b"origin")
        if origins and not (len(origins) == 1 and _is_same(origins[0], authority)):
            return RequestRefusal(403, "requests from pages of other sites are refused")
        if self._token:
            if self._has_token(scope):
                # No other site can make a browser send this header.
                return None
            if not (_is_open(scope) or self._is_signed_in(scope)):
                return RequestRefusal(
                    401, "a token is required: send the header Authorization: Bearer <token>"
                )
        if scope["method"] in _READING or origins or _only(scope, b"sec-fetch-site") in _OWN_SITE:
            return None
        return RequestRefusal(
            403,
            "a request that changes something needs a token (set web.token_file) "
            "or an Origin header with the address of this site",
        )

    def _is_ours(self, name: str) -> bool:
        if name in self._names:
            return True
        return self._by_any_address and _is_address(name) and not _is_any(name)

    def _has_token(self, scope: Scope) -> bool:
        scheme, _, given = (_only(scope, b"authorization") or b"").partition(b" ")
        # Compared whatever the scheme, so that the time tells nothing.
        is_right = hmac.compare_digest(given.strip(b" "), self._token)
        return is_right and scheme.lower() == b"bearer"

    def _is_signed_in(self, scope: Scope) -> bool:
        return is_signed_in(cookie_of(scope["headers"]), self._token, self._now_s())


def _is_open(scope: Scope) -> bool:
    path: str = scope["path"]
    if path == SIGN_IN_PATH:
        return True
    is_open = path in OPEN_PATHS or path.startswith(_OPEN_PLACES)
    return is_open and scope["method"] in _READING


def _wants_page(scope: Scope) -> bool:
    """Whether a browser asks, on behalf of a person, for a page."""
    return scope["method"] in ("GET", "POST") and b"text/html" in b",".join(_all(scope, b"accept"))


def _place(scope: Scope) -> str:
    """What is asked for; the page with the question checks where it leads."""
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


def _referrer(scope: Scope) -> str:
    """Where the page is that has sent the browser here."""
    try:
        parts = urlsplit((_only(scope, b"referer") or b"").decode("latin-1"))
    except ValueError:
        return "/"
    return urlunsplit(("", "", parts.path or "/", parts.query, ""))


def _all(scope: Scope, name: bytes) -> list[bytes]:
    return [value.strip(b" \t") for key, value in scope["headers"] if key.lower() == name]


def _only(scope: Scope, name: bytes) -> bytes | None:
    """A header that stands there once; None if it is missing, or if there are several."""
    found = _all(scope, name)
    return found[0] if len(found) == 1 else None


def _authority(raw: bytes) -> tuple[str, int | None] | None:
    """Name and port of ``name[:port]``; None for anything else, such as ``user@name``."""
    found = _AUTHORITY.fullmatch(raw.decode("latin-1"))
    if found is None:
        return None
    name, port = _plain(found[1]), found[2]
    if not name or (port is not None and not 0 < int(port) <= 65_535):
        return None
    return name, None if port is None else int(port)


def _is_same(origin: bytes, host: tuple[str, int | None]) -> bool:
    """Whether an ``Origin`` is that of the site that ``Host`` names.

    The scheme is not compared: behind a proxy the browser speaks TLS and we do not.
    """
    found = _ORIGIN.fullmatch(origin.decode("latin-1"))
    authority = None if found is None else _authority(found[2].encode("latin-1"))
    if found is None or authority is None:
        return False
    default = _DEFAULT_PORTS[found[1].lower()]
    (name, port), (host_name, host_port) = authority, host
    return (name, port or default) == (host_name, host_port or default)


def _plain(name: str) -> str:
    """A name in one form: small letters, no final dot; addresses as Python writes them."""
    name = name.lower().removesuffix(".")
    try:
        return str(ipaddress.ip_address(name.removeprefix("[").removesuffix("]")))
    except ValueError:
        return name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_any(address: str) -> bool:
    """Whether it stands for every address of the machine: no name by which to call it."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_unspecified
    except ValueError:
        return False
