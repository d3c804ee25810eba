"""Messages on their way to the agent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from goclaw_py.core.ids import NodeId, SessionKey
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.requests import Mode
from goclaw_py.ports.store import (
    Accepted,
    InboxKind,
    InboxRow,
    NewInbox,
    NewPairing,
    Notice,
    Place,
    Unanswered,
)
from goclaw_py.store import rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import Part, claim, enqueue, notify, place_columns
from goclaw_py.store.postgres.pool import Connection
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("inbox")
_PEOPLE = queries("people")


@dataclass(slots=True)
class _Entry:
    """A session as a batch sees it: where it is and whether work comes with the batch."""

    row: NewInbox
    work: bool = False


@dataclass(frozen=True, slots=True)
class _Sessions:
    """The sessions of a batch, once they are locked."""

    owned: set[SessionKey] = field(default_factory=set)
    modes: dict[SessionKey, Mode | None] = field(default_factory=dict)


class Inbox(Part):
    """Implements ``InboxStore``."""

    async def accept(
        self,
        batch: Sequence[NewInbox],
        *,
        node: NodeId,
        now: datetime,
        pairings: Sequence[NewPairing] = (),
    ) -> Accepted:
        """The number of statements does not depend on the size of the batch.

        A session that this node does not own is claimed only if nothing older waits in it: whoever
        claims such a one, by ``claim_pending``, gets its rows in order.
        """
        offered = rules.first_of_each(batch)
        rows = storable(tuple(offered))
        async with self._pool.transaction() as connection:
            known = await _known(connection, rows)
            fresh = [row for place, row in enumerate(rows) if place not in known]
            sessions = await _enter_sessions(connection, fresh, node=node, now=now)
            ids = await _insert(connection, fresh, now=now)
            await _request_pairings(connection, pairings, now=now)
            pending = {
                row.session for place, row in enumerate(fresh) if place in ids and _is_work(row)
            }
            if pending - sessions.owned:
                await notify(connection, [Notice.INBOX])
        listed = [
            _accepted(ids[place], row, now, sessions.modes[row.session])
            for place, row in enumerate(fresh)
            if place in ids and _is_listed(row, sessions.owned)
        ]
        stored = {id(fresh[place]) for place in ids}
        # Under the ids that the caller knows, which may differ from what can be stored.
        duplicates = [
            row.message.external_id
            for row, clean in zip(offered, rows, strict=True)
            if id(clean) not in stored
        ]
        return Accepted(tuple(listed), frozenset(duplicates))

    async def claim_pending(
        self, node: NodeId, *, now: datetime, places: Collection[Place]
    ) -> list[InboxRow]:
        """Sessions that somebody else is looking at in this moment are left for the next call.

        So are those of a dead node that has an unfinished run in them, until it is recovered.
        """
        async with self._pool.transaction() as connection:
            waiting = await connection.fetch(
                _SQL["lock_waiting_sessions"], node, now, *place_columns(places)
            )
            if waiting:
                keys = [SessionKey(row["key"]) for row in waiting]
                await claim(connection, keys, node=node, now=now)
            return [rows.inbox_row(row) for row in await connection.fetch(_SQL["pending_of"], node)]

    async def settle(
        self,
        rows: Collection[int],
        outcome: Outcome,
        *,
        now: datetime,
        reason: Reason | None = None,
        say: Sequence[OutboundMessage] = (),
    ) -> None:
        """What is said belongs to the session of the rows, if all are of one."""
        async with self._pool.transaction() as connection:
            ended = await connection.fetch(_SQL["settle"], list(rows), outcome, reason, now)
            if ended or not rows:
                sessions = {SessionKey(row["session"]) for row in ended}
                session = sessions.pop() if len(sessions) == 1 else None
                await enqueue(connection, say, session=session, now=now)

    async def unanswered(
        self, session: SessionKey, *, ended: bool, limit: int = 50
    ) -> list[Unanswered]:
        """Each of the two has its own index."""
        query = _SQL["unanswered"] if ended else _SQL["waiting"]
        async with self._pool.connection() as connection:
            found = await connection.fetch(query, session, limit)
        return [rows.unanswered(row) for row in found]

    async def release_sessions(self, node: NodeId, sessions: Collection[SessionKey]) -> None:
        """One in which a run of this node works stays owned too."""
        async with self._pool.transaction() as connection:
            locked = await connection.fetch(_SQL["lock_sessions"], list(sessions), node)
            if locked:
                await connection.fetch(_SQL["release_sessions"], [row["key"] for row in locked])


def _is_work(row: NewInbox) -> bool:
    return row.outcome is None


def _is_listed(row: NewInbox, owned: set[SessionKey]) -> bool:
    if _is_work(row):
        return row.session in owned
    return row.kind is InboxKind.COMMAND


def _accepted(row_id: int, row: NewInbox, now: datetime, mode: Mode | None) -> InboxRow:
    return InboxRow(
        id=row_id,
        message=row.message,
        session=row.session,
        agent=row.agent,
        kind=row.kind,
        attempts=0,
        received_at=now,
        mode=mode,
    )


async def _known(connection: Connection, batch: Sequence[NewInbox]) -> set[int]:
    """The places of rows that are stored already."""
    if not batch:
        return set()
    found = await connection.fetch(
        _SQL["known"],
        [row.message.target.channel for row in batch],
        [row.message.target.account for row in batch],
        [row.message.external_id for row in batch],
    )
    return {row["ordinal"] - 1 for row in found}


async def _enter_sessions(
    connection: Connection, fresh: Sequence[NewInbox], *, node: NodeId, now: datetime
) -> _Sessions:
    """Make, lock and claim the sessions of a batch."""
    entries: dict[SessionKey, _Entry] = {}
    for row in fresh:
        entry = entries.setdefault(row.session, _Entry(row))
        entry.row = row
        entry.work = entry.work or _is_work(row)
    if not entries:
        return _Sessions()
    places = [entry.row.message.target for entry in entries.values()]
    stored = await connection.fetch(
        _SQL["enter_sessions"],
        node,
        now,
        list(entries),
        [entry.row.agent for entry in entries.values()],
        [place.channel for place in places],
        [place.account for place in places],
        [place.chat for place in places],
        [place.thread for place in places],
        [entry.work for entry in entries.values()],
    )
    owned = {SessionKey(row["key"]) for row in stored if row["owner"] == node}
    others = [key for key, entry in entries.items() if entry.work and key not in owned]
    if others:
        owned |= await claim(connection, others, node=node, now=now, only_from_start=True)
    return _Sessions(owned, {SessionKey(row["key"]): rows.queue_mode(row) for row in stored})


async def _insert(
    connection: Connection, fresh: Sequence[NewInbox], *, now: datetime
) -> dict[int, int]:
    """Store rows; returns ids by place. A place is missing if somebody stored it just now."""
    if not fresh:
        return {}
    stored = await connection.fetch(
        _SQL["insert"],
        [row.message.target.channel for row in fresh],
        [row.message.target.account for row in fresh],
        [row.message.external_id for row in fresh],
        [row.session for row in fresh],
        [row.agent for row in fresh],
        [row.kind for row in fresh],
        [rows.packed(row.message) for row in fresh],
        [row.outcome for row in fresh],
        [row.reason for row in fresh],
        now,
    )
    return {row["ordinal"] - 1: row["id"] for row in stored}


async def _request_pairings(
    connection: Connection, pairings: Sequence[NewPairing], *, now: datetime
) -> None:
    """Keep what nobody has asked yet, and greet only those."""
    if not pairings:
        return
    wanted = rules.first_request_of_each(storable(tuple(pairings)))
    requests = [pairing.request for pairing in wanted]
    kept = await connection.fetch(
        _PEOPLE["request_pairing"],
        [request.channel for request in requests],
        [request.account for request in requests],
        [request.sender.id for request in requests],
        [request.sender.name for request in requests],
        [request.sender.username for request in requests],
        [request.code_hash for request in requests],
        [request.created_at for request in requests],
        [request.expires_at for request in requests],
        now,
    )
    greetings = [wanted[row["ordinal"] - 1].greeting for row in kept]
    await enqueue(connection, greetings, session=None, now=now)
    if kept:
        await notify(connection, [Notice.PEOPLE])
