"""Work that waits in the database for jobs (SPEC CRON-18).

An item that a job has taken stays with it until it is ended or returned. A job whose process died
over it takes the same item again; one that a job has kept for too long is free for others. Each
taking is counted, so that what an earlier one says in the end comes too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from goclaw_py.core.ids import JobId


class WorkState(StrEnum):
    """The state of a work item."""

    OPEN = "open"
    TAKEN = "taken"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NewWork:
    """A new work item. ``queue`` is the name of its queue."""

    queue: str
    title: str
    body: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class StoredWorkItem:
    """A stored work item.

    Args:
        taken_by: The job that has taken it, or took it last.
        takes: How often it was taken.
        outcome: The result that was given at its end, or the reason for which it was returned.
    """

    id: int
    new: NewWork
    created_at: datetime
    state: WorkState = WorkState.OPEN
    taken_by: JobId | None = None
    taken_at: datetime | None = None
    takes: int = 0
    ended_at: datetime | None = None
    outcome: str = ""


class WorkStore(Protocol):
    """Named queues of work items."""

    async def add_work(self, new: NewWork, *, now: datetime) -> StoredWorkItem:
        """Append an item to its queue."""

    async def claim_work(
        self, queue: str, job: JobId, *, now: datetime, forgotten: datetime
    ) -> StoredWorkItem | None:
        """Return the item that a job has taken already, or take the oldest free one; None: none.

        An item that was taken before ``forgotten`` and did not end is free too. Two jobs never get
        the same item.
        """

    async def end_work(
        self, item: int, *, takes: int, ok: bool, outcome: str, now: datetime
    ) -> bool:
        """End an item. Returns False and does nothing if it was taken again or has ended."""

    async def return_work(self, item: int, *, takes: int, reason: str) -> bool:
        """Make an item free. Returns False and does nothing if it was taken again or has ended."""

    async def work(
        self, queue: str | None = None, *, state: WorkState | None = None, limit: int = 100
    ) -> list[StoredWorkItem]:
        """Return items, the oldest first."""
