"""Polls for due jobs and claims them (SPEC CRON-4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.ids import OccurrenceId
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import new_id
from goclaw_py.records import JobStore
from goclaw_py.schedule.jobs.execution_models import OccurrenceClaim
from goclaw_py.schedule.jobs.executions import JobExecutions
from goclaw_py.schedule.poller import WorkPoller

log = logging.getLogger(__name__)

_CROWD = 20
"""From this number on, jobs that are due together are claimed early."""
_EACH = timedelta(seconds=0.005)
"""The time to claim and prepare one of them, with a quarter of a processor."""
_MOST_LEAD = timedelta(seconds=5)
_TOGETHER = timedelta(seconds=0.1)
_NO_LEAD = timedelta()
_MOST_AT_ONCE = 1000
_FEW = 20
_MESSAGES = 100


class JobPoller(WorkPoller[OccurrenceClaim, JobExecutions]):
    """Claims due jobs for one process.

    Args:
        size: The number of jobs that this process can run at once now.
        wake: Set when a job was changed, or when there is room for more.
        without_runs: Whether no runs are stored, so that each lost claim may have been an attempt.
    """

    def __init__(
        self,
        store: JobStore,
        clock: Clock,
        executions: JobExecutions,
        size: Callable[[], int],
        wake: WakeEvent,
        *,
        without_runs: bool = False,
    ) -> None:
        super().__init__("jobs", clock, executions, wake)
        self._store = store
        self._size = size
        self._without_runs = without_runs
        self._lead = _NO_LEAD
        """How long before their time the next jobs are claimed."""
        self._many = _FEW

    async def replan(self, now: datetime) -> None:
        after, count = "", 0
        while found := await self._store.jobs_ahead(now=now, after=after):
            # Not the time before the query: jobs that ran meanwhile would be too far ahead.
            now = self._clock.now()
            for job in found:
                at = self._executions.replanned(job, now)
                if at is not None:
                    count += await self._store.replan_job(job, at)
            after = found[-1].id
        if count:
            log.warning("jobs_replanned", extra={"jobs": count})

    async def prepare(self) -> None:
        """Claim occurrences that wait for a session which this node owns or can take (CRON-10).

        Those that wait for a session of this node need no room: only this node can start them.
        """
        await self._executions.withdraw()
        node, now, unheld = self._executions.node(), self._clock.now(), self.has_room()
        claimed = await self.claim(self._store.claim_waiting(node, now=now, unheld=unheld))
        self._executions.start_claimed(claimed)

    async def claim_due(self) -> Sequence[OccurrenceClaim]:
        """Claim due jobs as far as there is room; messages need none (SPEC CRON-4)."""
        return await self.claim(self._claim_startable())

    async def _claim_startable(self) -> Sequence[OccurrenceClaim]:
        room, node, now = self.room(), self._executions.node(), self._clock.now()
        # Creating ids costs time, so only as many are created as are probably due.
        wanted = min(room if room > 0 else _MESSAGES, self._many)
        ids = [OccurrenceId(new_id(self._clock)) for _ in range(wanted)]
        claimed = await self._store.claim_due(
            node,
            now=now,
            ids=ids,
            until=now + self._lead,
            messages_only=room <= 0,
            without_runs=self._without_runs,
        )
        self._many = _MOST_AT_ONCE if len(claimed) == wanted else _FEW
        return await self._executions.startable(claimed, node) if claimed else claimed

    async def next_due(self) -> datetime | None:
        """Return when something is due next, or earlier for a crowd of jobs.

        Claiming and starting a thousand jobs takes a while; claiming them early keeps them
        punctual. A job that is changed in between does not run. Those for which there is no room
        are not claimed early, so they add nothing: slots would only be occupied for longer.
        """
        self._lead = _NO_LEAD
        due_at = await self._store.next_job_due()
        if due_at is None or (ahead := due_at - self._clock.now()) <= _NO_LEAD:
            return due_at
        if ahead > _MOST_LEAD + _TOGETHER:
            # Then it is known whether there is a crowd.
            return due_at - _MOST_LEAD
        crowd = await self._store.crowd(until=due_at + _TOGETHER, most=_MOST_AT_ONCE)
        if crowd >= _CROWD:
            self._many = _MOST_AT_ONCE
            self._lead = min(min(crowd, max(self.room(), 0)) * _EACH, _MOST_LEAD)
        return due_at - self._lead

    def has_room(self) -> bool:
        return self.room() > 0

    def room(self) -> int:
        """Return how many more may be claimed: those that can start, and as many again (CRON-5)."""
        return min(2 * self._size() - self._executions.load, _MOST_AT_ONCE)
