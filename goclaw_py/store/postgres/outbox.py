"""Messages on their way to the channel."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import assert_never

from goclaw_py.core.errors import Fenced, StoreError
from goclaw_py.core.ids import NodeId
from goclaw_py.core.messages import Target
from goclaw_py.core.status import Backlog
from goclaw_py.ports.store import Notice, OutboxRow, OutboxState, Place
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import Part, notify, place_columns
from goclaw_py.store.postgres.pool import Connection, Row
from goclaw_py.store.sql import queries

_SQL = queries("outbox")


class Outbox(Part):
    """Implements ``OutboxStore``.

    Marking a row in the same way twice is harmless, so a lost answer can be repeated.
    """

    async def chats_due(self, places: Collection[Place], *, now: datetime) -> list[Target]:
        """Costs as much as there are chats with unsent rows, however long their lines are."""
        async with self._pool.connection() as connection:
            found = await connection.fetch(_SQL["chats_due"], *place_columns(places), now)
        return [Target(row["channel"], row["account"], row["chat"]) for row in found]

    async def claim_next(self, chat: Target, *, node: NodeId, now: datetime) -> OutboxRow | None:
        """A node that has not joined, or was declared dead, gets nothing."""
        async with self._pool.connection() as connection:
            row = await connection.row(
                _SQL["claim_next"], chat.channel, chat.account, chat.chat, node, now
            )
        return None if row is None else rows.outbox_row(row)

    async def mark_sent(self, row: OutboxRow, external_id: str, *, now: datetime) -> None:
        """Clears the error of earlier attempts."""
        async with self._pool.transaction() as connection:
            marked = await connection.row(_SQL["mark_sent"], row.id, row.fence, external_id, now)
            await _check(connection, marked, row, OutboxState.SENT)

    async def mark_failed(
        self, row: OutboxRow, error: str, *, retry_at: datetime, maybe_sent: bool
    ) -> None:
        """A mark as possible duplicate is never taken away again."""
        async with self._pool.transaction() as connection:
            marked = await connection.row(
                _SQL["mark_failed"], row.id, row.fence, error, retry_at, maybe_sent
            )
            await _check(connection, marked, row, OutboxState.PENDING)

    async def mark_dead(self, row: OutboxRow, error: str, *, now: datetime) -> None:
        """The rows behind it may go on."""
        async with self._pool.transaction() as connection:
            marked = await connection.row(_SQL["mark_dead"], row.id, row.fence, error, now)
            await _check(connection, marked, row, OutboxState.DEAD)

    async def outbox(self, *, limit: int = 50, state: OutboxState | None = None) -> list[OutboxRow]:
        """Each state is asked for by its own index."""
        async with self._pool.connection() as connection:
            found = await _newest(connection, limit, state)
        return [rows.outbox_row(row) for row in found]

    async def retry_outbox(self, ids: Collection[int], *, now: datetime) -> int:
        """They start with all attempts before them, ahead of younger rows of their chat."""
        async with self._pool.transaction() as connection:
            revived = await connection.fetch(_SQL["retry"], list(ids), now)
            if revived:
                await notify(connection, [Notice.OUTBOX])
        return len(revived)

    async def next_due(self, places: Collection[Place]) -> datetime | None:
        """May lie in the past."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["next_due"], *place_columns(places))
        due_at: datetime | None = None if row is None else row["due_at"]
        return due_at

    async def backlog(self) -> Backlog:
        """Three counts, each over an index of open rows only."""
        async with self._pool.connection() as connection:
            row = await connection.row(_SQL["backlog"])
        if row is None:
            raise StoreError("a count without a result")
        return Backlog(inbox=row["inbox"], outbox=row["outbox"], dead=row["dead"])


async def _check(
    connection: Connection, marked: Row | None, row: OutboxRow, wanted: OutboxState
) -> None:
    """Raise ``Fenced`` unless the row was marked, now or by an earlier try with this claim."""
    if marked is not None:
        return
    now = await connection.row(_SQL["same_claim"], row.id, row.fence)
    if now is None or now["state"] != wanted:
        raise Fenced(f"outbox row {row.id} was claimed or settled by somebody else")


async def _newest(connection: Connection, limit: int, state: OutboxState | None) -> list[Row]:
    match state:
        case None:
            return await connection.fetch(_SQL["newest"], limit)
        case OutboxState.PENDING | OutboxState.SENDING:
            return await connection.fetch(_SQL["newest_unsent"], limit, state)
        case OutboxState.DEAD:
            return await connection.fetch(_SQL["newest_dead"], limit)
        case OutboxState.SENT:
            return await connection.fetch(_SQL["newest_sent"], limit)
        case _:
            assert_never(state)
