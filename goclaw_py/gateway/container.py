"""Builds and connects the parts of a gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.access.access_requests import AccessRequests
from goclaw_py.chat.access.incident_alerts import IncidentAlerts
from goclaw_py.chat.access.name_cache import NameCache
from goclaw_py.chat.access.role_signals import RoleSignals
from goclaw_py.chat.commands.command import CommandServices
from goclaw_py.chat.commands.handlers import CommandHandlers
from goclaw_py.chat.commands.heartbeat import HeartbeatCommands
from goclaw_py.chat.commands.jobs import JobCommands
from goclaw_py.chat.inbound.approvals import ToolApprovals
from goclaw_py.chat.inbound.attachments import AttachmentDownloader
from goclaw_py.chat.inbound.chained_turns import ChainLimit
from goclaw_py.chat.inbound.channel_supervisor import ChannelSupervisor
from goclaw_py.chat.inbound.chat_run import ChatRunExecutor
from goclaw_py.chat.inbound.drop_notices import DropNotices
from goclaw_py.chat.inbound.ingestion import MessageIngestor
from goclaw_py.chat.inbound.ingress_filter import IngressFilter
from goclaw_py.chat.inbound.mailbox import Mailboxes
from goclaw_py.chat.inbound.provider_outage import ProviderOutageBuffer
from goclaw_py.chat.inbound.turns import Turns
from goclaw_py.chat.outbound.outbox_sender import OutboxSender
from goclaw_py.chat.outbound.problem_chats import ProblemChats
from goclaw_py.chat.outbound.rate_limiter import RateLimiter
from goclaw_py.chat.stop.answer import StopAnswers
from goclaw_py.chat.stop.database import DatabaseStops
from goclaw_py.chat.stop.execute import StopExecutor
from goclaw_py.chat.stop.local import LocalStops
from goclaw_py.chat.stop.remote import RemoteStops
from goclaw_py.chat.stop.rights import StopRights
from goclaw_py.cluster.lane_permits import ClusterLanePermits
from goclaw_py.cluster.rpc import NodeRpc
from goclaw_py.core.actors import Actor, ActorKind
from goclaw_py.core.display_names import needed_names
from goclaw_py.core.errors import BudgetReached
from goclaw_py.core.ids import MAIN_AGENT, NodeId, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Reason
from goclaw_py.core.run_events import RunEnded
from goclaw_py.core.session_keys import AccessRules
from goclaw_py.core.text import count
from goclaw_py.core.time.clock import Clock
from goclaw_py.gateway.audit.log import StoredAuditLog
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.gateway.unattended_runs import UnattendedRuns
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.records import NodeState, RecoveryReport
from goclaw_py.records import Place as Account
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs import history_only
from goclaw_py.runs.agent_executor import AgentExecutor, prompt_words
from goclaw_py.runs.budget_tracker import BudgetTracker
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.runs.events.broker import RunEventBroker
from goclaw_py.runs.history_only import HistoryOnly
from goclaw_py.runs.instructions import Instructions
from goclaw_py.runs.replies.replies import Replies
from goclaw_py.runs.replies.streaming import StreamingReplies
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.session_settings import ChatRules, SessionSettings
from goclaw_py.runs.subagents import ChildRuns
from goclaw_py.runs.tool_services import SessionFacts, ToolMessenger
from goclaw_py.schedule.agent_runs import ScheduledRunServices
from goclaw_py.schedule.heartbeat.module import HeartbeatModule, service_of
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.jobs.module import JobModule
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.run_handlers import RunHandlers
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.scheduler.views import Backlog, RunProgress, RunView

_CONTINUED_WITHIN = timedelta(days=31)
"""A background subagent is continued up to this long after an interruption: an approval may take
30 days."""

_LOOK_EVERY = timedelta(minutes=1)
"""How often interrupted subagents are searched without a notice."""


class Container:
    """Builds all parts, each with what it needs; its owner starts their background tasks.

    Three parts need one that is built after them: they get a function that looks it up when it is
    called, which is never before the gateway runs.
    """

    gateway: MessageIngestor
    heartbeats: HeartbeatModule

    def __init__(
        self,
        store: BoundStore,
        clock: Clock,
        scheduler: RunScheduler,
        deps: GatewayDependencies,
    ) -> None:
        self._store = store
        self._clock = clock
        self.node = store.node
        self.meter = deps.meter
        self._models = deps.models
        self._look_for_subagents_at = clock.now()
        self.agents = tuple(deps.agents)
        self.problem_chats = ProblemChats(store, clock)
        self.audit = StoredAuditLog(store, clock, store.node, deps.hide)
        self._chat_store = self.audit.chat_store(store)
        channels = self.channels = {**deps.channels, history_only.PLACE: HistoryOnly()}
        self._build_access(deps)
        handlers = RunHandlers()
        dispatcher = self.dispatcher = Dispatcher(scheduler, handlers)
        self.lane_permits = ClusterLanePermits(store, clock, dispatcher)
        self.feed = RunEventBroker(clock)
        self.budget_tracker = BudgetTracker(
            store, clock, deps.limits, self._over_budget, self.incidents.alert
        )
        self.turns = Turns()
        self.mailboxes = Mailboxes(self.turns)
        self.notices = DropNotices(store, clock, self.turns)
        self.outages = ProviderOutageBuffer(
            store,
            clock,
            deps.outage_hold_s,
            lambda turn: self.gateway.submit(turn),  # noqa: PLW0108 - it is built later
            self.notices,
        )
        self._pacing = RateLimiter(channels)
        self._received = AttachmentDownloader(channels, deps.workspaces)
        heartbeat_service = service_of(
            store,
            clock,
            deps.heartbeats,
            self.policies,
            channels,
            run_now=lambda agent: self.heartbeats.run_now(agent),  # noqa: PLW0108 - built later
        )
        agent_executor = AgentExecutor(
            store=store,
            clock=clock,
            agents=deps.agents,
            tool_factory=deps.tool_factory,
            instructions=Instructions(deps.workspaces, deps.instructions),
            budget_tracker=self.budget_tracker,
            feed=self.feed,
            mail=ToolMessenger(store, clock, deps.channels, self.policies, dispatcher.is_running),
            pins=partial(SessionFacts, store, asyncio.Lock()),
            workspace=self._received.workspace,
            may_speak=dispatcher.is_running,
            on_success=self.outages.answered,
            spans=deps.spans,
            heartbeats=heartbeat_service,
            meter=deps.meter,
            hide=deps.hide,
            is_owner=self._is_owner,
        )
        self.estimated = agent_executor.estimated
        self._build_owners(deps, agent_executor, heartbeat_service)
        handlers.register(*self._owners)
        self._build_stops()
        self._build_ends(deps)
        engines = (self.job_module.occurrences, self.heartbeats.heartbeat_runs)
        self.unattended = UnattendedRuns(
            store, clock, dispatcher, engines, self.close_interrupted_runs
        )

    def _build_owners(
        self,
        deps: GatewayDependencies,
        agent_executor: AgentExecutor,
        heartbeat_service: HeartbeatService,
    ) -> None:
        """Build what runs: subagents, jobs, heartbeats, and the turns of chats."""
        store, clock, channels = self._store, self._clock, self.channels
        dispatcher, ask = self.dispatcher, self.approvals.questions
        self.children = ChildRuns(
            store,
            clock,
            dispatcher=dispatcher,
            agent_executor=agent_executor,
            budget_tracker=self.budget_tracker,
            feed=self.feed,
            deliver=lambda rows: self.gateway.deliver(rows),  # noqa: PLW0108 - it is built later
            ask=ask,
            run_timeout_s=deps.run_timeout_s,
        )
        replies = Replies(channels, deps.workspaces)
        shared = ScheduledRunServices(
            dispatcher=dispatcher,
            agent_executor=agent_executor,
            children=self.children,
            feed=self.feed,
            budget_tracker=self.budget_tracker,
            release_later=self.mailboxes.release_later,
            channels=channels,
            policies=self.policies,
            replies=replies,
            incidents=self.incidents,
            meter=deps.meter,
        )
        chains = ChainLimit(store, clock, deps.max_chained_turns, self.incidents.alert)
        self.job_module = JobModule(
            store,
            clock,
            deps.jobs,
            shared,
            ask=ask,
            check_scheduling=chains.check_scheduling,
            on_disabled=self._record_disabled,
        )
        self.heartbeats = HeartbeatModule(store, clock, deps.heartbeats, shared, heartbeat_service)
        self.runner = ChatRunExecutor(
            store,
            clock,
            dispatcher=dispatcher,
            agent_executor=agent_executor,
            mailboxes=self.mailboxes,
            notices=self.notices,
            outages=self.outages,
            chains=chains,
            children=self.children,
            contexts=self.policies.contexts,
            budget_tracker=self.budget_tracker,
            feed=self.feed,
            drafts=StreamingReplies(store, clock, channels, self._pacing, dispatcher.had_effect),
            replies=replies,
            received=self._received,
            ask=ask,
            jobs=self.job_module.service if deps.jobs.rules.enabled else None,
        )
        self._owners = (self.children, self.job_module.runs, self.heartbeats.runs, self.runner)

    def _build_access(self, deps: GatewayDependencies) -> None:
        """Build who may talk to the agents, and the parts that ask owners."""
        store, clock, channels = self._store, self._clock, self.channels
        access_control = self.access_control = AccessControl(store, clock)
        contexts = ContextUsage(deps.context_windows)
        policies = self.policies = SessionSettings(_rules(deps), contexts)
        self.roles = RoleSignals(store, access_control, policies, channels)
        self.supervisor = ChannelSupervisor(store, clock, deps.channels.values())
        views = self.supervisor.views
        self.incidents = IncidentAlerts(store, clock, policies, views)
        owners = self.incidents.owners_chats
        # What people answer is recorded.
        store = self._chat_store
        self.requests = AccessRequests(store, clock, policies, access_control, channels, owners)
        self.approvals = ToolApprovals(store, clock, policies, access_control, owners, deps.hide)

    def _build_ends(self, deps: GatewayDependencies) -> None:
        """Build the parts through which messages come in and go out."""
        store, clock, channels = self._store, self._clock, self.channels
        self.names = NameCache(self.job_module.name_of)
        ingress = IngressFilter(
            store,
            clock,
            self.policies,
            self.access_control,
            self.requests,
            names=self.names,
            meter=deps.meter,
        )
        self.forget_names = ingress.forget_names
        self.commands = CommandHandlers(channels, self.requests, self._command_services())
        self.gateway = MessageIngestor(
            store,
            clock,
            self.policies,
            channels,
            ingress,
            dispatcher=self.dispatcher,
            runner=self.runner,
            commands=self.commands,
            outages=self.outages,
            stops=self.stops,
            stop_answers=self.stop_answers,
        )
        self.outbox = OutboxSender(
            store,
            clock,
            channels,
            self._pacing,
            goes_last=self.access_control.is_unapproved_chat,
            is_topic_gone=self.access_control.is_topic_gone,
            meter=deps.meter,
        )

    def _build_stops(self) -> None:
        store, clock, runner = self._store, self._clock, self.runner
        rights = StopRights(self.policies, self.access_control, self.channels)
        recorded = self._chat_store  # a new session is an entry of the audit log
        database = DatabaseStops(
            recorded, clock, self.mailboxes, self.job_module.runs, self.turns.dropped
        )
        local = LocalStops(
            self.dispatcher,
            self.turns,
            self.outages,
            self.children,
            database,
            self.policies.contexts,
        )
        self.calls = NodeRpc(store, clock)
        remote = RemoteStops(store, clock, self.calls, local)
        self.stops = StopExecutor(store, local, remote, rights)
        self.stop_answers = StopAnswers(
            store, self.channels, self._pacing, self.stops, self.audit, runner.shows_stop
        )

    def _command_services(self) -> CommandServices:
        store, jobs = self._chat_store, self.audit.chat_jobs(self.job_module.service)
        heartbeats = self.audit.chat_heartbeats(self.heartbeats.service)
        return CommandServices(
            store,
            self._clock,
            self.stops,
            self.policies,
            self.access_control,
            self.budget_tracker,
            JobCommands(jobs, store),
            HeartbeatCommands(heartbeats, store),
            self.approvals,
            self._models,
        )

    def _is_owner(self, person: str) -> bool:
        """Return whether a person (``person_at``) is an owner."""
        target = Target(*person.split("/", 2))
        rules = self.policies.rules(target).access
        return self.access_control.is_owner(target, target.chat, rules)

    async def _record_disabled(self, job: Job) -> None:
        """Record that a job was disabled after failures: people look for who did it."""
        by, facts = Actor(ActorKind.NODE, self.node()), {"state": JobState.DISABLED.value}
        await self.audit.record("job.disable", f"job {job.spec.slug}", by=by, after=facts)

    def _over_budget(self, run_id: RunId, error: BudgetReached) -> None:
        """Stop a run whose budget is used up, with the error's text."""
        if (progress := self._progress(run_id)) is not None:
            progress.over = error
        self.dispatcher.fail(run_id, Reason.BUDGET)

    def runs(self) -> tuple[RunView, ...]:
        """Return the unfinished requests of this process, with what they do or will do."""
        return tuple(replace(run, activity=self._activity(run)) for run in self.dispatcher.runs())

    def _activity(self, run: RunView) -> RunProgress | None:
        progress = self._progress(run.id)
        if progress is not None and progress.prompt:
            return progress.activity
        waiting = self.turns.of_runs([run.id]) if run.waits_for is not None else ()
        rows = [row for turn in waiting for row in turn.rows]
        if not rows:
            return None
        incoming = tuple(row.id for row in rows)
        return RunProgress(prompt_words(rows[0].message.text), incoming=incoming)

    def _progress(self, run_id: RunId) -> RunRecorder | None:
        found = (owner.progress(run_id) for owner in self._owners)
        return next((progress for progress in found if progress is not None), None)

    async def find_names(self, sessions: Iterable[SessionKey]) -> None:
        """Remember the names of sessions that this process has not heard.

        Raises ``StoreUnavailable``.
        """
        if unknown := [key for key in sessions if self.names.of(key) is None]:
            self.names.add(await self._store.names(*needed_names(unknown)))

    async def backlog(self, elsewhere: Iterable[str] = ()) -> Backlog:
        """Return the numbers of unfinished rows of all nodes, with undecided groups.

        Args:
            elsewhere: The places that other live nodes have, as in ``NodeState.places``.

        Raises ``StoreUnavailable``.
        """
        views = self.supervisor.views()
        served = {*self.policies.places, *((view.name, view.account) for view in views)}
        served |= {(name, account) for name, _, account in (p.partition("/") for p in elsewhere)}
        backlog = await self._store.backlog(served)
        asking = self.policies.asking()
        undecided = await self._store.undecided(asking.places, besides=asking.settled)
        return replace(backlog, undecided=undecided)

    def state(self, *, skew_s: float, settings: Mapping[str, str]) -> NodeState:
        """Return the state of this node for other nodes."""
        running, waiting = self.dispatcher.counts()
        return NodeState(
            running=running,
            waiting=waiting,
            draining=self.dispatcher.draining,
            skew_s=round(skew_s, 3),
            places=tuple(
                f"{view.name}/{view.account}"
                for view in self.supervisor.views()
                if view.state.receives
            ),
            settings=settings,
        )

    async def claim_pending(self, *, is_due: bool = True) -> None:
        """Claim messages that wait in the database: after a crash, or from another node.

        With ``is_due`` something was heard of them; otherwise it is a periodic look.
        Does nothing in a process that shuts down. One call at a time. Raises ``StoreUnavailable``.
        """
        if self.dispatcher.draining:
            await self.stops.local.database.store()
            return
        now = self._clock.now()
        if now >= self._look_for_subagents_at:
            self._look_for_subagents_at = now + _LOOK_EVERY
            await self.audit.store_repeats()
            if expired := await self._store.expire_approvals(now=now):
                by = Actor(ActorKind.NODE, self.node())
                await self.audit.record("approval.expire", count(expired, "approval"), by=by)
            found = await self._store.interrupted_subagents(since=now - _CONTINUED_WITHIN)
            mine = [one for one in found if self._is_here(one.run.target)]
            await self.children.resume(mine)
            if mine:  # there may be more than come at once
                self._look_for_subagents_at = now
        if is_due or self.gateway.must_reload():
            await self.gateway.reload()

    def _is_here(self, target: Target | None) -> bool:
        return target is not None and (target.channel, target.account) in self.policies.places

    async def drain(self, wait_s: float, hurry: asyncio.Event) -> None:
        """Start no more runs and let the others end; see ``Dispatcher.drain``."""
        # Held messages go to other nodes with their session; this node must not decide about them
        # then.
        self.outages.forget()
        # Concurrently: waiting jobs and heartbeat runs are released while runs end.
        async with asyncio.TaskGroup() as group:
            group.create_task(self.job_module.close())
            group.create_task(self.heartbeats.close())
            group.create_task(self.dispatcher.drain(wait_s, hurry))

    def forget(self, node: NodeId) -> None:
        """End everything: this ``node`` has expired, and its claims belong to other nodes."""
        self.dispatcher.interrupt()
        self.gateway.forget_everything(node)
        self.job_module.forget()
        self.heartbeats.forget()

    async def release_former(self) -> None:
        """Store stops of the node that this process was, before its claims are released."""
        await self.stops.local.database.release_former()

    def poll_due(self) -> None:
        """Check again what is due when."""
        self.job_module.wake.call()
        self.heartbeats.wake.call()

    def search_subagents(self) -> None:
        """Search for interrupted background subagents when ``claim_pending`` is called next."""
        self._look_for_subagents_at = self._clock.now()

    def close_interrupted_runs(self, recovery: RecoveryReport) -> None:
        """Notify channels of lost runs, which they may still show as running (SPEC CMD-3)."""
        self.search_subagents()
        for run in recovery.cut_runs:
            if run.target is None:
                continue
            channel = self.channels.get((run.target.channel, run.target.account))
            if channel is not None:
                channel.signal(RunEnded(run.run_id, run.target, run.outcome))


def _rules(deps: GatewayDependencies) -> Mapping[Account, ChatRules]:
    """Return the chat rules of the settings, and those of messages without a channel."""
    access, queue = AccessRules(trusted=True), QueuePolicy()
    unseen = ChatRules(MAIN_AGENT, access, queue, queue, deps.run_timeout_s)
    return {**deps.rules, history_only.PLACE: unseen}
