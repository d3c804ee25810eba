"""When cron expressions fire: days, and what happens when clocks change (docs/cron-rules.md)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from goclaw_py.jobs.cron.expression import parse

BERLIN = ZoneInfo("Europe/Berlin")
UTC_ZONE = ZoneInfo("UTC")


def fired(expression: str, zone: str, after: str, count: int) -> list[str]:
    """The next firings as local times with their offset; ``after`` is in UTC."""
    here, at = ZoneInfo(zone), datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = []
    for _ in range(count):
        following = parse(expression).next_after(here, at)
        assert following is not None
        assert following.tzinfo is UTC
        found.append(following.astimezone(here).isoformat(" ", "seconds"))
        at = following
    return found


def days(expression: str, after: str, count: int) -> list[str]:
    return [text[:10] for text in fired(expression, "UTC", after, count)]


# ---------------------------------------------------------------------------- days
def test_a_day_of_either_field_fires() -> None:
    """Rule R3."""
    found = days("0 9 13 * 5", "2026-02-07", 5)
    assert found == ["2026-02-13", "2026-02-20", "2026-02-27", "2026-03-06", "2026-03-13"]


@pytest.mark.parametrize("expression", ["0 9 */2 * 1", "0 9 1-31/2 * */8"])
def test_where_a_day_field_begins_with_a_star_both_have_to_match(expression: str) -> None:
    """Rule R3: odd days that are Mondays; odd days that are Sundays, as ``*/8`` keeps 0."""
    weekday = 0 if expression.endswith("1") else 6
    for text in days(expression, "2026-01-01", 20):
        day = datetime.fromisoformat(text)
        assert (day.day % 2, day.weekday()) == (1, weekday)


def test_all_days_by_their_numbers_are_not_a_star() -> None:
    """Rule R3: ``1-31`` or Monday is every day."""
    assert days("0 9 1-31 * 1", "2026-01-01", 3) == ["2026-01-01", "2026-01-02", "2026-01-03"]


def test_the_last_day_of_a_month_follows_its_length() -> None:
    """Rule R10."""
    assert days("0 9 L * *", "2028-01-31 12:00", 3) == ["2028-02-29", "2028-03-31", "2028-04-30"]
    assert days("0 9 15,L 2 *", "2027-01-01", 3) == ["2027-02-15", "2027-02-28", "2028-02-15"]


def test_numbered_and_last_weekdays_are_counted_in_their_month() -> None:
    """Rule R10."""
    assert days("0 9 * * 5#3", "2026-02-01", 2) == ["2026-02-20", "2026-03-20"]
    assert days("0 9 * * 5#5", "2026-02-01", 2) == ["2026-05-29", "2026-07-31"]
    assert days("0 9 * * friL", "2026-02-01", 2) == ["2026-02-27", "2026-03-27"]
    assert days("0 9 1 * 5L", "2026-02-01", 3) == ["2026-02-01", "2026-02-27", "2026-03-01"]


def test_a_leap_day_on_a_sunday_is_waited_for() -> None:
    """Rule R11: 28 years, or 40 over a year 1900 or 2100."""
    assert days("0 0 29 2 */7", "2026-01-01", 3) == ["2032-02-29", "2060-02-29", "2088-02-29"]
    assert days("0 0 29 2 */7", "2088-03-01", 1) == ["2128-02-29"]


@pytest.mark.parametrize(
    "expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 */2", "0 0 */30 2 1#5"]
)
def test_what_no_calendar_has_never_fires(expression: str) -> None:
    """Rule R11; the last one: the 1st of February is no fifth Monday."""
    cron = parse(expression)
    assert not cron.fires()
    assert cron.next_after(BERLIN, datetime(2026, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize("expression", ["0 0 30 2 1", "0 0 29 2 *", "0 0 31 2,3 *", "0 0 L 2 *"])
def test_what_some_calendar_has_fires(expression: str) -> None:
    """Rule R11; the first one on Mondays."""
    assert parse(expression).fires()


def test_at_the_end_of_the_calendar_nothing_fires() -> None:
    cron = parse("0 0 29 2 *")
    assert cron.next_after(UTC_ZONE, datetime(9997, 1, 1, tzinfo=UTC)) is None
    assert cron.next_after(UTC_ZONE, datetime.max.replace(tzinfo=UTC)) is None
    assert parse("* * * * *").next_after(UTC_ZONE, datetime(9998, 12, 31, 23, 58, tzinfo=UTC))


# ---------------------------------------------------------------------------- the next one
def test_the_next_one_is_strictly_later_to_the_microsecond() -> None:
    """Rule R4."""
    cron = parse("0 9 * * *")
    nine = datetime(2026, 1, 5, 9, tzinfo=UTC)
    instant = timedelta(microseconds=1)
    assert cron.next_after(UTC_ZONE, nine - instant) == nine
    assert cron.next_after(UTC_ZONE, nine) == nine + timedelta(days=1)
    assert cron.next_after(UTC_ZONE, nine + instant) == nine + timedelta(days=1)


def test_an_instant_of_any_zone_may_be_given() -> None:
    cron = parse("0 9 * * *")
    after = datetime(2026, 1, 5, 12, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert cron.next_after(BERLIN, after) == datetime(2026, 1, 5, 8, tzinfo=UTC)


def test_the_times_of_a_day_are_gone_through_in_order() -> None:
    """Rule R6: with seconds."""
    expression = "10,50 0,30 9,17 * * *"
    found = [text[11:19] for text in fired(expression, "UTC", "2026-01-05 09:30:10", 6)]
    assert found == ["09:30:50", "17:00:10", "17:00:50", "17:30:10", "17:30:50", "09:00:10"]


def test_threads_may_share_an_expression() -> None:
    """What steps over labels keeps its place in itself."""
    cron = parse("*/7 1-22 * * *")
    starts = [datetime(2026, 1, 5, tzinfo=UTC) + timedelta(minutes=n) for n in range(1000)]
    alone = [cron.next_after(UTC_ZONE, start) for start in starts]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda start: cron.next_after(UTC_ZONE, start), starts))
    assert together == alone


# ---------------------------------------------------------------------------- clocks change
def test_fixed_times_in_a_gap_fire_together_at_its_end() -> None:
    """Rule R7."""
    found = fired("0,30 1-3 * * *", "Europe/Berlin", "2026-03-29 00:00", 4)
    assert found == [
        "2026-03-29 01:30:00+01:00",
        "2026-03-29 03:00:00+02:00",
        "2026-03-29 03:30:00+02:00",
        "2026-03-30 01:00:00+02:00",
    ]


def test_a_fixed_time_in_a_gap_is_not_lost() -> None:
    """Rule R7, over a gap of 30 minutes and one of two hours."""
    assert fired("15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", 1) == [
        "2026-10-04 02:30:00+11:00"
    ]
    assert fired("15 1 * * *", "Antarctica/Troll", "2026-03-28 12:00", 1) == [
        "2026-03-29 03:00:00+02:00"
    ]


def test_wildcard_times_in_a_gap_do_not_fire() -> None:
    """Rule R7."""
    found = fired("*/30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", 1)
    assert found == ["2026-03-30 02:00:00+02:00"]


def test_every_second_goes_on_over_a_gap() -> None:
    """Rule R7."""
    assert fired("* * * * * *", "Europe/Berlin", "2026-03-29 00:59:58", 3) == [
        "2026-03-29 01:59:59+01:00",
        "2026-03-29 03:00:00+02:00",
        "2026-03-29 03:00:01+02:00",
    ]


def test_fixed_times_fire_in_the_first_pass_only() -> None:
    """Rule R8."""
    assert fired("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", 2) == [
        "2026-10-25 02:30:00+02:00",
        "2026-10-26 02:30:00+01:00",
    ]


def test_a_job_that_is_made_in_the_second_pass_does_not_go_back() -> None:
    """Rule R4."""
    assert fired("0-59 * * * *", "Europe/Berlin", "2026-10-25 01:10", 1)[0].endswith(
        "02:11:00+01:00"
    )
    assert fired("0-59 2-3 * * *", "Europe/Berlin", "2026-10-25 01:10", 1) == [
        "2026-10-25 03:00:00+01:00"
    ]


def test_wildcard_times_fire_in_both_passes() -> None:
    """Rule R8."""
    assert fired("*/30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", 5) == [
        "2026-10-25 02:00:00+02:00",
        "2026-10-25 02:30:00+02:00",
        "2026-10-25 02:00:00+01:00",
        "2026-10-25 02:30:00+01:00",
        "2026-10-26 02:00:00+01:00",
    ]


def test_a_change_of_three_hours_or_more_is_a_clock_that_was_set() -> None:
    """Rule R9: Casey went from +8 to +11; Apia left out a day."""
    assert fired("30 1 * * *", "Antarctica/Casey", "2020-10-03 14:00", 1) == [
        "2020-10-05 01:30:00+11:00"
    ]
    assert fired("0 9 * * *", "Pacific/Apia", "2011-12-29 20:00", 1) == [
        "2011-12-31 09:00:00+14:00"
    ]


def test_a_day_that_comes_twice_fires_twice() -> None:
    """Rule R8 for more than three hours: Kwajalein set its clocks back by 23 hours in 1969."""
    found = fired("0 12 * * *", "Kwajalein", "1969-09-29 12:00", 4)
    assert [text[:10] for text in found] == ["1969-09-30", "1969-09-30", "1969-10-01", "1969-10-02"]
    offsets = [text[-6:] for text in found]
    assert offsets[0] != offsets[1]


# ---------------------------------------------------------------------------- gaps between firings
@pytest.mark.parametrize(("expression", "gap"), [
    ("* * * * * *", timedelta(seconds=1)),
    ("* * * * *", timedelta(minutes=1)),
    ("*/10 * * * *", timedelta(minutes=10)),
    ("0,30 9 * * *", timedelta(minutes=30)),
    ("0,59 9,10 * * *", timedelta(minutes=1)),
    ("5,50 0 9,10 * * *", timedelta(seconds=45)),
    ("0 0,23 1,2 * *", timedelta(hours=1)),
    ("0 0,23 28,29 2 *", timedelta(hours=1)),
    ("0 0,23 1,31 1,12 *", timedelta(hours=1)),
    ("0 0,22 1,15 * *", timedelta(hours=22)),
    ("0 9 * * 1", timedelta(days=7)),
    ("0 9 * * 1-5", timedelta(days=1)),
    ("0 9 1 * *", timedelta(days=28)),
    ("0 9 1 1 *", timedelta(days=365)),
    ("0 9 29 2 *", timedelta(days=366)),
    ("0 9 30 2 *", timedelta(days=366)),
    ("0 9 L * *", timedelta(days=28)),
    ("0 9 L,1 * *", timedelta(days=1)),
    ("0 9 * * fri#2", timedelta(days=28)),
    ("0 9 * * friL", timedelta(days=28)),
    ("0 9 * * mon,fri#5", timedelta(days=3)),
    ("0 9 13 * fri", timedelta(days=1)),
    ("0 9 1 1,7 *", timedelta(days=181)),
    ("0 0,12 * * 1", timedelta(hours=12)),
    ("0 0,13 * * *", timedelta(hours=11)),
    ("0 0,13 * * 1", timedelta(hours=13)),
])  # fmt: skip
def test_the_least_gap_is_found_wherever_it_is(expression: str, gap: timedelta) -> None:
    """SPEC CRON-15; more than a year counts as one."""
    assert parse(expression).least_gap() == gap


@pytest.mark.parametrize("expression", ["*/7 * * * *", "30 2 * * *", "0 9 * * 1-5"])
def test_what_was_found_before_changes_no_answer(expression: str) -> None:
    """Whoever asks again within the same gap gets the known firing: also where clocks change."""
    asked = parse(expression)
    for name in ("Europe/Berlin", "UTC", "Europe/Berlin"):
        here = ZoneInfo(name)
        for minutes in (0, 50, 3, 2000, 130, 131, 60 * 24 * 217, 90):
            at = datetime(2026, 3, 29, 0, 20, tzinfo=UTC) + timedelta(minutes=minutes)
            fresh = replace(asked, _found={})
            assert asked.next_after(here, at) == fresh.next_after(here, at)
