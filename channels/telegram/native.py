"""Streaming in Telegram's native drafts, with its stop button (``streaming = "native"``).

Such a draft lasts half a minute and needs no removal: the reply comes as a message, which ends it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from channels.telegram.client import ChatPlace, Text
from channels.telegram.sending import format_draft
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.ids import RunId
from goclaw_py.core.run_events import RunText, RunWaiting

_log = logging.getLogger("channels.telegram")

EVERY_S = 1.0
_AGAIN_S = 20.0
"""Seconds after which an unchanged draft is shown again, before it disappears."""
_LONGEST_PAUSE_S = 60.0
_MOST = 500
_DOTS = " …"


@dataclass(slots=True)
class _Growing:
    place: ChatPlace
    number: int
    said: list[str] = field(default_factory=list)
    waiting: str = ""
    """What the run waits for, as a line."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class NativeDrafts:
    """The native drafts of a bot. Failures have no effect."""

    def __init__(self, show: Callable[[ChatPlace, int, Text], Awaitable[None]]) -> None:
        """``show`` shows a draft by its number; it raises ``ChannelError``."""
        self._show = show
        self._growing: dict[RunId, _Growing] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._last = 0

    def on_signal(self, place: ChatPlace, signal: RunText | RunWaiting) -> None:
        """Show more text of a run, or what it waits for."""
        if isinstance(signal, RunText):
            self.add(signal.run_id, place, signal.text)
        else:
            self.wait(signal.run_id, place, signal.text)

    def add(self, run: RunId, place: ChatPlace, text: str) -> None:
        """Add text of a run."""
        if (growing := self._begun(run, place)) is not None:
            growing.said.append(text)
            growing.changed.set()

    def wait(self, run: RunId, place: ChatPlace, line: str) -> None:
        """Show what a run waits for below its text, or remove it if ``line`` is ""."""
        growing = self._begun(run, place) if line else self._growing.get(run)
        if growing is not None:
            growing.waiting = line.removesuffix(_DOTS)  # a growing text has its own
            growing.changed.set()

    def _begun(self, run: RunId, place: ChatPlace) -> _Growing | None:
        growing = self._growing.get(run)
        if growing is None and len(self._growing) < _MOST:
            self._last += 1
            growing = self._growing[run] = _Growing(place, self._last)
            growing.task = asyncio.create_task(self._show_regularly(growing), name="telegram draft")
        return growing

    def end(self, run: RunId) -> None:
        """End the draft of a run."""
        growing = self._growing.pop(run, None)
        if growing is not None and growing.task is not None:
            growing.task.cancel()
            self._ending.add(growing.task)
            growing.task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Show no more drafts."""
        for run in list(self._growing):
            self.end(run)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _show_regularly(self, growing: _Growing) -> None:
        pause = EVERY_S
        while True:
            growing.changed.clear()
            try:
                said = "".join(growing.said)
                text = await format_draft("\n\n".join(filter(None, [said, growing.waiting])))
                await self._show(growing.place, growing.number, text)
                pause = EVERY_S
            except ChannelError as error:
                _log.debug("draft_update_failed", extra={"error": str(error)})
                if not error.retryable:
                    return
                pause = min(max(pause * 2, error.retry_after_s or 0), _LONGEST_PAUSE_S)
            await asyncio.sleep(pause)
            try:
                async with asyncio.timeout(_AGAIN_S):
                    await growing.changed.wait()
            except TimeoutError:
                continue
