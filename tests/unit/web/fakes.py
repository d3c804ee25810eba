"""A gateway without insides: answers from lists, remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from goclaw_py.common.histogram import Histogram, HistogramView
from goclaw_py.model.errors import NoGateway, NotAChat, NotFound, SessionBusy, StoreUnavailable
from goclaw_py.model.explanation import Cure, Explanation, ExplanationStep, Subject, SubjectKind
from goclaw_py.model.ids import AgentName, LaneName, NodeId, RunId, SessionKey
from goclaw_py.model.messages import InboundMessage, OutboundMessage, PeerKind, Sender, Target
from goclaw_py.model.outcomes import Outcome, Reason, Trigger
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.agent import HistoryEntry, Role
from goclaw_py.ports.control import (
    NodesView,
    PairingApplicant,
    QueueView,
    Resized,
    RunRecord,
    Submitted,
)
from goclaw_py.ports.heartbeat import HeartbeatService
from goclaw_py.ports.jobs import JobService
from goclaw_py.ports.store import (
    ALL_RUNS,
    Node,
    OutboxRow,
    OutboxState,
    Person,
    RunFilter,
    RunSpan,
    Session,
    Standing,
    StoredEntry,
    StoredRun,
    ToolCall,
    Unanswered,
)
from goclaw_py.runs.live_events import (
    LiveAsked,
    LiveEnded,
    LiveEvent,
    LiveJoined,
    LiveMissed,
    LiveNow,
    LiveRun,
    LiveStarted,
    LiveText,
    LiveTool,
    LiveUsage,
)
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.views import (
    ActiveRuns,
    Backlog,
    ChannelState,
    ChannelView,
    GatewayStatus,
    LanesView,
    LaneUse,
    LaneView,
    RunState,
    RunView,
    StopReport,
    WaitsFor,
)
from tests.unit.web.fake_heartbeats import FakeHeartbeats
from tests.unit.web.fake_jobs import Jobs
from tests.unit.web.fake_nodes import FakeNodes
from tests.unit.web.fake_post import behind
from tests.unit.web.fake_usage import FakeUsage

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SESSION = SessionKey("agent:main:console:direct:local")
LOCAL = Target("console", "default", "local")
BARE_KEY = SessionKey("agent:main:api:a/b c%2F?#")
RUN_ID = RunId("0190-aaaa")

RUNNING = RunView(RUN_ID, SESSION, AgentName("main"), LaneName("main"), RunState.RUNNING, 1.5)
STATUS = GatewayStatus(
    node=NodeId("node-1"),
    release="0.2.0",
    pid=7,
    started_at=NOW - timedelta(hours=2),
    now=NOW,
    database="embedded",
    draining=False,
    lanes=(LaneView(LaneName("main"), 2, 1, 0, 5, 3, 1, 0),),
    runs=(RUNNING,),
    channels=(ChannelView("telegram", "default", ChannelState.STOPPED, "wrong token"),),
    backlog=Backlog(inbox=1, outbox=2, dead=3),
    warnings=("disk is nearly full",),
)


def measured(*seconds: float) -> HistogramView:
    histogram = Histogram()
    for each in seconds:
        histogram.add(each)
    return histogram.view()


WAITING = RunView(
    RunId("0190-cccc"),
    BARE_KEY,
    AgentName("main"),
    LaneName("main"),
    RunState.READY,
    3.25,
    waits_for=WaitsFor.LANE,
    messages=2,
)
LANES = LanesView(
    NOW,
    (
        LaneUse(
            LaneView(
                LaneName("main"),
                *(1, 1, 1, 5, 3, 1, 0),
                wait_times=measured(0.004, 0.004, 9),
                run_times=measured(0.3, 5000, 5000),
            ),
            inside=(RUNNING,),
            waiting=(WAITING,),
        ),
        LaneUse(LaneView(LaneName("cron"), 1, 0, 0, 0, 0, 0, 0, closed=True), (), ()),
    ),
)
ACTIVE_RUNS = ActiveRuns(NOW, live=True, runs=(RUNNING, WAITING))


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
    (Cure("Retry the message", "goclaw inbox retry 7"), Cure("Send it again")),
)
QUEUE = QueueView(
    session=SESSION,
    at=NOW,
    live=True,
    running=(RUNNING,),
    waiting=(replace(WAITING, session=SESSION),),
    policy=QueuePolicy(),
    messages=(
        Unanswered(1, said(1, "count to 30"), RUN_ID, NOW),
        Unanswered(4, said(4, "and\nthen?"), None, NOW),
    ),
    unanswered=(
        Unanswered(
            3,
            said(3, "too much"),
            None,
            NOW,
            NOW + timedelta(seconds=1),
            Outcome.DROPPED,
            Reason.QUEUE_DROPPED,
        ),
        Unanswered(2, said(2, "fail"), RUN_ID, NOW, NOW, Outcome.FAILED),
    ),
)
FULL = Session(SESSION, AgentName("main"), LOCAL, NOW, NOW, NodeId("node-1"), 4, 1, 2, 1, ("ä",))
BARE = Session(BARE_KEY, AgentName("main"), None, NOW, NOW, None, 0, 0, 0)
ENDED = StoredRun(
    id=RUN_ID,
    session=SESSION,
    agent=AgentName("main"),
    trigger=Trigger.CHAT,
    lane=LaneName("main"),
    node=NodeId("node-1"),
    started_at=NOW,
    finished_at=NOW + timedelta(seconds=61, milliseconds=250),
    outcome=Outcome.CANCELLED,
    reason=Reason.STOPPED,
    error=None,
    usage=Usage(1, 20, 30, 5, Decimal("0.0123")),
    model="offline",
    parent=None,
    payer=SESSION,
    submitted_at=NOW - timedelta(seconds=2),
    target=LOCAL,
    first_text_at=NOW + timedelta(milliseconds=500),
    tools=(
        ToolCall("read_file", '{"path": "ä"}', NOW, False, 0.25, True, "three lines"),
        ToolCall("send_message", "{}", NOW),
    ),
)
ACTIVE = replace(ENDED, id=RunId("0190-bbbb"), finished_at=None, outcome=None, reason=None)
ACTIVE = replace(ACTIVE, usage=None, first_text_at=None, tools=())
SPAN = RunSpan(
    ENDED.id,
    SESSION,
    ENDED.agent,
    ENDED.lane,
    ENDED.trigger,
    ENDED.outcome,
    None,
    ENDED.submitted_at,
    NOW,
    ENDED.finished_at,
    Decimal("0.0123"),
)
ACTIVE_SPAN = replace(SPAN, id=ACTIVE.id, outcome=None, finished_at=None, cost_usd=None)
HISTORY = [
    StoredEntry(HistoryEntry(Role.USER, "Grüße \x1b[2J", None, None), NOW, None),
    StoredEntry(HistoryEntry(Role.ASSISTANT, "yes", b'{"a": "\xc3\xa4"}', "native"), NOW, RUN_ID),
]
DEAD = OutboxRow(
    id=2**40,
    message=OutboundMessage(LOCAL, "hello", None, RUN_ID),
    session=SESSION,
    state=OutboxState.DEAD,
    attempts=3,
    possible_duplicate=True,
    fence=1,
    created_at=NOW,
    next_attempt_at=NOW,
    sent_at=None,
    external_id=None,
    error="chat not found",
)
CHILD = LiveRun(
    RunId("0190-dddd"),
    SessionKey("agent:helper\x1b]0;x\x07:subagent:0190-dddd"),
    AgentName("helper\x1b]0;x\x07"),
    Trigger.SUBAGENT,
    RUN_ID,
    SESSION,
)
LIVE_RUN = LiveRun(RUN_ID, SESSION, AgentName("main"), Trigger.CHAT, None, SESSION)
FOLLOWED: list[LiveEvent] = [
    LiveNow(NOW, SESSION, (RUNNING, WAITING)),
    LiveAsked(NOW, CHILD),
    LiveJoined(NOW, LIVE_RUN, RunId("0190-eeee")),
    LiveStarted(NOW, LIVE_RUN),
    LiveText(NOW, LIVE_RUN, "Zeile 1\n\nevent: now\r\ndata: ü\u2028\x85\x1b[2J \u202e"),
    LiveText(NOW, LIVE_RUN, " \n"),
    LiveTool(NOW, LIVE_RUN, "read\nfile", "call-1"),
    LiveTool(NOW, LIVE_RUN, "read_file", "call-1", ok=True),
    LiveTool(NOW, LIVE_RUN, "send_file", "call-2", ok=False),
    LiveUsage(NOW, LIVE_RUN, Usage(1, 20, 30, 5, Decimal("0.0123")), "offline"),
    LiveMissed(NOW, 12),
    LiveEnded(NOW, LIVE_RUN, Outcome.CANCELLED, Reason.STOPPED, Usage(2, 20, 30)),
    LiveEnded(NOW, CHILD, Outcome.COMPLETED, None, None),
]
"""What is told of runs, with what somebody would say who wants to fool an operator."""
ANN = Person("telegram", "default", Sender("42", "Ann", "ann"), Standing.OWNER, NOW)
EVE = Person("console", "default", Sender("local", "Eve"), Standing.GUEST, NOW)
ASKED = PairingApplicant("telegram", "default", Sender("43", "Bob"), NOW, NOW, "43")


class FakeControl(FakeUsage):
    """Implements ``Control``. Set ``failure`` to make every method raise it."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = STATUS
        self.size = 1
        self.rows = [DEAD]
        self.approved = [ANN]
        self.gateway = True
        self.following = 0
        self.made = Jobs()
        self.hearts = FakeHeartbeats()
        self.cluster = FakeNodes(self._called)
        self.events: asyncio.Queue[LiveEvent | None] = asyncio.Queue()
        """What comes after ``LiveNow`` to one who follows runs. None ends it."""

    async def status(self) -> GatewayStatus:
        self._called("status")
        if not self.gateway:
            raise NoGateway("no gateway is running here")
        return self.snapshot

    async def lanes(self) -> LanesView:
        self._called("lanes")
        if not self.gateway:
            raise NoGateway("no gateway is running here")
        return LANES

    async def resize_lane(self, name: LaneName, concurrency: int) -> Resized:
        self._called("resize_lane", name, concurrency)
        if not self.gateway:
            raise NoGateway("no gateway is running here")
        found = [use.lane for use in LANES.lanes if use.lane.name == name]
        if not found:
            raise NotFound(f"there is no lane {name!r}; there are: main, cron")
        before, self.size = self.size, concurrency
        return Resized(before, replace(found[0], concurrency=concurrency, active=2))

    async def nodes(self) -> NodesView:
        return self.cluster.view()

    async def drain(self, node: str) -> Node:
        return self.cluster.drain(node)

    async def active(self) -> ActiveRuns:
        self._called("active")
        if not self.gateway:
            return replace(ACTIVE_RUNS, live=False, runs=(RUNNING,))
        return ACTIVE_RUNS

    async def queue(self, key: str) -> QueueView:
        self._called("queue", key)
        if key not in SESSION:
            raise NotFound(f"no session, or several, with {key!r}")
        if not self.gateway:
            return replace(QUEUE, live=False, waiting=(), policy=None)
        return QUEUE

    async def why(self, about: str | None = None) -> Explanation:
        self._called("why", about)
        if about == "nobody":
            raise NotFound("nothing is called 'nobody'")
        return WHY

    async def stop(self, session: SessionKey, *, everything: bool) -> StopReport:
        self._called("stop", session, everything)
        if not self.gateway:
            raise NoGateway("no gateway is running here")
        if everything:
            return StopReport((RUN_ID,), (RunId("d1"), RunId("d2")))
        return StopReport(already_stopping=True)

    async def sessions(self, *, limit: int = 50, before: Cursor | None = None) -> list[Session]:
        self._called("sessions", limit)
        return behind([FULL, BARE], before)[:limit]

    async def session(self, key: str) -> Session:
        self._called("session", key)
        found = [one for one in (FULL, BARE) if key in one.key]
        if len(found) != 1:
            raise NotFound(f"no session, or several, with {key!r}")
        return found[0]

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        self._called("history", key, limit)
        return HISTORY[-limit:]

    @property
    def jobs(self) -> JobService:
        return self.made.service

    @property
    def heartbeats(self) -> HeartbeatService:
        return self.hearts

    async def send_message(self, key: str, text: str, *, queue: bool) -> Submitted:
        self._called("send_message", key, text, queue)
        if not self.gateway:
            raise NoGateway("no gateway is running here")
        if key == BARE.key:
            raise NotAChat("it belongs to no chat")
        if key != SESSION:
            raise NotFound(f"there is no session {key!r}")
        if not queue:
            raise SessionBusy
        return Submitted(SESSION, RUN_ID)

    async def reset(self, key: SessionKey) -> None:
        self._called("reset", key)

    async def runs(
        self,
        *,
        limit: int = 50,
        session: SessionKey | None = None,
        active: bool = False,
        only: RunFilter = ALL_RUNS,
        before: Cursor | None = None,
    ) -> list[StoredRun]:
        self._called("runs", limit, session, active, only)
        return [ACTIVE] if active else behind([ACTIVE, ENDED], before)[:limit]

    async def runs_between(
        self, since: datetime, until: datetime, *, limit: int = 2000, after: Cursor | None = None
    ) -> list[RunSpan]:
        self._called("runs_between", since, until, limit)
        found = [span for span in (SPAN, ACTIVE_SPAN) if after is None or span.cursor > after]
        return [span for span in found if span.started_at < until][:limit]

    async def run_record(self, prefix: str) -> RunRecord:
        return RunRecord(await self.run(prefix), tuple(HISTORY), (DEAD,))

    async def run(self, prefix: str) -> StoredRun:
        self._called("run", prefix)
        found = [one for one in (ACTIVE, ENDED) if one.id.startswith(prefix)]
        if len(found) != 1:
            raise NotFound(f"no run, or several, with {prefix!r}")
        return found[0]

    async def follow(
        self, session: str | None = None, *, after: str | None = None
    ) -> AsyncGenerator[LiveEvent]:
        self._called("follow", session, *([] if after is None else [after]))
        if not self.gateway:
            raise NoGateway("no gateway is running here")
        if session is not None and session not in SESSION:
            raise NotFound(f"no session, or several, with {session!r}")
        self.following += 1
        try:
            yield FOLLOWED[0]
            while (event := await self.events.get()) is not None:
                yield event
        finally:
            self.following -= 1

    async def people(self, *, limit: int = 1000, before: Cursor | None = None) -> list[Person]:
        self._called("people")
        return behind(self.approved, before)[:limit]

    async def pairing_requests(self) -> list[PairingApplicant]:
        self._called("pairing_requests")
        return [ASKED]

    async def approve(self, code: str, *, guest: bool) -> Person:
        self._called("approve", code, guest)
        if code == "WRONG":
            raise NotFound("no pairing request has this code")
        return replace(ANN, standing=Standing.GUEST if guest else Standing.OWNER)

    async def revoke(self, channel: str, account: str, sender_id: str) -> None:
        self._called("revoke", channel, account, sender_id)
        if sender_id != ANN.sender.id:
            raise NotFound(f"nobody is {channel}/{account}/{sender_id}")


def unavailable() -> StoreUnavailable:
    return StoreUnavailable("the database does not answer")
