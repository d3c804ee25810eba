"""The inbox."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter

from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import (
    AcceptedMessages,
    InboxRow,
    NewInbox,
    NewPairing,
    Notice,
    Place,
    Stops,
    Unanswered,
)
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.delivery.drafts import close_abandoned
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.messages.accept import accept, found_by, offer, stop
from goclaw_py.store.postgres.part import PostgresPart, claim, enqueue, notify, place_columns
from goclaw_py.store.postgres.pool import Pool
from goclaw_py.store.sql import queries

_SQL = queries("inbox")

_NEVER = datetime.max.replace(tzinfo=UTC)

_FLIGHTS = 2
"""Concurrent transactions: while one waits for the disk, the next is prepared."""

_MOST = 40
"""Calls or sessions per transaction: more end later, fewer cost more."""


class PostgresInbox(PostgresPart):
    """Implements ``InboxStore``."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._accepting = self._ending(
            Group(
                partial(accept, pool),
                keys=attrgetter("sessions"),
                kind=attrgetter("node"),
                flights=_FLIGHTS,
                most=_MOST,
            )
        )

    async def accept(
        self,
        batch: Sequence[NewInbox],
        *,
        node: NodeId,
        now: datetime,
        pairings: Sequence[NewPairing] = (),
    ) -> AcceptedMessages:
        """Share a transaction with calls that come while the previous one is committed.

        The number of statements does not depend on the number of messages.
        """
        return await self._accepting(offer(batch, pairings, node, now))

    async def claim_pending(
        self,
        node: NodeId,
        *,
        now: datetime,
        places: Collection[Place],
        known: Collection[int] = (),
    ) -> list[InboxRow]:
        """Claim free sessions with pending rows.

        Skip sessions that another process has locked, and those of expired nodes with an unfinished
        run, which must be recovered first.
        """
        async with self._pool.transaction() as connection:
            waiting = await connection.fetch(
                _SQL["lock_waiting_sessions"], node, *place_columns(places)
            )
            if waiting:
                keys = [SessionKey(row["key"]) for row in waiting]
                await claim(connection, keys, node=node, now=now)
            found = await connection.fetch(_SQL["pending_of"], node, list(known))
        return [rows.inbox_row(row) for row in found]

    async def ended(self, rows: Collection[int]) -> set[int]:
        return {row["id"] for row in await self._pool.fetch(_SQL["ended"], list(rows))}

    async def settle(
        self,
        rows: Collection[int],
        outcome: Outcome,
        *,
        now: datetime,
        reason: Reason | None = None,
        say: Sequence[OutboundMessage] = (),
        node: NodeId | None = None,
    ) -> None:
        async with self._pool.transaction() as connection:
            # In the order of all writers of a session's rows, which prevents deadlocks.
            await connection.fetch(_SQL["lock_sessions_of"], list(rows))
            ended = await connection.fetch(_SQL["settle"], list(rows), outcome, reason, now, node)
            if ended or not rows:
                sessions = {SessionKey(row["session"]) for row in ended}
                session = sessions.pop() if len(sessions) == 1 else None
                await enqueue(connection, say, session=session, now=now)
            if ended:
                await close_abandoned(connection, now=now)

    async def stop_session(
        self,
        session: SessionKey,
        stops: Stops,
        *,
        node: NodeId,
        now: datetime,
        before: InboxRow | None = None,
    ) -> None:
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["lock_sessions_named"], [session])
            upto = None if before is None else before.id
            waiting = await connection.fetch(_SQL["waiting_before"], session, upto)
            until = _NEVER if before is None else before.message.sent_at
            found = found_by(stops, until, [row["id"] for row in waiting])
            await stop(connection, (), found, node=node, now=now)

    async def unanswered(
        self, session: SessionKey, *, ended: bool, limit: int = 50
    ) -> list[Unanswered]:
        query = _SQL["unanswered"] if ended else _SQL["waiting"]
        found = await self._pool.fetch(query, session, limit)
        return [rows.unanswered(row) for row in found]

    async def chained_turns(self, run: RunId, *, limit: int) -> int:
        row = await self._pool.row(_SQL["chained_turns"], run, limit)
        assert row is not None
        return int(row["turns"])

    async def release_sessions(
        self, node: NodeId, sessions: Collection[SessionKey], *, waiting: bool = False
    ) -> None:
        keys = sorted(sessions)
        # By parts: those who want one of thousands do not wait for all of them.
        for begin in range(0, len(keys), _MOST):
            await self._release(node, keys[begin : begin + _MOST], waiting=waiting)

    async def _release(self, node: NodeId, some: list[SessionKey], *, waiting: bool) -> None:
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(_SQL["lock_sessions"], some, node)
            if locked:
                keys = [row["key"] for row in locked]
                freed = await connection.fetch(_SQL["release_sessions"], keys, waiting)
                if any(row["waits"] for row in freed):
                    await notify(connection, [Notice.INBOX])
                if any(row["is_wanted"] for row in freed):
                    await notify(connection, [Notice.CRON])
