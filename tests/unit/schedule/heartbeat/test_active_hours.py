"""Active hours (SPEC HB-2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from goclaw_py.core.errors import BadHours, HeartbeatError, UnknownZone
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours, read_hours

instant = datetime.fromisoformat
BERLIN = "Europe/Berlin"


def utc(text: str) -> datetime:
    return instant(text).replace(tzinfo=UTC)


# ---------------------------------------------------------------------------- what is read
@pytest.mark.parametrize(("start", "end", "expected"), [
    ("08:00", "22:00", (480, 1320)), ("00:00", "24:00", (0, 1440)),
    ("22:00", "24:00", (1320, 1440)), ("22:00", "00:00", (1320, 1440)),
    ("22:00", "06:00", (1320, 360)), ("23:59", "00:01", (1439, 1)), ("00:00", "00:01", (0, 1)),
])  # fmt: skip
def test_two_times_are_a_window(start: str, end: str, expected: tuple[int, int]) -> None:
    assert read_hours(start, end, "Europe/Berlin") == ActiveHours(*expected, "Europe/Berlin")


@pytest.mark.parametrize("text", [
    "8:00", "08:0", "8", "08", "0800", "08.00", "08:00:00", "08:60", "25:00", "24:01", "-8:00",
    "+08:00", " 08:00", "08:00 ", "08:00\n", "08:00am", "8 am", "noon", "", "08:00Z", "1e:00",
    "\u0660\u0668:\u0660\u0660", "\uff10\uff18:00", "08\uff1a00", "\ud800", "0" * 10_000, "24:00",
])  # fmt: skip
def test_what_is_no_time_of_a_day_is_refused_with_an_example(text: str) -> None:
    """``8:00`` must not mean always, never, or eight o'clock by luck."""
    with pytest.raises(BadHours, match="two digits each, such as 08:00") as refused:
        read_hours(text, "22:00", "UTC")
    assert (refused.value.key, refused.value.value) == ("start", text)
    assert len(str(refused.value)) < 200
    if text != "24:00":
        with pytest.raises(
            BadHours, match="to 24:00 with two digits each, such as 22:00"
        ) as refused:
            read_hours("08:00", text, "UTC")
        assert refused.value.key == "end"


@pytest.mark.parametrize("text", ["00:00", "08:00", "23:59"])
def test_a_start_that_is_the_end_is_refused(text: str) -> None:
    """Nobody can know whether it means always or never."""
    with pytest.raises(BadHours, match="00:00 to 24:00 is always") as refused:
        read_hours(text, text, "UTC")
    assert refused.value.key == "end"
    assert isinstance(refused.value, HeartbeatError)


@pytest.mark.parametrize("zone", ["", "Berlin", "CET", "+02:00", "../etc/passwd", "europe/berlin"])
def test_a_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(UnknownZone):
        read_hours("08:00", "22:00", zone)


@pytest.mark.parametrize(("hours", "text"), [
    (ActiveHours(480, 1320, "Europe/Berlin"), "08:00\u201322:00 Europe/Berlin"),
    (ActiveHours(0, 1440, "UTC"), "00:00\u201324:00 UTC"),
    (ActiveHours(1439, 1, "Asia/Kolkata"), "23:59\u201300:01 Asia/Kolkata"),
])  # fmt: skip
def test_people_read_times_and_zone(hours: ActiveHours, text: str) -> None:
    assert str(hours) == text
    start, _, rest = text.partition("\u2013")
    assert read_hours(start, *rest.split()) == hours


# ---------------------------------------------------------------------------- what it holds

DAY = ActiveHours(480, 1320, BERLIN)
NIGHT = ActiveHours(1320, 360, BERLIN)
EVENING = ActiveHours(1320, 1440, BERLIN)


# Other days and zones: tests/property/test_hours_laws.py.
@pytest.mark.parametrize(("hours", "at", "holds"), [
    (DAY, "2026-01-15T06:59:59.999999", False), (DAY, "2026-01-15T07:00", True),
    (DAY, "2026-07-15T06:00", True), (NIGHT, "2026-01-16T04:59:59", True),
    (NIGHT, "2026-01-16T05:00", False), (EVENING, "2026-01-15T22:59:59.999999", True),
    # Clocks go from 02:00 to 03:00 at 01:00 UTC.
    (ActiveHours(120, 180, BERLIN), "2026-03-29T00:59:59", False),
    (ActiveHours(120, 180, BERLIN), "2026-03-29T01:00", False),
    (ActiveHours(150, 240, BERLIN), "2026-03-29T01:00", True),
    # And back from 03:00 to 02:00: 02:30 comes twice.
    (ActiveHours(120, 150, BERLIN), "2026-10-25T00:30", False),
    (ActiveHours(120, 150, BERLIN), "2026-10-25T01:29", True),
    (ActiveHours(120, 150, BERLIN), "2026-10-25T01:30", False),
])  # fmt: skip
def test_it_holds_by_the_clock_on_the_wall(hours: ActiveHours, at: str, *, holds: bool) -> None:
    assert hours.holds(utc(at)) is holds


def test_the_offset_in_which_an_instant_is_told_does_not_matter() -> None:
    far = timezone(timedelta(hours=-11))
    assert DAY.holds(utc("2026-01-15T07:00").astimezone(far))
    assert not DAY.holds(utc("2026-01-15T06:59").astimezone(far))


# ---------------------------------------------------------------------------- when it opens
@pytest.mark.parametrize(("hours", "after", "expected"), [
    (DAY, "2026-01-15T07:00", "2026-01-16T07:00"),
    # Over both changes it opens at eight of its clocks.
    (DAY, "2026-03-28T21:00", "2026-03-29T06:00"),
    (DAY, "2026-10-24T20:00", "2026-10-25T07:00"),
    # A start that is omitted: at the change. A window that is omitted: on the next day.
    (ActiveHours(150, 240, BERLIN), "2026-03-28T20:00", "2026-03-29T01:00"),
    (ActiveHours(130, 170, BERLIN), "2026-03-28T20:00", "2026-03-30T00:10"),
    # A start that comes twice, and a clock that is set back into the window.
    (ActiveHours(120, 150, BERLIN), "2026-10-25T00:00", "2026-10-25T01:00"),
    (ActiveHours(90, 180, BERLIN), "2026-10-24T23:30", "2026-10-26T00:30"),
    # The hour in which it is closed is the one that is omitted.
    (ActiveHours(180, 120, BERLIN), "2026-03-28T02:00", "2026-03-30T01:00"),
    # Samoa had no 30 December.
    (ActiveHours(480, 540, "Pacific/Apia"), "2011-12-29T20:00", "2011-12-30T18:00"),
])  # fmt: skip
def test_it_opens_next(hours: ActiveHours, after: str, expected: str) -> None:
    got = hours.next_start(utc(after))
    assert got == utc(expected)
    assert got.utcoffset() == timedelta()
