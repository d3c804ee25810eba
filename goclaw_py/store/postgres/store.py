"""The store on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from goclaw_py.records import Notice
from goclaw_py.store.postgres.address import Address
from goclaw_py.store.postgres.audit import PostgresAudit
from goclaw_py.store.postgres.cluster.calls import PostgresNodeCalls
from goclaw_py.store.postgres.cluster.lanes import PostgresLanes
from goclaw_py.store.postgres.cluster.nodes import PostgresNodes
from goclaw_py.store.postgres.delivery.drafts import PostgresDrafts
from goclaw_py.store.postgres.delivery.outbox import PostgresOutbox
from goclaw_py.store.postgres.fitness import ensure_writable
from goclaw_py.store.postgres.heartbeat.heartbeats import PostgresHeartbeats
from goclaw_py.store.postgres.jobs.jobs import PostgresJobs
from goclaw_py.store.postgres.jobs.work import PostgresWorkItems
from goclaw_py.store.postgres.listener import Listener
from goclaw_py.store.postgres.messages.background import PostgresBackground
from goclaw_py.store.postgres.messages.chats import PostgresChats
from goclaw_py.store.postgres.messages.dead_letters import PostgresDeadLetters
from goclaw_py.store.postgres.messages.inbox import PostgresInbox
from goclaw_py.store.postgres.messages.incidents import PostgresIncidents
from goclaw_py.store.postgres.messages.names import PostgresNames
from goclaw_py.store.postgres.messages.people import PostgresPeople
from goclaw_py.store.postgres.messages.web_links import PostgresWebLinks
from goclaw_py.store.postgres.pool import CLOSE_S, Connection, Pool, connect
from goclaw_py.store.postgres.runs.approvals import PostgresApprovals
from goclaw_py.store.postgres.runs.records import PostgresRunRecords
from goclaw_py.store.postgres.runs.rewind import PostgresRewind
from goclaw_py.store.postgres.runs.runs import PostgresRuns
from goclaw_py.store.postgres.runs.usage import PostgresUsageSums
from goclaw_py.store.postgres.settings import PostgresSettings
from goclaw_py.store.postgres.sign_ins import PostgresSignIns
from goclaw_py.store.postgres.tokens import PostgresTokens
from goclaw_py.store.postgres.upkeep import PostgresUpkeep


@asynccontextmanager
async def connection(address: Address) -> AsyncIterator[Connection]:
    """Open a separate connection, for migrations. Raises ``StoreUnavailable``."""
    opened = await connect(address)
    try:
        yield opened
    finally:
        await opened.close()


class PostgresStore(
    PostgresNodes,
    PostgresNodeCalls,
    PostgresLanes,
    PostgresInbox,
    PostgresDeadLetters,
    PostgresBackground,
    PostgresRuns,
    PostgresRunRecords,
    PostgresApprovals,
    PostgresRewind,
    PostgresDrafts,
    PostgresOutbox,
    PostgresPeople,
    PostgresWebLinks,
    PostgresSignIns,
    PostgresTokens,
    PostgresChats,
    PostgresNames,
    PostgresIncidents,
    PostgresJobs,
    PostgresWorkItems,
    PostgresHeartbeats,
    PostgresUsageSums,
    PostgresSettings,
    PostgresAudit,
    PostgresUpkeep,
):
    """Implements ``goclaw_py.records.Store``; the schema must be up to date."""

    def __init__(self, pool: Pool, listener: Listener) -> None:
        super().__init__(pool)
        self._listener = listener

    @classmethod
    async def open(
        cls,
        dsn: str | None = None,
        *,
        host: str | None = None,
        user: str | None = None,
        database: str | None = None,
        max_size: int = 10,
    ) -> Self:
        """Connect, and start to listen for notices.

        For a unix socket, give its folder as ``host``, with ``user`` and ``database``, instead of a
        DSN. ``max_size`` limits the connections for statements; one more listens. Raises
        ``StoreUnavailable`` if there is no response, ``StoreError`` if the server refuses us.
        """
        address = Address(dsn, host, user, database)
        pool = await Pool.open(address, min_size=1, max_size=max_size)
        listener = Listener(address)
        # A network that lost packets has lost them for all connections.
        listener.guard(pool.is_late, pool.condemn)
        try:
            await listener.start()
        except BaseException:
            await pool.close()
            raise
        return cls(pool, listener)

    async def ping(self) -> None:
        """Wait only for a connection and one statement."""
        async with self._pool.connection() as connection:
            await ensure_writable(connection)

    def on_notice(self, callback: Callable[[Notice], None]) -> None:
        """After a reconnection, ``callback`` is called once for every kind of notice."""
        self._listener.add(callback)

    async def close(self) -> None:
        """Give calls in progress a few seconds to finish."""
        await self._listener.close()
        await asyncio.gather(*(group.close(CLOSE_S) for group in self._groups))
        await self._pool.close()
