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

from goclaw_py.model.ids import JobId


class WorkState(StrEnum):
    """The state of an item."""

    OPEN = "open"
    TAKEN = "taken"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NewWork:
    """Something to be done. ``queue`` is the line that it waits in."""

    queue: str
    title: str
    body: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class StoredWorkItem:
    """An item.

    Args:
        taken_by: The job that has it, or had it last.
        takes: How often it was taken.
        outcome: What was said when it ended, or why it was returned.
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
    """Work, in lines that are told apart by name."""

    async def add_work(self, new: NewWork, *, now: datetime) -> StoredWorkItem:
        """Put an item at the end of its line."""

    async def take_work(
        self, queue: str, job: JobId, *, now: datetime, forgotten: datetime
    ) -> StoredWorkItem | None:
        """Give a job the item that it has already, else the oldest free one; None: no work.

        One that was taken before ``forgotten`` and never ended is free too. Two jobs never get the
        same.
        """

    async def end_work(
        self, item: int, *, takes: int, ok: bool, outcome: str, now: datetime
    ) -> bool:
        """An item is done, or has failed. False, and nothing, unless this taking still holds it."""

    async def return_work(self, item: int, *, takes: int, reason: str) -> bool:
        """Let an item be taken again. False, and nothing, unless this taking still holds it."""

    async def work(
        self, queue: str | None = None, *, state: WorkState | None = None, limit: int = 100
    ) -> list[StoredWorkItem]:
        """Items, the oldest first."""
