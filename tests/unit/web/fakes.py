"""A gateway without insides: answers from lists, remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import cast

import orjson

from goclaw_py import records as store
from goclaw_py.cluster.rpc import NodeRpc
from goclaw_py.core.containers import Histogram, HistogramView
from goclaw_py.core.display_names import display_name
from goclaw_py.core.errors import (
    NoGateway,
    NotAccepted,
    NotAChat,
    NotFound,
    NotRewindable,
    SessionBusy,
    StoreUnavailable,
)
from goclaw_py.core.ids import AgentName, LaneName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import (
    HistoryEntry,
    InboundMessage,
    OutboundMessage,
    PeerKind,
    Role,
    Sender,
    Target,
)
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.pagination import Cursor
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import ResponseStep
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
)
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.operations.lanes.operations import Lanes, Resized
from goclaw_py.operations.nodes.operations import Nodes
from goclaw_py.operations.runs.operations import Runs
from goclaw_py.operations.sessions.operations import (
    QueueView,
    SessionFork,
    Sessions,
    Submitted,
)
from goclaw_py.records.bound import bind
from goclaw_py.runs.events import live
from goclaw_py.scheduler import views
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.operator_warnings import OperatorWarning
from tests.unit.web.fake_access import FakeAccess
from tests.unit.web.fake_heartbeats import FakeHeartbeats
from tests.unit.web.fake_jobs import Jobs
from tests.unit.web.fake_names import FixedClock, behind, chosen
from tests.unit.web.fake_nodes import HERE, FakeNodeStore
from tests.unit.web.fake_settings import FakeSettings

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SESSION = SessionKey("agent:main:console:direct:local")
LOCAL = Target("console", "default", "local")
BARE_KEY = SessionKey("agent:main:api:a/b c%2F?#")
RUN_ID = RunId("0190-aaaa")

RUNNING = views.RunView(
    RUN_ID, SESSION, AgentName("main"), LaneName("main"), views.RunState.RUNNING, 1.5
)
DISK = OperatorWarning("gateway.disk", "The disk", "is nearly full", "/health", "df -h")
STATUS = views.GatewayStatus(
    node=NodeId("node-1"), release="0.1.0", pid=7, started_at=NOW - timedelta(hours=2), now=NOW,
    database="embedded", draining=False,
    lanes=(views.LaneView(LaneName("main"), 2, 1, 0, 5, 3, 1, 0),), runs=(RUNNING,),
    channels=(views.ChannelView("telegram", "default", views.ChannelState.STOPPED, "wrong token"),),
    backlog=views.Backlog(inbox=1, outbox=2, failed=3), warnings=(DISK,),
    address="http://127.0.0.1:8420",
)  # fmt: skip


def measured(*seconds: float) -> HistogramView:
    histogram = Histogram()
    for each in seconds:
        histogram.add(each)
    return histogram.view()


WAITING = views.RunView(
    RunId("0190-cccc"), BARE_KEY, AgentName("main"), LaneName("main"), views.RunState.READY, 3.25,
    waits_for=views.WaitsFor.LANE, messages=2,
)  # fmt: skip
MAIN_LANE = replace(
    views.LaneView(LaneName("main"), 1, 1, 1, 5, 3, 1, 0),
    wait_times=measured(0.004, 0.004, 9),
    run_times=measured(0.3, 5000, 5000),
)
CRON_LANE = views.LaneView(LaneName("cron"), 1, 0, 0, 0, 0, 0, 0, closed=True)
USES = views.LaneUse(MAIN_LANE, (RUNNING,), (WAITING,)), views.LaneUse(CRON_LANE, (), ())
LANES = views.LanesView(NOW, USES)
ACTIVE_RUNS = views.ActiveRuns(NOW, live=True, runs=(RUNNING, WAITING))


def said(number: int, text: str) -> InboundMessage:
    return InboundMessage(
        f"local:{number}", LOCAL, PeerKind.DIRECT, Sender("7", "Ann\x1b[2J"), text, NOW
    )


WHY = Explanation(
    Subject(SubjectKind.RUN, RUN_ID, "run 0190-aaaa"),
    NOW,
    "ended.failed",
    "Run 0190-aaaa failed: no such model.",
    (
        ExplanationStep(NOW, "received", "received from Ann\x1b[2J: “count <b>”"),
        ExplanationStep(None, "next_try", "the next try is due"),
    ),
    (Cure("Retry the message", "goclaw deliveries incoming retry 7"), Cure("Send it again")),
)
DROPPED = store.Unanswered(3, said(3, "too much"), None, NOW, NOW + timedelta(seconds=1))
DROPPED = replace(DROPPED, outcome=Outcome.DROPPED, reason=Reason.QUEUE_DROPPED)
QUEUE = QueueView(
    session=SESSION, at=NOW, live=True, running=(RUNNING,),
    waiting=(replace(WAITING, session=SESSION),), policy=QueuePolicy(),
    messages=(
        store.Unanswered(1, said(1, "count to 30"), RUN_ID, NOW),
        store.Unanswered(4, said(4, "and\nthen?"), None, NOW),
    ),
    unanswered=(
        DROPPED,
        store.Unanswered(2, said(2, "fail"), RUN_ID, NOW, NOW, Outcome.FAILED),
    ),
)  # fmt: skip
FULL = store.Session(
    SESSION, AgentName("main"), LOCAL, NOW, NOW, NodeId("node-1"), 4, 1, 2, 1, ("ä",)
)
BARE = store.Session(BARE_KEY, AgentName("main"), None, NOW, NOW, None, 0, 0, 0)
ENDED = store.StoredRun(
    id=RUN_ID, session=SESSION, agent=AgentName("main"), trigger=Trigger.CHAT,
    lane=LaneName("main"), node=NodeId("node-1"), started_at=NOW,
    finished_at=NOW + timedelta(seconds=61, milliseconds=250), outcome=Outcome.CANCELLED,
    reason=Reason.STOPPED, error=None, usage=Usage(1, 20, 30, 5, Decimal("0.0123")),
    model="offline", parent=None, payer=SESSION, submitted_at=NOW - timedelta(seconds=2),
    target=LOCAL, first_text_at=NOW + timedelta(milliseconds=500),
    tools=(
        store.ToolCall("read_file", '{"path": "ä"}', NOW, False, 0.25, True, "three lines"),
        store.ToolCall("send_message", "{}", NOW),
    ),
)  # fmt: skip
ACTIVE = replace(ENDED, id=RunId("0190-bbbb"), finished_at=None, outcome=None, reason=None)
ACTIVE = replace(ACTIVE, usage=None, first_text_at=None, tools=())
SPAN = store.RunSpan(
    ENDED.id, SESSION, ENDED.agent, ENDED.lane, ENDED.trigger, ENDED.outcome, None,
    ENDED.submitted_at, NOW, ENDED.finished_at, Decimal("0.0123"),
)  # fmt: skip
ACTIVE_SPAN = replace(SPAN, id=ACTIVE.id, outcome=None, finished_at=None, cost_usd=None)
ASIDES: list[store.Aside] = []
HISTORY = [
    store.StoredEntry(HistoryEntry(Role.USER, "Grüße \x1b[2J", None, None), NOW, None),
    store.StoredEntry(
        HistoryEntry(Role.ASSISTANT, "yes", b'{"a": "\xc3\xa4"}', "native"), NOW, RUN_ID
    ),
]
FORK = SessionKey("agent:main:console:direct:fork-1")
_SAYS = orjson.dumps([{"parts": [{"part_kind": "text", "content": "calls pay \x1b[2J"}]}])
STEPS = [
    store.StoredStep(RUN_ID, 1, ResponseStep(_SAYS, Usage(1, 10, 5))),
    store.StoredStep(RUN_ID, 2, ToolStarted("c1", "pay", '{"to": "ann"}')),
    store.StoredStep(RUN_ID, 3, ToolEnded("c1", "pay", ok=False, result="no money")),
]
DEAD = store.OutboxRow(
    id=2**40, message=OutboundMessage(LOCAL, "hello", None, RUN_ID), session=SESSION,
    state=store.OutboxState.FAILED, attempts=3, possible_duplicate=True, fence=1, created_at=NOW,
    next_attempt_at=NOW, sent_at=None, external_id=None, error="chat not found",
)  # fmt: skip
CHILD = live.LiveRun(
    RunId("0190-dddd"), SessionKey("agent:helper\x1b]0;x\x07:subagent:0190-dddd"),
    AgentName("helper\x1b]0;x\x07"), Trigger.SUBAGENT, RUN_ID, SESSION,
)  # fmt: skip
LIVE_RUN = live.LiveRun(RUN_ID, SESSION, AgentName("main"), Trigger.CHAT, None, SESSION)
FOLLOWED: list[live.LiveEvent] = [
    live.LiveNow(NOW, SESSION, (RUNNING, WAITING)), live.LiveRequested(NOW, CHILD),
    live.LiveJoined(NOW, LIVE_RUN, RunId("0190-eeee")), live.LiveStarted(NOW, LIVE_RUN),
    live.LiveText(NOW, LIVE_RUN, "Zeile 1\n\nevent: now\r\ndata: ü\u2028\x85\x1b[2J \u202e"),
    live.LiveText(NOW, LIVE_RUN, " \n"), live.LiveTool(NOW, LIVE_RUN, "read\nfile", "call-1"),
    live.LiveTool(NOW, LIVE_RUN, "read_file", "call-1", ok=True),
    live.LiveTool(NOW, LIVE_RUN, "send_file", "call-2", ok=False),
    live.LiveUsage(NOW, LIVE_RUN, Usage(1, 20, 30, 5, Decimal("0.0123")), "offline"),
    live.LiveMissed(NOW, 12),
    live.LiveEnded(NOW, LIVE_RUN, Outcome.CANCELLED, Reason.STOPPED, Usage(2, 20, 30)),
    live.LiveEnded(NOW, CHILD, Outcome.COMPLETED, None, None),
]  # fmt: skip
"""What is told of runs, with what somebody would say who wants to fool an operator."""
EVE = store.Person("console", "default", Sender("local", "Eve"), store.Standing.GUEST, NOW)


class FakeRunStore:
    """The runs of ``FakeControl``. ``called`` notes what is asked of it."""

    def __init__(self, called: Callable[..., None]) -> None:
        self._called = called

    async def runs(self, query: store.RunQuery) -> list[store.StoredRun]:
        self._called("runs", query)
        found = [ACTIVE] if query.active else [ACTIVE, ENDED]
        return behind(found, query.before)[: query.limit]

    async def run_counts(self, query: store.RunQuery) -> dict[Outcome | None, int]:
        self._called("run_counts", query)
        return {None: 1, Outcome.COMPLETED: 40, Outcome.FAILED: 2}

    async def run_density(
        self, since: datetime, until: datetime, *, parts: int, only: store.RunFilter
    ) -> list[store.RunDensity]:
        self._called("run_density", since, until, parts, *chosen(only))
        lane, last = LaneName("main"), parts - 1
        return [
            store.RunDensity(lane, 0, Outcome.COMPLETED, 300),
            store.RunDensity(lane, last, Outcome.COMPLETED, 900),
            store.RunDensity(lane, last, Outcome.FAILED, 100),
            store.RunDensity(lane, last, None, 1),
        ]

    async def runs_between(
        self,
        since: datetime,
        until: datetime,
        *,
        limit: int,
        only: store.RunFilter,
        after: Cursor | None,
    ) -> list[store.RunSpan]:
        self._called("runs_between", since, until, limit, *chosen(only))
        found = [span for span in (SPAN, ACTIVE_SPAN) if after is None or span.cursor > after]
        return [span for span in found if span.started_at < until][:limit]

    async def find_run(self, prefix: str) -> list[store.StoredRun]:
        self._called("find_run", prefix)
        return [one for one in (ACTIVE, ENDED) if one.id.startswith(prefix)]

    async def run_prompts(self, runs: Collection[RunId]) -> dict[RunId, str]:
        return {
            run: f"[scheduler:news] {HISTORY[0].entry.text}" for run in runs if run != ACTIVE.id
        }

    async def run_history(self, _run: RunId) -> list[store.StoredEntry]:
        return HISTORY

    async def outbox(self, query: store.OutboxQuery) -> list[store.OutboxRow]:
        assert query.run is not None
        return [DEAD]

    async def letters_of(self, run: RunId) -> list[store.DeadLetter]:
        own = [one for one in QUEUE.unanswered if one.run_id == run]
        return [store.DeadLetter(one, SESSION, AgentName("main"), 1) for one in own]

    async def run_steps(self, _run: RunId) -> list[store.StoredStep]:
        return STEPS


class _Clock:
    def now(self) -> datetime:
        return NOW


class FakeSessions:
    """Implements ``Sessions`` for a control: canned answers, as of a gateway."""

    def __init__(self, control: FakeControl) -> None:
        self._control = control

    async def queue(self, key: str) -> QueueView:
        self._control._called("queue", key)
        if key not in SESSION:
            raise NotFound(f"no session, or several, with {key!r}")
        if not self._control.gateway:
            return replace(QUEUE, live=False, waiting=(), policy=None)
        return QUEUE

    async def stop(
        self, session: SessionKey, *, everything: bool, run: RunId | None = None
    ) -> views.StopReport:
        self._control._here("stop", session, everything, *([] if run is None else [run]))
        if everything:
            return views.StopReport((RUN_ID,), (RunId("d1"), RunId("d2")))
        if run in {one.id for one in self._control.snapshot.runs if one.waits_for}:
            return views.StopReport(dropped=(run,))
        return views.StopReport(already_stopping=True)

    async def get(self, key: str) -> store.Session:
        self._control._called("session", key)
        found = [one for one in (FULL, BARE) if key in one.key]
        if len(found) != 1:
            raise NotFound(f"no session, or several, with {key!r}")
        return found[0]

    async def history(
        self, key: SessionKey, *, limit: int = 200, whole: bool = False
    ) -> list[store.StoredEntry]:
        self._control._called("history", key, limit, whole)
        return HISTORY[-limit:]

    async def asides(self, key: SessionKey, *, limit: int = 50) -> list[store.Aside]:
        self._control._called("asides", key, limit)
        return ASIDES[-limit:]

    async def send_message(self, key: str, text: str, *, queue: bool) -> Submitted:
        self._control._here("send_message", key, text, queue)
        if key == BARE.key:
            raise NotAChat("it belongs to no chat")
        if key != SESSION:
            raise NotFound(f"there is no session {key!r}")
        if not queue:
            raise SessionBusy
        return Submitted(SESSION, RUN_ID)

    async def reset(self, key: SessionKey) -> None:
        self._control._called("reset", key)

    async def rename(self, key: SessionKey, title: str) -> str:
        if key != FORK:
            await self.get(key)
        self._control._called("rename", key, title)
        if len(title) > 80:
            raise NotAccepted(f"a title has at most 80 characters, not {len(title)}")
        return title

    async def delete(self, key: SessionKey) -> None:
        await self.get(key)
        self._control._called("delete", key)
        if key == BARE.key:
            raise NotAChat("it belongs to no chat")

    async def fork(self, key: SessionKey, *, at: str | None = None) -> SessionFork:
        await self.get(key)
        self._control._called("fork", key, at)
        if at == "0190-zzzz":
            raise NotRewindable("run 0190-zzzz added nothing")
        return SessionFork(FORK, key, 2, None if at else "fork-1")

    async def names(self, keys: Collection[str]) -> dict[str, str]:
        return {key: display_name(key, self._control.named) for key in keys}

    async def list(self, query: store.SessionQuery = store.NEWEST_SESSIONS) -> list[store.Session]:
        self._control._called("sessions", query)
        found = [one for one in (FULL, BARE) if query.search in one.key]
        return behind(found, query.before)[: query.limit]


class FakeLanes(Lanes):
    """Two lanes, and the state that ``FakeControl`` says."""

    def __init__(self, control: FakeControl) -> None:
        self._control = control

    async def status(self) -> views.GatewayStatus:
        self._control._here("status")
        return self._control.snapshot

    async def list(self) -> views.LanesView:
        self._control._here("lanes")
        return LANES

    async def resize(self, name: LaneName, concurrency: int) -> Resized:
        self._control._here("resize_lane", name, concurrency)
        found = [use.lane for use in LANES.lanes if use.lane.name == name]
        if not found:
            raise NotFound(f"there is no lane {name!r}; there are: main, cron")
        before, self._control.size = self._control.size, concurrency
        return Resized(before, replace(found[0], concurrency=concurrency, active=2))


class FakeControl(FakeAccess):
    """Implements ``Control``. Set ``failure`` to make every method raise it."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = STATUS
        self.size = 1
        self.messages.rows = [DEAD]
        self.gateway = True
        self.following = 0
        self.made = Jobs()
        self.stored_runs = FakeRunStore(self._called)
        self.hearts = FakeHeartbeats()
        self.cluster = FakeNodeStore(self._called)
        stored = cast("store.Store", self.cluster)
        calls = NodeRpc(bind(stored, lambda: HERE.id), FixedClock())
        self.nodes = Nodes(stored, FixedClock(), calls)
        self.settings = FakeSettings()
        self.events: asyncio.Queue[live.LiveEvent | None] = asyncio.Queue()
        """What comes after ``LiveNow`` to one who follows runs. None ends it."""

    def _here(self, *call: object) -> None:
        """Only a gateway that runs can do it."""
        self._called(*call)
        if not self.gateway:
            raise NoGateway("no gateway is running here")

    @property
    def runs(self) -> Runs:
        unfinished = self._unfinished if self.gateway else None
        return Runs(cast("store.Store", self.stored_runs), _Clock(), unfinished)

    @property
    def lanes(self) -> Lanes:
        return FakeLanes(self)

    def _unfinished(self) -> tuple[views.RunView, ...]:
        self._called("active")
        return ACTIVE_RUNS.runs

    async def why(self, about: str | None = None, *, zone: str = "") -> Explanation:
        del zone
        self._called("why", about)
        if about == "nobody":
            raise NotFound("nothing is called 'nobody'", names=["ann & bob"])
        return WHY

    @property
    def sessions(self) -> Sessions:
        return cast("Sessions", FakeSessions(self))

    @property
    def jobs(self) -> JobService:
        return self.made.service

    @property
    def heartbeats(self) -> HeartbeatService:
        return self.hearts

    async def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[live.LiveEvent]:
        self._here("follow", session, *([] if after is None else [after]))
        if session is not None and session not in SESSION:
            raise NotFound(f"no session, or several, with {session!r}")
        self.following += 1
        try:
            yield FOLLOWED[0]
            while (event := await self.events.get()) is not None:
                yield event
        finally:
            self.following -= 1


def unavailable() -> StoreUnavailable:
    return StoreUnavailable("the database does not answer")
