"""Live parts of pages.

A part is rendered once for all viewers, and sent when it has changed: twenty dashboards on a page
cost one rendering per tick. The whole part is sent, so a slow or returning reader gets the newest
state.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

from goclaw_py.core.errors import GoclawError
from goclaw_py.web.api.wire import PING, PING_S

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LivePart:
    """A live part of a page: its function, and the interval of updates in seconds.

    ``make`` returns HTML. Parts with the same ``key`` are the same part.
    """

    key: tuple[str, ...]
    make: Callable[[], Awaitable[str]] = field(compare=False)
    every_s: float = field(default=1.0, compare=False)


@dataclass(slots=True, eq=False)
class _Shared:
    """A part with its viewers. ``event`` is its newest state, encoded."""

    event: bytes = b""
    tag: str = ""
    watchers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    keeper: asyncio.Task[None] | None = None


class Hub:
    """Updates parts while they have viewers.

    Args:
        closing: Set when the gateway shuts down; all streams end then.
    """

    def __init__(self, closing: asyncio.Event) -> None:
        self._closing = closing
        self._parts: dict[tuple[str, ...], _Shared] = {}

    @property
    def watched(self) -> int:
        """Return the number of parts with viewers."""
        return len(self._parts)

    async def stream(self, part: LivePart, seen: str = "") -> AsyncGenerator[bytes]:
        """Yield server-sent events with the part, now and after each change. Close the iterator.

        ``seen`` is the id of the reader's last event; the same state is not sent again.
        """
        shared = self._enter(part)
        closed = asyncio.ensure_future(self._closing.wait())
        try:
            yield b"retry: 2000\n\n"
            while not closed.done():
                if shared.tag and shared.tag != seen:
                    seen = shared.tag
                    yield shared.event
                    continue
                changed = asyncio.ensure_future(shared.changed.wait())
                try:
                    await asyncio.wait(
                        {changed, closed}, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED
                    )
                finally:
                    changed.cancel()
                if shared.tag in ("", seen) and not closed.done():
                    yield PING
        finally:
            closed.cancel()
            self._leave(part, shared)

    def _enter(self, part: LivePart) -> _Shared:
        shared = self._parts.get(part.key)
        if shared is None:
            shared = self._parts[part.key] = _Shared()
            shared.keeper = asyncio.create_task(
                self._make_regularly(part, shared), name="live part"
            )
        shared.watchers += 1
        return shared

    def _leave(self, part: LivePart, shared: _Shared) -> None:
        shared.watchers -= 1
        if shared.watchers == 0:
            self._parts.pop(part.key, None)
            if shared.keeper is not None:
                shared.keeper.cancel()

    async def _make_regularly(self, part: LivePart, shared: _Shared) -> None:
        while True:
            try:
                _change(shared, b"part", await part.make())
            except GoclawError as error:
                # The database is unavailable, or the object was deleted: the page says so.
                _change(shared, b"away", str(error))
            except HTTPException as error:
                # A parameter of the address is wrong.
                _change(shared, b"away", str(error.detail))
            except Exception:
                log.exception("page_part_failed", extra={"part": part.key})
                _change(shared, b"away", "internal error; the log of the gateway has the details")
            await asyncio.sleep(part.every_s)


def _change(shared: _Shared, name: bytes, text: str) -> None:
    data = text.encode("utf-8", "replace")
    tag = hashlib.blake2b(name + data, digest_size=9).hexdigest()
    if tag == shared.tag:
        return
    shared.tag = tag
    shared.event = event(name, tag, data)
    shared.changed.set()
    shared.changed = asyncio.Event()


def event(name: bytes, tag: str, data: bytes) -> bytes:
    """Return a server-sent event with the id ``tag``."""
    # Each of these ends a line in a stream of events.
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    body = b"".join(b"data: %s\n" % line for line in lines)
    return b"id: %s\nevent: %s\n%s\n" % (tag.encode(), name, body)
