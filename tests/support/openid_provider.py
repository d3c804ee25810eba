"""A small OpenID provider over loopback HTTP, which can also lie, fail and fall silent."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from html import escape
from queue import Queue
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from joserfc.jws import JWSRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from goclaw_py.web.server import HttpServer
from goclaw_py.web.tcp import listen_tcp

CLIENT_ID, CLIENT_SECRET = "goclaw-dashboard", "s3cret-of-the-client"

Key = RSAKey | ECKey | OctKey
Claims = dict[str, Any]


def new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


KEY, OTHER_KEY = new_key("first"), new_key("second")


@dataclass
class Granted:
    """What a code stands for."""

    query: dict[str, str]
    is_used: bool = False


@dataclass
class Provider:
    """Signs in whoever asks for it. Tests change its answers."""

    issuer: str = ""
    claims: Claims = field(default_factory=lambda: {"preferred_username": "ann", "groups": ["ops"]})
    """Of the ID token, besides the standard ones; None removes one."""
    userinfo: Claims = field(default_factory=dict)
    description: Claims = field(default_factory=dict)
    """Replaces entries; None removes one."""
    keys: list[RSAKey] = field(default_factory=lambda: [KEY])
    signs: Callable[[Claims], str] | None = None
    """Makes the ID token; None: as it should be."""
    says: dict[str, Callable[[], Response]] = field(default_factory=dict)
    """Answers in the place of those of a path."""
    asked: Counter[str] = field(default_factory=Counter)
    granted: dict[str, Granted] = field(default_factory=dict)
    form: dict[str, str] = field(default_factory=dict)
    """The last request for a token."""

    def token(self, claims: Claims, key: Key | None = None, **header: Any) -> str:
        used = key or self.keys[0]
        asked: Claims = {"alg": "RS256", "kid": used.kid} | header
        head = {name: value for name, value in asked.items() if value is not None}
        registry = JWSRegistry(algorithms=[str(head["alg"])], strict_check_header=False)
        return jwt.encode(head, claims, used, registry=registry)

    async def _described(self, _request: Request) -> Response:
        found: Claims = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/logout",
        } | self.description
        return JSONResponse({name: one for name, one in found.items() if one is not None})

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        if "signed" not in query:
            # The page where a person enters a password.
            form = f"{request.url}&signed=1"
            page = (
                f'<html lang="en"><title>Acme</title><a href="{escape(form)}">I am Ann</a></html>'
            )
            return HTMLResponse(page, headers={"x-form": form})
        code = secrets.token_urlsafe(16)
        self.granted[code] = Granted(query)
        answer = urlencode({"code": code, "state": query["state"], "iss": self.issuer})
        return RedirectResponse(f"{query['redirect_uri']}?{answer}", status_code=302)

    async def _token(self, request: Request) -> Response:
        raw = (await request.body()).decode()
        self.form = form = {name: one[0] for name, one in parse_qs(raw).items()}
        granted = self.granted.get(form.get("code", ""))
        verifier = form.get("code_verifier", "").encode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=")
        is_right = (
            granted is not None
            and not granted.is_used
            and granted.query["code_challenge"] == challenge.decode()
            and granted.query["redirect_uri"] == form.get("redirect_uri")
            and self._is_client(request)
        )
        if granted is None or not is_right:
            return JSONResponse({"error": "invalid_grant"}, 400)
        granted.is_used = True
        now = int(time.time())
        claims: Claims = {
            "iss": self.issuer,
            "sub": "4711",
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": granted.query["nonce"],
        } | self.claims
        claims = {name: one for name, one in claims.items() if one is not None}
        return JSONResponse(
            {
                "access_token": "of-the-person",
                "token_type": "Bearer",
                "expires_in": 300,
                "id_token": self.token(claims) if self.signs is None else self.signs(claims),
            }
        )

    def _is_client(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").partition(" ")[2]
        return base64.b64decode(given).decode() == f"{CLIENT_ID}:{CLIENT_SECRET}"

    async def _jwks(self, _request: Request) -> Response:
        return JSONResponse({"keys": [key.as_dict(private=False) for key in self.keys]})

    async def _userinfo(self, request: Request) -> Response:
        assert request.headers["authorization"] == "Bearer of-the-person"
        return JSONResponse({"sub": "4711"} | self.userinfo)

    def app(self) -> Starlette:
        pages = {
            "/.well-known/openid-configuration": self._described,
            "/authorize": self._authorize,
            "/token": self._token,
            "/jwks": self._jwks,
            "/userinfo": self._userinfo,
        }

        def route(path: str) -> Route:
            async def answer(request: Request) -> Response:
                self.asked[path] += 1
                if path in self.says:
                    return self.says[path]()
                return await pages[path](request)

            return Route(path, answer, methods=["GET", "POST"])

        return Starlette(routes=[route(path) for path in pages])


@asynccontextmanager
async def openid_provider() -> AsyncIterator[Provider]:
    """A running provider. Its name is another one than that of gateways: cookies are separate."""
    provider = Provider()
    with closing(listen_tcp("127.0.0.1", 0)) as listener:
        provider.issuer = f"http://localhost:{listener.getsockname()[1]}"
        server = HttpServer(provider.app(), listener)
        task = asyncio.create_task(server.run())
        try:
            yield provider
        finally:
            server.stop()
            await task


@contextmanager
def openid_provider_in_thread() -> Iterator[Provider]:
    """A running provider for tests without an event loop."""
    made, stop = Queue[tuple[Provider, asyncio.AbstractEventLoop]](), asyncio.Event()

    async def serve() -> None:
        async with openid_provider() as provider:
            made.put((provider, asyncio.get_running_loop()))
            await stop.wait()

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    provider, loop = made.get(timeout=30)
    try:
        yield provider
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def html() -> Response:
    return Response("<html>Sign in to the hotel's network</html>", media_type="text/html")


def huge() -> Response:
    return Response(b'{"issuer": "' + b"x" * 50_000_000 + b'"}', media_type="application/json")


def endless() -> Response:
    async def chunks() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65_536
            await asyncio.sleep(0)

    return StreamingResponse(chunks(), media_type="application/json")


def packed() -> Response:
    body = gzip.compress(b'{"issuer": "' + b"x" * 50_000_000 + b'"}')
    head = {"content-encoding": "gzip"}
    return Response(body, media_type="application/json", headers=head)


def silent() -> Response:
    async def nothing() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    return StreamingResponse(nothing(), media_type="application/json")


def failing() -> Response:
    return JSONResponse({"error": "server_error"}, 500)


def elsewhere() -> Response:
    return RedirectResponse("http://localhost:1/", status_code=302)


def deep() -> Response:
    return Response(b"[" * 200_000, media_type="application/json")


def a_list() -> Response:
    return Response(json.dumps([1, 2]), media_type="application/json")


def nothing() -> Response:
    return Response(b"{}", media_type="application/json")


def query_of(address: str) -> dict[str, str]:
    return {name: one[0] for name, one in parse_qs(urlsplit(address).query).items()}
