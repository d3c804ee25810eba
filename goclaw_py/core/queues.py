"""The records that the scheduler keeps: entries, session queues, lanes, agents.

They hold state and answer questions about it. Every change of a state is made in
``core.machine``.
"""

from __future__ import annotations

from collections import deque

from goclaw_py.core.ids import LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.requests import Request
from goclaw_py.core.status import LaneView, RunState, RunView


class Entry:
    """One request on its way."""

    __slots__ = (
        "alone",
        "cut",
        "id",
        "lane",
        "last_at",
        "lineage",
        "reason",
        "request",
        "seq",
        "since",
        "started",
        "state",
        "stop_outcome",
        "timers",
    )

    def __init__(self, request: Request, lane: Lane, seq: int, now: float) -> None:
        self.request = request
        self.id: RunId = request.id
        self.lane = lane
        self.seq = seq
        self.since = now
        self.state = RunState.COLLECTING
        self.alone = False
        """Starts only when nothing else of its session is active (mode ``interrupt``)."""
        self.last_at = now
        """When the last message joined it."""
        self.cut = request.cut
        self.started = 0
        """Its place in the order of all starts; 0 before."""
        self.stop_outcome: Outcome | None = None
        self.reason: Reason | None = None
        self.timers = 0
        self.lineage: tuple[tuple[RunId, SessionKey], ...] = ()
        """Its parent, grandparent … with their sessions."""

    @property
    def waits(self) -> bool:
        """Whether it has not started."""
        return self.state in (RunState.COLLECTING, RunState.QUEUED, RunState.READY)

    def view(self, now: float) -> RunView:
        """For people."""
        request = self.request
        return RunView(
            id=self.id,
            session=request.session,
            agent=request.agent,
            lane=self.lane.name,
            state=self.state,
            for_s=now - self.since,
        )


class SessionQueue:
    """One session: its active runs in the order they got their slot, and its waiting line."""

    __slots__ = ("active", "concurrency", "key", "waiting")

    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.concurrency = 1
        self.active: dict[RunId, Entry] = {}
        self.waiting: deque[Entry] = deque()

    def may_start(self, entry: Entry) -> bool:
        """Whether the session has room for this entry."""
        if entry.alone:
            return not self.active
        return len(self.active) < self.concurrency

    def last_waiting_of(self, sender: str) -> Entry | None:
        """The newest entry of this sender that has not started."""
        for entry in reversed(self.waiting):
            if entry.request.sender == sender:
                return entry
        for entry in reversed(self.active.values()):
            if entry.state is RunState.READY and entry.request.sender == sender:
                return entry
        return None

    def oldest_running(self) -> Entry | None:
        """The run that started first and is not stopping."""
        running = [e for e in self.active.values() if e.state is RunState.RUNNING]
        return min(running, key=lambda e: e.started, default=None)

    def oldest_ready(self) -> Entry | None:
        """The first run that waits for its lane."""
        return next((e for e in self.active.values() if e.state is RunState.READY), None)

    def is_stopping(self) -> bool:
        """Whether a run that was stopped has not been put away yet."""
        return any(e.stop_outcome is not None for e in self.active.values())


class AgentSlots:
    """One agent: how many of its runs may work at once, over all its sessions (SPEC AGENT-3)."""

    __slots__ = ("active", "limit", "line")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.active = 0
        self.line: dict[SessionKey, None] = {}
        """Sessions that wait for the agent, the longest waiting first."""

    @property
    def has_room(self) -> bool:
        """Whether one more run may work."""
        return self.limit is None or self.active < self.limit


class Lane:
    """A bounded pool of running runs (SPEC LANE-1). ``line`` holds who waits, first come first."""

    __slots__ = (
        "active",
        "cancelled",
        "closed",
        "concurrency",
        "failed",
        "finished",
        "line",
        "name",
        "started",
        "waiting",
    )

    def __init__(self, name: LaneName, concurrency: int) -> None:
        if concurrency < 1:
            raise ValueError(f"lane {name}: concurrency must be at least 1, not {concurrency}")
        self.name = name
        self.concurrency = concurrency
        self.active = 0
        self.line: deque[Entry] = deque()
        self.closed = False
        self.waiting = 0
        self.started = 0
        self.finished = 0
        self.cancelled = 0
        self.failed = 0

    def count(self, outcome: Outcome) -> None:
        """Count the end of a run that had started."""
        self.finished += 1
        if outcome is Outcome.FAILED:
            self.failed += 1
        elif outcome is not Outcome.COMPLETED:
            self.cancelled += 1

    def view(self) -> LaneView:
        """For people."""
        return LaneView(
            name=self.name,
            concurrency=self.concurrency,
            active=self.active,
            waiting=self.waiting,
            started=self.started,
            finished=self.finished,
            cancelled=self.cancelled,
            failed=self.failed,
        )
