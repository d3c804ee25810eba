"""When a reminder that was snoozed comes again (SPEC CRON-13)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from goclaw_py.common.timezones import zone as zone_named
from goclaw_py.model.chat_commands import JobAction

SOON: Final[Mapping[JobAction, timedelta]] = {
    JobAction.AGAIN: timedelta(seconds=1),
    JobAction.SNOOZE_10M: timedelta(minutes=10),
    JobAction.SNOOZE_1H: timedelta(hours=1),
}
"""Counted from the press."""


def again_at(action: JobAction, *, due: datetime, now: datetime, zone: str) -> datetime:
    """When it comes again, by the button that is pressed at ``now``; always after that.

    Tomorrow it comes when it was ``due`` today by the clock of its zone; where that leaves the time
    out, as much later as it leaves out. Raises ``UnknownZone``.
    """
    if action in SOON:
        return now + SOON[action]
    here = zone_named(zone)
    day = now.astimezone(here).date() + timedelta(days=1)
    at = datetime.combine(day, due.astimezone(here).time().replace(fold=0), tzinfo=here)
    return at.astimezone(UTC)
