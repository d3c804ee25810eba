"""All parts of heartbeats in a gateway, connected to each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from goclaw_py.chat.channel import Channel
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName
from goclaw_py.core.retry import retry_until_available
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.records import ChatAccounts, Place, Store
from goclaw_py.records.bound import BoundStore
from goclaw_py.schedule.agent_runs import ScheduledRunServices
from goclaw_py.schedule.heartbeat.alert_targets import AlertTargetResolver
from goclaw_py.schedule.heartbeat.alerts import Alerts
from goclaw_py.schedule.heartbeat.checklist_files import ChecklistFiles
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.executor import HeartbeatRunExecutor
from goclaw_py.schedule.heartbeat.models import (
    HeartbeatClaim,
    HeartbeatConfig,
    HeartbeatRunEnd,
    HeartbeatRunStatus,
    HeartbeatStarted,
    NoHeartbeat,
    Undelivered,
)
from goclaw_py.schedule.heartbeat.poller import HeartbeatPoller
from goclaw_py.schedule.heartbeat.preconditions import Checks
from goclaw_py.schedule.poller import LOOK_S
from goclaw_py.schedule.retention import run_retention
from goclaw_py.scheduler.operator_warnings import OperatorWarning

log = logging.getLogger(__name__)

_UNDELIVERED_S = 15.0


@dataclass(frozen=True, slots=True)
class HeartbeatSetup:
    """The settings of heartbeats, by agent.

    Args:
        workspaces: The folders with the checklists.
        run_timeout_s: The timeout of a run; None: none.
    """

    policies: Mapping[AgentName, HeartbeatPolicy] = field(default_factory=dict)
    plans: Mapping[AgentName, HeartbeatConfig] = field(default_factory=dict)
    workspaces: Mapping[AgentName, Path] = field(default_factory=dict)
    run_timeout_s: float | None = None


def service_of(
    store: Store,
    clock: Clock,
    setup: HeartbeatSetup,
    accounts: ChatAccounts,
    channels: Mapping[Place, Channel] | None = None,
    run_now: Callable[[AgentName], Awaitable[HeartbeatStarted | NoHeartbeat]] | None = None,
) -> HeartbeatService:
    """Return the service; without ``channels`` and ``run_now`` it has only the database."""
    checks = Checks(store, clock, setup.policies, ChecklistFiles(setup.workspaces))
    routes = AlertTargetResolver(store, accounts, channels)
    return HeartbeatService(store, clock, checks, setup.plans, routes, run_now)


class HeartbeatModule:
    """The heartbeats of a gateway."""

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        setup: HeartbeatSetup,
        shared: ScheduledRunServices,
        service: HeartbeatService,
    ) -> None:
        self._store = store
        self._clock = clock
        self._setup = setup
        self._places, self._dispatcher = shared.policies.places, shared.dispatcher
        self.wake = WakeEvent()
        self.service = service
        self._alerts = Alerts(
            store, clock, shared.channels, service.routes, shared.replies, shared.incidents
        )
        self.runs = HeartbeatRunExecutor(
            store,
            clock,
            shared,
            checks=service.checks,
            alerts=self._alerts,
            freed=self._freed,
            on_end=self._note,
            run_timeout_s=setup.run_timeout_s,
        )
        self.heartbeat_runs = self.runs.heartbeat_runs
        plans = tuple(setup.plans.values())
        self.loop = HeartbeatPoller(
            store, clock, tuple(setup.policies), plans, self.heartbeat_runs, self.wake
        )
        self._problems: dict[AgentName, str] = {}
        self._without_chat: set[AgentName] = set()
        """Agents whose last run had no chat for its alert."""
        self._unreported: Sequence[Undelivered] = ()

    # ------------------------------------------------------------------ duties

    async def run(self) -> None:
        """Run heartbeats as the settings say, until cancelled."""
        if self._setup.plans:
            await retry_until_available(self.plan)
            await self.loop.run()
        await asyncio.Event().wait()

    async def plan(self) -> None:
        """Store when heartbeats run as the settings say. Raises ``StoreUnavailable``."""
        plans = tuple(self._setup.plans.values())
        await self._store.plan_heartbeats(plans, now=self._clock.now())
        self.wake.call()

    async def retry_notifications(self) -> None:
        """Send undelivered alerts to the next possible chat, until cancelled.

        An agent that had no chat for its alert is no problem any more once it has one.
        """
        while True:
            try:
                for agent in tuple(self._without_chat & self._problems.keys()):
                    policy = self._setup.policies[agent]
                    if (await self.service.routes.find(agent, policy)).route.target is not None:
                        self._problems.pop(agent, None)
                self._unreported = await self._alerts.notify_undelivered(
                    self._setup.policies, self._places
                )
            except StoreUnavailable as error:
                log.debug(
                    "store_unavailable", extra={"error": str(error), "part": "heartbeat_alerts"}
                )
            await asyncio.sleep(_UNDELIVERED_S)

    async def run_retention(self) -> None:
        """Delete old rows regularly, until cancelled (SPEC DB-5)."""
        await run_retention(lambda: self._store.sweep_heartbeat_runs(now=self._clock.now()))

    def _freed(self, over: HeartbeatClaim) -> None:
        """Wake the poller if an agent's next run is earlier than it expects.

        It ignored the agent while this run was claimed. The store sends notices about wakes, and
        about what is due already.
        """
        until = self._clock.now() + timedelta(seconds=LOOK_S)
        if over.next_at is not None and over.next_at <= until:
            self.wake.call()

    # ------------------------------------------------------------------ by hand

    async def run_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        """Claim a heartbeat run and start it. Raises ``StoreUnavailable``."""
        if self._dispatcher.draining:
            return NoHeartbeat.OFF
        execution = await self.heartbeat_runs.claim_manual(agent)
        return NoHeartbeat.ALREADY_RUNNING if execution is None else HeartbeatStarted(execution.id)

    # ------------------------------------------------------------------ looking

    def _note(self, end: HeartbeatRunEnd) -> None:
        """Update the incidents of an agent by its last heartbeat run."""
        self._without_chat.discard(end.agent)
        if end.status is HeartbeatRunStatus.NO_ROUTE:
            self._without_chat.add(end.agent)
        if end.status in _PROBLEMS:
            self._problems[end.agent] = f"{_PROBLEMS[end.status]}: {end.detail}"
        elif end.status is not HeartbeatRunStatus.SKIPPED:
            self._problems.pop(end.agent, None)

    def warnings(self) -> tuple[OperatorWarning, ...]:
        """Return warnings for operators (SPEC HB-8)."""
        refused = (
            (lost.agent, f"could not deliver its alert: {lost.why}") for lost in self._unreported
        )
        problems = [*self._problems.items(), *refused]
        return tuple(
            OperatorWarning(
                "gateway.heartbeat",
                f"The heartbeat of {agent}",
                problem,
                f"/heartbeats/{agent}",
                f"goclaw heartbeat why {agent}",
            )
            for agent, problem in problems
        )

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """Stop claiming, and release what waits. Runs end with the dispatcher."""
        self.loop.close()
        await self.heartbeat_runs.close()

    def forget(self) -> None:
        """Forget all claims: this node has expired, and its claims belong to others."""
        self.heartbeat_runs.forget()
        self.wake.call()


_PROBLEMS: Final = {
    HeartbeatRunStatus.NO_ROUTE: "has no chat for its alert",
    HeartbeatRunStatus.FAILED: "failed",
}
