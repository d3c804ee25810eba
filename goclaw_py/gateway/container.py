"""The parts of a gateway that handle messages, wired to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from goclaw_py.chats.access_control import Doorkeeper
from goclaw_py.chats.access_requests import AccessRequests
from goclaw_py.chats.context_usage import Contexts
from goclaw_py.chats.incident_alerts import Incidents
from goclaw_py.chats.session_settings import ChatRules, Policies
from goclaw_py.cluster.lane_permits import LanePlaces
from goclaw_py.cluster.rpc import Calls
from goclaw_py.delivery.outbox_sender import Outbox
from goclaw_py.delivery.rate_limiter import Pacing
from goclaw_py.heartbeat.module import Heartbeats, HeartbeatSetup
from goclaw_py.jobs.module import Colleagues, JobSetup, Office
from goclaw_py.messages.attachments import Received
from goclaw_py.messages.cancellation import Stopper
from goclaw_py.messages.channel_supervisor import Supervisor
from goclaw_py.messages.chat_run import Runner, Tools
from goclaw_py.messages.command_handlers import Commands, Means
from goclaw_py.messages.ingestion import Gateway
from goclaw_py.messages.ingress_filter import Reception
from goclaw_py.messages.provider_outage import Outages
from goclaw_py.messages.remote_cancellation import Elsewhere
from goclaw_py.messages.stop_answers import StopAnswers
from goclaw_py.messages.stop_rights import StopRights
from goclaw_py.model.errors import BudgetReached
from goclaw_py.model.ids import MAIN_AGENT, AgentName, NodeId, RunId
from goclaw_py.model.messages import Target
from goclaw_py.model.metrics_port import NO_METER, Meter
from goclaw_py.model.outcomes import Reason
from goclaw_py.model.run_events import RunEnded
from goclaw_py.model.session_keys import AccessRules
from goclaw_py.ports.agent import AgentLoop
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import NodeState, Recovery, Store
from goclaw_py.ports.store import Place as Account
from goclaw_py.ports.tools import Toolmaker
from goclaw_py.runs import history_only
from goclaw_py.runs.agent_executor import Equipment, Workshop
from goclaw_py.runs.budget_tracker import Ledger, Limits
from goclaw_py.runs.event_broker import Feed
from goclaw_py.runs.history_only import HistoryOnly
from goclaw_py.runs.instructions import Instructions
from goclaw_py.runs.replies import Replies
from goclaw_py.runs.streaming_reply import Drafts
from goclaw_py.runs.subagents import ChildRuns
from goclaw_py.runs.tool_services import Mail, SessionPins
from goclaw_py.runs.tracing_port import NO_SPANS, Spans
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.run_handlers import Hosts
from goclaw_py.scheduler.scheduler import Scheduler
from goclaw_py.scheduler.views import Backlog

_TOLD_WITHIN = timedelta(days=1)
"""How long after a crash the loss of a subagent is still told."""

_LOOK_EVERY = timedelta(minutes=1)
"""How often such are looked for: another node may have found them, and not have their channel."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a gateway works with; ``workspaces`` are the folders of the agents.

    Args:
        instructions: The files in its folder that each agent is told; those it has none for may
            have the usual one.
        limits: What each agent may use up.
        outage_hold_s: How long messages wait for a provider to come back.
        run_timeout_s: How long a subagent or a delegate may work.
        hide: Takes secrets out of what errors of agents say.
        live: This node, and None when its lease has ended; without it, it never ends.
    """

    channels: Mapping[Account, Channel]
    rules: Mapping[Account, ChatRules]
    agents: Mapping[AgentName, AgentLoop]
    workspaces: Mapping[AgentName, Path]
    context_windows: Mapping[AgentName, int]
    toolmaker: Toolmaker
    instructions: Mapping[AgentName, tuple[str, ...]] = field(default_factory=dict)
    limits: Mapping[AgentName, Limits] = field(default_factory=dict)
    outage_hold_s: float = 1800.0
    run_timeout_s: float | None = None
    spans: Spans = NO_SPANS
    meter: Meter = NO_METER
    jobs: JobSetup = field(default_factory=JobSetup)
    heartbeats: HeartbeatSetup = field(default_factory=HeartbeatSetup)
    hide: Callable[[str], str] = str
    live: Callable[[], NodeId | None] | None = None


class Works:
    """Wires them; whoever owns it starts their duties."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        scheduler: Scheduler,
        around: Surroundings,
        node: Callable[[], NodeId],
    ) -> None:
        self._store = store
        self._clock = clock
        self.node = node
        self._live = around.live or node
        self._look_for_lost_at = clock.now()
        channels = self.channels = {**around.channels, history_only.PLACE: HistoryOnly()}
        self.doorkeeper = Doorkeeper(store, clock)
        contexts, pacing = Contexts(around.context_windows), Pacing(channels)
        self.policies = policies = Policies(_rules(around), contexts)
        received = Received(channels, around.workspaces)
        self.ledger = Ledger(store, clock, around.limits, self._over_budget)
        self.feed = Feed(clock)
        self.children = ChildRuns(store, clock, node, self.ledger, self.feed, around.run_timeout_s)
        replies = Replies(channels, around.workspaces)
        by = Colleagues(
            channels, policies, self.children, self.feed, self.ledger, replies, around.meter
        )
        self.office = Office(store, clock, node, around.jobs, by)
        self.heartbeats = Heartbeats(store, clock, node, around.heartbeats, by)
        desk = self.office.desk if around.jobs.rules.enabled else None
        drafts = Drafts(store, clock, channels, pacing, self._live)
        tools = Tools(
            self.children, contexts, drafts, self.feed, self.ledger, received, replies, desk
        )
        self.runner = Runner(store, channels, clock, node, tools)
        self._owners = (self.children, self.office.runs, self.heartbeats.runs, self.runner)
        self.dispatcher = Dispatcher(scheduler, Hosts(*self._owners))
        self.lane_places = LanePlaces(store, clock, self.dispatcher, node)
        self.requests = AccessRequests(store, clock, policies, self.doorkeeper, channels)
        reception = Reception(store, clock, policies, self.doorkeeper, self.requests, around.meter)
        self.gateway = Gateway(store, clock, policies, channels, reception, node)
        self.outages = Outages(
            store, clock, node, around.outage_hold_s, self.gateway.submit, self.runner.drop
        )
        self.stopper = Stopper(store, clock, node, self.dispatcher, self.runner.turns, self.outages)
        self.calls = Calls(store, clock, node)
        self.elsewhere = Elsewhere(store, clock, self.calls, node)
        self.commands = Commands(store, clock, channels, node, self._means())
        self.commands.connect(
            StopAnswers(
                store, channels, pacing, self.stopper, self.elsewhere, self.runner.shows_stop
            )
        )
        self.outbox = Outbox(
            store, clock, channels, pacing, node, goes_last=self.doorkeeper.is_strangers
        )
        self.outbox.connect(around.meter, self.doorkeeper.is_topic_gone)
        self.supervisor = Supervisor(store, clock, around.channels.values(), node)
        self.incidents = Incidents(store, clock, policies, self.doorkeeper, self.supervisor.views)
        self._connect(self._equipment(around, received))

    def _means(self) -> Means:
        return Means(
            self.stopper,
            self.policies,
            self.doorkeeper,
            self.requests,
            self.ledger,
            self.office.desk,
            self.elsewhere,
            self.heartbeats.desk,
        )

    def _connect(self, equipment: Equipment) -> None:
        """Give those each other who know each other."""
        dispatcher, release_later = self.dispatcher, self.gateway.release_later
        workshop = Workshop(equipment, self._store, self._clock, dispatcher.is_running)
        self.runner.connect(dispatcher, workshop, self.outages)
        self.children.connect(dispatcher, workshop, self.gateway.bring)
        owners = self.incidents.owners_chats
        self.requests.connect(owners)
        self.office.connect(dispatcher, workshop, owners, release_later)
        self.heartbeats.connect(dispatcher, workshop, self.incidents, release_later)
        rights = StopRights(self.policies, self.doorkeeper, self.channels)
        self.stopper.connect(self.office.runs, rights)
        self.elsewhere.connect(self.stopper, self.commands.begin_anew)
        self.gateway.connect(dispatcher, self.runner, self.commands, self.stopper, self.outages)

    def _equipment(self, around: Surroundings, received: Received) -> Equipment:
        pinning = asyncio.Lock()
        return Equipment(
            around.agents,
            around.toolmaker,
            Instructions(around.workspaces, around.instructions),
            self.ledger,
            self.feed,
            Mail(
                self._store,
                self._clock,
                around.channels,
                self.policies,
                self.dispatcher.is_running,
            ),
            partial(SessionPins, self._store, pinning),
            received.workspace,
            self._live,
            around.spans,
            self.heartbeats.desk,
            around.meter,
            around.hide,
        )

    def _over_budget(self, run_id: RunId, error: BudgetReached) -> None:
        """Stop a run for want of budget, with its own words."""
        for owner in self._owners:
            if (progress := owner.progress(run_id)) is not None:
                progress.over = error
        self.dispatcher.fail(run_id, Reason.BUDGET)

    async def backlog(self) -> Backlog:
        """How much is not finished, over all nodes; which groups wait here for the operator.

        Raises ``StoreUnavailable``.
        """
        backlog = await self._store.backlog()
        asking = self.policies.asking()
        undecided = await self._store.undecided(asking.places, besides=asking.settled)
        return replace(backlog, undecided=undecided)

    def state(self, *, skew_s: float, settings: Mapping[str, str]) -> NodeState:
        """What this node tells the others of itself."""
        runs = self.dispatcher.runs()
        running = sum(run.waits_for is None for run in runs)
        return NodeState(
            running=running,
            waiting=len(runs) - running,
            draining=self.dispatcher.draining,
            skew_s=round(skew_s, 3),
            places=tuple(
                f"{view.name}/{view.account}"
                for view in self.supervisor.views()
                if view.state.receives
            ),
            settings=settings,
        )

    async def take_up(self) -> None:
        """Take up what waits in the database: after a crash, or from another node.

        Nothing in a process that ends. One call at a time. Raises ``StoreUnavailable``.
        """
        if self.dispatcher.draining:
            await self.stopper.keep()
            return
        now = self._clock.now()
        if now >= self._look_for_lost_at:
            lost = await self._store.unannounced(since=now - _TOLD_WITHIN)
            mine = [run for run in lost if self._is_here(run.target)]
            await self.children.announce_lost(mine)
            # There may be more than come at once.
            self._look_for_lost_at = now if mine else now + _LOOK_EVERY
        await self.gateway.take_pending()

    def _is_here(self, target: Target | None) -> bool:
        return target is not None and (target.channel, target.account) in self.policies.places

    async def drain(self, wait_s: float, hurry: asyncio.Event) -> None:
        """Start nothing more and let work end; see ``Dispatcher.drain``."""
        # What is kept goes to others with its session; nobody here may decide about it then.
        self.outages.forget()
        # Beside each other: jobs and beats that wait are given back while runs end.
        async with asyncio.TaskGroup() as group:
            group.create_task(self.office.close())
            group.create_task(self.heartbeats.close())
            group.create_task(self.dispatcher.drain(wait_s, hurry))

    def forget(self) -> None:
        """This node was declared dead: end everything; what it had in hand belongs to others."""
        self.dispatcher.interrupt()
        self.gateway.forget_everything()
        self.office.forget()
        self.heartbeats.forget()

    def look_for_due(self) -> None:
        """Something may be due at another time than before."""
        self.office.wake.call()
        self.heartbeats.wake.call()

    def close_cut_runs(self, recovery: Recovery) -> None:
        """Tell channels of runs that are no more: they may still show them (SPEC CMD-3)."""
        self._look_for_lost_at = self._clock.now()
        for run in recovery.cut_runs:
            if run.target is None:
                continue
            channel = self.channels.get((run.target.channel, run.target.account))
            if channel is not None:
                channel.signal(RunEnded(run.run_id, run.target, run.outcome))


def _rules(around: Surroundings) -> Mapping[Account, ChatRules]:
    """Those of the settings, and those of messages that are answered in the history only."""
    access, queue = AccessRules(trusted=True), QueuePolicy()
    unseen = ChatRules(MAIN_AGENT, access, queue, queue, around.run_timeout_s)
    return {**around.rules, history_only.PLACE: unseen}
