"""Nodes, their leases, and recovery after expired nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from goclaw_py.core.ids import LaneName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class NodeState:
    """The state of a node, stored with each lease renewal, for operators.

    Args:
        running: The number of runs in progress.
        waiting: The number of waiting requests.
        draining: Whether it shuts down after the runs in progress.
        skew_s: Seconds by which its clock is ahead of the database's.
        places: The channel accounts from which it receives messages.
        settings: A digest of each section of the settings that all nodes must share.
    """

    running: int = 0
    waiting: int = 0
    draining: bool = False
    skew_s: float = 0.0
    places: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """One gateway process. Its lease ends at ``lease_until`` unless it renews it."""

    id: NodeId
    host: str
    pid: int
    release: str
    started_at: datetime
    lease_until: datetime
    state: NodeState = NodeState()

    @property
    def machine(self) -> str:
        """The machine's name, without the suffix that distinguishes boots and containers."""
        return self.host.partition("/")[0]

    def is_live(self, at: datetime) -> bool:
        """Return whether its lease is valid."""
        return self.lease_until > at

    def health(self, at: datetime) -> str:
        """Return its health in one word: ``live``, ``draining`` or ``expired``."""
        if not self.is_live(at):
            return "expired"
        return "draining" if self.state.draining else "live"


@dataclass(frozen=True, slots=True)
class Renewed:
    """A renewed lease. ``among_others``: other nodes are stored, including expired ones."""

    among_others: bool


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """A run of an expired node; its chat may still show it as running.

    ``outcome`` is ``lost``, or ``cancelled`` if a stop was in progress.
    """

    run_id: RunId
    session: SessionKey
    target: Target | None
    outcome: Outcome = Outcome.LOST


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The result of recovering the work of expired nodes."""

    nodes: tuple[NodeId, ...] = ()
    cut_runs: tuple[InterruptedRun, ...] = ()
    gave_up: int = 0
    """Inbox rows that ended ``lost`` because their attempts are used up."""


Place = tuple[str, str]
"""Channel and account: an address at which a process can receive and send."""


class MembershipStore(Protocol):
    """Nodes, their leases, and recovery after expired nodes."""

    async def time(self) -> datetime | None:
        """Return the time of the database's clock; None if the store has no clock."""

    async def join(self, node: Node) -> None:
        """Store a node. Sends ``Notice.NODES``."""

    async def renew(
        self,
        node: NodeId,
        *,
        until: datetime,
        state: NodeState | None = None,
        clock_set_back: bool = False,
    ) -> Renewed | None:
        """Extend a node's lease, and store its ``state`` if given.

        A delayed renewal does not shorten the lease, unless ``clock_set_back``. Returns
        None if the node has expired and was recovered: it owns nothing.
        """

    async def end_lease(self, node: NodeId, *, now: datetime) -> None:
        """End the lease of a node that has certainly ended, so that others recover it now."""

    async def leave(self, node: NodeId, *, now: datetime) -> None:
        """Release everything that a node owns, and remove the node.

        Sends ``Notice.INBOX`` and ``Notice.NODES``.
        """

    async def nodes(self) -> list[Node]:
        """Return all nodes, the oldest first, including expired ones that are not recovered."""

    async def recover(
        self,
        *,
        now: datetime,
        max_attempts: int,
        apology: str,
        only: Collection[NodeId] | None = None,
    ) -> RecoveryReport:
        """Release the work of expired nodes, and remove these nodes; ``only`` selects some.

        - Runs that had started end ``lost``, or ``cancelled`` if their messages have ended because
          of a stop.
        - Inbox rows of lost runs become free, except after ``max_attempts`` attempts: then they end
          ``lost``, and their sender gets ``apology``.
        - A draft that no run will continue is completed by a message in the outbox.
        - Sessions become free.
        - Outbox rows in state ``sending`` become pending and ``possible_duplicate``.

        Live nodes are not changed. Several nodes may call it at once; one of them does the work.
        """


class NodeStore(MembershipStore, Protocol):
    """What only gateways need: sessions, named leases, and single pieces of work of a node."""

    async def owner(self, session: SessionKey) -> NodeId | None:
        """Return the node that owns a session, which may be expired; None if no node does."""

    async def claim_lease(self, name: str, node: NodeId, *, now: datetime) -> bool:
        """Take a named lease. True if it was free, this node's already, or its owner's expired."""

    async def drop_lease(self, name: str, node: NodeId) -> None:
        """Release a named lease if this node owns it. Sends ``Notice.NODES``."""

    async def subagents_elsewhere(
        self, payer: SessionKey, nodes: Collection[NodeId], *, sender: str | None = None
    ) -> list[RunId]:
        """Return the running background subagents for which a session pays, on no such node.

        ``sender`` selects those that this person requested.
        """

    async def mark_stopped(self, ids: Collection[str]) -> None:
        """Store that runs, and occurrences of jobs or of these runs, were stopped on request.

        Whatever happens to their nodes, they are not continued: a run that is lost ends as
        cancelled, and the next claim of the occurrence says so. What has ended does not change.
        """

    async def unattended(self, node: NodeId, attended: Collection[str]) -> list[str]:
        """Return the ids of what this node has begun or claimed, except those it works on.

        Unfinished runs, occurrences and heartbeat runs.
        """

    async def recover_work(
        self,
        node: NodeId,
        ids: Collection[str],
        *,
        now: datetime,
        max_attempts: int,
        apology: str,
    ) -> RecoveryReport:
        """Do with some work of a live node what ``recover`` does with all of an expired one.

        The node keeps everything else.
        """


# Lanes that all nodes share (SPEC NODE-2).


@dataclass(frozen=True, slots=True)
class LaneShare:
    """A node's use of a shared lane.

    Args:
        size: The number of slots of the lane, over all nodes.
        held: The slots that runs of this node use.
        gone: The slots that it releases.
        wanted: The number of further slots that it waits for.
    """

    lane: LaneName
    size: int
    held: Sequence[int] = ()
    gone: Sequence[int] = ()
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class LaneGrant:
    """The slots of a shared lane that a node was granted.

    Args:
        places: New slots, which it did not hold before.
        elsewhere: The number of slots that other nodes have.
    """

    places: Sequence[int] = ()
    elsewhere: int = 0


class LaneStore(Protocol):
    """The slots of shared lanes."""

    async def share(self, node: NodeId, share: LaneShare, *, now: datetime) -> LaneGrant:
        """Store which slots a node holds and waits for; return its new slots.

        Slots go to nodes with a valid lease, first come, first served. A node that must renew its
        lease keeps its slots and its turn, and is skipped until then. Repeating the call is safe:
        slots whose response was lost are returned again. Sends ``Notice.LANES`` if other nodes got
        a slot.
        """


# Calls between nodes through the database (docs/adr/0020).


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A call that its node has not answered yet."""

    id: int
    question: str
    asked_at: datetime


class CallStore(Protocol):
    """Calls between nodes. Requests and answers are opaque texts (SPEC NODE-1)."""

    async def ask(self, node: NodeId, question: str, *, now: datetime) -> int | None:
        """Store a call to a live node; return its id, or None if there is no such node.

        Deletes calls that are older than a minute. Sends ``Notice.NODES``.
        """

    async def open_calls(self, node: NodeId) -> list[NodeCall]:
        """Return the unanswered calls to a node, the oldest first."""

    async def answer(self, call: int, answer: str) -> None:
        """Answer a call; may be repeated. Sends ``Notice.NODES``."""

    async def answer_to(self, call: int) -> str | None:
        """Return the answer to a call, or None if there is none yet."""
