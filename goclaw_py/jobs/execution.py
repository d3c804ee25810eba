"""An occurrence that this process has claimed and not finished."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from goclaw_py.jobs.execution_models import OccurrenceClaim
from goclaw_py.jobs.models import WorkItem
from goclaw_py.jobs.policy import JobPolicy
from goclaw_py.model.ids import NodeId, OccurrenceId, RunId, SessionKey
from goclaw_py.model.messages import Target
from goclaw_py.ports.clock import Clock


class OccurrenceSuperseded(Exception):
    """A job was paused, deleted or given another time after it was claimed, and before its time."""


@dataclass(slots=True, eq=False)
class JobExecution:
    """A claimed occurrence.

    Args:
        policy: How its job behaves.
        attempt: The number of the attempt that is under way, from 1.
        node: The node that has claimed it, whatever this process is called by now.
        looked_at: When its job was last known to want this.
        waits: It waits for its next attempt, or for its turn after an outage of ours.
        run: The run of the attempt.
        session: The conversation that it works in.
        target: Where it tells its result, as far as that was known at its start.
        item: The work that it was given.
    """

    claimed: OccurrenceClaim
    policy: JobPolicy
    node: NodeId
    looked_at: datetime
    attempt: int = 0
    waits: bool = False
    started_at: datetime | None = None
    run: RunId | None = None
    session: SessionKey | None = None
    target: Target | None = None
    item: WorkItem | None = None
    early: bool = False
    """It was claimed before its time, which has not come."""
    withdrawn: bool = False
    """Meanwhile people have changed their mind about it."""
    stopped: bool = False
    """It begins no more attempt."""
    is_over: bool = False
    """How it ends is decided, and being stored."""
    fault: str = ""
    """Why its job cannot be made out by this release."""

    async def until_due(self, clock: Clock) -> None:
        """Wait for its time, if it was claimed before that. Raises ``OccurrenceSuperseded``."""
        if (wait_s := (self.claimed.due_at - clock.now()).total_seconds()) > 0:
            await asyncio.sleep(wait_s)
        self.early = False
        if self.withdrawn:
            raise OccurrenceSuperseded(self.id)

    @property
    def id(self) -> OccurrenceId:
        """That of the occurrence."""
        return self.claimed.id


def facts_of(held: JobExecution) -> dict[str, object]:
    """What log lines say of it."""
    job = held.claimed.job
    return {
        "job": job.id,
        "slug": job.spec.slug,
        "occurrence": held.id,
        "attempt": held.attempt,
        "run_id": held.run,
        "session": held.session,
    }
