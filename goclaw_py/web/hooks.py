"""The hooks of all channels as one web app (SPEC CHAN-2).

A plain ASGI app: every message of a channel passes here, and a framework would cost more than all
that this does.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from goclaw_py.chat.channel import Channel, Hook, WebAnswer, WebRequest
from goclaw_py.core.errors import GoclawError
from goclaw_py.web.connections import note_known

log = logging.getLogger(__name__)

BODY_S: Final = 10.0
"""The time limit for a body, in seconds."""

_PATH = re.compile(r"/[A-Za-z0-9_./-]*")

_NOT_FOUND = WebAnswer(404)
_TOO_SLOW = WebAnswer(408, "the request body did not arrive in time")
_BROKEN = WebAnswer(500, "internal error; the log of the gateway has the details")
_ENDING = WebAnswer(503, "the gateway is shutting down; try again")


class HookConflict(GoclawError):
    """The hooks of the channels conflict."""


def collect_hooks(channels: Iterable[Channel]) -> list[Hook]:
    """Return the hooks of the channels.

    Raises ``HookConflict`` for a path of two channels, and for an invalid path.
    """
    owners: dict[str, str] = {}
    hooks = []
    for channel in channels:
        hook = channel.hook
        if hook is None:
            continue
        name = f"{channel.name}/{channel.account}"
        if not _PATH.fullmatch(hook.path):
            raise HookConflict(
                f"{name} wants to be called at {hook.path!r}: a path begins with / and has only "
                "letters, digits and - _ . /; set another path for it"
            )
        if other := owners.get(hook.path):
            raise HookConflict(
                f"{other} and {name} both want to be called at {hook.path}; "
                "set another path for one of them"
            )
        owners[hook.path] = name
        hooks.append(hook)
    return hooks


class HookApp:
    """Passes requests to the hook with their path; others get a 404 without text.

    The path is compared as in ASGI: without the query, decoded once. After an error the connection
    is closed, so that strangers hold none, and an unwanted body is not read.
    """

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self._hooks: Mapping[str, Hook] = {hook.path: hook for hook in hooks}

    def serves(self, path: str) -> bool:
        """Return whether there is a hook with this path."""
        return path in self._hooks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. If cancelled, respond with an error, so that it is repeated."""
        hook = self._hooks.get(scope["path"])
        try:
            answer = _NOT_FOUND if hook is None else await _serve(hook, scope, receive)
        except asyncio.CancelledError:
            # Only the end of the server cancels, and this is all that the task was made for.
            answer = _ENDING
        if answer is not None:
            if answer.status < 400:
                note_known(scope)
            await _response(answer)(scope, receive, send)


async def _serve(hook: Hook, scope: Scope, receive: Receive) -> WebAnswer | None:
    """Call the hook, if it accepts the request; None if the client disconnected meanwhile."""
    headers = _headers(scope)
    try:
        body = await _body(receive, headers, hook.most_bytes)
    except _TooLong:
        return WebAnswer(413, f"the body is longer than {hook.most_bytes} bytes")
    except TimeoutError:
        return _TOO_SLOW
    except ClientDisconnect:
        return None
    try:
        return await hook.handle(WebRequest(scope["method"], headers, body))
    except Exception:
        # A hook promises to raise nothing. If it does, its channel's sender tries again later.
        log.exception("hook_crashed", extra={"path": hook.path})
        return _BROKEN


class _TooLong(Exception):
    """The body is longer than the hook accepts."""


def _headers(scope: Scope) -> dict[str, str]:
    """Return headers by name in lower case; repeated ones are joined as in RFC 9110."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1").strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def _body(receive: Receive, headers: Mapping[str, str], most: int) -> bytes:
    """Read a whole body. Raises ``_TooLong``, ``TimeoutError``, ``ClientDisconnect``."""
    # The server has checked that this is a number; a wrong one ends as a body cut short.
    if int(headers.get("content-length", "0")) > most:
        raise _TooLong
    body = bytearray()
    async with asyncio.timeout(BODY_S):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            if len(body) > most:
                raise _TooLong
            if not message.get("more_body"):
                break
    return bytes(body)


def _response(answer: WebAnswer) -> Response:
    headers = {"connection": "close"} if answer.status >= 400 else {}
    kind = "text/plain" if answer.text else None
    return Response(answer.text.encode("utf-8", "replace"), answer.status, headers, kind)
