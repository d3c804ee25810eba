"""The records of the scheduler: requests, and what they wait for.

They hold state and answer questions about it. Every change of a state is made in
``scheduler.state_machine``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field
from enum import StrEnum
from types import UnionType
from typing import TypeVar

from goclaw_py.common.histogram import Histogram
from goclaw_py.model.ids import MAIN_AGENT, MAIN_LANE, AgentName, LaneName, RunId, SessionKey
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.views import LaneView, RunState

MAX_DEBOUNCE_S = 3600.0

HOLDING = (RunState.RUNNING, RunState.STOPPING, RunState.FINISHING)
"""The states in which a request has a slot of a lane."""

_SLACK = 64
"""How many that have left may stay in a lane's line before it is cleared of them."""


class Mode(StrEnum):
    """What happens to a message that finds its session busy (SPEC QUEUE-3, QUEUE-4)."""

    QUEUE = "queue"
    """It waits for its turn."""
    FOLLOWUP = "followup"
    """The same, by the name that other systems use."""
    INTERRUPT = "interrupt"
    """It stops what runs and replaces what waits."""
    COLLECT = "collect"
    """All that waits when the next turn starts becomes that turn."""
    STEER = "steer"
    """It waits, and the active run may take it in between two requests to its model."""


class Drop(StrEnum):
    """Which message is dropped when the queue is full (SPEC QUEUE-5)."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """How a session queues.

    ``capacity`` counts waiting requests only, at least 1. ``debounce_s`` is the quiet time, in
    seconds, after which a burst of messages counts as complete; 0 is off. ``concurrency`` is how
    many runs of the session may work at once. A turn takes at most ``turn_messages`` messages and
    ``turn_chars`` characters; a message that is longer is a turn of its own. Raises ``ValueError``
    for anything else.

    Source: SPEC QUEUE-1, QUEUE-3 to QUEUE-6.
    """

    mode: Mode = Mode.QUEUE
    capacity: int = 10
    drop: Drop = Drop.OLD
    debounce_s: float = 0.0
    concurrency: int = 1
    turn_messages: int = 50
    turn_chars: int = 100_000

    def __post_init__(self) -> None:
        # Names are welcome too, and become members: comparisons are by identity.
        object.__setattr__(self, "mode", _choice("mode", self.mode, Mode))
        object.__setattr__(self, "drop", _choice("drop", self.drop, Drop))
        check_count("capacity", self.capacity)
        check_count("concurrency", self.concurrency)
        check_count("turn_messages", self.turn_messages)
        check_count("turn_chars", self.turn_chars)
        check_type("debounce_s", self.debounce_s, int | float)
        if not 0 <= self.debounce_s <= MAX_DEBOUNCE_S:
            raise ValueError(f"debounce_s is from 0 to {MAX_DEBOUNCE_S:.0f}: {self.debounce_s!r}")


def check_type(name: str, value: object, kind: type | UnionType) -> None:
    """Raise ``TypeError`` unless ``value`` is of that type."""
    if not isinstance(value, kind):
        wanted = kind.__name__ if isinstance(kind, type) else str(kind)
        raise TypeError(f"{name} must be of type {wanted}, not {type(value).__name__}: {value!r}")


_E = TypeVar("_E", bound=StrEnum)


def _choice(name: str, value: object, kind: type[_E]) -> _E:
    """The member of that value. Raises ``ValueError`` with all choices."""
    try:
        return kind(str(value))
    except ValueError:
        raise ValueError(f"{name} must be one of {', '.join(kind)}, not {value!r}") from None


def check_count(name: str, value: object) -> None:
    """Raise ``ValueError`` unless ``value`` is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is a whole number, at least 1: {value!r}")


DEFAULT_POLICY = QueuePolicy()

# Neither frozen nor comparing: a scheduler makes, hashes and drops one of these for each message.


