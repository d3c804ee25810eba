"""All parts of jobs in a gateway, connected to each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from goclaw_py.chat.channel import Channel
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import CRON_LANE, AgentName, JobId
from goclaw_py.core.messages import Target
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import Place
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.agent_loop import AgentLoop
from goclaw_py.runs.approval_port import Ask
from goclaw_py.schedule.agent_runs import ScheduledRunServices
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.executor import JobRuns
from goclaw_py.schedule.jobs.models import Job
from goclaw_py.schedule.jobs.notifications import JobNotifications
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE
from goclaw_py.schedule.jobs.poller import JobPoller
from goclaw_py.schedule.jobs.targets import JobTargets
from goclaw_py.schedule.jobs.texts import undelivered_warning
from goclaw_py.schedule.jobs.work_items import WorkItems, WorkSource
from goclaw_py.schedule.retention import run_retention
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.operator_warnings import OperatorWarning

log = logging.getLogger(__name__)

_LOOK_S = 2.0
"""Seconds between checks of deliveries of results."""


def _no_programs(argv: tuple[str, ...]) -> AgentLoop:
    raise ValueError(f"this gateway does not run programs: {argv[0]}")


@dataclass(frozen=True, slots=True)
class JobSetup:
    """The settings of jobs.

    Args:
        sources: The work sources, by name.
        program: Creates the loop that runs a program instead of an agent.
        limits: The number of concurrent runs of an agent, where the settings limit it.
    """

    rules: JobCreationRules = field(default_factory=lambda: JobCreationRules(DEFAULT_PROFILE))
    sources: Mapping[str, WorkSource] = field(default_factory=dict)
    program: Callable[[tuple[str, ...]], AgentLoop] = _no_programs
    limits: Mapping[AgentName, int] = field(default_factory=dict)


def _chat_problem(channels: Mapping[Place, Channel], target: Target) -> str:
    channel = channels.get((target.channel, target.account))
    return "" if channel is None else channel.chat_problem(target.chat)


class JobModule:
    """The jobs of a gateway."""

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        setup: JobSetup,
        shared: ScheduledRunServices,
        *,
        ask: Ask,
        check_scheduling: Callable[[Requester], Awaitable[None]],
        on_disabled: Callable[[Job], Coroutine[None, None, None]],
    ) -> None:
        self._enabled = setup.rules.enabled
        self._clock = clock
        self._store = store
        self._undelivered: tuple[OperatorWarning, ...] = ()
        self.wake = WakeEvent()
        self.service = JobService(
            store,
            clock,
            replace(
                setup.rules,
                owners=lambda: shared.policies.owners,
                chat_problem=partial(_chat_problem, shared.channels),
            ),
            run_now=lambda job: self.runs.run_now(job),  # noqa: PLW0108 - they need the service, too
            gateway=store,
            check_scheduling=check_scheduling,
        )
        places = JobTargets(store, shared.policies)
        self._notifications = JobNotifications(
            store, clock, shared.channels, places, shared.replies, shared.incidents.owners_chats
        )
        self.runs = JobRuns(
            store,
            clock,
            shared,
            base=setup.rules.base,
            service=self.service,
            places=places,
            notifications=self._notifications,
            work=WorkItems(setup.sources),
            program=setup.program,
            limits=setup.limits,
            ask=ask,
            freed=self.wake.call,
            on_disabled=on_disabled,
        )
        self.occurrences = self.runs.occurrences
        self.loop = JobPoller(
            store, clock, self.occurrences, lambda: _size(shared.dispatcher), self.wake
        )

    async def run(self) -> None:
        """Run due jobs until cancelled; do nothing if jobs are disabled."""
        if self._enabled:
            await self.loop.run()
        await asyncio.Event().wait()

    async def retry_notifications(self) -> None:
        """Send undelivered results to another chat once one can be found, until cancelled."""
        while True:
            try:
                found = await self._notifications.send_unreported()
                chats = {one.refused_by for one in found if one.refused_by is not None}
                known = await self._store.names(chats) if chats else KnownNames()
                self._undelivered = undelivered_warning(found, known)
            except StoreUnavailable as error:
                log.debug("store_unavailable", extra={"error": str(error), "part": "job_results"})
            await asyncio.sleep(_LOOK_S)

    async def run_retention(self) -> None:
        """Delete old rows regularly, until cancelled (SPEC DB-5)."""
        await run_retention(lambda: self._store.sweep_jobs(now=self._clock.now()))

    def warnings(self) -> tuple[OperatorWarning, ...]:
        """Return warnings for operators (SPEC CRON-4)."""
        if not self._enabled:
            words = "are turned off (scheduler.enabled), so no job runs"
            return (
                OperatorWarning("gateway.jobs_off", "Jobs", words, "/settings?section=scheduler"),
            )
        return self._undelivered

    def name_of(self, job: JobId) -> str | None:
        """Return the name of a job that is running here, or its short name."""
        mine = (execution.claimed.job for execution in self.occurrences.all())
        return next((one.spec.title for one in mine if one.id == job), None)

    async def close(self) -> None:
        """Stop claiming, and release what waits. Runs end with the dispatcher."""
        self.loop.close()
        await self.occurrences.close()

    def forget(self) -> None:
        """Forget all claims: this node has expired, and its claims belong to others."""
        self.occurrences.forget()
        self.wake.call()


def _size(dispatcher: Dispatcher) -> int:
    """Return how many jobs may run at once now."""
    return dispatcher.lane_load(CRON_LANE).concurrency
