"""Queues of work items."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from goclaw_py.core.ids import JobId
from goclaw_py.records.work import NewWork, StoredWorkItem, WorkState
from goclaw_py.store.text import storable
from tests.support.memory_store.tables import MemoryPart


class MemoryWorkItems(MemoryPart):
    """Implements ``WorkStore``."""

    async def add_work(self, new: NewWork, *, now: datetime) -> StoredWorkItem:
        item = StoredWorkItem(len(self._db.work) + 1, storable(new), now)
        self._db.work[item.id] = item
        return item

    async def claim_work(
        self, queue: str, job: JobId, *, now: datetime, forgotten: datetime
    ) -> StoredWorkItem | None:
        line = [each for each in self._db.work.values() if each.new.queue == storable(queue)]
        held = [each for each in line if each.state is WorkState.TAKEN]
        mine = [each for each in held if each.taken_by == job]
        old = [each for each in held if each.taken_at is not None and each.taken_at < forgotten]
        free = [each for each in line if each.state is WorkState.OPEN or each in old]
        for item in (*mine, *free):
            taken = replace(
                item, state=WorkState.TAKEN, taken_by=job, taken_at=now, takes=item.takes + 1
            )
            self._db.work[item.id] = taken
            return taken
        return None

    async def end_work(
        self, item: int, *, takes: int, ok: bool, outcome: str, now: datetime
    ) -> bool:
        state = WorkState.DONE if ok else WorkState.FAILED
        return self._change(item, takes, state, outcome, now)

    async def return_work(self, item: int, *, takes: int, reason: str) -> bool:
        return self._change(item, takes, WorkState.OPEN, reason, None)

    def _change(
        self, item: int, takes: int, state: WorkState, outcome: str, ended_at: datetime | None
    ) -> bool:
        found = self._db.work.get(item)
        if found is None or found.state is not WorkState.TAKEN or found.takes != takes:
            return False
        self._db.work[item] = replace(
            found, state=state, outcome=storable(outcome), ended_at=ended_at
        )
        return True

    async def work(
        self, queue: str | None = None, *, state: WorkState | None = None, limit: int = 100
    ) -> list[StoredWorkItem]:
        found = [
            each
            for each in self._db.work.values()
            if queue in (None, each.new.queue) and state in (None, each.state)
        ]
        return found[:limit]