@dataclass(slots=True, eq=False)
class Request:
    """One request for a run, and its state.

    Only the first part is the caller's: ``id`` must be new; it becomes the run's id. ``sender`` is
    who debounces together, empty for sessions that are no chats. ``cut`` says that the sender's
    next message is the rest of this one. ``deadline_s`` counts from submission, ``run_timeout_s``
    from the start of the run; None is no limit. ``parent`` is the live run that asked for this
    one; ``awaited`` says that it works no further until this one has ended (SPEC LANE-8).
    ``pieces`` (messages) and ``chars`` are how much it says; both grow by what joins it.
    ``senders`` are those who may stop it as their own, None: the ``sender``; they grow too.
    """

    id: RunId
    session: SessionKey
    lane: LaneName = MAIN_LANE
    agent: AgentName = MAIN_AGENT
    sender: str = ""
    policy: QueuePolicy = DEFAULT_POLICY
    cut: bool = False
    deadline_s: float | None = None
    run_timeout_s: float | None = None
    parent: RunId | None = None
    awaited: bool = False
    pieces: int = 1
    chars: int = 0
    senders: Set[str] | None = None

    state: RunState = field(default=RunState.COLLECTING, init=False)
    since: float = field(default=0.0, init=False)
    """When it entered its state."""
    seq: int = field(default=0, init=False)
    """Its place in the order of all submissions; 0 before."""
    started: int = field(default=0, init=False)
    """Its place in the order of all starts; 0 before."""
    started_at: float = field(default=0.0, init=False)
    place: LaneState = field(init=False, repr=False)
    """The lane whose line it waits in, or whose slot it uses."""
    slots: AgentSlots = field(init=False, repr=False)
    alone: bool = field(default=False, init=False)
    """Starts only when nothing else of its session is active (mode ``interrupt``)."""
    last_at: float = field(default=0.0, init=False)
    """When the last message joined it."""
    joined: list[RunId] | None = field(default=None, init=False)
    """The requests that became part of it."""
    overflowed: bool = field(default=False, init=False)
    """It belongs to one that waits, which had no room for it (SPEC QUEUE-6)."""
    stop_outcome: Outcome | None = field(default=None, init=False)
    reason: Reason | None = field(default=None, init=False)
    timers: int = field(default=0, init=False)
    family: Family | None = field(default=None, init=False, repr=False)
    """Its parents and children, if it has any."""

    @property
    def waits(self) -> bool:
        """Whether it has not started."""
        return self.state in (RunState.COLLECTING, RunState.QUEUED, RunState.READY)

    def is_like(self, other: Request) -> bool:
        """Whether one run may answer both: the same agent, in the same lane, neither a child."""
        if self.parent is not None or other.parent is not None:
            return False
        return self.place is other.place and self.agent == other.agent

    def has_room_for(self, other: Request) -> bool:
        """Whether the turn is not too large with this one too (SPEC QUEUE-6)."""
        limits = self.policy
        return (
            self.pieces + other.pieces <= limits.turn_messages
            and self.chars + other.chars <= limits.turn_chars
        )

    def is_of(self, sender: str | None) -> bool:
        """Whether it answers a message of this sender, or is for a run that does; None: anybody."""
        if sender is None or sender in (self.senders or (self.sender,)):
            return True
        return any(above.is_of(sender) for above in self.family.ancestors) if self.family else False

    def works_in(self, lane: LaneState) -> bool:
        """Whether it uses a slot of this lane, its own or its host's."""
        return self.place is lane and self.state in HOLDING

    def waits_in(self, lane: LaneState) -> bool:
        """Whether it waits for a slot of its own in this lane."""
        if self.state is not RunState.READY or self.place is not lane:
            return False
        return self.family is None or self.family.host is None


@dataclass(slots=True, eq=False)
class Family:
    """The parent and children of a request (SPEC LANE-8)."""

    ancestors: tuple[Request, ...] = ()
    """Its parent, grandparent …"""
    children: dict[RunId, Request] = field(default_factory=dict)
    """Those that it has asked for and that are not done."""
    host: Request | None = None
    """The ancestor whose lane slot it uses; None if it needs one of its own."""
    guest: Request | None = None
    """Who works in this one's lane slot besides itself; one at a time."""
    line: deque[Request] = field(default_factory=deque)
    """Who waits to be the guest."""
    awaits: Request | None = None
    """What the run waits for without having said so, as far as the shell knows."""


