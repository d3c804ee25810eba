"""Work items from a table of the database (SPEC CRON-18)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from goclaw_py.core.errors import StoreError, WorkSourceError
from goclaw_py.core.ids import JobId
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import WorkStore
from goclaw_py.schedule.jobs.models import WorkItem

_ID: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,9})")


class TableSource:
    """Implements ``WorkSource`` with one queue of items.

    The id of a ``WorkItem`` contains the row and how often it was taken, so that a run whose item
    was given to another one cannot end it.
    """

    def __init__(
        self, store: WorkStore, clock: Clock, queue: str, *, forgotten_after: timedelta
    ) -> None:
        """``forgotten_after``: an item that was taken longer ago is free again."""
        self._store = store
        self._clock = clock
        self._queue = queue
        self._forgotten_after = forgotten_after

    async def claim(self, job: JobId) -> WorkItem | None:
        """Return the item that the job has from an interrupted run, or take the oldest free one."""
        now = self._clock.now()
        with _translated():
            found = await self._store.claim_work(
                self._queue, job, now=now, forgotten=now - self._forgotten_after
            )
        if found is None:
            return None
        new = found.new
        return WorkItem(f"{found.id}.{found.takes}", new.title, new.body, new.url)

    async def done(self, item: WorkItem, *, ok: bool, text: str) -> None:
        """Store the text with the item."""
        row, takes = _parts(item)
        with _translated():
            ended = await self._store.end_work(
                row, takes=takes, ok=ok, outcome=text, now=self._clock.now()
            )
        if not ended:
            raise WorkSourceError(f"work item {row} is not this run's any more")

    async def give_back(self, item: WorkItem, reason: str) -> None:
        """Release the item, unless it belongs to another run."""
        row, takes = _parts(item)
        with _translated():
            await self._store.return_work(row, takes=takes, reason=reason)


def _parts(item: WorkItem) -> tuple[int, int]:
    match = _ID.fullmatch(item.id)
    if match is None:
        raise WorkSourceError(f"{item.id!r} is not the id of an item of a table")
    return int(match[1]), int(match[2])


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise WorkSourceError(f"the database does not give or take work now: {error}") from error
