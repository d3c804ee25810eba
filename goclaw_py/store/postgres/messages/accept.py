"""Storing inbox rows: the batches of many callers in few statements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

import orjson

from goclaw_py.core.ids import NodeId, SessionKey
from goclaw_py.records import (
    AcceptedMessages,
    InboxKind,
    InboxRow,
    NewInbox,
    NewPairing,
    Notice,
    Stops,
)
from goclaw_py.store import rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.delivery.drafts import close_abandoned
from goclaw_py.store.postgres.messages.message_json import prepared
from goclaw_py.store.postgres.part import claim, enqueue, notify
from goclaw_py.store.postgres.pool import Connection, Pool, Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable

_SQL = queries("inbox")
_PEOPLE = queries("people")

_Key: TypeAlias = tuple[str, str, str]
"""Channel, account and external id of a message, as stored."""

_Columns: TypeAlias = tuple[object, ...]


# Made for every message, so these are not frozen: that would cost more than all they do.
@dataclass(slots=True)
class _Offered:
    """A storable row, and its message as JSON.

    ``name`` is the external id before it was made storable.
    """

    row: NewInbox
    name: str
    message: bytes
    received_at: datetime


@dataclass(slots=True)
class InboxOffer:
    """The batch of one caller; of rows with the same id, only the first."""

    rows: dict[_Key, _Offered]
    sessions: set[SessionKey]
    pairings: Sequence[NewPairing]
    node: NodeId
    now: datetime


@dataclass(slots=True)
class _Stored:
    """The result of storing rows that were new, by key."""

    rows: dict[_Key, Row]
    before: dict[SessionKey, Sequence[int]]
    """The rows that waited in each session before."""
    strange: set[SessionKey]
    """Sessions of other nodes, and sessions without an owner in which rows wait."""


def offer(
    batch: Iterable[NewInbox], pairings: Sequence[NewPairing], node: NodeId, now: datetime
) -> InboxOffer:
    """Prepare a batch, while the database is busy with others."""
    offered: dict[_Key, _Offered] = {}
    for row in batch:
        name = row.message.external_id
        message, text = prepared(row.message)
        session, agent = storable(row.session), storable(row.agent)
        if message is not row.message or session is not row.session or agent is not row.agent:
            row = replace(row, message=message, session=session, agent=agent)  # noqa: PLW2901 - the same row
        key = (message.target.channel, message.target.account, message.external_id)
        if key not in offered:
            offered[key] = _Offered(row, name, text, now)
    sessions = {one.row.session for one in offered.values()}
    return InboxOffer(offered, sessions, pairings, node, now)


async def accept(pool: Pool, offers: Sequence[InboxOffer]) -> list[AcceptedMessages]:
    """Store the batches of a node's callers, in order, in one transaction.

    Usually all sessions belong to the node or are new: then one statement is enough.
    """
    batch = _Batch(offers)
    pairings = [pairing for offer in offers for pairing in offer.pairings]
    if not pairings and not batch.stops:
        stored = await batch.store(pool)
        if stored is not None:
            return batch.answers(stored)
    async with pool.transaction() as connection:
        if batch.stops:
            await connection.fetch(_SQL["lock_sessions_named"], batch.sessions)
        stored = await batch.store_whole(connection)
        await batch.stop(connection, stored)
        await _request_pairings(connection, pairings, now=batch.now)
    return batch.answers(stored)


async def enter(connection: Connection, rows: Sequence[NewInbox], *, now: datetime) -> None:
    """Store rows in the caller's transaction; the node that owns their session claims them."""
    await _Batch([offer(rows, (), NodeId(""), now)]).store_whole(connection)


