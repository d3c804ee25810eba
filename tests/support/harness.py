"""A gateway process without settings, sockets or signals, wired as the real one is.

::

    async with a_process() as gateway:
        await gateway.say("hello")
        await gateway.channel.until_sent(1)
        assert gateway.agent.prompts == ["hello"]
        assert gateway.channel.texts() == ["re: hello"]

Two processes over one ``MemoryDatabase`` are two gateways on one database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.commands.handlers import CommandHandlers
from goclaw_py.chat.inbound.channel_supervisor import ChannelSupervisor
from goclaw_py.chat.inbound.chat_run import ChatRunExecutor
from goclaw_py.chat.inbound.ingestion import MessageIngestor
from goclaw_py.chat.outbound.outbox_sender import OutboxSender
from goclaw_py.cluster.membership import Membership
from goclaw_py.core.concurrency import WakeEvent
from goclaw_py.core.errors import NoGateway, StoreUnavailable, ToolFailed
from goclaw_py.core.ids import (
    CRON_LANE,
    MAIN_AGENT,
    MAIN_LANE,
    AgentName,
    LaneName,
    NodeId,
    SessionKey,
)
from goclaw_py.core.messages import InboundMessage, PeerKind, Role, Sender, Target
from goclaw_py.core.metrics import NO_METER, MetricsRecorder
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.session_keys import (
    AccessRules,
    DirectPolicy,
    GroupPolicy,
    StopPolicy,
    chat_session,
)
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.gateway.service import GatewayControl
from goclaw_py.records import Notice, Place, RecoveryReport, RunQuery
from goclaw_py.records.bound import bind
from goclaw_py.runs.agent_loop import AgentLoop, RunRequest
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.runs.toolbox import Toolbox, ToolContext, ToolSpec
from goclaw_py.runs.tracing_port import NO_SPANS, Tracer
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.schedule.jobs.module import JobSetup
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import START, LoopClock
from goclaw_py.testing.loop import VirtualLoop
from tests.support.flaky_store import FlakyStore
from tests.support.memory_store import MemoryDatabase

PENDING_POLL_S = 2.0
PATIENCE_S = 7200.0
"""Virtual seconds that a test may take."""

_numbers = count(1)


def no_status() -> Coroutine[Any, Any, Any]:
    raise NoGateway("the status is the application's to collect")


def message(
    text: str,
    *,
    chat: str = "ann",
    sender: str | None = None,
    thread: str | None = None,
    peer: PeerKind = PeerKind.DIRECT,
    cut: bool = False,
    redelivered: bool = False,
    channel: str = "telegram",
) -> InboundMessage:
    """A new message; its sender is the chat's person unless somebody else is named."""
    number = next(_numbers)
    return InboundMessage(
        external_id=f"{chat}:{number}",
        target=Target(channel, "default", chat, thread),
        peer=peer,
        sender=Sender(sender or chat, (sender or chat).title()),
        text=text,
        sent_at=START,
        message_id=str(number),
        cut=cut,
        redelivered=redelivered,
    )


def session_of(
    chat: str = "ann", *, thread: str | None = None, peer: PeerKind = PeerKind.DIRECT
) -> SessionKey:
    """The session of a chat on the default channel."""
    return chat_session(MAIN_AGENT, Target("telegram", "default", chat, thread), peer)


DIRECT = QueuePolicy(debounce_s=0.8)
GROUP = QueuePolicy(debounce_s=0.8, concurrency=3)


@dataclass(frozen=True, slots=True)
class Ways:
    """How a process is set up."""

    direct: QueuePolicy = DIRECT
    group: QueuePolicy = GROUP
    access: DirectPolicy = DirectPolicy.PAIRING
    main_lane: int = 2
    agent_runs: int | None = None
    cancel_grace_s: float = 10.0
    run_timeout_s: float | None = None
    deadline_s: float | None = None
    stop_words: bool = True
    stop: StopPolicy = StopPolicy.OWN
    context_window: int = 1000
    groups: GroupPolicy = GroupPolicy.ALLOWLIST
    mention: bool = True
    context_messages: int = 50
    limits: Limits = field(default_factory=Limits)
    outage_hold_s: float = 1800.0
    max_chained_turns: int = 10
    jobs: JobSetup = field(default_factory=JobSetup)
    cron_lane: int = 1
    heartbeats: HeartbeatSetup = field(default_factory=HeartbeatSetup)
    hide: Callable[[str], str] = str
    shared: frozenset[LaneName] = frozenset()


