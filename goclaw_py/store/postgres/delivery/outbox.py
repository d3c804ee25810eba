"""The outbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from goclaw_py.core.errors import Fenced, StoreError
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.records import (
    ALL_MESSAGES,
    ALL_OUTGOING,
    ChatsDue,
    MessageFilter,
    Notice,
    OutboxQuery,
    OutboxRow,
    OutboxState,
    Place,
)
from goclaw_py.scheduler.views import Backlog, UnservedPlace
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.part import PostgresPart, enqueue, notify, page_columns, place_columns
from goclaw_py.store.postgres.pool import Connection, Pool, Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("outbox")
_NEWEST = {
    None: _SQL["newest"],
    OutboxState.WAITING: _SQL["newest_waiting"],
    OutboxState.SENDING: _SQL["newest_sending"],
    OutboxState.SENT: _SQL["newest_sent"],
    OutboxState.FAILED: _SQL["newest_failed"],
    OutboxState.DROPPED: _SQL["newest_dropped"],
}
_COLUMN = {OutboxState.WAITING: "pending", OutboxState.FAILED: "dead"}
"""What the column ``state`` has instead."""


class _Claim(NamedTuple):
    chat: tuple[str, str, str]
    node: NodeId
    at: datetime


class _Sent(NamedTuple):
    row: OutboxRow
    external_id: str
    at: datetime
    beside_draft: bool


class PostgresOutbox(PostgresPart):
    """Implements ``OutboxStore``.

    Changing a row in the same way again changes nothing, so calls can be repeated after a lost
    response. Claims and confirmations that come during a transaction share the next one.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._claiming = self._ending(Group(self._claim, kind=attrgetter("node")))
        self._marking = self._ending(Group(self._mark_sent))

    async def chats_due(self, places: Collection[Place], *, now: datetime) -> ChatsDue:
        """The cost depends on the number of chats with unsent rows, not on that of the rows."""
        *due, last = await self._pool.fetch(_SQL["chats_due"], *place_columns(places), now)
        counts = {Target(row["channel"], row["account"], row["chat"]): row["size"] for row in due}
        return ChatsDue(counts, last["next_at"])

    async def claim_next(self, chat: Target, *, node: NodeId, now: datetime) -> OutboxRow | None:
        key = storable((chat.channel, chat.account, chat.chat))
        return await self._claiming(_Claim(key, node, now))

    async def _claim(self, claims: Sequence[_Claim]) -> list[OutboxRow | None]:
        found: list[OutboxRow | None] = [None] * len(claims)
        async with self._pool.connection() as connection:
            for places in _each_chat_once(claims):
                asked = [claims[place] for place in places]
                taken = await connection.fetch(
                    _SQL["claim_next"],
                    claims[0].node,
                    *map(list, zip(*(claim.chat for claim in asked), strict=True)),
                    [claim.at for claim in asked],
                )
                of = {claims[place].chat: place for place in places}
                for row in taken:
                    place = of[row["channel"], row["account"], row["chat"]]
                    found[place] = rows.outbox_row(row)
        return found

    async def claim_album(self, row: OutboxRow, *, node: NodeId) -> list[OutboxRow]:
        found = await self._pool.fetch(_SQL["claim_album"], node, row.id)
        return [rows.outbox_row(one) for one in found]

    async def mark_sent(
        self, row: OutboxRow, external_id: str, *, now: datetime, beside_draft: bool = False
    ) -> bool:
        return await self._marking(_Sent(row, external_id, now, beside_draft))

    async def _mark_sent(self, sent: Sequence[_Sent]) -> list[bool | StoreError]:
        async with self._pool.connection() as connection:
            marked = await connection.fetch(
                _SQL["mark_sent"],
                [one.row.id for one in sent],
                [one.row.fence for one in sent],
                [one.external_id for one in sent],
                [one.at for one in sent],
                [one.beside_draft for one in sent],
            )
            others = {(row["id"], row["fence"]): row["others"] for row in marked}
            return [
                others[ticket]
                if (ticket := (one.row.id, one.row.fence)) in others
                else await _fenced(connection, one.row, OutboxState.SENT) or True
                for one in sent
            ]

    async def clear_duplicate(self, row: OutboxRow) -> None:
        await self._pool.fetch(_SQL["clear_duplicate"], row.id, row.fence)

    async def mark_failed(
        self,
        row: OutboxRow,
        error: str,
        *,
        retry_at: datetime,
        maybe_sent: bool,
        alone: bool = False,
    ) -> None:
        async with self._pool.transaction() as connection:
            marked = await connection.row(
                _SQL["mark_failed"], row.id, row.fence, error, retry_at, maybe_sent, alone
            )
            await _check(connection, marked, row, OutboxState.WAITING)

    async def mark_dead(
        self,
        row: OutboxRow,
        error: str,
        *,
        now: datetime,
        say: Sequence[OutboundMessage] = (),
    ) -> None:
        async with self._pool.transaction() as connection:
            marked = await connection.row(_SQL["mark_dead"], row.id, row.fence, error, now)
            await _check(connection, marked, row, OutboxState.FAILED)
            if marked is not None:
                await enqueue(connection, say, session=row.session, now=now)

    async def outbox(self, query: OutboxQuery = ALL_OUTGOING) -> list[OutboxRow]:
        """Each state has its own index."""
        page = page_columns(query.limit, query.before, query.only)
        if query.run is None:
            found = await self._pool.fetch(_NEWEST[query.state], *page)
        else:
            state = query.state and _COLUMN.get(query.state, query.state)
            found = await self._pool.fetch(_SQL["newest_of_run"], *page, query.run, state)
        return [rows.outbox_row(row) for row in found]

    async def outbox_counts(self, only: MessageFilter = ALL_MESSAGES) -> dict[OutboxState, int]:
        found = await self._pool.fetch(_SQL["counts"], *page_columns(0, None, only))
        return {OutboxState(row["state"]): row["rows"] for row in found}

    async def outbox_row(self, row_id: int) -> OutboxRow | None:
        row = await self._pool.row(_SQL["row"], row_id)
        return None if row is None else rows.outbox_row(row)

    async def drop_answers(
        self,
        session: SessionKey,
        chat: Target,
        *,
        everything: bool,
        run: RunId | None,
        sender: str | None,
        now: datetime,
    ) -> int:
        place = (chat.channel, chat.account, chat.chat)
        given = (*place, session, now, everything, run, sender)
        async with self._pool.transaction() as connection:
            cut = await connection.fetch(_SQL["drop_answers"], *given)
            if cut:
                await notify(connection, [Notice.OUTBOX])
        return len(cut)

    async def drop_outbox(self, ids: Collection[int], *, now: datetime) -> Counter[str]:
        async with self._pool.transaction() as connection:
            dropped = await connection.fetch(_SQL["drop"], list(ids), now)
            if dropped:
                await notify(connection, [Notice.OUTBOX])
        return Counter(row["channel"] for row in dropped)

    async def advance_outbox(self, *, after: datetime, by: timedelta) -> None:
        await self._pool.fetch(_SQL["advance"], after, by)

    async def retry_outbox(self, ids: Collection[int], *, now: datetime) -> int:
        """The rows are sent before younger rows of their chat, with zero attempts."""
        async with self._pool.transaction() as connection:
            revived = await connection.fetch(_SQL["retry"], list(ids), now)
            if revived:
                await notify(connection, [Notice.OUTBOX])
        return len(revived)

    async def backlog(self, served: Collection[Place] | None = None) -> Backlog:
        places = (None, None) if served is None else place_columns(served)
        row = await self._pool.row(_SQL["backlog"], *places)
        if row is None:
            raise StoreError("a count without a result")
        columns = (row[name] for name in ("channels", "accounts", "incoming", "outgoing"))
        unserved = tuple(UnservedPlace(*one) for one in zip(*columns, strict=True))
        return rows.from_row(Backlog, row, undecided=0, unserved=unserved)


def _each_chat_once(claims: Sequence[_Claim]) -> list[list[int]]:
    """Group claims into rounds without a repeated chat; usually one. Returns their positions."""
    turns: list[list[int]] = []
    seen: Counter[tuple[str, str, str]] = Counter()
    for place, claim in enumerate(claims):
        turn = seen[claim.chat]
        seen[claim.chat] += 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(place)
    return turns


async def _check(
    connection: Connection, marked: Row | None, row: OutboxRow, wanted: OutboxState
) -> None:
    """Raise ``Fenced`` unless the row was changed now, or earlier with this claim."""
    if marked is None and (error := await _fenced(connection, row, wanted)) is not None:
        raise error


async def _fenced(connection: Connection, row: OutboxRow, wanted: OutboxState) -> Fenced | None:
    """Return why a row could not be changed; None if it was changed earlier with this claim."""
    now = await connection.row(_SQL["same_claim"], row.id, row.fence)
    if now is not None and rows.outbox_state(now) is wanted:
        return None
    return Fenced(f"outbox row {row.id} was claimed or settled by somebody else")
