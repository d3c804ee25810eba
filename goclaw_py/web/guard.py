"""Access checks of the API over TCP: host name, same site, token (SPEC OPS-2, SEC-1).

A page of another site can make a browser send requests here, through a name of its own for this
machine (DNS rebinding) or without reading the response (cross-site requests). So ``Host`` must be
one of our names, ``Origin`` must be equal to it, and a request that changes something must show its
origin or the token.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goclaw_py.core.actors import AccessRole, Actor, ActorKind, acts
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.web import roles
from goclaw_py.web.api.wire import ApiError, dump
from goclaw_py.web.attempts import OF_ADDRESS_EVERY_S, Attempts
from goclaw_py.web.checked import CHECK_S
from goclaw_py.web.connections import address_of, header_values, note_known, peer_of
from goclaw_py.web.openid.client import CALLBACK_PATH, START_PATH
from goclaw_py.web.proxies import ProxyRefusal, TrustedProxy
from goclaw_py.web.sealing import sealed
from goclaw_py.web.sign_ins import AcceptedToken, SignIns, actor_of
from goclaw_py.web.signin import cookie_of, is_for_guests

log = logging.getLogger(__name__)

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Paths without token: they only tell that the gateway responds, and whether it is ready."""

SIGN_IN_PATH: Final = "/login"
"""The page where a browser gives the token; pages without it redirect there."""

_OPENID_PATHS: Final = frozenset({START_PATH, CALLBACK_PATH})
"""Lead to an OpenID provider and back."""

_OPEN_PLACES: Final = ("/static/",)
"""Paths with only files of the release."""

LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")
"""The names and addresses of this machine."""
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE: Final = frozenset({b"same-origin", b"none"})
"""Values of the browser itself: the request comes from this site's page, or from the person."""
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)", re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class RequestRefusal:
    """The reason why a request is refused."""

    status: int
    text: str


_NO_TOKEN: Final = RequestRefusal(
    401, "a token is required: send the header Authorization: Bearer <token>"
)
FORBIDDEN_PATH: Final = "/forbidden"
"""The page for people whose role does not suffice."""

FORBIDDEN: Final = "goclaw.forbidden"
"""The key of its sentence in the state of the request."""

_SIGNED_IN: Final = "goclaw.sign_in"
_TOKEN: Final = "goclaw.token"  # noqa: S105
_ACTOR: Final = "goclaw.actor"
_BY_PROXY: Final = "goclaw.by_proxy"

PROXY_STREAM_S: Final = 300.0
"""Seconds after which an event stream has to be opened again, through the sign-in of the proxy."""

NOBODY: Final = ""
"""The name of an actor that has shown nothing: the request is for an open path, or of a guest."""


def sign_in_of(scope: Scope) -> str:
    """Return the id of the sign-in by which a request was let in; "" if it was not one."""
    found: str = scope.get("state", {}).get(_SIGNED_IN, "")
    return found


def is_by_proxy(scope: Scope) -> bool:
    """Return whether a trusted proxy has signed in whoever sends a request."""
    return _BY_PROXY in scope.get("state", ())


