"""Retention times that both stores share (SPEC DB-5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.web_links import OWN_CHANNELS
from goclaw_py.records.upkeep import RetentionReport

FINISHED_KEPT: Final = timedelta(days=7)
"""Inbox and outbox rows after their end. Telegram repeats updates for one day."""

UNSEEN_KEPT: Final = timedelta(days=30)
"""Dead outbox rows, and dead letters that were not dismissed."""

UNREAD_KEPT: Final = timedelta(days=1)
"""Answers that wait for a terminal; later they are only in the history of their session."""

MOST_UNREAD: Final = 20
"""The number of such answers in a chat."""

READ_LATER: Final = OWN_CHANNELS
"""Channels that deliver only while somebody looks, and whose people can read the history."""

RUNS_KEPT: Final = timedelta(days=90)
"""Runs after their end, and the numbers of messages."""

SESSIONS_KEPT: Final = timedelta(days=30)
"""Sessions that will have no further run, after their last activity."""

REQUESTS_KEPT: Final = timedelta(days=1)
"""Expired pairing requests."""

WARNINGS_KEPT: Final = timedelta(days=7)
"""Incidents that belong to a day: nothing closes them."""

WARNINGS: Final = ("chain:", "budget:")
"""What their keys begin with."""

UNMENTIONED_KEPT: Final = timedelta(days=1)
"""Group messages without a mention."""

NAMES_KEPT: Final = RUNS_KEPT
"""Names of chats and people after they were seen last: as long as the runs that show them."""

SETTING_EDITS_KEPT: Final = RUNS_KEPT
"""Edits of settings that have no effect any more: as long as the runs that they affected."""

WEB_LINKS_KEPT: Final = timedelta(days=30)
"""Expired links to the web chat and sign-ins: whoever opens such a link is told why."""

MOST_SWEPT: Final = 250
"""The number of rows that one statement reads or deletes."""

MOST_SESSIONS: Final = 100
"""The number of sessions that one sweep locks."""

_ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# A person may have named a conversation of a job in almost this form (SPEC CRON-14), but no person
# thinks of an id. Both patterns are read by PostgreSQL, too.
ONE_RUN: Final = f"^agent:[^:]+:((heartbeat|subagent|delegate):{_ID}|cron:{_ID}:{_ID})$"
"""Keys of sessions that have only one run (SPEC IO-7)."""

OF_JOB: Final = f"^agent:[^:]+:cron:{_ID}$"
"""Keys of sessions that all runs of a job share."""


def swept(
    rows: int, looked_at: int, last: tuple[int, datetime] | None, now: datetime
) -> RetentionReport:
    """Return the report of a sweep; ``last`` is the id and time of the last row looked at.

    Rows are numbered by arrival: rows after a young one are young.
    """
    is_end = last is None or looked_at < MOST_SWEPT or last[1] >= now - FINISHED_KEPT
    return RetentionReport(rows, None if is_end or last is None else last[0])
