"""Shell completion of names. It asks the gateway, with a short timeout.

It never reports errors: no completion is better than an error message at the prompt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from goclaw_py.core.errors import GoclawError

if TYPE_CHECKING:
    from goclaw_py.config import Settings

PATIENCE_S: Final = 0.3
"""Timeout for the gateway, in seconds; a user is waiting after pressing Tab."""

_MAX_BYTES: Final = 4 * 1024 * 1024

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]*")
"""Only such names are offered: shells evaluate them, and chats choose parts of session keys."""


def sessions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete sessions: the names of their chats, the last parts of their keys, and their keys.

    Names and parts are offered where they are unique. Some shells split words at colons, so the
    short forms come first.
    """
    keys = _named(_ask(ctx, "/api/sessions?limit=200"), "key")
    names = _below(_ask(ctx, "/api/names", {"keys": keys}), "names") if keys else None
    count = Counter(names.get(key) for key in keys if isinstance(names, dict))
    ends = {key: _end(key, keys) for key in keys}
    short = [*(str(name) for name, times in count.items() if times == 1), *ends.values()]
    return _fitting([*short, *keys] if incomplete else short, incomplete)


def _end(key: str, keys: Iterable[str]) -> str:
    last = key.rpartition(":")[2]
    return last if sum(last in other for other in keys) == 1 else key


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete ids of the newest runs."""
    return _fitting(_named(_ask(ctx, "/api/runs?limit=50"), "id"), incomplete)


def jobs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete short names of jobs."""
    rows = _below(_ask(ctx, "/api/jobs?limit=200"), "jobs")
    specs = [_below(row, "spec") for row in rows] if isinstance(rows, list) else []
    return _fitting(_named(specs, "slug"), incomplete)


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete ids of nodes."""
    return _fitting(_named(_below(_ask(ctx, "/api/nodes"), "nodes"), "id"), incomplete)


def agents(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete names of agents, from the settings."""
    settings = _settings(ctx)
    return _fitting([] if settings is None else list(settings.agents), incomplete)


def lanes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete names of lanes, from the settings."""
    settings = _settings(ctx)
    return _fitting([] if settings is None else list(settings.lanes), incomplete)


def sections(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete sections of the settings, and settings once a section is given."""
    from goclaw_py.config.sources import SECTIONS  # noqa: PLC0415

    paths = (one for one, _ in _paths(ctx)) if "." in incomplete else ()
    return _fitting([*SECTIONS, *paths], incomplete)


def editable_settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete settings that can be edited at run time."""
    return _fitting((path for path, is_editable in _paths(ctx) if is_editable), incomplete)


def zones(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete names of time zones."""
    del ctx
    from zoneinfo import available_timezones  # noqa: PLC0415

    return _fitting(sorted(available_timezones()), incomplete)


def words(known: Iterable[str]) -> Callable[[typer.Context, str], list[str]]:
    """Return a function that completes one of these words."""
    known = list(known)

    def completed(ctx: typer.Context, incomplete: str) -> list[str]:
        del ctx
        return _fitting(known, incomplete)

    return completed


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    found = dict.fromkeys(name for name in names if name.startswith(incomplete))
    return [name for name in found if _SAFE.fullmatch(name)]


def _below(document: object, key: str) -> object:
    return document.get(key) if isinstance(document, dict) else None


def _named(rows: object, key: str) -> list[str]:
    return list(_texts(rows, key))


def _texts(rows: object, key: str) -> Iterator[str]:
    for row in rows if isinstance(rows, list) else ():
        value = row.get(key) if isinstance(row, dict) else None
        if isinstance(value, str):
            yield value


# ---------------------------------------------------------------------------- asking


def _settings(ctx: typer.Context) -> Settings | None:
    from goclaw_py.config import load  # noqa: PLC0415

    # The callback of the global options does not run during completion.
    file = ctx.find_root().params.get("file")
    try:
        return load(file if isinstance(file, Path) else None)
    except (GoclawError, OSError):
        return None


def _paths(ctx: typer.Context) -> Iterator[tuple[str, bool]]:
    """Return the paths of all settings, and whether each can be edited at run time."""
    from goclaw_py.config import shown  # noqa: PLC0415
    from goclaw_py.config.edits import is_editable, parse_path  # noqa: PLC0415

    settings = _settings(ctx)
    for one in () if settings is None else shown(settings):
        path = parse_path(one.path)
        yield one.path, path is not None and is_editable(path)


def _ask(ctx: typer.Context, path: str, body: object = None) -> Any:
    """Return the answer of the gateway, None if there is none in time.

    It is asked with POST if there is a body.
    """
    settings = _settings(ctx)
    if settings is None:
        return None

    import asyncio  # noqa: PLC0415

    import orjson  # noqa: PLC0415

    from goclaw_py.web.sockets import short_path, socket_path  # noqa: PLC0415

    try:
        with short_path(socket_path(settings.state_folder)) as name:
            sent = b"" if body is None else orjson.dumps(body)
            return orjson.loads(asyncio.run(_answer(name, path, sent)))
    except (OSError, ValueError, EOFError):
        # TimeoutError is an OSError, too.
        return None


async def _answer(socket: str, path: str, body: bytes = b"") -> bytes:
    """Return the body of an answer. Does not use httpx, which takes long to import."""
    import asyncio  # noqa: PLC0415

    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_unix_connection(socket, limit=_MAX_BYTES)
        try:
            # With HTTP/1.0 the answer is not chunked and ends with the connection.
            head = f"{'POST' if body else 'GET'} {path} HTTP/1.0\r\nHost: goclaw\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in answer.partition(b"\r\n")[0]:
                return b"null"
            return await reader.read(-1)
        finally:
            writer.close()
