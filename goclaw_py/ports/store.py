"""The database, as the runtime sees it.

Every instant is given by the caller, aware and in UTC; no implementation reads a clock. Every
method is one transaction: it happens as a whole or not at all. Any method may raise
``StoreUnavailable``; methods that write on behalf of a node raise ``Fenced`` when another node has
taken over what they write to.

**Leases.** A node renews one lease, its own (``nodes.lease_until``). What it works on (sessions,
outbox rows, named leases) names it as ``owner`` and counts ``fence`` up with each change of owner,
so the owner's claim is live exactly as long as its node is (docs/adr/0004).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.core.events import Usage
from goclaw_py.core.ids import AgentName, LaneName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, OutboundMessage, Sender, Target
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.status import Backlog
from goclaw_py.ports.agent import HistoryEntry

# ---------------------------------------------------------------------------- nodes and leases


@dataclass(frozen=True, slots=True)
class Node:
    """One gateway process. Its lease ends at ``lease_until`` unless it renews it."""

    id: NodeId
    host: str
    pid: int
    release: str
    started_at: datetime
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class CutRun:
    """A run that a dead node left, now ``lost``; its channel may still show it working."""

    run_id: RunId
    session: SessionKey
    target: Target | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was taken back from dead nodes."""

    nodes: tuple[NodeId, ...] = ()
    cut_runs: tuple[CutRun, ...] = ()
    gave_up: int = 0
    """Inbox rows that ended ``lost`` because their attempts are used up."""


Place = tuple[str, str]
"""Channel and account: where a process can receive and send."""


class NodeStore(Protocol):
    """Nodes, their leases, and what dead ones left."""

    async def join(self, node: Node) -> None:
        """Enter a node."""

    async def renew(self, node: NodeId, *, until: datetime) -> bool:
        """Extend a node's lease. False: the node was declared dead and owns nothing any more."""

    async def leave(self, node: NodeId, *, now: datetime) -> None:
        """Give back everything the node owns and remove it. Unfinished work is free for others."""

    async def nodes(self) -> list[Node]:
        """All nodes, oldest first, dead ones included until somebody recovers them."""

    async def take_lease(self, name: str, node: NodeId, *, now: datetime) -> bool:
        """Own the named lease: True if it was free, this node's already, or its owner is dead."""

    async def drop_lease(self, name: str, node: NodeId) -> None:
        """Give a named lease back, if this node owns it."""

    async def recover(self, *, now: datetime, max_attempts: int, apology: str) -> Recovery:
        """Take back what nodes with an ended lease left, and remove those nodes.

        Their runs that had started end ``lost``; inbox rows of those runs are free to run again,
        but for those that were started ``max_attempts`` times: they end ``lost``, and their sender
        is told ``apology`` through the outbox. Their sessions become free. Outbox rows that were
        being sent go back to pending and are marked ``possible_duplicate``. Live nodes are never
        touched. Several nodes may call it at once; one of them does the work.
        """


# ---------------------------------------------------------------------------- inbox


class InboxKind(StrEnum):
    """What an inbox row asks for."""

    MESSAGE = "message"
    COMMAND = "command"


class InboxState(StrEnum):
    """Where an inbox row is. ``pending`` covers waiting and running; ``run_id`` tells which."""

    PENDING = "pending"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class NewInbox:
    """An inbox row to be committed.

    ``outcome`` is set when it was dealt with before the commit: a ``/stop`` that has acted, or a
    message that a ``/stop`` behind it in the same batch covers.
    """

    message: InboundMessage
    session: SessionKey
    agent: AgentName
    kind: InboxKind = InboxKind.MESSAGE
    outcome: Outcome | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A committed, unfinished inbox row. ``attempts`` counts runs that started with it."""

    id: int
    message: InboundMessage
    session: SessionKey
    agent: AgentName
    kind: InboxKind
    attempts: int
    received_at: datetime


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """Somebody unknown who wrote. The code itself is stored only as ``code_hash``."""

    channel: str
    account: str
    sender: Sender
    code_hash: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class NewPairing:
    """A pairing request, with the message that shows its code. Kept unless a live one exists."""

    request: PairingRequest
    greeting: OutboundMessage


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a commit brought: rows that were new and are this node's to work on, in batch order.

    Rows whose session another live node owns are committed too but not listed here; that node is
    notified. ``duplicates`` holds the external ids that were known already.
    """

    rows: tuple[InboxRow, ...] = ()
    duplicates: frozenset[str] = frozenset()


