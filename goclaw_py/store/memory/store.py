"""The store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from goclaw_py.model.outcomes import FAILURES
from goclaw_py.ports.store import InboxKind, Notice, OutboxState
from goclaw_py.scheduler.views import Backlog
from goclaw_py.store.memory.background import Background
from goclaw_py.store.memory.chats import Chats
from goclaw_py.store.memory.cluster.calls import Calls
from goclaw_py.store.memory.cluster.lanes import Lanes
from goclaw_py.store.memory.cluster.nodes import Nodes
from goclaw_py.store.memory.dead_letters import Letters
from goclaw_py.store.memory.drafts import Drafts
from goclaw_py.store.memory.heartbeat.heartbeats import Heartbeats
from goclaw_py.store.memory.heartbeat.runs import Beats
from goclaw_py.store.memory.inbox import Inbox
from goclaw_py.store.memory.incidents import Incidents
from goclaw_py.store.memory.jobs.jobs import Jobs
from goclaw_py.store.memory.jobs.occurrences import Occurrences
from goclaw_py.store.memory.jobs.work import WorkItems
from goclaw_py.store.memory.outbox import Outbox
from goclaw_py.store.memory.people import People
from goclaw_py.store.memory.records import Records
from goclaw_py.store.memory.runs import Runs
from goclaw_py.store.memory.tables import MemoryDatabase
from goclaw_py.store.memory.upkeep import Upkeep
from goclaw_py.store.memory.usage import UsageSums


class MemoryStore(
    Nodes,
    Calls,
    Lanes,
    Inbox,
    Letters,
    Background,
    Runs,
    Records,
    Drafts,
    Outbox,
    People,
    Chats,
    Incidents,
    Jobs,
    Occurrences,
    WorkItems,
    Heartbeats,
    Beats,
    UsageSums,
    Upkeep,
):
    """Implements ``goclaw_py.ports.store.Store`` for tests in virtual time and for simulations.

    No method really waits, so each is atomic. Two objects over one ``MemoryDatabase`` are two
    processes on one database. Enter a node with ``join`` first, as with the real one: a node that
    is not entered can own nothing.
    """

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        super().__init__(database or MemoryDatabase())

    async def backlog(self) -> Backlog:
        """Of all nodes."""
        states = Counter(row.state for row in self._db.outbox.values())
        return Backlog(
            inbox=len(self._db.pending),
            outbox=states[OutboxState.PENDING] + states[OutboxState.SENDING],
            dead=states[OutboxState.DEAD],
            unanswered=sum(
                row.kind is InboxKind.MESSAGE and row.outcome in FAILURES and not row.dismissed
                for row in self._db.inbox.values()
            ),
        )

    async def ping(self) -> None:
        """Always there."""

    def on_notice(self, hear: Callable[[Notice], None]) -> None:
        """Until ``close``."""
        self._db.hearers.setdefault(self, []).append(hear)

    async def close(self) -> None:
        """The database stays for others who share it."""
        self._db.hearers.pop(self, None)
