"""Publishes events of runs to operators while they happen (SPEC OPS-1).

The log has only the start and the end of each run. Usually nobody follows the rest: then a run only
checks ``RunEventBroker.is_watched``. Each event is created once for all subscribers.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from secrets import token_hex
from typing import Final, Self

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.outcomes import Ending, Outcome, Reason, Trigger
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted
from goclaw_py.core.text import well_formed
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import NewRun
from goclaw_py.runs.agent_loop import LoopEvent, ModelStep
from goclaw_py.runs.events.buffer import EventBuffer
from goclaw_py.runs.events.live import (
    LiveEnded,
    LiveJoined,
    LiveMissed,
    LiveRequested,
    LiveRun,
    LiveStarted,
    LiveText,
    LiveTool,
    LiveUsage,
    RunEvent,
)
from goclaw_py.runs.run_log import RunLog
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.turn import Turn

_MAX_DIGITS: Final = 18
KEPT_S: Final = 60.0
"""How many seconds events are kept after the last subscriber has left."""


class Subscription:
    """An iterator over events, from its creation until it is closed or the broker ends.

    Close it, or use it in ``with``. Events that are no longer stored are reported as
    ``LiveMissed``.
    """

    def __init__(self, feed: RunEventBroker, session: SessionKey | None, at: int) -> None:
        self._feed = feed
        self._session = session
        self._at = at
        """The number of the last event that it has taken or skipped."""
        self._missed: LiveMissed | None = None
        self._filled = asyncio.Event()
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent | LiveMissed:
        while (event := self.next_event()) is None:
            if self._is_over:
                raise StopAsyncIteration
            self._filled.clear()
            await self._filled.wait()
        return event

    def next_event(self) -> RunEvent | LiveMissed | None:
        """Return the next event, None if there is none yet."""
        if self._missed is not None:
            missed, self._missed = self._missed, None
            return missed
        while self._at < self._feed.ring.last:
            self._at += 1
            event = self._feed.ring.get(self._at)
            if event is not None and self._wants(event.run):
                return event
        return None

    @property
    def place(self) -> str:
        """Return its position as the ``id`` of an event."""
        return self._feed.ring.id_of(self._at)

    def _wants(self, run: LiveRun) -> bool:
        """Return whether it follows this run: of its session, or charged to its session."""
        return self._session is None or self._session in (run.session, run.payer)

    def on_event(self, number: int, event: RunEvent) -> None:
        """Handle a new event."""
        if self._wants(event.run):
            self._filled.set()
        elif self._at == number - 1:
            # Else a quiet session would have a long way to go when something happens in it.
            self._at = number

    def lost(self, number: int, event: RunEvent) -> None:
        """Handle that an event is no longer stored."""
        if number > self._at and self._wants(event.run):
            before = 0 if self._missed is None else self._missed.count
            self.miss(event.at, before + 1)

    def miss(self, at: datetime, count: int) -> None:
        """Report that events were lost."""
        self._missed = LiveMissed(at, count)
        self._filled.set()

    def end(self) -> None:
        """End it; stored events can still be read."""
        self._is_over = True
        self._filled.set()

    def close(self) -> None:
        """Close it; may be repeated."""
        self._feed.forget(self)
        self._at = self._feed.ring.last
        self._missed = None
        self.end()


class RunEventBroker:
    """Publishes the events of all runs of this process.

    Events are numbered, and the newest are kept while there are subscribers and ``KEPT_S`` longer,
    so that a subscriber who reconnects continues after the last event.

    Args:
        clock: Used only while there are subscribers.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._origin = token_hex(6)
        """Distinguishes our ids from those of an earlier gateway."""
        self._subscriptions: dict[Subscription, None] = {}
        self._kept_until: float | None = None
        """When events are deleted; None while there are subscribers, or no events."""
        self._since = 0
        """From this number on, every event was stored or counted as lost."""
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False
        self._log = RunLog(clock)
        self.ring = EventBuffer(self._origin, self._lost)

    @property
    def is_watched(self) -> bool:
        """Return whether there may be subscribers. Check it before creating an event."""
        return bool(self._subscriptions) or (self._kept_until is not None and self._is_retained())

    def _is_retained(self) -> bool:
        """Return whether events are kept without a subscriber; delete them if not."""
        until = self._kept_until
        if until is not None and asyncio.get_running_loop().time() >= until:
            self._forget_all()
        return self._kept_until is not None

    def _forget_all(self) -> None:
        self._kept_until = None
        self._stop_timer()
        self.ring.forget()
        self._since = self.ring.last

    def subscribe(self, session: SessionKey | None, after: str | None = None) -> Subscription:
        """Follow the runs of a session, and those charged to it, or all runs.

        From now on, or after the event with the id ``after`` as far as events are stored.
        """
        if not self.is_watched:
            # Events since the last subscriber were not counted.
            self._forget_all()
        made = Subscription(self, session, self.ring.last)
        if after is not None:
            made = self._resumed(session, after)
        if self._has_ended:
            made.end()
        else:
            self._subscriptions[made] = None
            self._kept_until = None
        return made

    def _resumed(self, session: SessionKey | None, after: str) -> Subscription:
        number = self._number_of(after)
        now = self._clock.now()
        if number is None:
            made = Subscription(self, session, self.ring.last)
            made.miss(now, 0)
            return made
        made = Subscription(self, session, number)
        if lacks := self.ring.has_gap_after(number):
            made.miss(now, lacks)
        return made

    def _number_of(self, place: str) -> int | None:
        """Return the number in one of our ids, None if the events after it are unknown."""
        origin, _, number = place.partition("-")
        if origin != self._origin or not (number.isascii() and number.isdigit()):
            return None
        found = int(number[:_MAX_DIGITS])
        return found if self._since <= found <= self.ring.last else None

    def close(self) -> None:
        """End all subscriptions."""
        self._has_ended = True
        self._settle(at_end=True)
        self._stop_timer()
        for subscription in list(self._subscriptions):
            subscription.end()
        self._subscriptions.clear()
        self._kept_until = None

    def forget(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        was_there = subscription in self._subscriptions
        self._subscriptions.pop(subscription, None)
        if was_there and not self._subscriptions:
            self._kept_until = asyncio.get_running_loop().time() + KEPT_S

    # ------------------------------------------------------------------ what runs say

    def on_requested(self, run: Turn | NewRun) -> None:
        """Publish that a run was requested."""
        if self.is_watched:
            self._publish(LiveRequested(self._clock.now(), _live(run)))

    def joined(self, turn: Turn, into: RunId) -> None:
        """Publish that a turn became part of another one."""
        if self.is_watched:
            self._publish(LiveJoined(self._clock.now(), _live(turn), into))

    def started(self, run: Turn | NewRun) -> None:
        """Publish that a run has started."""
        self._log.started(run)
        if self.is_watched:
            self._publish(LiveStarted(self._clock.now(), _live(run)))

    def on_event(self, run: NewRun, event: LoopEvent) -> None:
        """Publish an event of its agent loop."""
        if not self.is_watched:
            return
        now, about = self._clock.now(), _live(run)
        match event:
            case TextDelta(text):
                self._publish(LiveText(now, about, text))
            case ToolStarted() | ToolEnded():
                ok = event.ok if isinstance(event, ToolEnded) else None
                name, call_id = well_formed(event.name), well_formed(event.call_id)
                self._publish(LiveTool(now, about, name, call_id, ok))
            case ModelStep():
                self._publish(LiveUsage(now, about, event.usage, well_formed(event.model)))
            case _:
                pass  # what concerns the history

    def ended(self, run: Turn | NewRun, ended: Ending, progress: RunRecorder) -> None:
        """Publish that its end is stored, or never will be."""
        self._log.ended(run, ended, progress)
        if self.is_watched:
            now, usage = self._clock.now(), progress.usage
            self._publish(LiveEnded(now, _live(run), ended.outcome, ended.reason, usage))

    def _publish(self, event: RunEvent) -> None:
        if self._has_ended:
            return
        loop = asyncio.get_running_loop()
        before = self.ring.last
        self.ring.add(event, loop.time())
        self._announce(before)
        if self._timer is None and self.ring.due is not None:
            self._timer = loop.call_at(self.ring.due, self._settle)

    def _settle(self, *, at_end: bool = False) -> None:
        """Publish the text that is due."""
        self._stop_timer()
        before = self.ring.last
        if at_end:
            self.ring.flush()
        else:
            loop = asyncio.get_running_loop()
            self.ring.settle(loop.time())
            if self.ring.due is not None:
                self._timer = loop.call_at(self.ring.due, self._settle)
        self._announce(before)

    def _announce(self, before: int) -> None:
        for number in range(before + 1, self.ring.last + 1):
            if (event := self.ring.get(number)) is not None:
                for subscription in self._subscriptions:
                    subscription.on_event(number, event)

    def _lost(self, number: int, event: RunEvent) -> None:
        for subscription in self._subscriptions:
            subscription.lost(number, event)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def ended_elsewhere(run_id: RunId) -> Ending:
    """Return the end of a run that another node has stored: a crash, for that node."""
    return Ending(run_id, Outcome.LOST, Reason.CRASHED)


def _live(run: Turn | NewRun) -> LiveRun:
    if isinstance(run, Turn):
        return LiveRun(run.id, run.session, run.agent, Trigger.CHAT, None, run.session)
    payer = run.payer or run.session
    return LiveRun(run.id, run.session, run.agent, run.trigger, run.parent, payer)
