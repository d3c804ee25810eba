"""When a reminder comes again (SPEC CRON-13)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.chat_commands import JobAction
from goclaw_py.core.errors import UnknownZone
from goclaw_py.core.time.zones import zone as zone_named
from goclaw_py.schedule.jobs.reminders import again_at

TOMORROW = JobAction.SNOOZE_TOMORROW
BERLIN = "Europe/Berlin"
ZONES = st.sampled_from([BERLIN, "UTC", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe"])
INSTANTS = st.floats(6e8, 35e8).map(lambda unix_s: datetime.fromtimestamp(unix_s, UTC))


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]  # as many as are needed


@pytest.mark.parametrize(("action", "after"), [
    (JobAction.SNOOZE_10M, timedelta(minutes=10)),
    (JobAction.SNOOZE_1H, timedelta(hours=1)),
    (JobAction.AGAIN, timedelta(seconds=1)),
])  # fmt: skip
def test_a_snooze_counts_from_the_press(action: JobAction, after: timedelta) -> None:
    now = utc(2026, 3, 3, 9, 7)
    assert again_at(action, due=now - timedelta(days=3), now=now, zone=BERLIN) == now + after


@pytest.mark.parametrize(("due", "now", "again"), [
    # Ordinary: 09:00, pressed at 09:07.
    (utc(2026, 3, 3, 8), utc(2026, 3, 3, 8, 7), utc(2026, 3, 4, 8)),
    # Pressed two days later.
    (utc(2026, 3, 3, 8), utc(2026, 3, 5, 13), utc(2026, 3, 6, 8)),
    # Summer time begins in the night of 29 March: 09:00 is an hour earlier in UTC.
    (utc(2026, 3, 28, 8), utc(2026, 3, 28, 8), utc(2026, 3, 29, 7)),
    # 02:30 does not exist on that day: it becomes 03:30.
    (utc(2026, 3, 28, 1, 30), utc(2026, 3, 28, 1, 30), utc(2026, 3, 29, 1, 30)),
    # 02:30 exists twice on 25 October: the first.
    (utc(2026, 10, 24, 0, 30), utc(2026, 10, 24, 0, 30), utc(2026, 10, 25, 0, 30)),
    # It was due in the second 02:30.
    (utc(2026, 10, 25, 1, 30), utc(2026, 10, 25, 1, 31), utc(2026, 10, 26, 1, 30)),
    # The day is that of the zone: it is 4 March there already.
    (utc(2026, 3, 3, 23, 30), utc(2026, 3, 3, 23, 40), utc(2026, 3, 4, 23, 30)),
])  # fmt: skip
def test_tomorrow_is_the_same_time_in_the_zone(
    due: datetime, now: datetime, again: datetime
) -> None:
    assert again_at(TOMORROW, due=due, now=now, zone=BERLIN) == again


@given(due=INSTANTS, later=st.timedeltas(timedelta(0), timedelta(days=30)), zone=ZONES)
def test_it_comes_after_the_press_within_two_days(
    due: datetime, later: timedelta, zone: str
) -> None:
    """A day may be left out, or be 25 hours long."""
    now = due + later
    for action in JobAction:
        if action is JobAction.DONE:
            continue
        again = again_at(action, due=due, now=now, zone=zone)
        assert again.tzinfo is UTC
        assert now < again <= now + timedelta(hours=49)


@given(due=INSTANTS, zone=ZONES)
def test_tomorrow_shows_the_same_clock_unless_it_is_left_out(due: datetime, zone: str) -> None:
    here = zone_named(zone)
    again = again_at(TOMORROW, due=due, now=due, zone=zone).astimezone(here)
    wanted = due.astimezone(here).replace(tzinfo=None, fold=0) + timedelta(days=1)
    if again.replace(tzinfo=None) != wanted:
        # Left out: no instant shows it.
        there = wanted.replace(tzinfo=here)
        assert there.astimezone(UTC).astimezone(here).replace(tzinfo=None) != wanted


def test_a_zone_that_is_none_is_no_place_for_tomorrow() -> None:
    with pytest.raises(UnknownZone):
        again_at(TOMORROW, due=utc(2026, 1, 1), now=utc(2026, 1, 1), zone="Atlantis/Port")
