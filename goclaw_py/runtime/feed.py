"""Tells operators what runs do while they do it (SPEC OPS-1).

Mostly nobody looks: then a run pays for one look at ``Feed.is_watched``, and nothing is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from goclaw_py.core.events import TextDelta, ToolEnded, ToolStarted, Usage
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.live import (
    LiveAsked,
    LiveEnded,
    LiveJoined,
    LiveMissed,
    LiveRun,
    LiveStarted,
    LiveText,
    LiveTool,
    LiveUsage,
    RunEvent,
)
from goclaw_py.core.live_buffer import LiveBuffer
from goclaw_py.core.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.core.text import well_formed
from goclaw_py.ports.agent import LoopEvent, Step
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import NewRun
from goclaw_py.runtime.turn import Turn


class Subscription:
    """An iterator over events, from the moment it was made until it is closed or the feed ends.

    Close it, or use it in ``with``. What it has no room for is told as ``LiveMissed``.
    """

    def __init__(self, session: SessionKey | None, forget: Callable[[Subscription], None]) -> None:
        self._session = session
        self._forget = forget
        self._buffer = LiveBuffer()
        self._filled = asyncio.Event()
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent | LiveMissed:
        loop = asyncio.get_running_loop()
        while True:
            if (event := self._buffer.take(loop.time())) is not None:
                return event
            if self._is_over:
                raise StopAsyncIteration
            self._filled.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._buffer.due):
                    await self._filled.wait()

    def wants(self, run: LiveRun) -> bool:
        """Whether it follows this run: of a session also those that it pays for."""
        return self._session is None or self._session in (run.session, run.payer)

    def put(self, event: RunEvent) -> None:
        """Let it have an event. Never waits."""
        was_due = self._buffer.due
        self._buffer.put(event, asyncio.get_running_loop().time())
        # Whoever waits for text that grows wakes up by itself, not at each word of it.
        if was_due is None or self._buffer.is_ready:
            self._filled.set()

    def end(self) -> None:
        """Nothing more will come; what has come can still be read."""
        self._buffer.flush()
        self._is_over = True
        self._filled.set()

    def close(self) -> None:
        """Nobody reads it any more. Harmless when repeated."""
        self._forget(self)
        self._buffer = LiveBuffer()
        self.end()


class Feed:
    """Where all runs of a process say what they do.

    Args:
        clock: Asked only while somebody looks.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._subscriptions: dict[Subscription, None] = {}
        self._has_ended = False
        self.is_watched = False
        """Whether somebody looks. Ask before you make something for the feed."""

    def subscribe(self, session: SessionKey | None) -> Subscription:
        """Follow the runs of a session, with those that it pays for, or all."""
        made = Subscription(session, self._forget)
        if self._has_ended:
            made.end()
        else:
            self._subscriptions[made] = None
            self.is_watched = True
        return made

    def close(self) -> None:
        """The gateway ends, and so do all iterators."""
        self._has_ended = True
        for subscription in list(self._subscriptions):
            subscription.end()
            self._forget(subscription)

    def _forget(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)
        self.is_watched = bool(self._subscriptions)

    # ------------------------------------------------------------------ what runs say

    def asked(self, run: Turn | NewRun) -> None:
        """A run was asked for."""
        if self.is_watched:
            self._tell(LiveAsked(self._clock.now(), _live(run)))

    def joined(self, turn: Turn, into: RunId) -> None:
        """A turn became part of another one."""
        if self.is_watched:
            self._tell(LiveJoined(self._clock.now(), _live(turn), into))

    def started(self, run: Turn | NewRun) -> None:
        """It works."""
        if self.is_watched:
            self._tell(LiveStarted(self._clock.now(), _live(run)))

    def hear(self, run: NewRun, event: LoopEvent) -> None:
        """Its agent loop reports something."""
        if not self.is_watched:
            return
        now, about = self._clock.now(), _live(run)
        match event:
            case TextDelta(text):
                self._tell(LiveText(now, about, text))
            case ToolStarted() | ToolEnded():
                ok = event.ok if isinstance(event, ToolEnded) else None
                name, call_id = well_formed(event.name), well_formed(event.call_id)
                self._tell(LiveTool(now, about, name, call_id, ok))
            case Step():
                self._tell(LiveUsage(now, about, event.usage, well_formed(event.model)))
            case _:
                pass  # what concerns the history

    def ended(self, run: Turn | NewRun, ended: Ending, usage: Usage | None) -> None:
        """Its end is stored, or nothing of it ever will be."""
        if self.is_watched:
            now = self._clock.now()
            self._tell(LiveEnded(now, _live(run), ended.outcome, ended.reason, usage))

    def _tell(self, event: RunEvent) -> None:
        for subscription in self._subscriptions:
            if subscription.wants(event.run):
                subscription.put(event)


def taken_over(run_id: RunId) -> Ending:
    """How a run ended whose end another node has stored: for that node it was cut by a crash."""
    return Ending(run_id, Outcome.LOST, Reason.CRASHED)


def _live(run: Turn | NewRun) -> LiveRun:
    if isinstance(run, Turn):
        return LiveRun(run.id, run.session, run.agent, Trigger.CHAT, None, run.session)
    payer = run.payer or run.session
    return LiveRun(run.id, run.session, run.agent, run.trigger, run.parent, payer)