@dataclass(frozen=True, slots=True)
class OpenToolbox:
    """No tools, but what tools are given: tests do with it what a tool would do."""

    here: ToolContext
    specs: tuple[ToolSpec, ...] = ()
    guidance: tuple[str, ...] = ()

    async def call(self, name: str, arguments: Mapping[str, object], key: str = "") -> str:
        raise ToolFailed(f"no tool {name}")


class OpenToolmaker:
    """Makes the toolboxes of ``here``."""

    def toolbox(self, here: ToolContext) -> Toolbox:
        return OpenToolbox(here)


def here(request: RunRequest) -> ToolContext:
    """What the tools of a run are given."""
    assert isinstance(request.tools, OpenToolbox)
    return request.tools.here


@dataclass(slots=True)
class GatewayProcess:
    """One process. ``start`` it, then talk to it; ``kill`` it or ``shut_down``."""

    database: MemoryDatabase
    ways: Ways
    agent: AgentLoop
    channels: Mapping[Place, RecordingChannel]
    workspace: Path
    others: Mapping[AgentName, AgentLoop] = field(default_factory=dict)
    spans: Tracer = NO_SPANS
    meter: MetricsRecorder = NO_METER
    make_store: Callable[[MemoryDatabase], FlakyStore] = FlakyStore
    store: FlakyStore = field(init=False)
    clock: LoopClock = field(init=False)
    cluster: Membership = field(init=False)
    access_control: AccessControl = field(init=False)
    runner: ChatRunExecutor = field(init=False)
    dispatcher: Dispatcher = field(init=False)
    commands: CommandHandlers = field(init=False)
    gateway: MessageIngestor = field(init=False)
    outbox: OutboxSender = field(init=False)
    supervisor: ChannelSupervisor = field(init=False)
    container: Container = field(init=False)
    control: GatewayControl = field(init=False)
    recoveries: list[RecoveryReport] = field(default_factory=list)
    _pending: WakeEvent = field(default_factory=WakeEvent)
    _people: WakeEvent = field(default_factory=WakeEvent)
    _lost: asyncio.Event = field(default_factory=asyncio.Event)
    _ending: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = store = self.make_store(self.database)
        self.clock = clock = LoopClock()
        channels = self.channels
        self.cluster = Membership(
            store,
            clock,
            "test",
            on_recovery=self._on_recovery,
            on_lost=self._on_lost,
            before_release=lambda: self.container.release_former(),  # noqa: PLW0108 - built later
        )
        workspaces = dict.fromkeys((MAIN_AGENT, *self.others), self.workspace)
        deps = GatewayDependencies(
            channels,
            {place: self._rules(channel) for place, channel in channels.items()},
            {MAIN_AGENT: self.agent, **self.others},
            workspaces,
            dict.fromkeys((MAIN_AGENT, *self.others), self.ways.context_window),
            OpenToolmaker(),
            limits={MAIN_AGENT: self.ways.limits},
            outage_hold_s=self.ways.outage_hold_s,
            max_chained_turns=self.ways.max_chained_turns,
            run_timeout_s=self.ways.run_timeout_s,
            spans=self.spans,
            meter=self.meter,
            jobs=self.ways.jobs,
            hide=self.ways.hide,
            heartbeats=replace(self.ways.heartbeats, workspaces=workspaces),
        )
        lanes = {
            MAIN_LANE: self.ways.main_lane,
            LaneName("other"): 1,
            CRON_LANE: self.ways.cron_lane,
        }
        scheduler = RunScheduler(
            lanes,
            agents={MAIN_AGENT: self.ways.agent_runs},
            cancel_grace_s=self.ways.cancel_grace_s,
            shared=self.ways.shared,
        )
        bound = bind(store, self.node, self.cluster.live)
        self.container = container = Container(bound, clock, scheduler, deps)
        self.access_control, self.runner = container.access_control, container.runner
        self.dispatcher, self.commands = container.dispatcher, container.commands
        self.gateway, self.outbox = container.gateway, container.outbox
        self.supervisor = container.supervisor
        self.control = GatewayControl(store, clock, container, no_status)
        store.on_notice(self._on_notice)

    @property
    def channel(self) -> RecordingChannel:
        """The first channel."""
        return next(iter(self.channels.values()))

    @property
    def scripted(self) -> ScriptedAgent:
        """The agent, where it is a scripted one."""
        assert isinstance(self.agent, ScriptedAgent)
        return self.agent

    def node(self) -> NodeId:
        """The node that this process is now."""
        return self.cluster.node.id

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Come up as the application does."""
        await self.cluster.join()
        await self.access_control.refresh()
        await self.container.claim_pending()
        for work in (
            *(duty() for duty in self.cluster.duties()),
            self.outbox.run(),
            self.container.calls.run(),
            self.container.lane_permits.run(),
            self.container.unattended.watch(),
            self.container.job_module.run(),
            self.container.heartbeats.run(),
            *(
                [self.container.heartbeats.retry_notifications()]
                if self.ways.heartbeats.plans
                else []
            ),
            self.container.job_module.retry_notifications(),
            self._keep_taking_up(),
            self._keep_knowing_people(),
            self._receive(),
        ):
            self._tasks.append(asyncio.create_task(work))

    async def shut_down(self, *, wait_s: float = 30.0, hurry: asyncio.Event | None = None) -> None:
        """End as the application does after a signal."""
        await self._cancel(self._tasks.pop())
        self._ending = True
        self._pending.call()
        await self.container.drain(wait_s, hurry or asyncio.Event())
        await self.runner.notices.flush()
        await self.container.stop_answers.close()
        await self.container.audit.store_repeats(is_last=True)
        await self.outbox.close(5.0)
        self.container.feed.close()
        await self._cancel(*self._tasks)
        self._tasks.clear()
        await self.cluster.leave()
        await self.store.close()

    def kill(self) -> None:
        """``kill -9``: from now on it writes nothing, sends nothing and says nothing."""
        self.store.cut = True
        self.database.hearers.pop(self.store, None)
        for channel in self.channels.values():
            channel.disconnect()
        for task in self._tasks:
            task.cancel()
        self.container.job_module.forget()
        self.container.heartbeats.forget()
        self.dispatcher.interrupt()

    async def bury(self) -> None:
        """Wait until nothing of a killed process is left in the loop."""
        for tasks in (self.dispatcher._tasks, self.dispatcher._records, self.outbox._senders):
            await self._cancel(*tasks.values())
        await self._cancel(
            *self.container.stop_answers._tasks, *self.runner.notices._tasks, *self._tasks
        )
        side = (
            self.container.job_module.occurrences._side,
            self.container.heartbeats.heartbeat_runs._side,
        )
        await self._cancel(*self.runner._drafts._late, *(one for s in side for one in s._tasks))

    async def _cancel(self, *tasks: asyncio.Task[Any]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # ------------------------------------------------------------------ talking to it

    async def say(self, *texts: str, chat: str = "ann", apart_s: float = 0.0) -> None:
        """Somebody says things in a direct chat, each in a batch of its own."""
        for text in texts:
            await self.gateway.accept([message(text, chat=chat)])
            await asyncio.sleep(apart_s)

    async def ask(self, text: str, chat: str = "ann", peer: PeerKind = PeerKind.DIRECT) -> str:
        """Say one thing and wait for the next message in that chat."""
        known = len(self.channel.texts(chat))
        await self.gateway.accept([message(text, chat=chat, peer=peer)])
        await until(lambda: len(self.channel.texts(chat)) > known)
        return self.channel.texts(chat)[known]

    async def history(self, chat: str = "ann") -> list[tuple[Role, str]]:
        """What the session of a direct chat remembers."""
        entries = await self.store.history(session_of(chat))
        return [(stored.entry.role, stored.entry.text) for stored in entries]

    async def texts_in_history(self, chat: str = "ann") -> list[str]:
        """The texts of ``history``."""
        return [text for _, text in await self.history(chat)]

    async def outcomes(self) -> list[Outcome | None]:
        """Of all stored runs, the oldest first."""
        return [run.outcome for run in reversed(await self.store.runs(RunQuery(limit=1000)))]

    @property
    def pending(self) -> list[str]:
        """The texts of inbox rows that are not done."""
        return [row.message.text for row in self.database.pending.values()]

    # ------------------------------------------------------------------ inside

    def _rules(self, channel: RecordingChannel) -> ChatRules:
        ways = self.ways
        return ChatRules(
            agent=MAIN_AGENT,
            access=AccessRules(
                direct=ways.access, group=ways.groups, mention=ways.mention, trusted=channel.trusted
            ),
            direct=ways.direct,
            group=ways.group,
            run_timeout_s=ways.run_timeout_s,
            deadline_s=ways.deadline_s,
            stop_words=ways.stop_words,
            context_messages=ways.context_messages,
            stop=ways.stop,
        )

    async def _receive(self) -> None:
        while True:
            self._lost.clear()
            receiving = asyncio.create_task(self.supervisor.run(self.gateway))
            try:
                await self._lost.wait()
            finally:
                await self._cancel(receiving)
            self._pending.call()

    async def _keep_taking_up(self) -> None:
        while True:
            is_due = self._pending.is_called
            self._pending.clear()
            try:
                await self.container.claim_pending(is_due=is_due)
                await self.gateway.release_idle()
            except StoreUnavailable:
                pass  # the next look finds it
            await self._pending.wait(0.1 if self._ending else PENDING_POLL_S)

    async def _keep_knowing_people(self) -> None:
        while True:
            await self._people.wait(10.0)
            self._people.clear()
            try:
                await self.access_control.refresh()
            except StoreUnavailable:
                continue

    def _on_notice(self, notice: Notice) -> None:
        match notice:
            case Notice.INBOX:
                self._pending.call()
            case Notice.OUTBOX:
                self.outbox.wake.call()
            case Notice.PEOPLE:
                self._people.call()
            case Notice.CRON:
                self.container.poll_due()
            case Notice.SUBAGENTS:
                self.container.search_subagents()
                self._pending.call()
            case Notice.LANES:
                self.container.lane_permits.poll_soon()
            case Notice.NODES:
                self.cluster.check_others()
                self.container.calls.poll()
                self.container.supervisor.check_leases()

    def _on_lost(self, node: NodeId) -> None:
        self.container.forget(node)
        self._lost.set()

    def _on_recovery(self, recovery: RecoveryReport) -> None:
        self.recoveries.append(recovery)
        self.container.close_interrupted_runs(recovery)
        self._pending.call()


@asynccontextmanager
async def a_process(
    agent: AgentLoop | None = None,
    ways: Ways | None = None,
    *,
    database: MemoryDatabase | None = None,
    channels: tuple[RecordingChannel, ...] = (),
    others: Mapping[AgentName, AgentLoop] | None = None,
    spans: Tracer = NO_SPANS,
    meter: MetricsRecorder = NO_METER,
    kind: type[GatewayProcess] = GatewayProcess,
) -> AsyncIterator[GatewayProcess]:
    """A started process with one trusted channel and an echoing agent, unless told otherwise."""
    made = channels or (RecordingChannel(),)
    with TemporaryDirectory(prefix="goclaw-test-") as folder:
        # Within a folder of its own, so that tests can see what lands beside the workspace.
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        process = kind(
            database=database or MemoryDatabase(),
            ways=ways or Ways(),
            agent=agent or ScriptedAgent(),
            channels={(channel.name, channel.account): channel for channel in made},
            workspace=workspace,
            others=others or {},
            spans=spans,
            meter=meter,
        )
        await process.start()
        try:
            # Something always ticks in a gateway, so a wait for what never comes would never end.
            async with asyncio.timeout(PATIENCE_S):
                yield process
        finally:
            process.kill()
            await process.bury()


async def until(reached: Callable[[], bool], *, within_s: float = 600.0) -> None:
    """Let virtual time pass until something is so, and a moment more.

    What comes next then has another time than what was waited for.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(within_s):
        while not reached():
            await (loop.settled() if isinstance(loop, VirtualLoop) else asyncio.sleep(0.01))
    await asyncio.sleep(0.001)


@asynccontextmanager
async def working(
    *said: str,
    agent: ScriptedAgent | None = None,
    ways: Ways | None = None,
    database: MemoryDatabase | None = None,
) -> AsyncIterator[GatewayProcess]:
    """A process that works, for ever unless told otherwise, on what ann said first of this."""
    agent = agent or ScriptedAgent(otherwise=lambda _: Block())
    async with a_process(agent, ways or Ways(QueuePolicy()), database=database) as process:
        await process.say(*(said or ["work"]))
        await agent.until_active(1)
        yield process
