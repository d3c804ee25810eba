"""The heartbeat service that API, CLI, chats and tools call (SPEC HB-9, HB-11, HB-13)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from goclaw_py.core.errors import BadChecklist, HeartbeatError, UnknownAgent
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.text import is_blank
from goclaw_py.core.time.clock import Clock
from goclaw_py.operations.heartbeat import HeartbeatStarted, NoHeartbeat
from goclaw_py.records import HeartbeatStore
from goclaw_py.schedule.heartbeat import texts
from goclaw_py.schedule.heartbeat.alert_targets import AlertTargetResolver
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, parse
from goclaw_py.schedule.heartbeat.checklist_files import ChecklistFiles, ChecklistProblem
from goclaw_py.schedule.heartbeat.decisions import AskAgent, Deferred, HeartbeatPolicy, Skipped
from goclaw_py.schedule.heartbeat.models import (
    EVENT_CHARS,
    OPEN,
    WAKES_APART,
    Heartbeat,
    HeartbeatConfig,
    HeartbeatEvent,
    HeartbeatRun,
    HeartbeatRunStatus,
    Skip,
)
from goclaw_py.schedule.heartbeat.preconditions import Checks, day_of
from goclaw_py.schedule.heartbeat.views import DryRunReport, HeartbeatView

log = logging.getLogger(__name__)

_LOOKED_AT = 10


class ManualHeartbeats(Protocol):
    """Runs heartbeats on request."""

    async def run_heartbeat_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        """Claim a heartbeat run and start it. Raises ``StoreUnavailable``."""


class GatewayHeartbeatService:
    """Implements ``operations.heartbeat.HeartbeatService`` over a store.

    Args:
        policies: The policies of all agents.
        plans: Their heartbeats as configured.
    """

    def __init__(
        self,
        store: HeartbeatStore,
        clock: Clock,
        policies: Mapping[AgentName, HeartbeatPolicy],
        plans: Mapping[AgentName, HeartbeatConfig],
        checklists: ChecklistFiles,
        routes: AlertTargetResolver,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies
        self._plans = plans
        self._checklists = checklists
        self._routes = routes
        self._checks = Checks(store, clock, policies, checklists)
        self._hand: ManualHeartbeats | None = None

    def connect(self, hand: ManualHeartbeats) -> None:
        """Set the service for manual runs; without it, none can start."""
        self._hand = hand

    @property
    def agents(self) -> tuple[AgentName, ...]:
        return tuple(self._policies)

    # ------------------------------------------------------------------ looking

    async def view(self, agent: AgentName) -> HeartbeatView:
        policy, heartbeat = self._policy(agent), await self._heartbeat(agent)
        now = self._clock.now()
        log_ = await self._store.heartbeat_runs(agent, limit=_LOOKED_AT)
        today = day_of(now)
        wake_from = heartbeat.wake_at
        if wake_from is not None and heartbeat.began_at is not None:
            wake_from = max(wake_from, heartbeat.began_at + WAKES_APART)
        return HeartbeatView(
            heartbeat=heartbeat,
            policy=policy,
            route=(await self._routes.find(agent, policy)).route,
            now=now,
            last=next(
                (heartbeat_run for heartbeat_run in log_ if heartbeat_run.status not in OPEN), None
            ),
            current=next(
                (heartbeat_run for heartbeat_run in log_ if heartbeat_run.status in OPEN), None
            ),
            today=await self._store.heartbeat_usage(agent, since=today),
            month=await self._store.heartbeat_usage(agent, since=today.replace(day=1)),
            events=len(await self._store.events(agent)),
            wake_from=wake_from,
        )

    async def log(
        self,
        agent: AgentName | None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        since: datetime | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        if agent is not None:
            self._policy(agent)
        return await self._store.heartbeat_runs(
            agent, limit=limit, outcome=outcome, since=since, before=before
        )

    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun | None:
        return await self._store.heartbeat_run(heartbeat_run)

    async def dry_run(self, agent: AgentName) -> DryRunReport:
        policy, heartbeat = self._policy(agent), await self._heartbeat(agent)
        checked = await self._checks.check(HeartbeatRunKind.MANUAL, heartbeat, heartbeat.next_at)
        route = (await self._routes.find(agent, policy)).route
        match checked.verdict:
            case Skipped(skip):
                return DryRunReport(HeartbeatRunStatus.SKIPPED, skip, checked.detail, "", route)
            case Deferred():
                detail = texts.IS_BUSY
                return DryRunReport(HeartbeatRunStatus.DEFERRED, None, detail, "", route)
            case AskAgent(due, events):
                prompt = texts.heartbeat_prompt(due.text, events, policy.zone)
                return DryRunReport(HeartbeatRunStatus.RUNNING, None, checked.detail, prompt, route)

    # ------------------------------------------------------------------ doing

    async def run_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        await self._planned(agent)
        return NoHeartbeat.OFF if self._hand is None else await self._hand.run_heartbeat_now(agent)

    async def switch(self, agent: AgentName, *, on: bool | None) -> HeartbeatView:
        await self._planned(agent)
        await self._store.switch_heartbeat(agent, on=on, now=self._clock.now())
        log.info("heartbeat_switched", extra={"agent": agent, "on": on})
        return await self.view(agent)

    async def mute(self, agent: AgentName, until: datetime | None) -> HeartbeatView:
        await self._planned(agent)
        await self._store.mute_heartbeat(agent, until)
        return await self.view(agent)

    async def add_event(self, agent: AgentName, text: str, *, wake: bool) -> HeartbeatEvent:
        await self._planned(agent)
        if is_blank(text):
            raise HeartbeatError("an event needs a text")
        if len(text) > EVENT_CHARS:
            raise HeartbeatError(
                f"an event has at most {EVENT_CHARS} characters, this has {len(text)}"
            )
        return await self._store.add_event(agent, text.strip(), now=self._clock.now(), wake=wake)

    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        self._policy(agent)
        return await self._store.events(agent)

    # ------------------------------------------------------------------ the checklist

    async def checklist(self, agent: AgentName) -> Checklist:
        self._policy(agent)
        found = await self._checklists.read(agent)
        if not isinstance(found, ChecklistProblem):
            return found
        if found.skip is Skip.NO_FILE:
            return parse("")
        raise BadChecklist(found.detail)

    async def add_item(self, agent: AgentName, text: str) -> Checklist:
        self._policy(agent)
        return await self._checklists.add(agent, text)

    async def complete_item(
        self, agent: AgentName, number: int, *, expected: str | None = None
    ) -> Checklist:
        self._policy(agent)
        return await self._checklists.complete(agent, number, expected)

    async def write_checklist(
        self, agent: AgentName, text: str, *, expected: str | None = None
    ) -> Checklist:
        self._policy(agent)
        return await self._checklists.write(agent, text, expected)

    # ------------------------------------------------------------------ what it needs

    def _policy(self, agent: AgentName) -> HeartbeatPolicy:
        if (policy := self._policies.get(agent)) is None:
            raise UnknownAgent(agent)
        return policy

    async def _heartbeat(self, agent: AgentName) -> Heartbeat:
        """Return a heartbeat, as configured if no gateway has stored it yet."""
        for found in await self._store.heartbeats([agent]):
            return found
        return Heartbeat(agent, self._policies[agent].interval)

    async def _planned(self, agent: AgentName) -> None:
        """Store a heartbeat that no gateway has stored yet."""
        self._policy(agent)
        if not await self._store.heartbeats([agent]):
            await self._store.plan_heartbeats([self._plans[agent]], now=self._clock.now())
