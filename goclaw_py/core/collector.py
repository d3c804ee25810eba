"""A burst of messages becomes one (debounce, SPEC QUEUE-6).

Deadlines are lazy: a message that prolongs a burst only moves its end; the burst is looked at again
when its timer, set for an earlier end, falls due. So prolonging costs no timer.
"""

from __future__ import annotations

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.queues import Entry
from goclaw_py.core.timers import Timers

MAX_WINDOWS = 4
"""A steady typist is served after this many windows."""

CUT_WINDOW_S = 1.0
"""How long the rest of a text that the channel cut is waited for, at least."""


class Burst:
    """Messages of one sender in one session that are still coming in; ``leader`` collects them."""

    __slots__ = ("ends_at", "latest_at", "leader", "open", "timer_at", "window_s")

    def __init__(self, leader: Entry, window_s: float, now: float) -> None:
        self.leader = leader
        self.window_s = window_s
        self.latest_at = now + MAX_WINDOWS * window_s
        self.ends_at = now + window_s
        self.timer_at = self.ends_at
        self.open = True


class Collector:
    """The open bursts, at most one for each (session, sender)."""

    __slots__ = ("_sessions", "_timers")

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, dict[str, Burst]] = {}
        self._timers: Timers[Burst] = Timers(_is_open)

    def begin(self, leader: Entry, window_s: float, now: float) -> None:
        """Open a burst with its first message. There must be none of this sender."""
        burst = Burst(leader, window_s, now)
        request = leader.request
        self._sessions.setdefault(request.session, {})[request.sender] = burst
        self._set_timer(burst)

    def find(self, session: SessionKey, sender: str) -> Burst | None:
        """The open burst of this sender."""
        bursts = self._sessions.get(session)
        return bursts.get(sender) if bursts else None

    def prolong(self, burst: Burst, now: float) -> None:
        """One more message came: wait for the window again, within the bound.

        A piece of a cut text always gets a whole window for its rest: the bound exists for people
        who type on and on, and a text ends.
        """
        if burst.leader.cut:
            burst.ends_at = now + max(burst.window_s, CUT_WINDOW_S)
            return
        burst.ends_at = min(now + burst.window_s, burst.latest_at)
        # The bound may lie before the end for which the timer was set last.
        if burst.ends_at < burst.timer_at:
            self._set_timer(burst)

    def close(self, burst: Burst) -> Entry:
        """End a burst early or in time, and give its leader."""
        burst.open = False
        self._timers.retire()
        request = burst.leader.request
        bursts = self._sessions[request.session]
        del bursts[request.sender]
        if not bursts:
            del self._sessions[request.session]
        return burst.leader

    def of(self, session: SessionKey) -> list[Burst]:
        """The open bursts of a session, oldest first."""
        bursts = self._sessions.get(session)
        return list(bursts.values()) if bursts else []

    def all(self) -> list[Burst]:
        """Every open burst."""
        return [burst for bursts in self._sessions.values() for burst in bursts.values()]

    def pop_due(self, now: float) -> Entry | None:
        """Close the next burst whose end has come and give its leader, or None."""
        while (burst := self._timers.pop_due(now)) is not None:
            if burst.ends_at > now:
                self._set_timer(burst)
            else:
                return self.close(burst)
        return None

    def next_at(self) -> float | None:
        """When to look again. It may be early: prolonged bursts are found out then."""
        return self._timers.next_at()

    def _set_timer(self, burst: Burst) -> None:
        burst.timer_at = burst.ends_at
        self._timers.add(burst.ends_at, burst)


def _is_open(burst: Burst) -> bool:
    return burst.open
