"""When cron expressions fire: days, and what happens when clocks change (docs/cron-rules.md)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from goclaw_py.schedule.cron.expression import parse

BERLIN = ZoneInfo("Europe/Berlin")
UTC_ZONE = ZoneInfo("UTC")
LORD_HOWE = "Australia/Lord_Howe"


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


@pytest.mark.parametrize(("expression", "after", "days"), [
    # Rule R3: a day of either field fires.
    ("0 9 13 * 5", "2026-02-07", "2026-02-13 2026-02-20 2026-02-27 2026-03-06 2026-03-13"),
    # Where one begins with a star both have to match; ``*/8`` keeps 0.
    ("0 9 */2 * 1", "2026-01-01", "2026-01-05 2026-01-19 2026-02-09 2026-02-23 2026-03-09"),
    ("0 9 1-31/2 * */8", "2026-01-01", "2026-01-11 2026-01-25 2026-02-01 2026-02-15"),
    # All days by their numbers are not a star.
    ("0 9 1-31 * 1", "2026-01-01", "2026-01-01 2026-01-02 2026-01-03"),
    # Rule R10: the last day of a month, numbered and last weekdays.
    ("0 9 L * *", "2028-01-31 12:00", "2028-02-29 2028-03-31 2028-04-30"),
    ("0 9 15,L 2 *", "2027-01-01", "2027-02-15 2027-02-28 2028-02-15"),
    ("0 9 * * 5#3", "2026-02-01", "2026-02-20 2026-03-20"),
    ("0 9 * * 5#5", "2026-02-01", "2026-05-29 2026-07-31"),
    ("0 9 * * friL", "2026-02-01", "2026-02-27 2026-03-27"),
    ("0 9 1 * 5L", "2026-02-01", "2026-02-01 2026-02-27 2026-03-01"),
    # Rule R11: a leap day on a Sunday, after 28 years, or 40 over a year 1900 or 2100.
    ("0 0 29 2 */7", "2026-01-01", "2032-02-29 2060-02-29 2088-02-29"),
    ("0 0 29 2 */7", "2088-03-01", "2128-02-29"),
])  # fmt: skip
def test_the_days_of_an_expression(expression: str, after: str, days: str) -> None:
    found = fired(expression, "UTC", after, len(days.split()))
    assert [text[:10] for text in found] == days.split()


@pytest.mark.parametrize(("expression", "fires"), [
    ("0 0 30 2 *", False), ("0 0 31 4,6,9,11 *", False), ("0 0 31 2 */2", False),
    ("0 0 */30 2 1#5", False),  # the 1st of February is no fifth Monday
    ("0 0 30 2 1", True),  # on Mondays
    ("0 0 29 2 *", True), ("0 0 31 2,3 *", True), ("0 0 L 2 *", True),
])  # fmt: skip
def test_what_no_calendar_has_never_fires(expression: str, fires: bool) -> None:
    """Rule R11."""
    cron = parse(expression)
    assert cron.fires() is fires
    assert (cron.next_after(BERLIN, datetime(2026, 1, 1, tzinfo=UTC)) is not None) is fires


def test_at_the_end_of_the_calendar_nothing_fires() -> None:
    cron = parse("0 0 29 2 *")
    assert cron.next_after(UTC_ZONE, datetime(9997, 1, 1, tzinfo=UTC)) is None
    assert cron.next_after(UTC_ZONE, datetime.max.replace(tzinfo=UTC)) is None
    assert parse("* * * * *").next_after(UTC_ZONE, datetime(9998, 12, 31, 23, 58, tzinfo=UTC))


def test_the_next_one_is_strictly_later_to_the_microsecond_after_an_instant_of_any_zone() -> None:
    """Rule R4."""
    cron = parse("0 9 * * *")
    nine = datetime(2026, 1, 5, 9, tzinfo=UTC)
    instant = timedelta(microseconds=1)
    assert cron.next_after(UTC_ZONE, nine - instant) == nine
    assert cron.next_after(UTC_ZONE, nine) == nine + timedelta(days=1)
    assert cron.next_after(UTC_ZONE, nine + instant) == nine + timedelta(days=1)
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


@pytest.mark.parametrize(("expression", "zone", "after", "found"), [
    # Rule R7: fixed times in a gap fire together at its end, of 30 minutes or two hours too.
    ("0,30 1-3 * * *", "Europe/Berlin", "2026-03-29 00:00",
     ["2026-03-29 01:30:00+01:00", "2026-03-29 03:00:00+02:00", "2026-03-29 03:30:00+02:00"]),
    ("15 2 * * *", LORD_HOWE, "2026-10-03 12:00", ["2026-10-04 02:30:00+11:00"]),
    ("15 1 * * *", "Antarctica/Troll", "2026-03-28 12:00", ["2026-03-29 03:00:00+02:00"]),
    # Wildcard times in it do not fire; every second goes on over it.
    ("*/30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", ["2026-03-30 02:00:00+02:00"]),
    ("* * * * * *", "Europe/Berlin", "2026-03-29 00:59:58",
     ["2026-03-29 01:59:59+01:00", "2026-03-29 03:00:00+02:00", "2026-03-29 03:00:01+02:00"]),
    # Rule R8: fixed times fire in the first pass only, wildcard ones in both.
    ("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00",
     ["2026-10-25 02:30:00+02:00", "2026-10-26 02:30:00+01:00"]),
    ("*/45 2 * * *", "Europe/Berlin", "2026-10-25 00:20",
     ["2026-10-25 02:45:00+02:00", "2026-10-25 02:00:00+01:00", "2026-10-25 02:45:00+01:00"]),
    # Rule R4: a job that is made in the second pass does not go back.
    ("0-59 * * * *", "Europe/Berlin", "2026-10-25 01:10", ["2026-10-25 02:11:00+01:00"]),
    ("0-59 2-3 * * *", "Europe/Berlin", "2026-10-25 01:10", ["2026-10-25 03:00:00+01:00"]),
    # Rule R9: Casey went from +8 to +11, and Apia left out a day: a clock that was set.
    ("30 1 * * *", "Antarctica/Casey", "2020-10-03 14:00", ["2020-10-05 01:30:00+11:00"]),
    ("0 9 * * *", "Pacific/Apia", "2011-12-29 20:00", ["2011-12-31 09:00:00+14:00"]),
])  # fmt: skip
def test_where_clocks_change(expression: str, zone: str, after: str, found: list[str]) -> None:
    """One of each kind; all of them: tests/property/test_cron_laws.py."""
    assert fired(expression, zone, after, len(found)) == found


def test_a_day_that_comes_twice_fires_twice() -> None:
    """Rule R8 for more than three hours: Kwajalein set its clocks back by 23 hours in 1969."""
    found = fired("0 12 * * *", "Kwajalein", "1969-09-29 12:00", 4)
    assert [text[:10] for text in found] == ["1969-09-30", "1969-09-30", "1969-10-01", "1969-10-02"]
    offsets = [text[-6:] for text in found]
    assert offsets[0] != offsets[1]


@pytest.mark.parametrize(("expression", "gap"), [
    ("* * * * * *", timedelta(seconds=1)), ("* * * * *", timedelta(minutes=1)),
    ("*/10 * * * *", timedelta(minutes=10)), ("0,30 9 * * *", timedelta(minutes=30)),
    ("0,59 9,10 * * *", timedelta(minutes=1)), ("5,50 0 9,10 * * *", timedelta(seconds=45)),
    ("0 0,23 1,2 * *", timedelta(hours=1)), ("0 0,23 28,29 2 *", timedelta(hours=1)),
    ("0 0,23 1,31 1,12 *", timedelta(hours=1)), ("0 0,22 1,15 * *", timedelta(hours=22)),
    ("0 9 * * 1", timedelta(days=7)), ("0 9 * * 1-5", timedelta(days=1)),
    ("0 9 1 * *", timedelta(days=28)), ("0 9 1 1 *", timedelta(days=365)),
    ("0 9 29 2 *", timedelta(days=366)), ("0 9 30 2 *", timedelta(days=366)),
    ("0 9 L * *", timedelta(days=28)), ("0 9 L,1 * *", timedelta(days=1)),
    ("0 9 * * fri#2", timedelta(days=28)),
    ("0 9 * * friL", timedelta(days=28)),
    ("0 9 * * mon,fri#5", timedelta(days=3)),
    ("0 9 13 * fri", timedelta(days=1)), ("0 9 1 1,7 *", timedelta(days=181)),
    ("0 0,12 * * 1", timedelta(hours=12)), ("0 0,13 * * *", timedelta(hours=11)),
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
