"""Polls for due jobs and claims them (SPEC CRON-4).

The loop sleeps until the next due time or a change, at most a second. It waits for nobody: a job
that hangs, or a channel, delays no other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import overload

from goclaw_py.common.clock import new_id
from goclaw_py.common.polling_loop import PollingLoop
from goclaw_py.common.wakeup import WakeEvent
from goclaw_py.jobs.execution_models import OccurrenceClaim, OccurrenceStatus
from goclaw_py.jobs.executions import JobExecutions
from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.ids import NodeId, OccurrenceId
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import JobStore

_OTHERS_S = 0.05
_CROWD = 20
"""So many jobs at once are claimed before their time."""
_EACH_S = 0.002
_MOST_LEAD_S = 2.0
_TOGETHER = timedelta(seconds=0.1)
_NO_LEAD = timedelta()
_MOST_AT_ONCE = 1000
_MESSAGES = 100


class JobPoller(PollingLoop):
    """Claims due jobs for one process.

    Args:
        size: How many jobs this process can run at once, as it is now.
        wake: Called when a job was changed, or when there is room for more.
    """

    def __init__(
        self,
        store: JobStore,
        clock: Clock,
        node: Callable[[], NodeId],
        occurrences: JobExecutions,
        size: Callable[[], int],
        wake: WakeEvent,
    ) -> None:
        super().__init__("jobs", wake)
        self._store = store
        self._clock = clock
        self._node = node
        self._occurrences = occurrences
        self._size = size

    async def look(self) -> float:
        """See ``PollingLoop``."""
        await self._occurrences.withdraw()
        await self._claim_waiting()
        due_at, lead = await self._next()
        while due_at is not None and due_at <= self._clock.now() + lead:
            claimed = await self._claim(lead)
            if claimed is None:
                return _OTHERS_S
            await self._occurrences.take(claimed)
            if not claimed and self.room() <= 0:
                return self.look_s
            due_at, lead = await self._next()
            if not claimed and due_at is not None and due_at <= self._clock.now():
                # Others are claiming these right now.
                return _OTHERS_S
        if due_at is None:
            return self.look_s
        ahead_s = (due_at - self._clock.now() - lead).total_seconds()
        if ahead_s > _MOST_LEAD_S:
            # By then it is known whether there is a crowd.
            ahead_s -= _MOST_LEAD_S
        return min(max(ahead_s, 0.0), self.look_s)

    async def _claim(self, lead: timedelta) -> Sequence[OccurrenceClaim] | None:
        """Claim what there is room for; messages need none (SPEC CRON-4).

        None if it is not ours: this node was declared dead meanwhile, or the process ends.
        """
        room, node, now = self.room(), self._node(), self._clock.now()
        ids = _FreshIds(self._clock, room if room > 0 else _MESSAGES)
        try:
            claimed = await self._store.claim_due(
                node, now=now, ids=ids, until=now + lead, messages_only=room <= 0
            )
            if claimed:
                claimed = await self._occurrences.startable(claimed, node)
        except StoreUnavailable:
            self._answer_was_lost()
            raise
        return claimed if await self._is_ours(claimed, node) else None

    async def _claim_waiting(self) -> None:
        """Claim what has waited for a session that this node holds or can take (SPEC CRON-10).

        What waits for a session of this node needs no room: only this node can begin it.
        """
        node, now = self._node(), self._clock.now()
        try:
            claimed = await self._store.claim_waiting(node, now=now, unheld=self.room() > 0)
        except StoreUnavailable:
            self._answer_was_lost()
            raise
        if claimed and await self._is_ours(claimed, node):
            await self._occurrences.take(claimed)

    async def _is_ours(self, claimed: Sequence[OccurrenceClaim], node: NodeId) -> bool:
        """Whether this process goes on with what it has claimed; if it ends, it gives that back."""
        if self._node() != node:
            return False
        if self._closing:
            await self._store.give_back(
                [one.id for one in claimed], node=node, status=OccurrenceStatus.INTERRUPTED
            )
        return not self._closing

    async def _next(self) -> tuple[datetime | None, timedelta]:
        """When something is due next, and how long before its time it is claimed.

        Not at all, but for a crowd: to claim a thousand and to store that they begin takes a while,
        and none of them is to be late for that. What is changed in that time does not run.
        """
        due_at = await self._store.next_job_due()
        if due_at is None:
            return None, _NO_LEAD
        ahead_s = (due_at - self._clock.now()).total_seconds()
        if not 0 < ahead_s <= _MOST_LEAD_S + 0.1:
            return due_at, _NO_LEAD
        crowd = await self._store.crowd(until=due_at + _TOGETHER, most=_MOST_AT_ONCE)
        if crowd < _CROWD:
            return due_at, _NO_LEAD
        return due_at, timedelta(seconds=min(crowd * _EACH_S, _MOST_LEAD_S))

    async def _give_back_unknown(self) -> None:
        known = [held.id for held in self._occurrences.all()]
        await self._store.release_unclaimed(known, node=self._node())

    def room(self) -> int:
        """How many more may be claimed: what can start, and as many again (SPEC CRON-5)."""
        return min(2 * self._size() - self._occurrences.load, _MOST_AT_ONCE)


class _FreshIds(Sequence[OccurrenceId]):
    """So many new ids, each made when it is asked for: most looks find nothing to claim."""

    def __init__(self, clock: Clock, count: int) -> None:
        self._clock = clock
        self._count = count
        self._made: list[OccurrenceId] = []

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> OccurrenceId: ...
    @overload
    def __getitem__(self, at: slice) -> list[OccurrenceId]: ...
    def __getitem__(self, at: int | slice) -> OccurrenceId | list[OccurrenceId]:
        places = range(self._count)[at]
        if isinstance(places, range):
            return [self[place] for place in places]
        while len(self._made) <= places:
            self._made.append(OccurrenceId(new_id(self._clock)))
        return self._made[places]
