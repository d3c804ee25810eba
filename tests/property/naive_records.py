"""What the naive scheduler remembers: one list of records, searched anew for every question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.scheduler.views import RunState

COLLECTING, QUEUED, READY = RunState.COLLECTING, RunState.QUEUED, RunState.READY
RUNNING, STOPPING, FINISHING = RunState.RUNNING, RunState.STOPPING, RunState.FINISHING
ABANDONED, DONE = RunState.ABANDONED, RunState.DONE
WAITING = (COLLECTING, QUEUED, READY)
HOLDING = (RUNNING, STOPPING, FINISHING)
ACTIVE = (READY, *HOLDING)

Told = tuple[object, ...]
"""One effect: its kind, then ids, then what more there is to it."""


class Wrong(Exception):
    """The input is an error; ``str()`` is the name of the scheduler's exception for it."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller asks for."""

    id: str
    session: str
    lane: str = "main"
    agent: str = "main"
    sender: str = ""
    mode: str = "queue"
    capacity: int = 10
    drop: str = "old"
    debounce_s: float = 0.0
    debounce: str = "fixed"
    concurrency: int = 1
    cut: bool = False
    deadline_s: float | None = None
    run_timeout_s: float | None = None
    parent: str | None = None
    awaited: bool = False
    turn_messages: int = 50
    turn_chars: int = 1000
    chars: int = 0


@dataclass(slots=True)
class Record:
    """One request that is not done."""

    wish: Wish
    number: int
    lane: str
    since: float
    last_at: float
    cut: bool
    state: RunState = COLLECTING
    ancestors: tuple[int, ...] = ()
    """Its parent, grandparent …, also those that have ended."""
    ancestors_sessions: tuple[str, ...] = ()
    place: int = 0
    """In whatever line it stands."""
    ready: int = 0
    """When it became ready, as a number that grows."""
    started: int = 0
    began_at: float = 0.0
    alone: bool = False
    speculative: bool = False
    """A message of its sender within the window cancels its run and begins it again."""
    was_parent: bool = False
    """Its run has had a child."""
    needs_agent: bool = True
    host: int | None = None
    joined: tuple[str, ...] = ()
    chars: int = 0
    stop: tuple[Outcome, Reason] | None = None
    window_s: float = 0.0
    latest_at: float = 0.0
    ends_at: float = 0.0

    id: str = field(init=False)
    session: str = field(init=False)
    agent: str = field(init=False)

    def __post_init__(self) -> None:
        self.id, self.session, self.agent = self.wish.id, self.wish.session, self.wish.agent
        self.chars = self.wish.chars

    @property
    def is_stoppable(self) -> bool:
        """Whether it runs, or is interrupted: then its messages would run again."""
        if self.stop is None or self.state not in (STOPPING, FINISHING):
            return self.state is RUNNING
        outcome, reason = self.stop
        return outcome is Outcome.INTERRUPTED and reason is not Reason.MERGED

    @property
    def has_outcome(self) -> bool:
        return self.state in (FINISHING, ABANDONED, DONE)


@dataclass(slots=True)
class Pool:
    """One lane."""

    size: int
    closed: bool = False
    started: int = 0
    waits: list[float] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    watch: int | None = None
    """The timer that looks for a slow wait."""
    told: int = 0
    quiet_until: float = 0.0


class Register:
    """The records and all else that is remembered, and who is where."""

    def __init__(
        self,
        lanes: Mapping[str, int],
        agents: Mapping[str, int],
        grace_s: float,
        restarts: int,
        turns: int,
    ) -> None:
        self.pools = {name: Pool(size) for name, size in lanes.items()}
        self.limits: dict[str, int | None] = {**agents}
        self.grace_s = grace_s
        self.restarts, self.recovery = restarts, turns
        self.now = 0.0
        self.draining = False
        self.live: list[Record] = []
        self.turns: dict[str, list[str]] = {name: [] for name in agents}
        """For each limited agent the sessions that wait for it."""
        self.concurrency: dict[str, int] = {}
        self.senders: dict[int, set[str]] = {}
        """Whose messages each record answers, also when it is done."""
        self.counted: list[tuple[str, str, str]] = []
        """Each turn that could start at once, and each restart, by session and sender."""
        self.timers: list[tuple[float, int, str, Record | str]] = []
        self.told: list[Told] = []
        self.attention: list[tuple[str, str]] = []
        self.counter = 0

    def next(self) -> int:
        self.counter += 1
        return self.counter

    # ------------------------------------------------------------------ who is where

    def find(self, run_id: str) -> Record | None:
        return next((r for r in self.live if r.id == run_id), None)

    def numbered(self, number: int | None) -> Record | None:
        return next((r for r in self.live if r.number == number), None)

    def of(self, session: str, *states: RunState) -> list[Record]:
        return [r for r in self.live if r.session == session and r.state in states]

    def active(self, session: str) -> list[Record]:
        return sorted(self.of(session, *ACTIVE), key=lambda r: r.ready)

    def session_line(self, session: str) -> list[Record]:
        return sorted(self.of(session, QUEUED), key=lambda r: r.place)

    def lane_line(self, lane: str) -> list[Record]:
        waiting = [r for r in self.live if r.state is READY and r.lane == lane and r.host is None]
        return sorted(waiting, key=lambda r: r.place)

    def slots_used(self, lane: str) -> int:
        return sum(r.state in HOLDING and r.lane == lane and r.host is None for r in self.live)

    def guests(self, host: int | None) -> list[Record]:
        return [r for r in self.live if r.state in HOLDING and r.host == host]

    def inside(self, lane: str) -> list[Record]:
        return [r for r in self.live if r.state in HOLDING and r.lane == lane]

    def children(self, record: Record) -> list[Record]:
        return [r for r in self.live if r.ancestors[:1] == (record.number,)]

    def awaited(self, record: Record) -> list[Record]:
        """The children that a run waits for: while there are some, it does not end by itself."""
        if record.state is not RUNNING:
            return []
        return [r for r in self.children(record) if r.wish.awaited and not r.has_outcome]

    def patient(self, record: Record) -> list[Record]:
        """Those above who cannot go on before this one has ended, the nearest first."""
        chain: list[Record] = []
        child = record
        for number in record.ancestors:
            ancestor = self.numbered(number)
            if not child.wish.awaited or ancestor is None or ancestor.state is not RUNNING:
                break
            chain.append(ancestor)
            child = ancestor
        return chain

    def with_awaited(self, record: Record) -> list[Record]:
        listed = [record]
        for child in self.awaited(record):
            listed += self.with_awaited(child)
        return listed
