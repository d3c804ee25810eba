"""An occurrence that this process has claimed and not ended, and what performs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from goclaw_py.jobs.decisions import Finish
from goclaw_py.jobs.execution_models import JobUpdate, OccurrenceClaim, Why
from goclaw_py.jobs.models import Job, WorkItem
from goclaw_py.jobs.policy import JobPolicy
from goclaw_py.model.ids import OccurrenceId, SessionKey
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import JobStore
from goclaw_py.runs.run_persistence import RunEndStore
from goclaw_py.scheduled_work.engine import Messages
from goclaw_py.scheduled_work.models import Attempt, Execution, Superseded


@dataclass(slots=True, eq=False)
class JobExecution(Execution):
    """A claimed occurrence.

    Args:
        policy: How its job behaves.
        target: Where it tells its result, as far as that was known at its start.
        item: The work that it was given.
    """

    claimed: OccurrenceClaim
    policy: JobPolicy
    target: Target | None = None
    item: WorkItem | None = None
    early: bool = False
    """It was claimed before its time, which has not come."""
    withdrawn: bool = False
    """Meanwhile people have changed their mind about it."""
    fault: str = ""
    """Why its job cannot be made out by this release."""

    async def until_due(self, clock: Clock) -> None:
        """See ``Execution``."""
        if (wait_s := (self.claimed.due_at - clock.now()).total_seconds()) > 0:
            await asyncio.sleep(wait_s)
        self.early = False
        if self.withdrawn:
            raise Superseded(self.id)

    @property
    def id(self) -> OccurrenceId:
        """The id of the occurrence."""
        return self.claimed.id

    @property
    def has_begun(self) -> bool:
        """Whether an attempt of it has begun in this process."""
        return self.attempt > self.claimed.attempts

    @property
    def context(self) -> dict[str, object]:
        """See ``Execution``."""
        job = self.claimed.job
        return {"job": job.id, "slug": job.spec.slug, "occurrence": self.id}


@dataclass(frozen=True, slots=True)
class EndReport:
    """The notifications about an end.

    Args:
        silent: Why nobody is told what went well.
        no_route: Why there is no chat that could be told; "" if there is.
    """

    say: Messages = ()
    silent: Why | None = None
    no_route: str = ""


class JobHandler(Protocol):
    """Executes jobs. Without channels there is always room, and nobody is told."""

    async def perform(self, held: JobExecution) -> None:
        """Begin an attempt; whatever comes of it, ``JobExecutions.ended`` is told.

        Cancelled, it has not begun.
        """

    def busy(self, job: Job, policy: JobPolicy) -> Why | None:
        """Why there is no room for a job now; None: there is."""
        del job, policy
        return None

    def session(self, job: Job, policy: JobPolicy) -> SessionKey | None:
        """The session that a job needs for its run; None: none that others could hold."""
        del job, policy
        return None

    async def tell(
        self, held: JobExecution, end: Finish, update: JobUpdate | None, attempt: Attempt
    ) -> EndReport:
        """What people are told of the end of an occurrence. Raises ``StoreUnavailable``."""
        del held, end, update, attempt
        return EndReport()

    async def told(
        self, held: JobExecution, end: Finish, say: Sequence[OutboundMessage], attempt: Attempt
    ) -> None:
        """The end is stored, and with it what is told."""
        del held, end, say, attempt


class JobRunStore(JobStore, RunEndStore, Protocol):
    """The store operations that this module needs."""
