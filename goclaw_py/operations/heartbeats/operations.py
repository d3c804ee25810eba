"""What operators, chats and tools do with heartbeats (SPEC HB-9, HB-11, HB-13)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from goclaw_py.core.actors import Least
from goclaw_py.core.errors import BadChecklist, GoclawError, HeartbeatError, NotFound, UnknownAgent
from goclaw_py.core.ids import AgentName, HeartbeatRunId
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.text import is_blank
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.zones import utc_day
from goclaw_py.operations.declare import operation
from goclaw_py.operations.heartbeats import answers, changes
from goclaw_py.records import HeartbeatStore
from goclaw_py.schedule.heartbeat import texts
from goclaw_py.schedule.heartbeat.alert_targets import AlertTargetResolver
from goclaw_py.schedule.heartbeat.checklist.checklist import Checklist, parse
from goclaw_py.schedule.heartbeat.checklist_files import ChecklistProblem
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
    HeartbeatStarted,
    NoHeartbeat,
    Skip,
)
from goclaw_py.schedule.heartbeat.preconditions import Checks
from goclaw_py.schedule.heartbeat.views import DryRunReport, HeartbeatView

log = logging.getLogger(__name__)

_LOOKED_AT = 10


_OF_CHECKLIST = frozenset({"checklist", "add_item", "complete_item", "write_checklist"})


def refused(name: str, arguments: Mapping[str, object], error: GoclawError) -> GoclawError:
    """Return the error for what the API could not read or route, as without a gateway."""
    if "agent" in arguments and (isinstance(error, NotFound) or str(error).startswith("agent:")):
        return UnknownAgent(str(arguments["agent"]))
    if isinstance(error, NotFound):
        return error
    return BadChecklist(str(error)) if name in _OF_CHECKLIST else HeartbeatError(str(error))


class HeartbeatService:
    """Heartbeats by the names of their agents.

    Each method may raise ``StoreUnavailable``, and ``UnknownAgent`` for an agent that is not in the
    settings; those about the checklist ``BadChecklist``, also for a file that cannot be read.

    Args:
        checks: With the policies and checklists of all agents.
        plans: Their heartbeats as configured.
        run_now: Starts a heartbeat run now; None: there is no gateway.
    """

    def __init__(
        self,
        store: HeartbeatStore,
        clock: Clock,
        checks: Checks,
        plans: Mapping[AgentName, HeartbeatConfig],
        routes: AlertTargetResolver,
        run_now: Callable[[AgentName], Awaitable[HeartbeatStarted | NoHeartbeat]] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = checks.policies
        self._plans = plans
        self._checklists = checks.checklists
        self.routes = routes
        self.checks = checks
        self._run_now = run_now

    @operation("GET /api/agents", Least.VIEWER, read=answers.names_of)
    async def agents(self) -> tuple[AgentName, ...]:
        """Return all agents, in the order of the settings."""
        return tuple(self._policies)

    @operation("GET /api/heartbeats/{agent}", Least.VIEWER)
    async def view(self, agent: AgentName) -> HeartbeatView:
        """Return the state of a heartbeat."""
        policy, heartbeat = self._policy(agent), await self._heartbeat(agent)
        now = self._clock.now()
        log_ = await self._store.heartbeat_runs(agent, limit=_LOOKED_AT)
        today = utc_day(now)
        wake_from = heartbeat.wake_at
        if wake_from is not None and heartbeat.began_at is not None:
            wake_from = max(wake_from, heartbeat.began_at + WAKES_APART)
        return HeartbeatView(
            heartbeat=heartbeat,
            policy=policy,
            route=(await self.routes.find(agent, policy)).route,
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

    @operation("GET /api/heartbeats/{agent}/runs", Least.VIEWER, without="/api/heartbeat-runs")
    async def log(
        self,
        agent: AgentName | None,
        *,
        limit: int = 50,
        outcome: str | None = None,
        since: datetime | None = None,
        before: Cursor | None = None,
    ) -> list[HeartbeatRun]:
        """Return heartbeat runs of an agent or of all, the newest first.

        ``outcome`` is a ``HeartbeatRun.outcome``; with ``since`` those claimed then or later.
        """
        if agent is not None:
            self._policy(agent)
        return await self._store.heartbeat_runs(
            agent, limit=limit, outcome=outcome, since=since, before=before
        )

    @operation("GET /api/heartbeat-runs/{heartbeat_run}", Least.VIEWER)
    async def heartbeat_run(self, heartbeat_run: HeartbeatRunId) -> HeartbeatRun:
        """Return a heartbeat run. Raises ``NotFound``."""
        found = await self._store.heartbeat_run(heartbeat_run)
        if found is None:
            hint = "; see: goclaw heartbeat runs"
            raise NotFound(f"there is no heartbeat run {heartbeat_run!r}", hint=hint)
        return found

    @operation("GET /api/heartbeats/{agent}/dry-run", Least.TEXT)
    async def dry_run(self, agent: AgentName) -> DryRunReport:
        """Return what ``run_now`` would do."""
        policy, heartbeat = self._policy(agent), await self._heartbeat(agent)
        checked = await self.checks.check(HeartbeatRunKind.MANUAL, heartbeat, heartbeat.next_at)
        route = (await self.routes.find(agent, policy)).route
        match checked.verdict:
            case Skipped(skip):
                return DryRunReport(HeartbeatRunStatus.SKIPPED, skip, checked.detail, "", route)
            case Deferred():
                detail = texts.IS_BUSY
                return DryRunReport(HeartbeatRunStatus.DEFERRED, None, detail, "", route)
            case AskAgent(due, events):
                prompt = texts.heartbeat_prompt(due.text, events, policy.zone)
                return DryRunReport(HeartbeatRunStatus.RUNNING, None, checked.detail, prompt, route)

    @operation(
        "POST /api/heartbeats/{agent}/run", Least.OPERATOR, changes.RUN, read=answers.begun_of
    )
    async def run_now(self, agent: AgentName) -> HeartbeatStarted | NoHeartbeat:
        """Run a heartbeat now, whatever its interval and quiet hours; budgets apply (HB-11)."""
        await self._planned(agent)
        return NoHeartbeat.OFF if self._run_now is None else await self._run_now(agent)

    @operation("PUT /api/heartbeats/{agent}/switch", Least.OPERATOR, changes.SWITCH)
    async def switch(self, agent: AgentName, *, on: bool | None) -> HeartbeatView:
        """Turn a heartbeat on or off permanently; None lets the settings decide."""
        await self._planned(agent)
        await self._store.switch_heartbeat(agent, on=on, now=self._clock.now())
        log.info("heartbeat_switched", extra={"agent": agent, "on": on})
        return await self.view(agent)

    @operation("PUT /api/heartbeats/{agent}/mute", Least.OPERATOR, changes.MUTE)
    async def mute(self, agent: AgentName, until: datetime | None) -> HeartbeatView:
        """Mute a heartbeat until then; None unmutes it."""
        await self._planned(agent)
        await self._store.mute_heartbeat(agent, until)
        return await self.view(agent)

    @operation("POST /api/agents/{agent}/events", Least.OPERATOR, changes.ADD_EVENT)
    async def add_event(self, agent: AgentName, text: str, *, now: bool) -> HeartbeatEvent:
        """Add an event to the next heartbeat run; with ``now``, request that run now.

        Raises ``TooManyEvents``, and ``HeartbeatError`` for a text that is blank or too long.
        """
        await self._planned(agent)
        if is_blank(text):
            raise HeartbeatError("an event needs a text")
        if len(text) > EVENT_CHARS:
            raise HeartbeatError(
                f"an event has at most {EVENT_CHARS} characters, this has {len(text)}"
            )
        return await self._store.add_event(agent, text.strip(), now=self._clock.now(), wake=now)

    @operation("GET /api/agents/{agent}/events", Least.TEXT)
    async def events(self, agent: AgentName) -> list[HeartbeatEvent]:
        """Return the events for the next heartbeat run, the oldest first."""
        self._policy(agent)
        return await self._store.events(agent)

    # ------------------------------------------------------------------ the checklist

    @operation("GET /api/heartbeats/{agent}/checklist", Least.TEXT, read=answers.checklist_of)
    async def checklist(self, agent: AgentName) -> Checklist:
        """Return the checklist in HEARTBEAT.md; an empty one if there is no file."""
        self._policy(agent)
        found = await self._checklists.read(agent)
        if not isinstance(found, ChecklistProblem):
            return found
        if found.skip is Skip.NO_FILE:
            return parse("")
        raise BadChecklist(found.detail)

    @operation(
        "POST /api/heartbeats/{agent}/checklist/items",
        Least.OPERATOR,
        changes.ADD_ITEM,
        read=answers.checklist_of,
    )
    async def add_item(self, agent: AgentName, text: str) -> Checklist:
        """Append an item to the checklist."""
        self._policy(agent)
        return await self._checklists.add(agent, text)

    @operation(
        "POST /api/heartbeats/{agent}/checklist/items/{number}/done",
        Least.OPERATOR,
        changes.COMPLETE_ITEM,
        read=answers.checklist_of,
    )
    async def complete_item(
        self, agent: AgentName, number: int, *, version: str | None = None
    ) -> Checklist:
        """Check off an item.

        Raises ``ChecklistChanged`` if ``version`` is given and is not the ``Checklist.version``.
        """
        self._policy(agent)
        return await self._checklists.complete(agent, number, version)

    @operation(
        "PUT /api/heartbeats/{agent}/checklist",
        Least.OPERATOR,
        changes.WRITE_CHECKLIST,
        read=answers.checklist_of,
    )
    async def write_checklist(
        self, agent: AgentName, text: str, *, version: str | None = None
    ) -> Checklist:
        """Replace the whole file.

        Raises ``ChecklistChanged`` if ``version`` is given and is not the ``Checklist.version``.
        """
        self._policy(agent)
        return await self._checklists.write(agent, text, version)

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
