"""The store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from goclaw_py.core.outcomes import FAILURES
from goclaw_py.records import InboxKind, Notice, OutboxState
from goclaw_py.scheduler.views import Backlog
from goclaw_py.store.memory.approvals import MemoryApprovals
from goclaw_py.store.memory.background import MemoryBackground
from goclaw_py.store.memory.chats import MemoryChats
from goclaw_py.store.memory.cluster.calls import MemoryNodeCalls
from goclaw_py.store.memory.cluster.lanes import MemoryLanes
from goclaw_py.store.memory.cluster.nodes import MemoryNodes
from goclaw_py.store.memory.dead_letters import MemoryDeadLetters
from goclaw_py.store.memory.drafts import MemoryDrafts
from goclaw_py.store.memory.heartbeat.heartbeats import MemoryHeartbeats
from goclaw_py.store.memory.inbox import MemoryInbox
from goclaw_py.store.memory.incidents import MemoryIncidents
from goclaw_py.store.memory.jobs.jobs import MemoryJobs
from goclaw_py.store.memory.jobs.work import MemoryWorkItems
from goclaw_py.store.memory.names import MemoryNames
from goclaw_py.store.memory.outbox import MemoryOutbox
from goclaw_py.store.memory.people import MemoryPeople
from goclaw_py.store.memory.records import MemoryRunRecords
from goclaw_py.store.memory.rewind import MemoryRewind
from goclaw_py.store.memory.runs import MemoryRuns
from goclaw_py.store.memory.settings import MemoryAudit, MemorySettings
from goclaw_py.store.memory.sign_ins import MemorySignIns, MemoryTokens
from goclaw_py.store.memory.tables import MemoryDatabase
from goclaw_py.store.memory.upkeep import MemoryUpkeep
from goclaw_py.store.memory.usage import MemoryUsageSums
from goclaw_py.store.memory.web_links import MemoryWebLinks


class GatewayMemoryStore(
    MemoryNodes,
    MemoryNodeCalls,
    MemoryLanes,
    MemoryInbox,
    MemoryDeadLetters,
    MemoryBackground,
    MemoryRuns,
    MemoryRunRecords,
    MemoryApprovals,
    MemoryRewind,
    MemoryDrafts,
    MemoryOutbox,
    MemoryPeople,
    MemoryWebLinks,
    MemorySignIns,
    MemoryTokens,
    MemoryChats,
    MemoryNames,
    MemoryIncidents,
    MemoryJobs,
    MemoryWorkItems,
    MemoryHeartbeats,
    MemoryUsageSums,
    MemorySettings,
    MemoryAudit,
    MemoryUpkeep,
):
    """Implements ``goclaw_py.records.Store`` for tests in virtual time.

    No method waits, so each is atomic. Two objects over one ``MemoryDatabase`` are two processes on
    one database. Store a node with ``join`` first: a node that is not stored can own nothing.
    """

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        super().__init__(database or MemoryDatabase())

    async def backlog(self) -> Backlog:
        states = Counter(row.state for row in self._db.outbox.values())
        questions = self._db.approvals.questions.values()
        return Backlog(
            inbox=len(self._db.pending),
            outbox=states[OutboxState.PENDING] + states[OutboxState.SENDING],
            dead=states[OutboxState.DEAD],
            unanswered=sum(
                row.kind is InboxKind.MESSAGE and row.outcome in FAILURES and not row.dismissed
                for row in self._db.inbox.values()
            ),
            approvals=sum(one.approval.decision is None for one in questions),
        )

    async def ping(self) -> None:
        pass

    def on_notice(self, hear: Callable[[Notice], None]) -> None:
        self._db.hearers.setdefault(self, []).append(hear)

    async def close(self) -> None:
        self._db.hearers.pop(self, None)
