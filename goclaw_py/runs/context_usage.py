"""How full the context of each session is, as its last runs reported (SPEC QUEUE-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from goclaw_py.core.containers import LruCache
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.scheduler.models import QueuePolicy

FULL_FROM = 0.6
"""From this share of the context window on, a session has only one run at a time."""

_REMEMBERED = 10_000


class ContextUsage:
    """Stores the last report of each session; removes the least active sessions.

    Args:
        windows: The context window of each agent's model, in tokens.
    """

    def __init__(self, windows: Mapping[AgentName, int]) -> None:
        self._windows = windows
        self._used: LruCache[SessionKey, float] = LruCache(_REMEMBERED)

    def note(self, session: SessionKey, agent: AgentName, tokens: int) -> bool:
        """Record the size of a conversation; return whether ``is_full`` has changed."""
        before = self.is_full(session)
        # Taken out first, so that it counts among the newest again.
        self._used.pop(session, None)
        self._used[session] = tokens / self._windows[agent]
        return self.is_full(session) is not before

    def forget(self, session: SessionKey) -> None:
        """Forget a session whose history starts again."""
        self._used.pop(session, None)

    def forget_all(self) -> None:
        """Forget all sessions."""
        self._used.clear()

    def used(self, session: SessionKey) -> float | None:
        """Return the used share of the window, 1.0 for all of it; None if unknown."""
        return self._used.get(session)

    def is_full(self, session: SessionKey) -> bool:
        """Return whether the session may have only one run at a time."""
        return self._used.get(session, 0.0) >= FULL_FROM

    def throttled(self, session: SessionKey, policy: QueuePolicy) -> QueuePolicy:
        """Return the queue policy of a session, given how full it is."""
        if policy.concurrency == 1 or not self.is_full(session):
            return policy
        return replace(policy, concurrency=1)
