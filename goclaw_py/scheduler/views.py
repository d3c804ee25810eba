"""Snapshots of a gateway for people: CLI, chat commands, API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from goclaw_py.core.containers import NOTHING_MEASURED, HistogramView
from goclaw_py.core.ids import AgentName, LaneName, NodeId, RunId, SessionKey
from goclaw_py.scheduler.operator_warnings import OperatorWarning

MAX_LANE_SIZE = 100_000
"""The largest size that people may give a lane; larger ones are typing errors."""


class RunState(StrEnum):
    """The state of a request (SPEC QUEUE-2)."""

    COLLECTING = "collecting"
    """Waits for its sender to finish typing (debounce)."""
    QUEUED = "queued"
    """Waits for its session or its agent."""
    READY = "ready"
    """Waits for its lane."""
    RUNNING = "running"
    STOPPING = "stopping"
    """Cancelled; holds its slots until its task has really ended."""
    FINISHING = "finishing"
    """Its task has ended, its outcome is decided and being stored."""
    ABANDONED = "abandoned"
    """Ignored its cancellation; counts no more, shown until its task ends."""
    DONE = "done"

    @property
    def is_waiting(self) -> bool:
        """Whether it has not started."""
        return self in (RunState.COLLECTING, RunState.QUEUED, RunState.READY)


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane: its size, its runs, and its counters since the start."""

    name: LaneName
    concurrency: int
    active: int
    waiting: int
    started: int
    finished: int
    cancelled: int
    failed: int
    closed: bool = False
    shared: bool = False
    """Whether its size is that of all nodes together (SPEC NODE-2)."""
    elsewhere: int = 0
    """The number of slots of other nodes; known while a run of this node waits."""
    wait_times: HistogramView = NOTHING_MEASURED
    """From entering the lane's queue to the start."""
    run_times: HistogramView = NOTHING_MEASURED
    """From the start to the end of the task."""

    @property
    def used(self) -> int:
        """Return the number of its runs, including those of other nodes as far as known."""
        return self.active + self.elsewhere