class Guard:
    """Passes only allowed requests on to ``app``.

    Args:
        address: The address at which the app listens. If it stands for all addresses, the app may
            be called by any address: another site can give this machine a name, but not an address.
        hosts: Other allowed names, without ports.
        sign_ins: The token, and the browsers that are signed in with it; None: there is no token,
            and only this machine may connect.
        guests: Serves personal links and the browsers of invited people, which need no token
            and never reach ``app``; None: there are none.
        proxy: Says whom a trusted reverse proxy has signed in; None: there is none.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        address: str,
        hosts: Iterable[str] = (),
        sign_ins: SignIns | None = None,
        guests: ASGIApp | None = None,
        proxy: TrustedProxy | None = None,
    ) -> None:
        self._app = app
        self._names = {_plain(name) for name in (*LOCAL_NAMES, *hosts)}
        self._by_any_address = _is_any(address)
        if not self._by_any_address:
            self._names.add(_plain(address))
        self._sign_ins = sign_ins
        self._guests = guests
        self._proxy = proxy
        self._logged = Attempts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There are no web sockets here, and no rules for them.
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = await self.refusal(scope)
        if refusal is None:
            actor = self._actor(scope)
            app = self._app
            if self._guests and self._is_guest(scope):
                app = self._guests
            elif not (_is_open(scope) or roles.may(actor, scope["method"], scope["path"])):
                refusal = RequestRefusal(
                    403, roles.refusal_of(actor, scope["method"], scope["path"])
                )
            elif self._sign_ins is None or not _is_open(scope):
                note_known(scope)
            with ExitStack() as exits:
                if self._sign_ins is not None and _is_let_in(scope):
                    response = _SignedInResponse(self._sign_ins, scope, send)
                    exits.callback(response.close)
                    send = response.send
                exits.enter_context(acts(actor))
                if refusal is None:
                    await app(scope, receive, send)
                elif _wants_page(scope):
                    self._log(scope, refusal)
                    await app(_forbidden(scope, refusal), receive, send)
                else:
                    await self._refuse(refusal, scope, receive, send)
            return
        await self._refuse(refusal, scope, receive, send)

    def _actor(self, scope: Scope) -> Actor:
        """Return who sends a request that is not refused."""
        found = scope["state"].get(_ACTOR)
        if isinstance(found, Actor):
            return found
        address = address_of(scope)
        if self._sign_ins is None and not self._is_guest(scope):
            # Only this machine may connect then, and everybody on it decides everything.
            return Actor(ActorKind.PERSON, "this machine", AccessRole.ADMIN, via=address)
        return Actor(ActorKind.PERSON, NOBODY, via=address)

    async def _refuse(
        self, refusal: RequestRefusal, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if refusal.status == 401 and _wants_page(scope):
            # A form cannot be sent again after the sign-in, but its page can be opened again.
            is_form = scope["method"] == "POST"
            asked = {"next": _referrer(scope) if is_form else _place(scope)}
            target = f"{SIGN_IN_PATH}?{urlencode(asked | ({'form': 'yes'} if is_form else {}))}"
            await RedirectResponse(target, status_code=303)(scope, receive, send)
            return
        if refusal.status not in (401, 429) or _only(scope, b"authorization") is None:
            # Wrong tokens are logged where they are counted.
            self._log(scope, refusal)
        headers = {"connection": "close"}
        if refusal.status == 401:
            headers["www-authenticate"] = 'Bearer realm="goclaw"'
        elif refusal.status == 429:
            headers["retry-after"] = f"{OF_ADDRESS_EVERY_S:.0f}"
        body = dump(ApiError, ApiError(refusal.text))
        response = Response(body, refusal.status, headers, media_type="application/json")
        await response(scope, receive, sealed(send))

    async def refusal(self, scope: Scope) -> RequestRefusal | None:
        """Return why a request is refused; None if it is not."""
        scope.setdefault("state", {})
        if self._proxy is not None:
            self._proxy.note_client(scope)
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
        origins = header_values(scope, b"origin")
        if origins and not (len(origins) == 1 and _is_same(origins[0], authority)):
            return RequestRefusal(403, "requests from pages of other sites are refused")
        if self._sign_ins is not None:
            try:
                unknown = await self._unknown(self._sign_ins, scope)
            except StoreUnavailable as error:
                return RequestRefusal(503, str(error))
            # No other site can make a browser send a token in a header.
            if unknown is not None or _TOKEN in scope["state"]:
                return unknown
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

    async def _unknown(self, sign_ins: SignIns, scope: Scope) -> RequestRefusal | None:
        """Return how a request is refused that is of nobody who may come in; None if it may.

        Raises ``StoreUnavailable``.
        """
        if self._proxy is not None and not self._is_guest(scope):
            try:
                person = self._proxy.person(scope)
            except ProxyRefusal as error:
                return RequestRefusal(error.status, str(error))
            if person is not None:
                # A proxy may pass on an authorization that was for itself.
                scope["state"] |= {_ACTOR: person, _BY_PROXY: True}
                return None
        wrong = await self._wrong_token(sign_ins, scope)
        if wrong is None or _is_open(scope) or self._is_guest(scope):
            return None
        found = await sign_ins.find(cookie_of(scope["headers"]))
        if found is None:
            return wrong
        scope["state"][_SIGNED_IN] = found.id
        scope["state"][_ACTOR] = actor_of(found, address_of(scope))
        return None

    async def _wrong_token(self, sign_ins: SignIns, scope: Scope) -> RequestRefusal | None:
        """Return how a request without the token is refused; None if it has the token."""
        given = _only(scope, b"authorization")
        if given is None:
            return _NO_TOKEN
        scheme, _, token = given.partition(b" ")
        token = token.strip(b" ") if scheme.lower() == b"bearer" else b""
        found = await sign_ins.admit(token, scope)
        if isinstance(found, AcceptedToken):
            scope["state"] |= {_TOKEN: token, _ACTOR: found.actor}
            return None
        if found.is_blocked:
            return RequestRefusal(429, f"{found.reason}; try again later")
        return _NO_TOKEN

    def _is_guest(self, scope: Scope) -> bool:
        has_token = _TOKEN in scope["state"]
        return self._guests is not None and not has_token and is_for_guests(scope)

    def _log(self, scope: Scope, refusal: RequestRefusal) -> None:
        """Log a refusal; of many from one address or at once only some."""
        peer, now = peer_of(scope.get("client")), time.monotonic()
        if not self._logged.blocked(peer, now):
            self._logged.note_wrong(peer, now)
            facts = {"address": address_of(scope), "path": scope["path"][:200]}
            facts |= {"status": refusal.status, "reason": refusal.text}
            log.info("web_request_refused", extra=facts)


def _is_let_in(scope: Scope) -> bool:
    """Return whether a request is of somebody who was let in."""
    return _ACTOR in scope["state"]


class _SignedInResponse:
    """Ends an event stream when its browser is signed out, or its token ends: it may last long.

    At once if that happens in this process, else when something is sent. ``close`` it.
    """

    def __init__(self, sign_ins: SignIns, scope: Scope, send: Send) -> None:
        self._sign_ins = sign_ins
        self._scope = scope
        self._send = send
        self._began_s = self._checked_s = sign_ins.now_s()
        self._has_length = self._is_over = False
        self._watching: asyncio.Task[None] | None = None

    async def send(self, message: Message) -> None:
        """Send a message of the response, unless the sign-in has ended."""
        if message["type"] == "http.response.start":
            self._has_length = any(name == b"content-length" for name, _ in message["headers"])
        elif not (self._has_length or 0 <= self._sign_ins.now_s() - self._checked_s < CHECK_S):
            await self._check()
        if not self._is_over:
            await self._send(message)
        if not self._has_length and self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="sign-in of a stream")

    def close(self) -> None:
        """Watch the sign-in no more."""
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        while not self._is_over:
            await self._sign_ins.until_changed()
            await self._check()

    async def _check(self) -> None:
        self._checked_s = self._sign_ins.now_s()
        try:
            is_ended = not await self._is_valid()
        except StoreUnavailable:
            is_ended = True
        if is_ended and not self._is_over:
            self._is_over = True
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _is_valid(self) -> bool:
        if is_by_proxy(self._scope):
            return 0 <= self._sign_ins.now_s() - self._began_s < PROXY_STREAM_S
        token: bytes | None = self._scope["state"].get(_TOKEN)
        if token is not None:
            return await self._sign_ins.is_admitted(token)
        return await self._sign_ins.find(cookie_of(self._scope["headers"])) is not None


def _is_open(scope: Scope) -> bool:
    path: str = scope["path"]
    if path == SIGN_IN_PATH:
        return True
    is_open = path in OPEN_PATHS | _OPENID_PATHS or path.startswith(_OPEN_PLACES)
    return is_open and scope["method"] in _READING


def _wants_page(scope: Scope) -> bool:
    """Return whether a browser requests a page for a person."""
    return scope["method"] in ("GET", "POST") and b"text/html" in b",".join(
        header_values(scope, b"accept")
    )


def _forbidden(scope: Scope, refusal: RequestRefusal) -> Scope:
    """Return a request for the page that says why another request is refused."""
    state = {**scope["state"], FORBIDDEN: refusal.text}
    place = {"path": FORBIDDEN_PATH, "raw_path": FORBIDDEN_PATH.encode(), "query_string": b""}
    return {**scope, "method": "GET", "state": state, **place}


def _place(scope: Scope) -> str:
    """Return the requested path; the sign-in page validates it."""
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


def _referrer(scope: Scope) -> str:
    """Return the page that has sent the browser here."""
    try:
        parts = urlsplit((_only(scope, b"referer") or b"").decode("latin-1"))
    except ValueError:
        return "/"
    return urlunsplit(("", "", parts.path or "/", parts.query, ""))


def _only(scope: Scope, name: bytes) -> bytes | None:
    """Return a header that occurs once; None if it is missing or repeated."""
    found = header_values(scope, name)
    return found[0] if len(found) == 1 else None


def _authority(raw: bytes) -> tuple[str, int | None] | None:
    """Parse ``name[:port]``; None for anything else, such as ``user@name``."""
    found = _AUTHORITY.fullmatch(raw.decode("latin-1"))
    if found is None:
        return None
    name, port = _plain(found[1]), found[2]
    if not name or (port is not None and not 0 < int(port) <= 65_535):
        return None
    return name, None if port is None else int(port)


def _is_same(origin: bytes, host: tuple[str, int | None]) -> bool:
    """Return whether an ``Origin`` is the site in ``Host``.

    The scheme is not compared: behind a proxy the browser uses TLS and we do not.
    """
    found = _ORIGIN.fullmatch(origin.decode("latin-1"))
    authority = None if found is None else _authority(found[2].encode("latin-1"))
    if found is None or authority is None:
        return False
    default = _DEFAULT_PORTS[found[1].lower()]
    (name, port), (host_name, host_port) = authority, host
    return (name, port or default) == (host_name, host_port or default)


def _plain(name: str) -> str:
    """Return the normal form of a name: lower case, no final dot; addresses as in Python."""
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
    """Return whether an address stands for all addresses of the machine."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_unspecified
    except ValueError:
        return False
