"""The records of the scheduler: requests, and what they wait for.

They hold state and answer questions about it. Only ``scheduler.state_machine`` changes states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field
from enum import StrEnum
from types import UnionType
from typing import TypeVar

from goclaw_py.core.containers import Histogram
from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE, AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.views import LaneView, RunState

MAX_DEBOUNCE_S = 3600.0

HOLDING = (RunState.RUNNING, RunState.STOPPING, RunState.FINISHING)
"""The states in which a request has a lane slot."""

_SLACK = 64
"""The number of requests that have left and may stay in a lane's queue until it is cleaned."""


class Mode(StrEnum):
    """What happens to a message of a busy session (SPEC QUEUE-3, QUEUE-4)."""

    QUEUE = "queue"
    """It waits for its turn."""
    FOLLOWUP = "followup"
    """An alias of ``queue`` in other systems."""
    INTERRUPT = "interrupt"
    """It cancels the run and replaces what waits."""
    COLLECT = "collect"
    """Everything that waits when the next turn starts becomes that turn."""
    STEER = "steer"
    """It waits, and the run may take it between two model requests."""


class Drop(StrEnum):
    """Which message is dropped when the queue is full (SPEC QUEUE-5)."""

    OLD = "old"
    NEW = "new"


class Debounce(StrEnum):
    """When a message starts its run although its sender may write more (SPEC QUEUE-6)."""

    FIXED = "fixed"
    """After the debounce window."""
    SPECULATIVE = "speculative"
    """At once; a message within the window cancels a run that has had no effect, and joins it."""


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """How a session queues.

    Args:
        capacity: The number of waiting requests, at least 1.
        debounce_s: The quiet time, in seconds, after which a burst of messages is complete; 0 is
            off.
        concurrency: The number of concurrent runs of the session.
        turn_messages: The number of messages in a turn.
        turn_chars: The number of characters in a turn; a longer message is a turn of its own.
        debounce: What happens during the quiet time.

    Raises ``ValueError`` for other values. Source: SPEC QUEUE-1, QUEUE-3 to QUEUE-6.
    """

    mode: Mode = Mode.QUEUE
    capacity: int = 10
    drop: Drop = Drop.OLD
    debounce_s: float = 0.0
    concurrency: int = 1
    turn_messages: int = 50
    turn_chars: int = 100_000
    debounce: Debounce = Debounce.FIXED

    def __post_init__(self) -> None:
        # Names are welcome too, and become members: comparisons are by identity.
        object.__setattr__(self, "mode", _choice("mode", self.mode, Mode))
        object.__setattr__(self, "drop", _choice("drop", self.drop, Drop))
        object.__setattr__(self, "debounce", _choice("debounce", self.debounce, Debounce))
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
    """Return the member with this value. Raises ``ValueError`` with all choices."""
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
    """A request for a run, and its state.

    The caller sets only the first fields:

    Args:
        id: A new id, which becomes the run's id.
        sender: The sender for debouncing, empty for sessions that are not chats.
        cut: Whether the sender's next message continues this one.
        deadline_s: The time limit from submission; None is no limit.
        run_timeout_s: The time limit from the start of the run; None is no limit.
        parent: The live run that created this request.
        awaited: Whether the parent waits until it has ended (SPEC LANE-8).
        pieces: The number of messages, including those that join it.
        chars: The number of characters, including those that join it.
        senders: The people who may stop it as their own, including those of messages that join it;
            None: only ``sender``.
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
    """Its number in the order of submission; 0 before."""
    started: int = field(default=0, init=False)
    """Its number in the order of starts; 0 before."""
    started_at: float = field(default=0.0, init=False)
    place: LaneState = field(init=False, repr=False)
    """The lane in whose queue it waits, or whose slot it uses."""
    slots: AgentSlots = field(init=False, repr=False)
    alone: bool = field(default=False, init=False)
    """It starts only if nothing else of its session is active (mode ``interrupt``)."""
    last_at: float = field(default=0.0, init=False)
    """When the last message joined it."""
    joined: list[RunId] | None = field(default=None, init=False)
    """The requests that joined it."""
    overflowed: bool = field(default=False, init=False)
    """It belongs to an earlier request that had no room for it (SPEC QUEUE-6)."""
    speculative: bool = field(default=False, init=False)
    """Its run may be cancelled for a further message: it did not wait for one, and has had no
    effect so far as is known."""
    stop_outcome: Outcome | None = field(default=None, init=False)
    reason: Reason | None = field(default=None, init=False)
    timers: int = field(default=0, init=False)
    family: Family | None = field(default=None, init=False, repr=False)
    """Its parents and children, if it has any."""

    @property
    def waits(self) -> bool:
        """Whether it has not started."""
        return self.state in (RunState.COLLECTING, RunState.QUEUED, RunState.READY)

    @property
    def is_stoppable(self) -> bool:
        """Whether its run is running, or interrupted, so that its messages would run again."""
        if self.state is RunState.RUNNING or self.stop_outcome is not Outcome.INTERRUPTED:
            return self.state is RunState.RUNNING
        is_ending = self.state in (RunState.STOPPING, RunState.FINISHING)
        return is_ending and self.reason is not Reason.MERGED

    @property
    def was_stopped(self) -> bool:
        """Whether its run was ended before its task; not one that is interrupted."""
        return self.stop_outcome not in (None, Outcome.INTERRUPTED)

    def is_like(self, other: Request) -> bool:
        """Return whether one run may answer both: same agent and lane, neither is a child."""
        if self.parent is not None or other.parent is not None:
            return False
        return self.place is other.place and self.agent == other.agent

    def has_room_for(self, other: Request) -> bool:
        """Return whether the turn has room for this request too (SPEC QUEUE-6)."""
        limits = self.policy
        return (
            self.pieces + other.pieces <= limits.turn_messages
            and self.chars + other.chars <= limits.turn_chars
        )

    def is_of(self, sender: str | None) -> bool:
        """Return whether a message of it is from this sender, or its run is for them; None: any."""
        if sender is None or sender in (self.senders or (self.sender,)):
            return True
        return any(above.is_of(sender) for above in self.family.ancestors) if self.family else False

    @property
    def people(self) -> frozenset[str]:
        """All those of whom it ``is_of``."""
        ancestors = self.family.ancestors if self.family else ()
        return frozenset(self.senders or (self.sender,)).union(*(one.people for one in ancestors))

    def works_in(self, lane: LaneState) -> bool:
        """Return whether it uses a slot of this lane, its own or its host's."""
        return self.place is lane and self.state in HOLDING

    def waits_in(self, lane: LaneState) -> bool:
        """Return whether it waits for a slot of its own in this lane."""
        if self.state is not RunState.READY or self.place is not lane:
            return False
        return self.family is None or self.family.host is None


