"""Retention: deletes what has been kept long enough (SPEC DB-5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """The result of one retention pass over a range of rows.

    ``rows`` were deleted. ``after`` is where the next stretch begins, None if all rows behind it
    are too young.
    """

    rows: int
    after: int | None


class UpkeepStore(Protocol):
    """Forgets what has ended, a bounded number of rows a call.

    Nothing that has not ended goes, nor what something that is kept still needs. Several processes
    may call at once: what somebody else has locked is passed over, nobody waits. The log of jobs is
    forgotten by ``JobStore.sweep_jobs``, that of heartbeat runs by
    ``HeartbeatStore.sweep_heartbeat_runs``.
    """

    async def sweep_inbox(self, *, now: datetime, after: int = 0) -> RetentionReport:
        """Forget messages and commands that have ended, of a stretch of rows behind ``after``.

        Seven days after their end, letters that nobody has dismissed after thirty. One that a draft
        or an unfinished run belongs to stays. What is forgotten would be taken in as new.
        """

    async def sweep_outbox(self, *, now: datetime, after: int = 0) -> RetentionReport:
        """Forget messages that were sent or dropped, of a stretch of rows behind ``after``.

        Seven days after their end, dead ones after thirty. One that tells of a job or a run stays
        as long as the row of the log that says what became of it.
        """

    async def sweep_runs(self, *, now: datetime) -> int:
        """Forget runs that ended ninety days ago, with their tool calls; how many.

        One that the log of a job or a heartbeat run names, or of which a draft is left, stays.
        """

    async def sweep_sessions(self, *, now: datetime) -> int:
        """Forget conversations in which nothing has happened for thirty days.

        Only those of a single run, subagent, delegate or fresh run of a job, and those of jobs
        that are deleted. Returns how many entries of histories and how many sessions went: a
        session goes after the last entry of its history.
        """

    async def sweep_requests(self, *, now: datetime) -> int:
        """Forget pairing requests that expired a day ago; how many."""

    async def sweep_unmentioned(self, *, now: datetime) -> int:
        """Forget what was said in groups without a mention a day ago; how many."""
