"""The base class of the store's parts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, TypeVar

from goclaw_py.core.ids import NodeId, SessionKey
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.records import MessageFilter, Notice, Place
from goclaw_py.store.postgres.group import Group
from goclaw_py.store.postgres.pages import row_place
from goclaw_py.store.postgres.pool import Connection, Pool
from goclaw_py.store.postgres.rows import TargetColumns, outbox_columns
from goclaw_py.store.sql import queries
from goclaw_py.store.text import folded, storable

Item = TypeVar("Item")
Result = TypeVar("Result")

_NODES = queries("nodes")
_INBOX = queries("inbox")
_OUTBOX = queries("outbox")


class PostgresPart:
    """The base class of the parts of ``PostgresStore``."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._groups: list[Group[Any, Any]] = []

    def _ending(self, group: Group[Item, Result]) -> Group[Item, Result]:
        """Return a group that closes with the store."""
        self._groups.append(group)
        return group


async def notify(connection: Connection, notices: Collection[Notice]) -> None:
    """Send notices when the transaction commits."""
    if notices:
        await connection.fetch(_NODES["notify"], [str(notice) for notice in notices])


async def enqueue(
    connection: Connection,
    messages: Sequence[OutboundMessage],
    *,
    session: SessionKey | None,
    now: datetime,
) -> None:
    """Add messages to the outbox and notify the senders."""
    if messages:
        await connection.fetch(_OUTBOX["insert"], session, now, *outbox_columns(messages))
        await notify(connection, [Notice.OUTBOX])


async def enqueue_each(
    connection: Connection, messages: Sequence[tuple[datetime, OutboundMessage]]
) -> None:
    """Add messages to the outbox, each with its time, and notify the senders."""
    if messages:
        await connection.fetch(
            _OUTBOX["insert_each"],
            Notice.OUTBOX,
            [at for at, _ in messages],
            *outbox_columns([message for _, message in messages]),
        )


async def claim(
    connection: Connection,
    keys: Collection[SessionKey],
    *,
    node: NodeId,
    now: datetime,
    only_from_start: bool = False,
) -> set[SessionKey]:
    """Claim locked sessions without a live owner; return those whose owner changed.

    With ``only_from_start``, sessions with waiting rows are skipped, because the caller does not
    know these.
    """
    rows = await connection.fetch(_INBOX["claim_sessions"], node, list(keys), now, only_from_start)
    return {SessionKey(row["key"]) for row in rows}


def page_columns(limit: int, before: int | None, only: MessageFilter) -> tuple[object, ...]:
    """Return the first arguments of the lists of messages."""
    place = TargetColumns.of(only.chat)
    chat = (place.channel, place.account, place.chat)
    text = folded(storable(only.text))
    return limit, row_place(before), only.channel, *chat, only.since, text, only.account


def place_columns(places: Collection[Place]) -> tuple[list[str], list[str]]:
    """Return places as two arrays, for ``unnest``."""
    unique = sorted(set(places))
    return [channel for channel, _ in unique], [account for _, account in unique]
