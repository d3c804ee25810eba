"""The least role of every route over TCP (SPEC SEC-8).

``Guard`` asks it before an app sees the request. A request may match several paths, such as
``/api/jobs/{job}`` and ``/api/jobs/{job}/log``; the strictest of them counts, so that it does not
matter which of them a router takes first. What is not in the table is for admins.

The rules of SPEC SEC-8:

**Roles.** Whoever is let in over TCP has a role: a *viewer* reads, an *operator* acts as well, an
*admin* also decides about people, settings, tokens and nodes, and reads the audit log (SEC-9). The
token of the settings, and without one everybody on this machine, is an admin, as is the local
socket. Guests of the web chat (CHAN-13) have none and reach only their own pages.

- **Tokens** besides that of the settings have a name (1 to 64 printable characters, unique), a
  role, perhaps an end, and the time of the last use (at most one write a minute). Page Tokens,
  `/api/tokens`, `goclaw people web tokens`. A token is `goclaw_` and 256 random bits; it is
  shown once, and only its hash is stored, in no backup. Revoking deletes it. A revoked or expired
  one opens nothing: where it was revoked at once, on other nodes within 5 s, event streams and the
  browsers that it signed in included; a sign-in has its role and ends with it at the latest. A node
  looks one up once in 5 s at most; while the database is away, what was valid stays so. The token
  of the settings costs no statement. Wrong ones are limited as in SEC-6; beyond the limit only
  tokens that were valid lately are looked up, and only those of admins lift the limit for their
address. - **Routes.** One table has the least role of each route of the API and the dashboard; the
  strictest of all that match a request counts, and one that is not in it is for admins. A test
  compares it with the apps. Who may not gets 403 with the role that is needed, as JSON or as a
  page, and `web_request_refused` is logged. Admins cost no look at the table. Menu and forms show
  what the role may do. A job that runs a program needs an admin.
- **Text.** A viewer reads the text of messages only if the token says so (`reads_text`). Otherwise
  runs step by step, histories, logs, approvals, explanations, checklists and events are refused,
  and in all other records a string is replaced by `(hidden)`, except ids, states and the like:
  those whose type or a table says so; a test demands that each string of each record is declared.
  Titles, names of jobs and their slugs are text: sessions are called by their ids. Searches in
  texts and names are refused, jobs are found by their whole ids only, and errors quote nothing
  that is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from goclaw_py.core.actors import AccessRole, Actor, Least
from goclaw_py.core.errors import GoclawError
from goclaw_py.operations.nouns import NOUNS


class RoleTooLow(GoclawError):
    """Who acts may not do this; the message names the role that it needs."""


ROUTES: Final[Mapping[Least, str]] = {
    Least.VIEWER: """
        GET /healthz
        GET /readyz
        GET /metrics
        GET /openapi.json
        GET /api/channels
        GET /api/schedule
        GET /static/{name}
        GET /login
        POST /login
        GET /login/openid
        GET /login/openid/callback
        POST /logout
        POST /theme
        GET /forbidden
        GET /
        GET /live/now
        GET /health
        GET /live/health
    """,
    Least.TEXT: """
        GET /api/runs/events
        GET /api/why
        GET /api/schedule/{slug}
        GET /api/logs
        GET /api/logs/events
        GET /why
        GET /live/why
        GET /logs
        GET /live/logs
    """,
    Least.OPERATOR: """
        PUT /api/schedule/{slug}
        PATCH /api/schedule/{slug}
        DELETE /api/schedule/{slug}
        POST /api/schedule/{slug}/run
        GET /api/chat/{chat}/events
        POST /api/chat/{chat}/messages
        POST /api/chat/{chat}/press
        POST /api/chat/{chat}/confirm
        POST /stop
        GET /chat
        GET /live/chat
        GET /chat/talk
        GET /chat/new
        GET /chat/export
        POST /chat/markdown
        GET /chat/delete
        POST /chat/delete
        POST /chat/rename
        POST /chat/decide
        POST /chat/fork
        POST /chat/files
        GET /chat/file
    """,
}
"""The routes of the API and of the dashboard; those of guests are behind a door of their own.

Those of ``NOUNS`` are declared there.
"""

_PARAMETER: Final = re.compile(r"\{\w+(:path)?\}")


def routes() -> Iterator[tuple[str, str, Least]]:
    """Yield method, path and least role of every route."""
    for least, lines in ROUTES.items():
        for line in lines.split("\n"):
            if line.strip():
                method, path = line.split()
                yield method, path, least
    for noun in NOUNS:
        for route, least in noun.routes():
            method, path = route.split()
            yield method, path, least


@cache
def _patterns() -> dict[str, list[tuple[re.Pattern[str], Least]]]:
    found: dict[str, list[tuple[re.Pattern[str], Least]]] = {}
    for method, path, least in routes():
        found.setdefault(method, []).append((_pattern(path), least))
    return found


def _pattern(path: str) -> re.Pattern[str]:
    """Return a pattern that matches whatever a router takes for this path.

    That is also a path with the end of a line behind it, as ``$`` of their patterns does.
    """
    parts = _PARAMETER.split(path)
    fixed, kinds = parts[::2], [".*" if kind else "[^/]+" for kind in parts[1::2]]
    text = "".join(re.escape(part) + kind for part, kind in zip(fixed, [*kinds, ""], strict=True))
    return re.compile(text + r"\n?", re.DOTALL)


def least_of(method: str, path: str) -> Least:
    """Return the least that a request needs."""
    patterns = _patterns().get("GET" if method == "HEAD" else method, ())
    return max((least for one, least in patterns if one.fullmatch(path)), default=Least.ADMIN)


def level_of(actor: Actor) -> Least:
    """Return the most that an actor may; without a role no text either."""
    match actor.role:
        case AccessRole.ADMIN:
            return Least.ADMIN
        case AccessRole.OPERATOR:
            return Least.OPERATOR
        case AccessRole.VIEWER if actor.reads_text:
            return Least.TEXT
        case _:
            return Least.VIEWER


def may(actor: Actor, method: str, path: str) -> bool:
    """Return whether an actor may send a request. Admins cost no look at the table."""
    return actor.role is AccessRole.ADMIN or level_of(actor) >= least_of(method, path)


def refusal_of(actor: Actor, method: str, path: str) -> str:
    """Return the sentence for who may not."""
    has = "viewer without text" if level_of(actor) is Least.VIEWER else str(actor.role)
    wanted = least_of(method, path)
    return f"this needs the role {wanted}; {actor.name or 'nobody'} has the role {has}"