class InboxStore(Protocol):
    """Messages on their way to the agent."""

    async def accept(
        self,
        batch: Sequence[NewInbox],
        *,
        node: NodeId,
        now: datetime,
        pairings: Sequence[NewPairing] = (),
    ) -> Accepted:
        """Commit a batch in one transaction and claim its sessions for ``node`` where possible.

        Rows whose (channel, account, external id) is known are left as they are. Rows that come
        with an outcome are stored as done and not listed in the result, but for commands: a
        command row is listed if it was new, done or not. Updates the session's last activity.
        """

    async def claim_pending(self, node: NodeId, *, now: datetime) -> list[InboxRow]:
        """Claim the sessions with pending rows that are free or whose owner is dead.

        Returns the pending rows of every session that ``node`` owns by now, the ones it knows
        already included: rows that crashed a run twice last, otherwise in order of arrival.
        """

    async def settle(
        self,
        rows: Collection[int],
        outcome: Outcome,
        *,
        now: datetime,
        reason: Reason | None = None,
        say: Sequence[OutboundMessage] = (),
    ) -> None:
        """End rows that no run will work on, and put ``say`` into the outbox with it.

        Rows that are done already stay as they are; ``say`` is then dropped too unless another of
        the rows was still pending, or ``rows`` is empty.
        """

    async def release_sessions(self, node: NodeId, sessions: Collection[SessionKey]) -> None:
        """Give back sessions that are idle here. One with pending rows stays owned."""


# ---------------------------------------------------------------------------- runs, sessions


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run about to start. ``inbox`` are the rows it answers."""

    id: RunId
    session: SessionKey
    agent: AgentName
    trigger: Trigger
    lane: LaneName
    inbox: tuple[int, ...]
    target: Target | None
    started_at: datetime
    parent: RunId | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended and everything that is stored with it in one transaction."""

    id: RunId
    outcome: Outcome
    finished_at: datetime
    reason: Reason | None = None
    error: str | None = None
    history: tuple[HistoryEntry, ...] = ()
    say: tuple[OutboundMessage, ...] = ()
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run. ``outcome`` is None while it works."""

    id: RunId
    session: SessionKey
    agent: AgentName
    trigger: Trigger
    lane: LaneName
    node: NodeId
    started_at: datetime
    finished_at: datetime | None
    outcome: Outcome | None
    reason: Reason | None
    error: str | None
    usage: Usage | None
    model: str
    parent: RunId | None


@dataclass(frozen=True, slots=True)
class Session:
    """A stored session. ``owner`` is the node that works on it now, if any."""

    key: SessionKey
    agent: AgentName
    target: Target | None
    created_at: datetime
    last_active_at: datetime
    owner: NodeId | None
    fence: int
    waiting: int
    """Inbox rows that are not done."""
    entries: int
    """History entries since the last reset."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A history entry with when and by which run it was written."""

    entry: HistoryEntry
    at: datetime
    run_id: RunId | None


class RunStore(Protocol):
    """Runs, sessions and their history."""

    async def begin_run(self, run: NewRun, *, node: NodeId) -> list[HistoryEntry]:
        """Record that a run starts, count an attempt for its inbox rows, return the history.

        Claims the session for ``node`` if it is free, and creates it if it does not exist. Raises
        ``Fenced`` if another live node owns it.
        """

    async def finish_run(self, end: RunEnd, *, node: NodeId) -> None:
        """End a run: its row, its inbox rows, history and outbox rows, all in one transaction.

        With ``Outcome.INTERRUPTED`` the inbox rows stay pending and the attempt is taken back.
        The history entries belong to the conversation in which the run
        began: after a reset meanwhile they are stored but not read any more. Finishing a run twice
        changes nothing the second time.

        Raises ``NeverBegan`` for a run that is not known, and ``Fenced`` if the session has changed
        hands since the run began.
        """

    async def runs(
        self, *, limit: int = 50, session: SessionKey | None = None, active: bool = False
    ) -> list[Run]:
        """Runs, the newest first."""

    async def find_run(self, prefix: str) -> list[Run]:
        """Runs whose id starts with ``prefix``; at most two, enough to see that it is ambiguous."""

    async def sessions(self, *, limit: int = 50) -> list[Session]:
        """Sessions, the last active first."""

    async def session(self, key: SessionKey) -> Session | None:
        """One session."""

    async def history(self, key: SessionKey, *, limit: int = 200) -> list[StoredEntry]:
        """The newest ``limit`` entries since the last reset, oldest first."""

    async def reset_session(self, key: SessionKey, *, now: datetime) -> None:
        """Begin a fresh history. Older entries stay stored but are read no more."""


