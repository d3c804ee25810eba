"""Group messages without a mention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import orjson

from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import InboundMessage
from goclaw_py.records import Unmentioned, UnmentionedRow
from goclaw_py.store.postgres.messages.message_json import amendment, inbound, prepared
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.sql import queries
from goclaw_py.store.text import storable
from goclaw_py.store.upkeep_rules import UNMENTIONED_KEPT

_SQL = queries("background")


class PostgresBackground(PostgresPart):
    """Implements ``BackgroundStore``."""

    async def note_unmentioned(self, batch: Sequence[Unmentioned], *, now: datetime) -> None:
        edits = [row.message for row in batch if row.message.edits is not None]
        lines = [
            {
                "message": orjson.Fragment(prepared(row.message)[1]),
                "session": storable(row.session),
                "keep": row.keep,
            }
            for row in _newest([row for row in batch if row.message.edits is None])
        ]
        packed = orjson.dumps(lines).decode()
        if not edits:
            await self._pool.fetch(_SQL["note"], packed, now)
            return
        async with self._pool.transaction() as connection:
            await connection.fetch(_SQL["note"], packed, now)
            # One by one: the last of several edits holds.
            for edit in edits:
                place = edit.target.channel, edit.target.account
                await connection.fetch(_SQL["amend"], *place, edit.edits, amendment(edit))

    async def claim_unmentioned(
        self, session: SessionKey, run: RunId, *, until: datetime, now: datetime
    ) -> list[InboundMessage]:
        since = now - UNMENTIONED_KEPT
        found = await self._pool.fetch(_SQL["claim"], session, run, until, since)
        return [inbound(row["message"]) for row in sorted(found, key=lambda row: row["id"])]

    async def unmentioned(self, session: SessionKey) -> list[UnmentionedRow]:
        return [_row(row) for row in await self._pool.fetch(_SQL["of_session"], session)]

    async def find_unmentioned(
        self, channel: str, account: str, external_id: str
    ) -> UnmentionedRow | None:
        found = await self._pool.row(_SQL["find"], channel, account, external_id)
        return None if found is None else _row(found)


def _newest(batch: Sequence[Unmentioned]) -> list[Unmentioned]:
    """Drop messages that the rest of the batch would push out of their session."""
    counts: Counter[SessionKey] = Counter()
    kept: list[Unmentioned] = []
    for row in reversed(batch):
        counts[row.session] += 1
        if counts[row.session] <= row.keep:
            kept.append(row)
    return kept[::-1]


def _row(row: Row) -> UnmentionedRow:
    return UnmentionedRow(
        id=row["id"],
        message=inbound(row["message"]),
        session=SessionKey(row["session"]),
        received_at=row["received_at"],
        run_id=None if row["run_id"] is None else RunId(row["run_id"]),
    )
