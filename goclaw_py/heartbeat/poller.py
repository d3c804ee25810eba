"""Polls for due heartbeat runs and claims them (SPEC HB-1, HB-11).

It sleeps until the next due time or a change, at most a second, and waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from goclaw_py.common.clock import new_id
from goclaw_py.common.polling_loop import PollingLoop
from goclaw_py.common.wakeup import WakeEvent
from goclaw_py.heartbeat.executions import HeartbeatExecutions
from goclaw_py.heartbeat.models import HeartbeatClaim
from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.ids import AgentName, HeartbeatRunId, NodeId
from goclaw_py.model.outcomes import HeartbeatRunKind
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import HeartbeatStore

WAKES: Final = 5
"""How many wakes a process takes up in ``WAKES_S``; more wait (SPEC HB-11)."""
WAKES_S: Final = 60.0

_FEW = 10
_MANY = 1000
_OTHERS_S = 0.05


class WakeLimit:
    """Counts wakes by the clock of the event loop."""

    def __init__(self) -> None:
        self._taken: deque[float] = deque()

    def left(self) -> int:
        """How many may be taken up now."""
        now = asyncio.get_running_loop().time()
        while self._taken and self._taken[0] <= now - WAKES_S:
            self._taken.popleft()
        # What another process had begun goes on here without being asked for.
        return max(0, WAKES - len(self._taken))

    def take(self, count: int) -> None:
        """So many were taken up."""
        self._taken.extend([asyncio.get_running_loop().time()] * count)


class HeartbeatPoller(PollingLoop):
    """Claims due heartbeat runs for one process.

    Args:
        agents: Those that this process knows.
        wake: Called when a heartbeat was changed, or when a beat is over.
    """

    def __init__(
        self,
        store: HeartbeatStore,
        clock: Clock,
        node: Callable[[], NodeId],
        agents: Sequence[AgentName],
        beats: HeartbeatExecutions,
        wake: WakeEvent,
    ) -> None:
        super().__init__("heartbeats", wake)
        self._store = store
        self._clock = clock
        self._node = node
        self._agents = agents
        self._beats = beats
        self._due_at: datetime | None = None
        """What was slept for; whatever has changed since, a claim finds out."""
        self.limit = WakeLimit()

    async def look(self) -> float:
        """See ``PollingLoop``."""
        # As a rule one is due. Ids cost time, so many are made only where many are wanted.
        many = _FEW
        while True:
            wakes = self.limit.left()
            due_at = self._slept_for()
            if due_at is None:
                due_at = await self._store.next_heartbeat_due(self._agents, wakes=wakes > 0)
            if due_at is None:
                return self.look_s
            if (ahead := (due_at - self._clock.now()).total_seconds()) > 0:
                self._due_at = due_at
                return min(ahead, self.look_s)
            claimed = await self._claim(many, wakes)
            if not claimed:
                # Others are claiming these right now, or it is not ours.
                return _OTHERS_S
            many = min(10 * many, _MANY) if len(claimed) == many else _FEW
            self.limit.take(sum(one.kind in _WAKES for one in claimed))
            self._beats.take(claimed)

    def _slept_for(self) -> datetime | None:
        """What the last look has found, if it is due by now; told once."""
        due_at, self._due_at = self._due_at, None
        return None if due_at is None or due_at > self._clock.now() else due_at

    async def _claim(self, many: int, wakes: int) -> Sequence[HeartbeatClaim]:
        node = self._node()
        ids = [HeartbeatRunId(new_id(self._clock)) for _ in range(many)]
        try:
            claimed = await self._store.claim_heartbeats(
                node, self._agents, now=self._clock.now(), ids=ids, wakes=wakes
            )
        except StoreUnavailable:
            self._answer_was_lost()
            raise
        if self._node() != node:
            return []
        if self._closing:
            await self._store.release_heartbeats([one.id for one in claimed], node=node)
            return []
        return claimed

    async def _give_back_unknown(self) -> None:
        known = [held.id for held in self._beats.all()]
        await self._store.release_unclaimed_heartbeats(known, node=self._node())


_WAKES: Final = frozenset({HeartbeatRunKind.EVENT, HeartbeatRunKind.JOB})
