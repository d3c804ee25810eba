"""Everything about heartbeats in a gateway, wired to each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from goclaw_py.chats.incident_alerts import Incidents
from goclaw_py.common.retention import keep_tidy
from goclaw_py.common.retry import until_available
from goclaw_py.common.wakeup import Wake
from goclaw_py.heartbeat.alert_targets import Routes
from goclaw_py.heartbeat.alerts import Alerts
from goclaw_py.heartbeat.checklist_files import Checklists
from goclaw_py.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.heartbeat.executions import Beats
from goclaw_py.heartbeat.executor import BeatRuns
from goclaw_py.heartbeat.models import BeatEnd, BeatStatus, ClaimedBeat, Plan, Undelivered
from goclaw_py.heartbeat.poller import BeatLoop
from goclaw_py.heartbeat.preconditions import Checks
from goclaw_py.heartbeat.service import HeartbeatDesk
from goclaw_py.jobs.module import Colleagues
from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.ids import AgentName, NodeId, SessionKey
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.heartbeat import BeatBegun, NoBeat
from goclaw_py.ports.store import Place, Store
from goclaw_py.runs.agent_executor import Workshop
from goclaw_py.scheduler.dispatcher import Dispatcher

log = logging.getLogger(__name__)

_UNDELIVERED_S = 15.0


@dataclass(frozen=True, slots=True)
class HeartbeatSetup:
    """What the settings say about heartbeats, by agent.

    Args:
        workspaces: The folders with the checklists.
        run_timeout_s: How long a run may work; None: as long as it likes.
    """

    policies: Mapping[AgentName, HeartbeatPolicy] = field(default_factory=dict)
    plans: Mapping[AgentName, Plan] = field(default_factory=dict)
    workspaces: Mapping[AgentName, Path] = field(default_factory=dict)
    run_timeout_s: float | None = None


def desk_of(
    store: Store,
    clock: Clock,
    setup: HeartbeatSetup,
    places: Collection[Place],
) -> HeartbeatDesk:
    """The desk of somebody who has only the database."""
    checklists = Checklists(setup.workspaces)
    routes = Routes(store, places)
    return HeartbeatDesk(store, clock, setup.policies, setup.plans, checklists, routes)


class Heartbeats:
    """The heartbeats of a gateway."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: Callable[[], NodeId],
        setup: HeartbeatSetup,
        by: Colleagues,
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._setup = setup
        self._by = by
        self.wake = Wake()
        policies = setup.policies
        checklists = Checklists(setup.workspaces)
        self._routes = routes = Routes(store, by.policies.places, by.channels)
        self.desk = HeartbeatDesk(store, clock, policies, setup.plans, checklists, routes)
        checks = Checks(store, clock, policies, checklists)
        self.beats = Beats(store, clock, node, policies, checks, freed=self._freed)
        self.runs = BeatRuns(store, clock, by.children, by.feed, by.ledger, setup.run_timeout_s)
        self.loop = BeatLoop(store, clock, node, tuple(policies), self.beats, self.wake)
        self._problems: dict[AgentName, str] = {}
        self._untold: Sequence[Undelivered] = ()

    def connect(
        self,
        dispatcher: Dispatcher,
        workshop: Workshop,
        incidents: Incidents,
        release_later: Callable[[SessionKey], None],
    ) -> None:
        """Give it those with whom it works. Call it once, before anything runs."""
        by = self._by
        self._dispatcher = dispatcher
        self._alerts = Alerts(
            self._store, self._clock, by.channels, self._routes, by.replies, incidents
        )
        self.runs.connect(dispatcher, workshop, self.beats, self._alerts, release_later)
        self.beats.connect(self.runs, self._note, by.meter)
        self.desk.connect(self)

    # ------------------------------------------------------------------ duties

    async def run(self) -> None:
        """Beat as the settings want it, until cancelled."""
        if self._setup.plans:
            plans = tuple(self._setup.plans.values())
            await until_available(lambda: self._store.plan_heartbeats(plans, now=self._clock.now()))
            await self.loop.run()
        await asyncio.Event().wait()

    async def keep_telling(self) -> None:
        """Tell what could not be delivered in the next chat that there is, until cancelled."""
        while True:
            try:
                self._untold = await self._alerts.tell_undelivered(
                    self._setup.policies, self._by.policies.places
                )
            except StoreUnavailable as error:
                log.debug(
                    "store_unavailable", extra={"error": str(error), "part": "heartbeat_alerts"}
                )
            await asyncio.sleep(_UNDELIVERED_S)

    async def keep_tidy(self) -> None:
        """Forget what is too old, now and then (SPEC DB-5). Runs until cancelled."""
        await keep_tidy(lambda: self._store.sweep_beats(now=self._clock.now()))

    def _freed(self, over: ClaimedBeat) -> None:
        """Look for the next beat of an agent if the loop may sleep past it.

        It was not looked for as long as this one was in hand. Of a wake that waits, and of what is
        due already, the store tells.
        """
        until = self._clock.now() + timedelta(seconds=self.loop.look_s)
        if over.next_at is not None and over.next_at <= until:
            self.wake.call()

    # ------------------------------------------------------------------ by hand

    async def beat_now(self, agent: AgentName) -> BeatBegun | NoBeat:
        """See ``desk.Hand``."""
        if self._dispatcher.draining:
            return NoBeat.OFF
        held = await self.beats.claim_by_hand(agent)
        return NoBeat.ALREADY_RUNNING if held is None else BeatBegun(held.id)

    # ------------------------------------------------------------------ looking

    def _note(self, end: BeatEnd) -> None:
        """Know what an operator should know of the last beat of an agent."""
        if end.status in _PROBLEMS:
            self._problems[end.agent] = f"{end.status}: {end.detail}"
        elif end.status is not BeatStatus.SKIPPED:
            self._problems.pop(end.agent, None)

    def warnings(self) -> tuple[str, ...]:
        """What an operator should know (SPEC HB-8)."""
        problems = [*self._problems.items(), *((lost.agent, lost.why) for lost in self._untold)]
        return tuple(
            f"heartbeat of {agent}: {problem}; see: goclaw heartbeat why {agent}"
            for agent, problem in problems
        )

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """Claim nothing more, and give back what waits. What runs ends with the dispatcher."""
        self.loop.close()
        await self.beats.close()

    def forget(self) -> None:
        """This node was declared dead: what it had in hand belongs to others."""
        self.beats.forget()
        self.wake.call()


_PROBLEMS = frozenset({BeatStatus.NO_ROUTE, BeatStatus.FAILED})
