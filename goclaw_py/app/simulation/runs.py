"""Simulated job runs, which only take time (SPEC OPS-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Ending
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import Store
from goclaw_py.schedule.agent_runs import attempt_of
from goclaw_py.schedule.jobs.decisions import Finish
from goclaw_py.schedule.jobs.execution import EndReport, JobExecution
from goclaw_py.schedule.jobs.execution_models import JobUpdate
from goclaw_py.schedule.jobs.executor import JobRunDeps, JobRuns
from goclaw_py.schedule.jobs.models import Job
from goclaw_py.schedule.jobs.targets import JobTargets
from goclaw_py.schedule.models import Attempt


class SimulatedRuns(JobRuns):
    """Runs of jobs that store no rows and send nothing; when they run is decided as always.

    Args:
        takes: Returns the duration of a job's run in seconds.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        places: JobTargets,
        deps: JobRunDeps,
        *,
        takes: Callable[[Job], float],
    ) -> None:
        super().__init__(store, clock, places, deps)
        self._takes = takes

    async def work(self, run_id: RunId) -> None:
        """Wait for the duration of a run."""
        held = self._runs[run_id].held
        await held.until_due(self._clock)
        held.started_at = held.started_at or self._clock.now()
        await asyncio.sleep(self._takes(held.claimed.job))

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        """Store the end of the occurrence."""
        mine = self._runs[ended.run_id]
        try:
            await self._occurrences.ended(mine.held, attempt_of(ended, error, mine.progress), None)
        finally:
            del self._runs[ended.run_id]

    async def tell(
        self, held: JobExecution, end: Finish, update: JobUpdate | None, attempt: Attempt
    ) -> EndReport:
        """Send no notifications."""
        del held, end, update, attempt
        return EndReport()

    async def told(
        self, held: JobExecution, end: Finish, say: Sequence[OutboundMessage], attempt: Attempt
    ) -> None:
        """Wake the heartbeat only."""
        del say, attempt
        await self._wake_heartbeat(held, end)