class SessionQueue:
    """One session: its active runs in the order they got their slot, and its waiting line."""

    __slots__ = ("active", "concurrency", "key", "waiting")

    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.concurrency = 1
        self.active: dict[RunId, Request] = {}
        self.waiting: deque[Request] = deque()

    def may_start(self, request: Request) -> bool:
        """Whether the session has room for this request."""
        if request.alone:
            return not self.active
        return len(self.active) < self.concurrency

    def next_agent(self) -> AgentSlots | None:
        """Whom the first that waits is for, if the session has room for it."""
        waiting = self.waiting
        if not waiting or not self.may_start(waiting[0]):
            return None
        return waiting[0].slots

    def last_waiting_of(self, sender: str) -> Request | None:
        """The newest message of this sender that has not started; a child is none."""
        for request in reversed(self.waiting):
            if request.sender == sender and request.parent is None:
                return request
        for request in reversed(self.active.values()):
            if request.state is not RunState.READY or request.parent is not None:
                continue
            if request.sender == sender:
                return request
        return None

    def last_active_at(self, sender: str) -> float | None:
        """When the newest message of this sender came that is active; a child is none."""
        active = self.active.values()
        mine = (r.last_at for r in active if r.sender == sender and r.parent is None)
        return max(mine, default=None)

    def oldest_active(self, sender: str | None) -> Request | None:
        """The run of this sender that started first and is not stopping, else the first ready."""
        mine = [r for r in self.active.values() if r.is_of(sender)]
        running = [r for r in mine if r.state is RunState.RUNNING]
        ready = next((r for r in mine if r.state is RunState.READY), None)
        return min(running, key=lambda r: r.started, default=ready)

    def is_stopping(self, sender: str | None) -> bool:
        """Whether a run of this sender that was stopped has not been put away yet."""
        return any(r.stop_outcome is not None and r.is_of(sender) for r in self.active.values())


class AgentSlots:
    """How many runs of an agent may be in progress at once, over all sessions (SPEC AGENT-3)."""

    __slots__ = ("active", "limit", "line")

    def __init__(self, limit: int | None) -> None:
        if limit is not None:
            check_count("max_concurrent", limit)
        self.limit = limit
        self.active = 0
        self.line: dict[SessionKey, None] = {}
        """Sessions that wait for the agent, the longest waiting first."""

    @property
    def has_room(self) -> bool:
        """Whether one more of its runs may work."""
        return self.limit is None or self.active < self.limit


class LaneState:
    """A bounded pool of runs (SPEC LANE-1). ``line``: waiting requests, first in, first out.

    Args:
        shared: Other nodes have the same lane. Then a run needs a place that was granted for it,
            and gives it back at its end: ``room`` is how many are here (SPEC NODE-2).
    """

    __slots__ = (
        "active",
        "cancelled",
        "closed",
        "concurrency",
        "elsewhere",
        "failed",
        "finished",
        "line",
        "name",
        "quiet_until",
        "room",
        "run_times",
        "shared",
        "started",
        "told",
        "wait_times",
        "waiting",
        "watched",
    )

    def __init__(self, name: LaneName, concurrency: int, *, shared: bool = False) -> None:
        check_count(f"lane {name}: concurrency", concurrency)
        self.name = name
        self.concurrency = concurrency
        self.shared = shared
        self.room = 0 if shared else concurrency
        """How many may work here at once."""
        self.elsewhere = 0
        """How many places of a shared lane other nodes had when somebody here last asked."""
        self.active = 0
        self.line: deque[Request] = deque()
        """May hold some that have left; ``waiting`` counts those that have not."""
        self.closed = False
        self.waiting = 0
        self.started = 0
        self.finished = 0
        self.cancelled = 0
        self.failed = 0
        self.wait_times = Histogram()
        self.run_times = Histogram()
        self.watched: object | None = None
        """The alarm that looks for slow waits, while somebody waits."""
        self.told = 0
        """Whose wait was told last (``Request.seq``)."""
        self.quiet_until = float("-inf")
        """No wait is told before."""

    def resize(self, concurrency: int) -> None:
        """Give it another size. Of a shared one what was granted stays."""
        self.concurrency = concurrency
        if not self.shared:
            self.room = concurrency

    def vacate(self) -> None:
        """A run has left its slot. In a shared lane its place is not the next one's."""
        self.active -= 1
        if self.shared:
            self.room -= 1

    def first(self) -> Request:
        """The first in the line. There must be one."""
        return next(request for request in self.line if request.waits_in(self))

    def leave(self) -> None:
        """One that waits leaves the line; its state will tell which."""
        self.waiting -= 1
        if not self.waiting:
            self.line.clear()
        elif len(self.line) > 2 * self.waiting + _SLACK:
            self.line = deque(request for request in self.line if request.waits_in(self))

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
            closed=self.closed,
            shared=self.shared,
            elsewhere=self.elsewhere if self.waiting else 0,
            wait_times=self.wait_times.view(),
            run_times=self.run_times.view(),
        )
