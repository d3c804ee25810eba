"""Drafts: messages that show a reply while it is streamed."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.errors import RunNotStarted
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import LostDraft, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import Draft
from goclaw_py.store import rules
from goclaw_py.store.postgres import rows
from goclaw_py.store.postgres.part import PostgresPart, enqueue
from goclaw_py.store.postgres.pool import Connection
from goclaw_py.store.sql import queries

_SQL = queries("drafts")


async def close_abandoned(connection: Connection, *, now: datetime) -> None:
    """Close the drafts that no run will complete, and those that may be in a chat."""
    for row in await connection.fetch(_SQL["abandoned"]):
        run_id, target = RunId(row["run_id"]), rows.target(row)
        assert target is not None
        left = row["external_id"] or LostDraft(RunId(row["opened_by"]), row["after_message"])
        closing = rules.closing(run_id, target, left, Outcome(row["outcome"]))
        await enqueue(connection, [closing], session=SessionKey(row["session"]), now=now)


class PostgresDrafts(PostgresPart):
    """Implements ``DraftStore``."""

    async def open_draft(self, run_id: RunId, target: Target, *, now: datetime) -> None:
        opened = await self._pool.row(
            _SQL["open"],
            run_id,
            target.channel,
            target.account,
            target.chat,
            target.thread,
            now,
        )
        if opened is None:
            raise RunNotStarted(f"run {run_id} never began, or has ended")

    async def draft_posted(self, run_id: RunId, external_id: str) -> bool:
        async with self._pool.connection() as connection:
            if await connection.row(_SQL["posted"], run_id, external_id) is not None:
                return True
            row = await connection.row(_SQL["exists"], run_id, external_id)
            return row is not None and bool(row["known"])

    async def own_messages(self, chat: Target, *, everywhere: bool = False) -> frozenset[str]:
        """Search the newest 5,000 rows of the outbox, and of the inbox."""
        place = chat.channel, chat.account, chat.chat
        found = await self._pool.fetch(_SQL["own_messages"], *place, everywhere)
        return frozenset(row["external_id"] for row in found)

    async def newest_before(
        self, chat: Target, at: datetime, *, everywhere: bool = False
    ) -> frozenset[str]:
        """Search the same rows as ``own_messages``."""
        place = chat.channel, chat.account, chat.chat
        found = await self._pool.fetch(_SQL["newest_before"], *place, at, everywhere)
        return frozenset(row["external_id"] for row in found)

    async def drafts(self) -> list[Draft]:
        return [rows.draft(row) for row in await self._pool.fetch(_SQL["drafts"])]
