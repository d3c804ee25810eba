"""The next time of a snoozed reminder (SPEC CRON-13)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from goclaw_py.core.chat_commands import JobAction
from goclaw_py.core.time.zones import zone as zone_named

SOON: Final[Mapping[JobAction, timedelta]] = {
    JobAction.AGAIN: timedelta(seconds=1),
    JobAction.SNOOZE_10M: timedelta(minutes=10),
    JobAction.SNOOZE_1H: timedelta(hours=1),
}
"""Counted from the press of the button."""


def again_at(action: JobAction, *, due: datetime, now: datetime, zone: str) -> datetime:
    """Return the next time of a reminder whose button was pressed at ``now``; always later.

    “Tomorrow” is the time of day at which it was ``due``, in its zone; if a clock change skips that
    time, it is as much later as was skipped. Raises ``UnknownZone``.
    """
    if action in SOON:
        return now + SOON[action]
    here = zone_named(zone)
    day = now.astimezone(here).date() + timedelta(days=1)
    at = datetime.combine(day, due.astimezone(here).time().replace(fold=0), tzinfo=here)
    return at.astimezone(UTC)