@dataclass(slots=True, eq=False)
class Family:
    """The parent and children of a request (SPEC LANE-8)."""

    ancestors: tuple[Request, ...] = ()
    """Its parent, grandparent …"""
    children: dict[RunId, Request] = field(default_factory=dict)
    """Its children that are not done."""
    host: Request | None = None
    """The ancestor whose lane slot it uses; None if it needs one of its own."""
    guest: Request | None = None
    """The request that uses this one's lane slot too; one at a time."""
    line: deque[Request] = field(default_factory=deque)
    """The requests that wait to be the guest."""
    awaits: Request | None = None
    """The request that the run waits for without having declared it, as far as known."""


class SessionQueue:
    """A session: its active runs in the order of their slots, and its queue."""

    __slots__ = ("active", "concurrency", "key", "waiting")

    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.concurrency = 1
        self.active: dict[RunId, Request] = {}
        self.waiting: deque[Request] = deque()

    def may_start(self, request: Request) -> bool:
        """Return whether the session has a slot for this request."""
        if request.alone:
            return not self.active
        return len(self.active) < self.concurrency

    def next_agent(self) -> AgentSlots | None:
        """Return the agent of the first waiting request, if the session has a slot for it."""
        waiting = self.waiting
        if not waiting or not self.may_start(waiting[0]):
            return None
        return waiting[0].slots

    def last_waiting_of(self, sender: str) -> Request | None:
        """Return the sender's newest request that has not started, except children."""
        for request in reversed(self.waiting):
            if request.sender == sender and request.parent is None:
                return request
        for request in reversed(self.active.values()):
            if request.state is not RunState.READY or request.parent is not None:
                continue
            if request.sender == sender:
                return request
        return None

    def speculative_of(self, sender: str) -> Request | None:
        """Return the sender's newest run if a further message may cancel it."""
        for request in reversed(self.active.values()):
            if request.sender == sender and request.state is RunState.RUNNING:
                return request if request.speculative and request.family is None else None
        return None

    def last_active_at(self, sender: str) -> float | None:
        """Return when the sender's newest active message came, except children."""
        active = self.active.values()
        mine = (r.last_at for r in active if r.sender == sender and r.parent is None)
        return max(mine, default=None)

    def oldest_active(self, sender: str | None) -> Request | None:
        """Return the sender's first run that can be stopped, else their first ready request."""
        mine = [r for r in self.active.values() if r.is_of(sender)]
        running = [r for r in mine if r.is_stoppable]
        ready = next((r for r in mine if r.state is RunState.READY), None)
        return min(running, key=lambda r: r.started, default=ready)

    def is_stopping(self, sender: str | None) -> bool:
        """Return whether a stopped run of this sender has not been released yet.

        Not an interrupted one: its messages still wait, and a stop ends them.
        """
        return any(r.was_stopped and r.is_of(sender) for r in self.active.values())