async def stop(
    connection: Connection,
    named: Collection[_Columns],
    found: Collection[_Columns],
    *,
    node: NodeId,
    now: datetime,
) -> None:
    """Cancel messages of locked sessions, unless another node owns theirs.

    ``named`` have a channel, an account, an external id and a reason; those that a stop of
    everything has ``found`` are made by ``found_by``.
    """
    if named or found:
        columns = list(map(list, zip(*named, strict=True))) or [[]] * 4
        more = list(map(list, zip(*found, strict=True))) or [[]] * 5
        if await connection.fetch(_SQL["stop"], *columns, now, node, *more):
            await close_abandoned(connection, now=now)


def found_by(stops: Stops, until: datetime, rows: Iterable[int]) -> list[_Columns]:
    """Return what a stop of everything has found: ``rows`` before it, if sent ``until`` then."""
    dropped = {one.row: one for one in stops.dropped}
    found: list[_Columns] = []
    for row in rows:
        mark = dropped.get(row)
        outcome, reason = (None, stops.reason) if mark is None else (mark.outcome, mark.reason)
        found.append((row, outcome, reason, until, storable(stops.by)))
    return found


class _Batch:
    """The rows of some callers; the first caller with a message gets it."""

    def __init__(self, offers: Sequence[InboxOffer]) -> None:
        self._offers = offers
        self._node = offers[0].node
        self.now = max(offer.now for offer in offers)
        self._rows: dict[_Key, _Offered] = {}
        for offer in offers:
            for key, offered in offer.rows.items():
                self._rows.setdefault(key, offered)
        self._keys = list(self._rows)
        self.stops = [one.row for one in self._rows.values() if one.row.stops is not None]
        """The rows that have stopped something."""
        self.sessions = sorted({one.row.session for one in self._rows.values()})

    async def store(self, pool: Pool) -> _Stored | None:
        """Store all rows; None, and nothing stored, if a session must be claimed first."""
        if not self._keys:
            return _Stored({}, {}, set())
        async with pool.connection() as connection:
            stored = await self._store(connection, whole=False)
        return None if stored.strange else stored

    async def store_whole(self, connection: Connection) -> _Stored:
        """Store all rows in a transaction, and claim sessions where possible.

        A session of no node is claimed only if no older row waits in it; otherwise
        ``claim_pending`` claims it and gets its rows in order.
        """
        if not self._keys:
            return _Stored({}, {}, set())
        stored = await self._store(connection, whole=False)
        if stored.strange:
            # Locked by now, so a second statement sees its true owner.
            await claim(
                connection, stored.strange, node=self._node, now=self.now, only_from_start=True
            )
            stored = await self._store(connection, whole=True)
            if stored.strange:
                await notify(connection, [Notice.INBOX])
        return stored

    async def stop(self, connection: Connection, stored: _Stored) -> None:
        """Cancel what was stopped, including stored messages of the same batch."""
        named: list[_Columns] = []
        found: list[_Columns] = []
        for row in self.stops:
            stops, message = row.stops, row.message
            if stops is None:
                continue
            place = message.target.channel, message.target.account
            named += [(*place, name, stops.reason) for name in storable(stops.messages)]
            if stops.everything:
                rows = stored.before.get(row.session, ())
                found += found_by(stops, message.sent_at, rows)
        await stop(connection, named, found, node=self._node, now=self.now)

    async def _store(self, connection: Connection, *, whole: bool) -> _Stored:
        alone = next(iter(self._rows.values())) if len(self._rows) == 1 else None
        if alone is not None and alone.row.outcome is None and not whole:
            columns = _columns(alone)
            found = await connection.fetch(_SQL["accept_one"], self._node, self.now, *columns)
        else:
            lines = [_line(one) for one in self._rows.values()]
            text = orjson.dumps(lines).decode()
            found = await connection.fetch(_SQL["accept"], self._node, self.now, text, whole)
        stored: dict[_Key, Row] = {}
        before: dict[SessionKey, Sequence[int]] = {}
        strange: set[SessionKey] = set()
        for row in found:
            key = self._keys[row["ordinal"] - 1]
            stored[key] = row
            offered = self._rows[key].row
            if row["before"] is not None:
                before[offered.session] = row["before"]
            if row["owner"] != self._node and (offered.outcome is None or row["owner"]):
                strange.add(offered.session)
        return _Stored(stored, before, strange)

    def answers(self, stored: _Stored) -> list[AcceptedMessages]:
        """Return the result for each caller."""
        return [self._answer(offer, stored) for offer in self._offers]

    def _answer(self, offer: InboxOffer, stored: _Stored) -> AcceptedMessages:
        listed: list[InboxRow] = []
        duplicates: list[str] = []
        before: set[int] = set()
        for key, offered in offer.rows.items():
            found = stored.rows.get(key)
            if found is None or found["id"] is None or self._rows[key] is not offered:
                duplicates.append(offered.name)
            elif _is_listed(offered.row, found["owner"], self._node):
                listed.append(_accepted(found, offered.row, offer.now))
                if offered.row.outcome is None:
                    before.update(stored.before[offered.row.session])
        return AcceptedMessages(tuple(listed), frozenset(duplicates), frozenset(before))


