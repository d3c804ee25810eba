"""Looks for what is due, claims it and hands it over (SPEC CRON-4).

The loop sleeps until the next due time or a change, at most a second. It waits for nobody: a job
that hangs, or a channel, delays no other one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from goclaw_py.core.errors import Fenced, StoreUnavailable
from goclaw_py.core.ids import NodeId, OccurrenceId
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import JobStore
from goclaw_py.runtime.clock import new_id
from goclaw_py.runtime.jobs.occurrences import Occurrences
from goclaw_py.runtime.wake import Wake

log = logging.getLogger(__name__)

LOOK_S = 1.0
_OTHERS_S = 0.05
_MOST_AT_ONCE = 1000


class DueLoop:
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
        occurrences: Occurrences,
        size: Callable[[], int],
        wake: Wake,
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._occurrences = occurrences
        self._size = size
        self._wake = wake
        self._closing = False
        self.look_s = LOOK_S
        """How often the table is looked at without any notice; these are hints (SPEC DB-3)."""

    async def run(self) -> None:
        """Claim what comes due. Runs until cancelled."""
        while not self._closing:
            self._wake.clear()
            try:
                sleep_s = await self.look()
            except StoreUnavailable as error:
                log.debug("jobs wait for the database: %s", error)
                sleep_s = self.look_s
            except Fenced:
                # Declared dead; the next look is that of another node.
                sleep_s = self.look_s
            await self._wake.wait(sleep_s)

    async def look(self) -> float:
        """Claim what is due now; how long there is nothing to do, in seconds, at most 1."""
        due_at = await self._store.next_job_due()
        while due_at is not None and due_at <= self._clock.now():
            room = self.room()
            if room <= 0:
                return self.look_s
            now = self._clock.now()
            ids = [OccurrenceId(new_id(self._clock)) for _ in range(room)]
            claimed = await self._store.claim_due(self._node(), now=now, limit=room, ids=ids)
            if self._closing:
                break
            await self._occurrences.take(claimed)
            due_at = await self._store.next_job_due()
            if not claimed and due_at is not None and due_at <= now:
                # Others are claiming these right now.
                return _OTHERS_S
        if due_at is None:
            return self.look_s
        ahead_s = (due_at - self._clock.now()).total_seconds()
        return min(max(ahead_s, 0.0), self.look_s)

    def room(self) -> int:
        """How many more may be claimed: what can start, and as many again (SPEC CRON-5)."""
        return min(2 * self._size() - self._occurrences.load, _MOST_AT_ONCE)

    def close(self) -> None:
        """Claim nothing more."""
        self._closing = True
        self._wake.call()