class AgentSlots:
    """The number of concurrent runs of an agent, over all sessions (SPEC AGENT-3)."""

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
        """Return whether another of its runs may start."""
        return self.limit is None or self.active < self.limit


class LaneState:
    """A limited pool of runs (SPEC LANE-1). ``line``: waiting requests, first in, first out.

    Args:
        shared: Whether other nodes have the same lane. Then a run needs a slot that was granted,
            and returns it at its end: ``room`` is the number of slots here (SPEC NODE-2).
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
        """The number of slots here."""
        self.elsewhere = 0
        """The number of slots that other nodes had when this one last asked."""
        self.active = 0
        self.line: deque[Request] = deque()
        """May contain requests that have left; ``waiting`` counts the others."""
        self.closed = False
        self.waiting = 0
        self.started = 0
        self.finished = 0
        self.cancelled = 0
        self.failed = 0
        self.wait_times = Histogram()
        self.run_times = Histogram()
        self.watched: object | None = None
        """The timer for slow waits, while a request waits."""
        self.told = 0
        """The last request whose wait was reported (``Request.seq``)."""
        self.quiet_until = float("-inf")
        """No wait is reported before this time."""

    def resize(self, concurrency: int) -> None:
        """Resize it. Slots of a shared lane stay granted."""
        self.concurrency = concurrency
        if not self.shared:
            self.room = concurrency

    def vacate(self) -> None:
        """Release a slot. In a shared lane it is not given to the next request."""
        self.active -= 1
        if self.shared:
            self.room -= 1

    def first(self) -> Request:
        """Return the first waiting request. There must be one."""
        return next(request for request in self.line if request.waits_in(self))

    def leave(self) -> None:
        """Count a waiting request that leaves; its state tells which."""
        self.waiting -= 1
        if not self.waiting:
            self.line.clear()
        elif len(self.line) > 2 * self.waiting + _SLACK:
            self.line = deque(request for request in self.line if request.waits_in(self))

    def view(self) -> LaneView:
        """Return its view for people."""
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
