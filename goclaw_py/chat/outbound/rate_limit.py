"""Rate limits of chats (SPEC IO-4).

Three limits apply together: a gap between two messages of a chat, messages of a chat per minute,
and messages of the account per second. Edits count as messages. Drafts get at most half of the last
two, so that there is always room for messages.

The rules of SPEC IO-4:

Order per chat; one slow or flooded chat delays no other. Pacing: 1/s per chat, from the answer to
one message to the next, 20/min per group, 30/s overall (settings). Edits count; an album counts as
many messages as it has files;  drafts of a group use at most half, and so do those of all chats;
finals and new messages go first; answers to `/stop` go before them; typing and marks never count. A
message is claimed only when the rate limits allow it, so a message that waited is never a possible
duplicate.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

_MINUTE_S = 60.0
_SECOND_S = 1.0
_LOOK_EVERY = 1_000
"""After this many messages, chats that were idle for a minute are removed."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The limits of a chat. None is no limit.

    ``account_per_s`` is the same for all chats of an account.
    """

    gap_s: float = 0.0
    per_minute: int | None = None
    account_per_s: int | None = None


UNPACED = RateLimit()


@dataclass(slots=True)
class _Window:
    """The instants of the last messages, as many as one period allows."""

    all: deque[float] = field(default_factory=deque)
    drafts: deque[float] = field(default_factory=deque)

    def ready_at(
        self, most: int | None, span_s: float, now: float, *, draft: bool, count: int
    ) -> float:
        if most is None:
            return now
        at = _free_at(self.all, most - min(count, most) + 1, span_s, now)
        return max(at, _free_at(self.drafts, max(1, most // 2), span_s, now)) if draft else at

    def add(self, now: float, span_s: float, *, draft: bool, count: int) -> None:
        for instants in (self.all, self.drafts):
            while instants and instants[0] <= now - span_s:
                instants.popleft()
        self.all.extend([now] * count)
        if draft:
            self.drafts.append(now)

    def remove(self, ticket: Reservation) -> None:
        for instants in (self.all, self.drafts) if ticket.draft else (self.all,):
            for _ in range(min(ticket.count, instants.count(ticket.at))):
                instants.remove(ticket.at)


def _free_at(instants: deque[float], most: int, span_s: float, now: float) -> float:
    """Return when another message fits, given instants in order."""
    return now if len(instants) < most else max(now, instants[-most] + span_s)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A counted message, to be returned if it was not sent."""

    chat: str
    at: float
    draft: bool
    gap_until: float
    """The end of the gap of its chat before it."""
    count: int = 1
    """The number of messages."""


class TokenWindow:
    """The rate limits of an account. Instants are in seconds of a monotonic clock.

    ``count``: an album counts as many messages as it has files, with one gap.
    """

    def __init__(self) -> None:
        self._account = _Window()
        self._chats: dict[str, _Window] = {}
        self._gaps: dict[str, float] = {}
        """The end of the gap of each chat."""
        self._count = 0

    def chat_ready_at(
        self, chat: str, pace: RateLimit, now: float, *, draft: bool = False, count: int = 1
    ) -> float:
        """Return when the limits of a chat allow a message; ``now`` if immediately."""
        at = max(now, self._gaps.get(chat, -math.inf))
        window = self._chats.get(chat)
        if window is None:
            return at
        return max(at, window.ready_at(pace.per_minute, _MINUTE_S, now, draft=draft, count=count))

    def account_ready_at(
        self, pace: RateLimit, now: float, *, draft: bool = False, count: int = 1
    ) -> float:
        """Return when the limits of the account allow a message; ``now`` if immediately."""
        return self._account.ready_at(pace.account_per_s, _SECOND_S, now, draft=draft, count=count)

    def add(
        self, chat: str, pace: RateLimit, now: float, *, draft: bool = False, count: int = 1
    ) -> Reservation:
        """Count a message, which should be allowed."""
        ticket = Reservation(chat, now, draft, self._gaps.get(chat, -math.inf), count)
        if pace.gap_s > 0:
            self._gaps[chat] = now + pace.gap_s
        if pace.per_minute is not None:
            window = self._chats.setdefault(chat, _Window())
            window.add(now, _MINUTE_S, draft=draft, count=count)
        if pace.account_per_s is not None:
            self._account.add(now, _SECOND_S, draft=draft, count=count)
        self._count += 1
        if self._count % _LOOK_EVERY == 0:
            self._forget_silent(now)
        return ticket

    def sent(self, chat: str, pace: RateLimit, now: float) -> None:
        """Start the gap of a chat again, because a message has reached the server.

        The duration of requests varies: two that are started a gap apart may arrive closer.
        """
        if pace.gap_s > 0:
            self._gaps[chat] = max(self._gaps.get(chat, -math.inf), now + pace.gap_s)

    def give_back(self, ticket: Reservation) -> None:
        """Return a message that was not sent. Call it before the next ``take`` for its chat."""
        if ticket.chat in self._gaps:
            self._gaps[ticket.chat] = ticket.gap_until
        window = self._chats.get(ticket.chat)
        if window is not None:
            window.remove(ticket)
        self._account.remove(ticket)

    def _forget_silent(self, now: float) -> None:
        self._gaps = {chat: until for chat, until in self._gaps.items() if until > now}
        self._chats = {
            chat: window
            for chat, window in self._chats.items()
            if window.all and window.all[-1] > now - _MINUTE_S
        }
