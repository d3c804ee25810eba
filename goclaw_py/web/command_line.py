"""Requests over the local socket come from commands, which say who they are (SPEC SEC-9)."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from goclaw_py.core.actors import AccessRole, Actor, ActorKind, acting, acts

_USER: Final = "x-goclaw-user"
_COMMAND: Final = "x-goclaw-command"
_MOST_CHARS: Final = 1_000


def command_headers() -> dict[str, str]:
    """Return the headers by which a command says who runs it; none if nobody does."""
    actor = acting()
    if actor is None or actor.kind is not ActorKind.COMMAND_LINE:
        return {}
    # Cut before it is quoted, so that no character is cut through.
    texts = {_USER: actor.name, _COMMAND: actor.via}
    return {
        name: quote(text[:_MOST_CHARS].encode(errors="replace")) for name, text in texts.items()
    }


def from_commands(app: ASGIApp) -> ASGIApp:
    """Let commands be the actors of requests.

    Only for the local socket: nobody but the user of the gateway can open it. Over TCP anybody
    could send these headers, so there they mean nothing.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        user, command = (_header(scope, name.encode()) for name in (_USER, _COMMAND))
        with acts(Actor(ActorKind.COMMAND_LINE, user, AccessRole.ADMIN, via=command)):
            await app(scope, receive, send)

    return serve


def _header(scope: Scope, name: bytes) -> str:
    found = [value for key, value in scope.get("headers", ()) if key == name]
    return unquote(found[0].decode("latin-1")[: 12 * _MOST_CHARS]) if found else ""
