"""Debouncing: a burst of messages becomes one turn (SPEC QUEUE-6).

Deadlines are lazy: another message only moves the end of its burst. The burst is checked again when
its timer, set for an earlier end, fires. So extending a burst costs no timer.

The rules of SPEC QUEUE-6:

Debounce 800 ms: rapid messages of one sender in one session (thread included) become ONE turn —
texts joined by newline, media in order, all message ids kept. Only the first turn of a burst is
delayed; a steady typist is served after at most 4 times the window; 0 is off. While the session has
a run, a message that follows its sender's last waiting one within the window joins it without any
timer, else queues at once; but what continues a full turn, or one that began within the window, is
a new burst: how many turns there are depends neither on the length of runs nor on how messages are
delivered (polling, webhook). Pieces of a text that the channel cut, and of an album, always join,
without any window too. That is `debounce = "fixed"`, the default for offline, command and Python
agents. `speculative`, the default for language models: a message does not wait, except for pieces
and after a full turn. A further message of the same sender within the window cancels that run if
it has had no effect (no tool or named step started, no child, no text shown in the chat; text
counts as shown where there are no drafts), in every mode but `interrupt`: the run ends
`interrupted`, reason `merged`, no attempt counted, its messages first in the new turn, which is
collected with a fixed window (4 times from the start of that run) and is not cancelled again; it
starts when that end is stored, and replays none of its steps. The cancelled request counts for
budgets. At most one in 20 turns of a sender in a session is cancelled in the long run, three in
quick succession (a token bucket in memory): without a token the turns of the sender wait for the
window. `/stop` and `/stopall` meanwhile end all of these messages. A run that has had an effect,
or has ended, is not cancelled: the message follows the mode.
"""

from __future__ import annotations

from goclaw_py.core.containers import LruCache
from goclaw_py.core.ids import SessionKey
from goclaw_py.scheduler.models import Request
from goclaw_py.scheduler.timer_heap import Timers

MAX_WINDOWS = 4
"""A burst ends at the latest after this many windows."""

CUT_WINDOW_S = 1.0
"""The shortest wait, in seconds, for the rest of a text that the channel split."""

_REMEMBERED = 10_000


class DebounceBuffer:
    """Messages of one sender in a session within the debounce window; ``leader`` collects them."""

    __slots__ = ("ends_at", "latest_at", "leader", "next", "open", "timer_at", "window_s")

    def __init__(self, leader: Request, window_s: float, now: float, since: float) -> None:
        self.leader = leader
        self.window_s = window_s
        self.latest_at = since + MAX_WINDOWS * window_s
        self.ends_at = now + window_s
        self.timer_at = self.ends_at
        self.open = True
        self.next: DebounceBuffer | None = None
        """The next burst of the session, by another sender."""


class Debouncer:
    """The open bursts, at most one for each (session, sender)."""

    __slots__ = ("_sessions", "timers")

    def __init__(self) -> None:
        # Nearly all sessions have one sender who types: a chain costs less than a dict for each.
        self._sessions: dict[SessionKey, DebounceBuffer] = {}
        self.timers: Timers[DebounceBuffer] = Timers(_is_open)

    def begin(
        self, leader: Request, window_s: float, now: float, since: float | None = None
    ) -> None:
        """Open a burst. The sender must not have an open burst.

        ``since``: when it began, if ``leader`` is not its first message.
        """
        burst = DebounceBuffer(leader, window_s, now, now if since is None else since)
        earlier = self.of(leader.session)
        if earlier:
            earlier[-1].next = burst
        else:
            self._sessions[leader.session] = burst
        self._set_timer(burst)

    def find(self, session: SessionKey, sender: str) -> DebounceBuffer | None:
        """Return the sender's open burst."""
        burst = self._sessions.get(session)
        while burst is not None and burst.leader.sender != sender:
            burst = burst.next
        return burst

    def extend(self, burst: DebounceBuffer, now: float) -> None:
        """Extend a burst by another window, up to its limit.

        After a part of a split text the whole window is always waited for: the limit is for people
        who never stop typing, and a text ends.
        """
        if burst.leader.cut:
            burst.ends_at = now + max(burst.window_s, CUT_WINDOW_S)
            return
        burst.ends_at = min(now + burst.window_s, burst.latest_at)
        # The bound may lie before the end for which the timer was set last.
        if burst.ends_at < burst.timer_at:
            self._set_timer(burst)

    def close(self, burst: DebounceBuffer) -> Request:
        """Close a burst and return its leader."""
        burst.open = False
        self.timers.retire()
        leader = burst.leader
        left = [other for other in self.of(leader.session) if other is not burst]
        for other, following in zip(left, [*left[1:], None], strict=False):
            other.next = following
        if left:
            self._sessions[leader.session] = left[0]
        else:
            del self._sessions[leader.session]
        return leader

    def of(self, session: SessionKey) -> list[DebounceBuffer]:
        """Return the open bursts of a session, the oldest first."""
        bursts: list[DebounceBuffer] = []
        burst = self._sessions.get(session)
        while burst is not None:
            bursts.append(burst)
            burst = burst.next
        return bursts

    def all(self) -> list[DebounceBuffer]:
        """Return all open bursts."""
        return [burst for session in self._sessions for burst in self.of(session)]

    def pop_due(self, now: float) -> Request | None:
        """Close the next burst that has ended and return its leader, or None."""
        while (at := self.timers.next_at()) is not None and at <= now:
            burst = self.timers.pop_due(now)
            assert burst is not None
            # After a late call too: the burst that ended first goes first.
            if burst.ends_at <= at:
                return self.close(burst)
            if burst.timer_at != burst.ends_at:  # else this was an earlier timer of it
                self._set_timer(burst)
        return None

    def next_at(self) -> float | None:
        """Return when to check again; may be early, because extended bursts are found then."""
        return self.timers.next_at()

    def _set_timer(self, burst: DebounceBuffer) -> None:
        burst.timer_at = burst.ends_at
        self.timers.add(burst.ends_at, burst)


class RestartLimit:
    """Limits the requests that restarts waste, for each sender in a session (SPEC QUEUE-6).

    A token bucket: a restart takes a token, ``turns`` turns of the sender give one back. Without
    a token the sender's turns wait for the window. Full buckets are not stored, and the least
    recently used ones are forgotten, so memory is bounded.
    """

    __slots__ = ("_missing", "_restarts", "_turns")

    def __init__(self, restarts: int = 3, turns: int = 20) -> None:
        self._restarts, self._turns = restarts, turns
        # The number of turns until the bucket is full.
        self._missing: LruCache[tuple[SessionKey, str], int] = LruCache(_REMEMBERED)

    def count_restart(self, request: Request) -> None:
        """Count a run that was cancelled for this message."""
        key = request.session, request.sender
        self._missing[key] = self._missing.pop(key, 0) + self._turns

    def count_turn(self, request: Request) -> bool:
        """Count a turn; return whether it may start at once."""
        key = request.session, request.sender
        missing = self._missing.pop(key, 0)
        if missing > 1:
            self._missing[key] = missing - 1
        return missing <= (self._restarts - 1) * self._turns


def _is_open(burst: DebounceBuffer) -> bool:
    return burst.open
