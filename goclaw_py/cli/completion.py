"""What a shell offers for a name: asked of the gateway, quickly, or not at all.

Nothing of it is ever an error: a shell that completes nothing is better than one that complains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from goclaw_py.model.errors import GoclawError

if TYPE_CHECKING:
    from goclaw_py.config import Settings

PATIENCE_S: Final = 0.3
"""How long the gateway may take, in seconds: somebody holds the Tab key."""

_MAX_BYTES: Final = 4 * 1024 * 1024

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]*")
"""Shells evaluate what they are offered, and chats choose parts of the keys of sessions."""


def sessions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Keys of sessions, or the end of a key where that is enough to name it.

    Some shells take a colon for the end of a word: so the short form goes first.
    """
    keys = _named(_ask(ctx, "/api/sessions?limit=200"), "key")
    ends = {key: _end(key, keys) for key in keys}
    offered = [*ends.values(), *keys] if incomplete else list(ends.values())
    return _fitting(offered, incomplete)


def _end(key: str, keys: Iterable[str]) -> str:
    last = key.rpartition(":")[2]
    return last if sum(last in other for other in keys) == 1 else key


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of the newest runs."""
    return _fitting(_named(_ask(ctx, "/api/runs?limit=50"), "id"), incomplete)


def jobs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Short names of jobs."""
    return _fitting(_named(_below(_ask(ctx, "/api/jobs?limit=200"), "jobs"), "slug"), incomplete)


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of the gateways on the database."""
    return _fitting(_named(_below(_ask(ctx, "/api/nodes"), "nodes"), "id"), incomplete)


def agents(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of agents: the settings have them."""
    settings = _settings(ctx)
    return _fitting([] if settings is None else list(settings.agents), incomplete)


def lanes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of lanes: the settings have them."""
    settings = _settings(ctx)
    return _fitting([] if settings is None else list(settings.lanes), incomplete)


def sections(ctx: typer.Context, incomplete: str) -> list[str]:
    """Sections of the settings."""
    del ctx
    from goclaw_py.config.sources import SECTIONS  # noqa: PLC0415

    return _fitting(SECTIONS, incomplete)


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

    # The global options were not carried out: nothing is, while a shell completes.
    file = ctx.find_root().params.get("file")
    try:
        return load(file if isinstance(file, Path) else None)
    except (GoclawError, OSError):
        return None


def _ask(ctx: typer.Context, path: str) -> Any:
    """What the gateway answers, None if it does not, or not in time."""
    settings = _settings(ctx)
    if settings is None:
        return None
    import asyncio  # noqa: PLC0415  (not needed for --help)

    import orjson  # noqa: PLC0415

    from goclaw_py.web.sockets import short_path, socket_path  # noqa: PLC0415

    try:
        with short_path(socket_path(settings.state_folder)) as name:
            return orjson.loads(asyncio.run(_answer(name, path)))
    except (OSError, ValueError, EOFError):
        # A time that is over is an OSError too.
        return None


async def _answer(socket: str, path: str) -> bytes:
    """The body of an answer. By hand: the client of the other commands takes longer to import."""
    import asyncio  # noqa: PLC0415  (not needed for --help)

    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_unix_connection(socket, limit=_MAX_BYTES)
        try:
            # Of this version answers come in one piece and end with the connection.
            writer.write(f"GET {path} HTTP/1.0\r\nHost: goclaw\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.partition(b"\r\n")[0]:
                return b"null"
            return await reader.read(-1)
        finally:
            writer.close()
