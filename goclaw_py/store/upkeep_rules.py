"""How long things are kept, for both implementations of the store (SPEC DB-5)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.model.ids import JobId, SessionKey
from goclaw_py.ports.store.upkeep import RetentionReport

FINISHED_KEPT: Final = timedelta(days=7)
"""Messages in both directions after their end. Telegram repeats an update for one day."""

UNSEEN_KEPT: Final = timedelta(days=30)
"""What waits for an operator: dead messages, and letters that nobody has dismissed."""

RUNS_KEPT: Final = timedelta(days=90)
"""Runs after their end."""

SESSIONS_KEPT: Final = timedelta(days=30)
"""Conversations that nobody goes on with, after what happened last in them."""

REQUESTS_KEPT: Final = timedelta(days=1)
"""Pairing requests that have expired."""

UNMENTIONED_KEPT: Final = timedelta(days=1)
"""What people of a group say among themselves."""

MOST_SWEPT: Final = 250
"""So many rows one statement looks at or deletes."""

MOST_SESSIONS: Final = 100
"""So many sessions one sweep locks."""

_ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# A person may have named a conversation of a job in almost this form (SPEC CRON-14), but no person
# thinks of an id. Both patterns are read by PostgreSQL, too.
ONE_RUN: Final = f"^agent:[^:]+:((heartbeat|subagent|delegate):{_ID}|cron:{_ID}:{_ID})$"
"""Keys of sessions in which one run works, and none ever again (SPEC IO-7)."""

OF_JOB: Final = f"^agent:[^:]+:cron:{_ID}$"
"""Keys of sessions in which all runs of one job work."""


def is_of_one_run(key: SessionKey) -> bool:
    """Whether no run will ever work in a session again, once its own has ended."""
    return re.fullmatch(ONE_RUN, key) is not None


def job_of(key: SessionKey) -> JobId | None:
    """The job whose runs work in a session; None if it is no such session."""
    return JobId(key.rpartition(":")[2]) if re.fullmatch(OF_JOB, key) else None


def swept(
    rows: int, looked_at: int, last: tuple[int, datetime] | None, now: datetime
) -> RetentionReport:
    """What became of a stretch of ``looked_at`` rows; ``last`` is its last one, and since when.

    Rows are numbered in the order in which they came: what lies behind a young one is young.
    """
    is_end = last is None or looked_at < MOST_SWEPT or last[1] >= now - FINISHED_KEPT
    return RetentionReport(rows, None if is_end or last is None else last[0])