class WaitsFor(StrEnum):
    """What a waiting request waits for."""

    SENDER = "sender"
    """The rest of a burst: its sender may be typing."""
    SESSION = "session"
    """Another run of its session."""
    AGENT = "agent"
    """The limit of its agent."""
    LANE = "lane"
    """A slot of its lane."""
    PARENT = "parent"
    """Its turn in the slot of the run that waits for it."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """What a run does at present.

    Args:
        prompt: The first words of its prompt.
        tools: The names of the tools that are running.
        model: The model that answered last, "" before its first answer.
        tokens: The tokens used so far.
        first_text_at: When it emitted its first text; None: not yet.
        incoming: Before its start, the numbers of the incoming messages that it will answer.
    """

    prompt: str
    tools: tuple[str, ...] = ()
    model: str = ""
    tokens: int = 0
    first_text_at: datetime | None = None
    incoming: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RunView:
    """An unfinished request.

    ``for_s``: seconds since it entered its state. ``activity``: before its start only the prompt of
    its messages; None where it is not asked for.
    """

    id: RunId
    session: SessionKey
    agent: AgentName
    lane: LaneName
    state: RunState
    for_s: float
    parent: RunId | None = None
    waits_for: WaitsFor | None = None
    messages: int = 1
    """The number of requests that it answers, including those that joined it."""
    activity: RunProgress | None = None


@dataclass(frozen=True, slots=True)
class StopReport:
    """The result of a stop. ``already_stopping``: the only run left had been stopped before.

    ``unsent``: the number of messages of earlier answers that are not sent any more. ``asking``:
    the number of turns that waited for the answer of a person.
    """

    stopped: tuple[RunId, ...] = ()
    dropped: tuple[RunId, ...] = ()
    already_stopping: bool = False
    unsent: int = 0
    asking: int = 0


@dataclass(frozen=True, slots=True)
class StopCandidate:
    """A request as a stop of its session finds it.

    Args:
        names: The ids by which it is named: its own, and that of the run whose messages it has.
        people: The senders of its messages, and of those of the runs that it belongs to.
        ancestors: The runs that it belongs to, the nearest one first.
        is_live: A stop cancels it: it waits, runs, or is interrupted so that it would run again.
        is_stopping: Its run was stopped before, and its end is not stored yet.
    """

    id: RunId
    session: SessionKey
    state: RunState
    names: frozenset[RunId]
    people: frozenset[str]
    ancestors: tuple[RunId, ...]
    is_live: bool
    is_stopping: bool


@dataclass(frozen=True, slots=True)
class LaneUse:
    """A lane with its running and waiting requests.

    ``inside`` are the started runs in order of submission: those with a slot, those in the slot of
    a parent, and abandoned ones, which do not count. ``waiting`` is the queue, the next one first.
    """

    lane: LaneView
    inside: tuple[RunView, ...]
    waiting: tuple[RunView, ...]


@dataclass(frozen=True, slots=True)
class LanesView:
    """All lanes of a gateway at one instant."""

    at: datetime
    lanes: tuple[LaneUse, ...]


@dataclass(frozen=True, slots=True)
class ActiveRuns:
    """All unfinished requests at one instant, in order of submission.

    ``live`` is False if no gateway answered: the database knows only started runs, and not whether
    they are being stopped.
    """

    at: datetime
    live: bool
    runs: tuple[RunView, ...]


class ChannelState(StrEnum):
    """The connection of one account of a channel (SPEC CHAN-8)."""

    STARTING = "starting"
    """Its server has not answered since the start of the process."""
    FAILED = "failed"
    """Its receiving has ended, for example by a bug; it begins again by itself."""
    WAITING = "waiting"
    """Another gateway receives for the account; this one takes over when that one ends."""
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    """Messages do not come in at present; the channel retries by itself."""
    CONFLICT = "conflict"
    """Another program receives for the account."""
    UNAUTHORIZED = "unauthorized"
    """The server refuses the account; the channel asks again before it stops."""
    STOPPED = "stopped"
    """The server refused the account for minutes; the channel needs another token."""

    @property
    def receives(self) -> bool:
        """Return whether this process receives for the account, or keeps trying to."""
        return self in {self.CONNECTED, self.RECONNECTING, self.CONFLICT, self.UNAUTHORIZED}


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """The connection state of a channel, in sentences for operators.

    Args:
        detail: Why it is not connected; empty if it is.
        warning: Another problem, or empty.
        proxy: The proxy of its connections without credentials, or empty.
    """

    state: ChannelState = ChannelState.CONNECTED
    detail: str = ""
    warning: str = ""
    proxy: str = ""


HEALTHY = ChannelHealth()


@dataclass(frozen=True, slots=True)
class ChannelView:
    """An account of a channel. ``detail`` describes its problem, or is empty."""

    name: str
    account: str
    state: ChannelState
    detail: str
    warning: str = ""
    """Another problem, although it may be connected."""
    proxy: str = ""
    """The proxy of its connections without credentials, or empty."""


@dataclass(frozen=True, slots=True)
class ProviderView:
    """The provider of an agent's model, as the runs of this gateway have found it.

    Args:
        down_for_s: Seconds since it stopped to answer; None: it answers, as far as is known.
        kept: The messages that wait for it.
        cause: What went wrong, or empty.
    """

    agent: AgentName
    down_for_s: float | None = None
    kept: int = 0
    cause: str = ""


@dataclass(frozen=True, slots=True)
class UnservedPlace:
    """A channel and account that no live node has, with its numbers of unfinished messages."""

    channel: str
    account: str
    incoming: int
    outgoing: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Numbers of unfinished rows, and of rows that wait for an operator (SPEC OPS-4).

    Args:
        inbox: Incoming messages that have not ended.
        outbox: Messages that are not sent yet.
        failed: Messages that could not be delivered.
        unanswered: Incoming messages that failed and were not dismissed.
        undecided: Groups that are neither allowed nor denied.
        approvals: Tool calls that wait for an answer of a person (SPEC AGENT-11).
        unserved: The channels and accounts whose messages wait for a node that has them.
    """

    inbox: int
    outbox: int
    failed: int
    unanswered: int = 0
    undecided: int = 0
    approvals: int = 0
    unserved: tuple[UnservedPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """The current load of a lane: ``LaneView`` without its history."""

    concurrency: int
    active: int
    waiting: int


@dataclass(frozen=True, slots=True)
class PeerView:
    """Another gateway on the same database, as last seen (SPEC NODE-1).

    Args:
        health: ``live``, ``draining`` or ``expired``.
        receives: The accounts for which it receives.
    """

    id: NodeId
    machine: str
    pid: int
    release: str
    health: str
    running: int
    waiting: int
    receives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """A gateway at one instant."""

    node: NodeId
    release: str
    pid: int
    started_at: datetime
    now: datetime
    database: str
    """``embedded`` or ``managed``, with ``, unreachable`` while it does not respond."""
    draining: bool
    lanes: tuple[LaneView, ...]
    runs: tuple[RunView, ...]
    channels: tuple[ChannelView, ...]
    backlog: Backlog | None
    """None while the database does not respond."""
    warnings: tuple[OperatorWarning, ...]
    peers: tuple[PeerView, ...] = ()
    providers: tuple[ProviderView, ...] = ()
    address: str = ""
    """The URL at which it serves the dashboard, such as ``http://127.0.0.1:8420``; "": nowhere."""
