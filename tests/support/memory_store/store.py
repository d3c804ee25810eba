"""The store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from goclaw_py.core.outcomes import FAILURES
from goclaw_py.records import InboxKind, Notice, OutboxState, Place
from goclaw_py.scheduler.views import Backlog, UnservedPlace
from tests.support.memory_store.approvals import MemoryApprovals
from tests.support.memory_store.background import MemoryBackground
from tests.support.memory_store.chats import MemoryChats
from tests.support.memory_store.cluster.calls import MemoryNodeCalls
from tests.support.memory_store.cluster.lanes import MemoryLanes
from tests.support.memory_store.cluster.nodes import MemoryNodes
from tests.support.memory_store.dead_letters import MemoryDeadLetters
from tests.support.memory_store.drafts import MemoryDrafts
from tests.support.memory_store.heartbeat.heartbeats import MemoryHeartbeats
from tests.support.memory_store.inbox import MemoryInbox
from tests.support.memory_store.incidents import MemoryIncidents
from tests.support.memory_store.jobs.jobs import MemoryJobs
from tests.support.memory_store.jobs.work import MemoryWorkItems
from tests.support.memory_store.names import MemoryNames
from tests.support.memory_store.outbox import MemoryOutbox
from tests.support.memory_store.people import MemoryPeople
from tests.support.memory_store.records import MemoryRunRecords
from tests.support.memory_store.rewind import MemoryRewind
from tests.support.memory_store.runs import MemoryRuns
from tests.support.memory_store.settings import MemoryAudit, MemorySettings
from tests.support.memory_store.sign_ins import MemorySignIns, MemoryTokens
from tests.support.memory_store.tables import MemoryDatabase
from tests.support.memory_store.upkeep import MemoryUpkeep
from tests.support.memory_store.usage import MemoryUsageSums
from tests.support.memory_store.web_links import MemoryWebLinks


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

    async def backlog(self, served: Collection[Place] | None = None) -> Backlog:
        states = Counter(row.state for row in self._db.outbox.values())
        questions = self._db.approvals.questions.values()
        return Backlog(
            inbox=len(self._db.pending),
            outbox=states[OutboxState.WAITING] + states[OutboxState.SENDING],
            failed=states[OutboxState.FAILED],
            unanswered=sum(
                row.kind is InboxKind.MESSAGE and row.outcome in FAILURES and not row.dismissed
                for row in self._db.inbox.values()
            ),
            approvals=sum(one.approval.decision is None for one in questions),
            unserved=() if served is None else self._unserved(served),
        )

    def _unserved(self, served: Collection[Place]) -> tuple[UnservedPlace, ...]:
        targets = (self._db.sessions[row.session].target for row in self._db.pending.values())
        incoming = Counter((one.channel, one.account) for one in targets if one is not None)
        outgoing = Counter(
            (row.message.target.channel, row.message.target.account)
            for row in self._db.outbox.values()
            if row.state in (OutboxState.WAITING, OutboxState.SENDING)
        )
        return tuple(
            UnservedPlace(*place, incoming[place], outgoing[place])
            for place in sorted({*incoming, *outgoing} - {*served})
        )

    async def ping(self) -> None:
        pass

    def on_notice(self, hear: Callable[[Notice], None]) -> None:
        self._db.hearers.setdefault(self, []).append(hear)

    async def close(self) -> None:
        self._db.hearers.pop(self, None)
