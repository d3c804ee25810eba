"""Claimed occurrences in this process, and the handler that executes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from goclaw_py.core.ids import OccurrenceId, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import JobStore
from goclaw_py.runs.run_persistence import RunEndStore
from goclaw_py.schedule.engine import Messages
from goclaw_py.schedule.jobs.decisions import Finish
from goclaw_py.schedule.jobs.execution_models import JobUpdate, OccurrenceClaim, Why
from goclaw_py.schedule.jobs.models import Job, WorkItem
from goclaw_py.schedule.jobs.policy import JobPolicy
from goclaw_py.schedule.models import Attempt, Execution, Superseded


@dataclass(slots=True, eq=False)
class JobExecution(Execution):
    """A claimed occurrence.

    Args:
        policy: The policy of its job.
        target: The target of its result, as far as known at its start.
        item: Its work item.
    """

    claimed: OccurrenceClaim
    policy: JobPolicy
    target: Target | None = None
    item: WorkItem | None = None
    early: bool = False
    """It was claimed before it is due, and is not due yet."""
    withdrawn: bool = False
    """Its job was changed after the claim."""
    fault: str = ""
    """Why this release cannot read its job."""

    async def until_due(self, clock: Clock) -> None:
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
        """Return whether an attempt has started in this process."""
        return self.attempt > self.claimed.attempts

    @property
    def context(self) -> dict[str, object]:
        job = self.claimed.job
        return {"job": job.id, "slug": job.spec.slug, "occurrence": self.id}


@dataclass(frozen=True, slots=True)
class EndReport:
    """The notifications about an end.

    Args:
        silent: Why a success is not reported.
        no_route: Why no chat can be notified; "" if one can.
    """

    say: Messages = ()
    silent: Why | None = None
    no_route: str = ""


class JobHandler(Protocol):
    """Executes jobs. Without channels nothing is ever busy, and no notifications are sent."""

    async def perform(self, execution: JobExecution) -> None:
        """Start an attempt; its result is passed to ``JobExecutions.ended``.

        If cancelled, the attempt has not started.
        """

    def busy(self, job: Job, policy: JobPolicy) -> Why | None:
        """Return why a job must wait; None if it need not."""
        del job, policy
        return None

    def session(self, job: Job, policy: JobPolicy) -> SessionKey | None:
        """Return the session of a job's run; None if no other run can use it."""
        del job, policy
        return None

    async def notifications(
        self, execution: JobExecution, end: Finish, update: JobUpdate | None, attempt: Attempt
    ) -> EndReport:
        """Return the notifications about an end. Raises ``StoreUnavailable``."""
        del execution, end, update, attempt
        return EndReport()

    async def on_notified(
        self, execution: JobExecution, end: Finish, say: Sequence[OutboundMessage], attempt: Attempt
    ) -> None:
        """The end and its notifications were stored."""
        del execution, end, say, attempt


class JobRunStore(JobStore, RunEndStore, Protocol):
    """The store operations that this module needs."""