def _line(offered: _Offered) -> dict[str, object]:
    """Return a record for ``inbox.accept``."""
    row = offered.row
    return {
        "message": orjson.Fragment(offered.message),
        "session": row.session,
        "agent": row.agent,
        "kind": row.kind,
        "outcome": row.outcome,
        "reason": row.reason,
        "received_at": offered.received_at,
    }


def _columns(offered: _Offered) -> tuple[object, ...]:
    """Return the arguments of ``inbox.accept_one`` that describe a message."""
    row, message = offered.row, offered.row.message
    target = message.target
    return (
        offered.message.decode(),
        row.session,
        row.agent,
        row.kind,
        target.channel,
        target.account,
        message.external_id,
        target.chat,
        target.thread,
        message.peer,
        None if message.source else message.sender.id,
    )


def _is_listed(row: NewInbox, owner: NodeId | None, node: NodeId) -> bool:
    if owner is None or owner == node:
        return owner == node if row.outcome is None else row.kind is InboxKind.COMMAND
    return False


def _accepted(found: Row, row: NewInbox, now: datetime) -> InboxRow:
    return InboxRow(
        id=found["id"],
        message=row.message,
        session=row.session,
        agent=row.agent,
        kind=row.kind,
        attempts=0,
        received_at=now,
        mode=rows.queue_mode(found),
    )


async def _request_pairings(
    connection: Connection, pairings: Sequence[NewPairing], *, now: datetime
) -> None:
    """Store new access requests with their messages; add the rows to existing requests."""
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
        [request.id for request in requests],
        [request.chat for request in requests],
        [request.peer for request in requests],
        [rows.retained_json(pairing.rows) for pairing in wanted],
    )
    fresh = {row["ordinal"] - 1 for row in kept}
    for number, pairing in enumerate(wanted):
        if pairing.rows and number not in fresh:
            request = pairing.request
            await connection.fetch(
                _PEOPLE["add_messages"],
                request.channel,
                request.account,
                request.sender.id,
                rows.retained_json(pairing.rows),
                rules.MESSAGES_KEPT,
            )
    new = [wanted[number] for number in sorted(fresh)]
    new = await _without_decided(connection, new, now=now)
    said = [message for pairing in new for message in pairing.say]
    await enqueue(connection, said, session=None, now=now)
    if new:
        await notify(connection, [Notice.PEOPLE])


async def _without_decided(
    connection: Connection, new: Sequence[NewPairing], *, now: datetime
) -> list[NewPairing]:
    """Remove requests whose sender was approved or rejected on another node.

    The rows of an approved sender go into the inbox.
    """
    decided: set[str] = set()
    if new:
        found = await connection.fetch(
            _PEOPLE["remove_decided"], [pairing.request.id for pairing in new]
        )
        for row in found:
            decided.add(row["id"])
            wrote = rows.retained(row["messages"])
            if row["is_known"] and wrote:
                await enter(connection, wrote, now=now)
    return [pairing for pairing in new if pairing.request.id not in decided]
