"""Polls for due heartbeat runs and claims them (SPEC HB-1, HB-11)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.records import HeartbeatStore
from goclaw_py.schedule.heartbeat.executions import HeartbeatExecutions
from goclaw_py.schedule.heartbeat.models import HeartbeatClaim, HeartbeatConfig
from goclaw_py.schedule.poller import WorkPoller

WAKES: Final = 5
"""The number of wakes that a process claims in ``WAKES_S``; more wait (SPEC HB-11)."""
WAKES_S: Final = 60.0

_FEW = 10
_MANY = 1000


class WakeLimit:
    """Limits wakes, by the clock of the event loop."""

    def __init__(self) -> None:
        self._taken: deque[float] = deque()

    def left(self) -> int:
        """Return how many may be claimed now."""
        now = asyncio.get_running_loop().time()
        while self._taken and self._taken[0] <= now - WAKES_S:
            self._taken.popleft()
        # Released runs continue here without a request.
        return max(0, WAKES - len(self._taken))

    def count(self, count: int) -> None:
        """Count claimed wakes."""
        self._taken.extend([asyncio.get_running_loop().time()] * count)


class HeartbeatPoller(WorkPoller[HeartbeatClaim, HeartbeatExecutions]):
    """Claims due heartbeat runs for one process.

    Args:
        agents: The agents of this process.
        plans: What the settings say of their heartbeats.
        wake: Set when a heartbeat was changed, or when a heartbeat run has ended.
    """

    def __init__(
        self,
        store: HeartbeatStore,
        clock: Clock,
        agents: Sequence[AgentName],
        plans: Sequence[HeartbeatConfig],
        executions: HeartbeatExecutions,
        wake: WakeEvent,
    ) -> None:
        super().__init__("heartbeats", clock, executions, wake)
        self._store = store
        self._agents = agents
        self._plans = plans
        self._due_at: datetime | None = None
        """The time that it waits for; a claim finds out about changes since."""
        self._many = _FEW
        """Creating ids costs time, so only as many are created as are probably due: usually one."""
        self.limit = WakeLimit()

    async def replan(self, now: datetime) -> None:
        self._due_at = None
        await self._store.replan_heartbeats(self._plans, now=now)

    async def prepare(self) -> None:
        self._many = _FEW

    async def next_due(self) -> datetime | None:
        """Return the result of the last query if it is due by now, once."""
        due_at, self._due_at = self._due_at, None
        if due_at is not None and due_at <= self._clock.now():
            return due_at
        wakes = self.limit.left() > 0
        self._due_at = await self._store.next_heartbeat_due(self._agents, wakes=wakes)
        return self._due_at

    async def claim_due(self) -> Sequence[HeartbeatClaim]:
        self._due_at = None
        ids = [HeartbeatRunId(new_id(self._clock)) for _ in range(self._many)]
        claimed = await self.claim(
            self._store.claim_heartbeats(
                self._executions.node(),
                self._agents,
                now=self._clock.now(),
                ids=ids,
                wakes=self.limit.left(),
            )
        )
        self._many = min(10 * self._many, _MANY) if len(claimed) == self._many else _FEW
        self.limit.count(sum(one.kind in _WAKES for one in claimed))
        return claimed


_WAKES: Final = frozenset({HeartbeatRunKind.EVENT, HeartbeatRunKind.JOB})