# ---------------------------------------------------------------------------- outbox


class OutboxState(StrEnum):
    """Where an outbox row is. Only ``sent`` means that the channel confirmed it (SPEC IO-6)."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """An outbox row. ``fence`` is the ticket of the claim; a later claim makes it invalid."""

    id: int
    message: OutboundMessage
    session: SessionKey | None
    state: OutboxState
    attempts: int
    possible_duplicate: bool
    fence: int
    created_at: datetime
    next_attempt_at: datetime
    sent_at: datetime | None
    external_id: str | None
    error: str | None


class OutboxStore(Protocol):
    """Messages on their way to the channel. Order holds per (channel, account, chat)."""

    async def chats_due(self, places: Collection[Place], *, now: datetime) -> list[Target]:
        """Chats (thread None) whose oldest unsent row is pending and due, the longest due first."""

    async def claim_next(self, chat: Target, *, node: NodeId, now: datetime) -> OutboxRow | None:
        """Claim the oldest unsent row of a chat if it is pending and due; state ``sending``.

        The claim is committed before anything is sent, so that a crash leaves a trace. A row that
        somebody is sending, or that is not due, blocks the ones behind it: None. The thread of
        ``chat`` is ignored.
        """

    async def mark_sent(self, row: OutboxRow, external_id: str, *, now: datetime) -> None:
        """The channel confirmed it. Raises ``Fenced`` if the claim is no longer ours."""

    async def mark_failed(
        self, row: OutboxRow, error: str, *, retry_at: datetime, maybe_sent: bool
    ) -> None:
        """Back to pending with one more attempt. ``maybe_sent`` marks it ``possible_duplicate``.

        Raises ``Fenced`` if the claim is no longer ours.
        """

    async def mark_dead(self, row: OutboxRow, error: str, *, now: datetime) -> None:
        """It will never be delivered. Raises ``Fenced`` if the claim is no longer ours."""

    async def outbox(self, *, limit: int = 50, state: OutboxState | None = None) -> list[OutboxRow]:
        """Rows, the newest first."""

    async def retry_outbox(self, ids: Collection[int], *, now: datetime) -> int:
        """Make dead rows pending again, due at once. Returns how many were dead."""

    async def next_due(self, places: Collection[Place]) -> datetime | None:
        """When the next pending head of a chat falls due, or None."""


# ---------------------------------------------------------------------------- people


class Standing(StrEnum):
    """What a known person may do."""

    OWNER = "owner"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may talk to the agent on this account of a channel."""

    channel: str
    account: str
    sender: Sender
    standing: Standing
    approved_at: datetime


class PeopleStore(Protocol):
    """Who may talk (SPEC CHAN-5)."""

    async def people(self) -> list[Person]:
        """Everybody who was approved, oldest first."""

    async def pairing_requests(self, *, now: datetime) -> list[PairingRequest]:
        """Requests that are still valid, oldest first."""

    async def approve(self, code_hash: str, *, guest: bool, now: datetime) -> Person | None:
        """Turn a valid request into a person and remove it; None if there is no such request.

        The first person of a channel account becomes owner, and so does everybody else unless
        ``guest``.
        """

    async def revoke(self, channel: str, account: str, sender_id: str) -> bool:
        """Forget a person. False if there was none."""


# ---------------------------------------------------------------------------- the whole


class Notice(StrEnum):
    """What changed; a hint that saves waiting for the next poll (SPEC DB-3)."""

    INBOX = "goclaw_inbox"
    OUTBOX = "goclaw_outbox"
    PEOPLE = "goclaw_people"


class Store(NodeStore, InboxStore, RunStore, OutboxStore, PeopleStore, Protocol):
    """All of it."""

    async def backlog(self) -> Backlog:
        """How much is not finished, over all nodes."""

    async def ping(self) -> None:
        """Raise ``StoreUnavailable`` if the database does not answer."""

    def on_notice(self, hear: Callable[[Notice], None]) -> None:
        """Call ``hear`` in the event loop for each notice, from whichever process it comes."""

    async def close(self) -> None:
        """Give back connections."""
