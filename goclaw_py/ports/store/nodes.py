"""Nodes, their leases, and recovery after expired nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from goclaw_py.model.ids import NodeId, RunId, SessionKey
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a node tells of itself with each renewal, for operators.

    Args:
        running: How many runs work there.
        waiting: How many requests wait there.
        draining: Whether it ends when what runs has ended.
        skew_s: How far the clock of its machine is ahead of the database's.
        places: The accounts of channels of which it receives messages.
        settings: A digest of each section of the settings that are to be the same everywhere.
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
        """The name of its machine, without what tells boots and containers of it apart."""
        return self.host.partition("/")[0]

    def is_live(self, at: datetime) -> bool:
        """Whether it has renewed its lease in time."""
        return self.lease_until > at

    def health(self, at: datetime) -> str:
        """How it is, in a word: ``live``, ``draining`` or ``dead``."""
        if not self.is_live(at):
            return "dead"
        return "draining" if self.state.draining else "live"


@dataclass(frozen=True, slots=True)
class Renewed:
    """A lease that was renewed. ``among_others``: there are other nodes, dead ones included."""

    among_others: bool


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """A run of an expired node; its channel may still show it as running.

    ``outcome`` is ``lost``, or ``cancelled`` if it was being stopped.
    """

    run_id: RunId
    session: SessionKey
    target: Target | None
    outcome: Outcome = Outcome.LOST


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What was recovered from expired nodes."""

    nodes: tuple[NodeId, ...] = ()
    cut_runs: tuple[InterruptedRun, ...] = ()
    gave_up: int = 0
    """Inbox rows that ended ``lost`` because their attempts are used up."""


Place = tuple[str, str]
"""Channel and account: where a process can receive and send."""


class NodeStore(Protocol):
    """Nodes, their leases, and recovery after expired nodes."""

    async def time(self) -> datetime | None:
        """What time it is where the data is; None if nobody there has a clock."""

    async def join(self, node: Node) -> None:
        """Enter a node. Sends ``Notice.NODES``."""

    async def renew(
        self,
        node: NodeId,
        *,
        until: datetime,
        state: NodeState | None = None,
        put_back: bool = False,
    ) -> Renewed | None:
        """Extend a node's lease, and tell its ``state`` if given.

        One that was under way for long, and comes after a later one, makes the lease no shorter;
        that takes a clock that was ``put_back``. None: the node was declared dead and owns nothing
        any more.
        """

    async def end_lease(self, node: NodeId, *, now: datetime) -> None:
        """End the lease of a node that is certainly gone: whoever looks next takes it over."""

    async def leave(self, node: NodeId, *, now: datetime) -> None:
        """Give back everything the node owns and remove it. Unfinished work is free for others.

        Sends ``Notice.INBOX`` and ``Notice.NODES``.
        """

    async def nodes(self) -> list[Node]:
        """All nodes, oldest first, dead ones included until somebody recovers them."""

    async def owner(self, session: SessionKey) -> NodeId | None:
        """The node that works on a session, which may be dead; None if nobody does."""

    async def take_lease(self, name: str, node: NodeId, *, now: datetime) -> bool:
        """Own the named lease: True if it was free, this node's already, or its owner is dead."""

    async def drop_lease(self, name: str, node: NodeId) -> None:
        """Give a named lease back, if this node owns it. Sends ``Notice.NODES``."""

    async def recover(
        self,
        *,
        now: datetime,
        max_attempts: int,
        apology: str,
        only: Collection[NodeId] | None = None,
    ) -> RecoveryReport:
        """Take back what nodes with an ended lease left, and remove those nodes.

        With ``only``, nodes that it does not name are left alone.

        Their runs that had started end ``lost``; inbox rows of those runs are free to run again,
        but for those that were started ``max_attempts`` times: they end ``lost``, and their sender
        is told ``apology`` through the outbox. Runs whose messages have ended by then, because they
        were being stopped, end ``cancelled``. A draft that nobody will finish is closed: a message
        that finishes it goes into the outbox. Their sessions become free. Outbox rows that were
        being sent go back to pending and are marked ``possible_duplicate``. Live nodes are never
        touched. Several nodes may call it at once; one of them does the work.
        """
