"""Queues of work items."""

from __future__ import annotations

from datetime import datetime

from goclaw_py.core.ids import JobId
from goclaw_py.records.work import NewWork, StoredWorkItem, WorkState
from goclaw_py.store.postgres.part import PostgresPart
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.sql import queries

_SQL = queries("work")


class PostgresWorkItems(PostgresPart):
    """Implements ``WorkStore``."""

    async def add_work(self, new: NewWork, *, now: datetime) -> StoredWorkItem:
        row = await self._pool.row(_SQL["add"], new.queue, new.title, new.body, new.url, now)
        assert row is not None
        return _work(row)

    async def claim_work(
        self, queue: str, job: JobId, *, now: datetime, forgotten: datetime
    ) -> StoredWorkItem | None:
        row = await self._pool.row(_SQL["claim"], queue, job, now, forgotten)
        return None if row is None else _work(row)

    async def end_work(
        self, item: int, *, takes: int, ok: bool, outcome: str, now: datetime
    ) -> bool:
        state = WorkState.DONE if ok else WorkState.FAILED
        return await self._change(item, takes, state, outcome, now)

    async def return_work(self, item: int, *, takes: int, reason: str) -> bool:
        return await self._change(item, takes, WorkState.OPEN, reason, None)

    async def _change(
        self, item: int, takes: int, state: WorkState, outcome: str, ended_at: datetime | None
    ) -> bool:
        arguments = (item, takes, state.value, outcome, ended_at)
        return await self._pool.row(_SQL["change"], *arguments) is not None

    async def work(
        self, queue: str | None = None, *, state: WorkState | None = None, limit: int = 100
    ) -> list[StoredWorkItem]:
        wanted = None if state is None else state.value
        found = await self._pool.fetch(_SQL["work"], queue, wanted, limit)
        return [_work(row) for row in found]


def _work(row: Row) -> StoredWorkItem:
    return StoredWorkItem(
        id=row["id"],
        new=NewWork(row["queue"], row["title"], row["body"], row["url"]),
        created_at=row["created_at"],
        state=WorkState(row["state"]),
        taken_by=None if row["taken_by"] is None else JobId(row["taken_by"]),
        taken_at=row["taken_at"],
        takes=row["takes"],
        ended_at=row["ended_at"],
        outcome=row["outcome"],
    )
