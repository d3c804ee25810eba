"""How full the context of each session is, as reported by its last runs (SPEC QUEUE-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from goclaw_py.common.lru import LruCache
from goclaw_py.model.ids import AgentName, SessionKey
from goclaw_py.scheduler.models import QueuePolicy

FULL_FROM = 0.6
"""From this share of the context window on, a session works on one run at a time."""

_REMEMBERED = 10_000


class ContextUsage:
    """Stores the last report of each session; drops the sessions that were quiet for longest.

    Args:
        windows: How many tokens the model of each agent can take.
    """

    def __init__(self, windows: Mapping[AgentName, int]) -> None:
        self._windows = windows
        self._used: LruCache[SessionKey, float] = LruCache(_REMEMBERED)

    def note(self, session: SessionKey, agent: AgentName, tokens: int) -> bool:
        """Note what a conversation takes by now; whether ``is_full`` has changed by it."""
        before = self.is_full(session)
        # Taken out first, so that it counts among the newest again.
        self._used.pop(session, None)
        self._used[session] = tokens / self._windows[agent]
        return self.is_full(session) is not before

    def forget(self, session: SessionKey) -> None:
        """The conversation begins anew."""
        self._used.pop(session, None)

    def forget_all(self) -> None:
        """Others go on with the conversations."""
        self._used.clear()

    def used(self, session: SessionKey) -> float | None:
        """The share of the window that is used, 1.0 being all of it; None if nobody told."""
        return self._used.get(session)

    def is_full(self, session: SessionKey) -> bool:
        """Whether the session works on one run at a time."""
        return self._used.get(session, 0.0) >= FULL_FROM

    def throttled(self, session: SessionKey, policy: QueuePolicy) -> QueuePolicy:
        """How a session queues, given how full it is."""
        if policy.concurrency == 1 or not self.is_full(session):
            return policy
        return replace(policy, concurrency=1)
