"""When a job runs (SPEC CRON-1 to CRON-3, CRON-15, CRON-16, CRON-20, CRON-10, CRON-17)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pytest

from goclaw_py.core.errors import (
    BadCron,
    BadInterval,
    BadMoment,
    BadSchedule,
    NeverFires,
    TooFrequent,
    UnknownZone,
)
from goclaw_py.core.ids import JobId
from goclaw_py.schedule.jobs.policy import Anchor, FirstRun, OnShort
from goclaw_py.schedule.jobs.schedule import (
    MAX_INTERVAL,
    MOST_COUNTED,
    At,
    Cron,
    Every,
    Ran,
    Schedule,
    Timing,
    check,
    coalesced,
    firings,
    first_run_at,
    interval_text,
    next_run_at,
    parse_interval,
    read_schedule,
    replanned,
    schedule_json,
    schedule_of,
    spaced,
    stagger_of,
    upcoming,
)

NOW = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
HOURLY = Every(HOUR)
DAILY = Cron("0 9 * * *")


def utc(schedule: Schedule, **more: object) -> Timing:
    return replace(Timing(schedule, "UTC"), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "interval"), [
    ("1s", timedelta(seconds=1)), ("30s", timedelta(seconds=30)), ("5m", 5 * MINUTE),
    ("005m", 5 * MINUTE), ("2h", 2 * HOUR), ("1d", timedelta(days=1)), ("3660d", MAX_INTERVAL),
])  # fmt: skip
def test_an_interval_is_a_whole_number_and_a_unit(text: str, interval: timedelta) -> None:
    assert parse_interval(text) == interval


@pytest.mark.parametrize(("reason", "texts"), [
    ("a whole number", ["", "m", "5 m", " 5m", "5m\n", "+5m", "1h30m", "5ms", "1e3s", "1_000s"]),
    ("a whole number", ["\u0665m"]),
    ('the unit is missing; for minutes write "5m"', ["5"]),
    ("must be positive", ["-5m", "0s", "000d"]),
    ('must be whole; write "90m"', ["1.5h"]),
    ('must be whole; write "1s"', ["0.1s"]),
    ('must be whole; write "60h"', ["2.5d"]),
    ("must be whole", ["999999999.9d"]),
    ('units are in lower case; write "5m"', ["5M"]),
    ("'w' is no unit", ["5w"]),
    ("at most 3660 days", ["3661d", "999999999999d", f"1{'0' * 30}s", "9" * 10_000 + "d"]),
])  # fmt: skip
def test_nothing_else_is_an_interval(reason: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(BadInterval) as refused:
            parse_interval(text)
        assert reason in refused.value.reason
        assert refused.value.reason in str(refused.value)
        assert len(str(refused.value)) < 200


def test_an_interval_is_shown_in_its_largest_unit_as_it_may_be_written() -> None:
    for text in ("1s", "90s", "90m", "25h", "14d"):
        assert interval_text(parse_interval(text)) == text
    assert interval_text(timedelta(seconds=7200)) == "2h"
    assert interval_text(timedelta(milliseconds=1500)) == "1500ms"


@pytest.mark.parametrize(("schedule", "stored"), [
    (At(NOW), {"kind": "at", "at": "2026-01-05T08:00:00Z"}),
    (At(NOW.astimezone(timezone(5.5 * HOUR))), {"kind": "at", "at": "2026-01-05T08:00:00Z"}),
    (HOURLY, {"kind": "every", "every_ms": 3_600_000}),
    (Every(timedelta(milliseconds=1), NOW),
     {"kind": "every", "every_ms": 1, "origin": "2026-01-05T08:00:00Z"}),
    (DAILY, {"kind": "cron", "expression": "0 9 * * *"}),
])  # fmt: skip
def test_a_schedule_is_read_as_it_was_stored(schedule: Schedule, stored: dict[str, object]) -> None:
    assert schedule_json(schedule) == stored
    assert schedule_of(stored) == schedule


@pytest.mark.parametrize(("error", "kind", "facts"), [
    (BadSchedule, "sometimes", [{}]),
    (BadSchedule, "at", [{}]),
    (BadMoment, "at", [{"at": None}, {"at": 5}, {"at": "2026-01-05T08:00:00"}]),
    (BadMoment, "at", [{"at": "9999-12-31T23:59:59-12:00"}]),
    (BadSchedule, "every", [{}, {"every_ms": "5"}, {"every_ms": True}, {"every_ms": 1.5}]),
    (BadInterval, "every", [{"every_ms": 0}, {"every_ms": -1}, {"every_ms": 10**30}]),
    (BadInterval, "every", [{"every_ms": 10**5000}, {"every_ms": -(10**5000)}]),
    (BadMoment, "every", [{"every_ms": 1000, "origin": origin} for origin in (7, "noon")]),
    (BadSchedule, "cron", [{"expression": None}]),
])  # fmt: skip
def test_what_is_no_schedule_is_refused(
    error: type[BadSchedule], kind: str, facts: list[dict[str, object]]
) -> None:
    with pytest.raises(BadSchedule):
        schedule_of({})
    for stored in facts:
        with pytest.raises(error) as refused:
            schedule_of({"kind": kind, **stored})
        assert type(refused.value) is error


@pytest.mark.parametrize("timing", [
    utc(At(NOW + timedelta(microseconds=1))),
    utc(HOURLY),
    utc(Every(MAX_INTERVAL, NOW), anchor=Anchor.GRID),
    utc(DAILY, not_after=NOW + 2 * HOUR),
    utc(Cron("*/10 * * * * *")),
    utc(Cron("@daily")),
])  # fmt: skip
def test_what_can_run_is_accepted(timing: Timing) -> None:
    check(timing, now=NOW)


@pytest.mark.parametrize(
    ("timing", "error", "said"),
    [
        (Timing(DAILY, "Mars/Base"), UnknownZone, "Mars/Base"),
        (utc(At(NOW)), BadMoment, "which is 0 s later"),
        (utc(At(NOW - 2 * HOUR)), BadMoment, "now 2026-01-05 08:00:00 UTC, which is 2 h later"),
        (utc(At(datetime(2026, 1, 6))), BadMoment, "has no offset"),  # noqa: DTZ001
        (utc(At(NOW + timedelta(days=40_000))), BadMoment, "too far"),
        (utc(Every(timedelta())), BadInterval, "must be positive"),
        (utc(Every(-HOUR)), BadInterval, "must be positive"),
        (utc(Every(MAX_INTERVAL + HOUR)), BadInterval, "at most"),
        (utc(Every(timedelta(microseconds=1500))), BadInterval, "milliseconds"),
        (utc(Every(HOUR, datetime(2026, 1, 5))), BadMoment, "origin"),  # noqa: DTZ001
        (utc(Cron("61 * * * *")), BadCron, "61"),
        (utc(Cron("0 0 30 2 *")), NeverFires, "no year has such a day"),
        (utc(DAILY, not_after=NOW), BadMoment, "not_after"),
        (utc(DAILY, not_after=datetime(2027, 1, 1)), BadMoment, "not_after"),  # noqa: DTZ001
        (utc(DAILY, not_after=NOW + 30 * MINUTE), NeverFires, "all its times are in the past"),
        (utc(At(NOW + 2 * HOUR), not_after=NOW + HOUR), NeverFires, "all its times are in the"),
        (utc(HOURLY, not_after=NOW + MINUTE), NeverFires, "every hour: all its times"),
    ],
)
def test_what_cannot_run_is_refused(timing: Timing, error: type[BadSchedule], said: str) -> None:
    with pytest.raises(error) as refused:
        check(timing, now=NOW)
    assert said in str(refused.value)
    with pytest.raises(BadCron, match="seconds"):
        check(utc(Cron("0 0 9 * * *")), now=NOW, cron_fields=(5,))


@pytest.mark.parametrize(("schedule", "minimum", "gap_s"), [
    (Every(timedelta(seconds=59)), MINUTE, 59),
    (Cron("0,30 9 * * *"), HOUR, 1800),
    (Cron("*/2 * * * *"), 3 * MINUTE, 120),
    (Cron("0 0,23 28,29 2 *"), 2 * HOUR, 3600),
    (Cron("* * * * * *"), timedelta(seconds=2), 1),
])  # fmt: skip
def test_too_frequent_ones_are_refused(
    schedule: Schedule, minimum: timedelta, gap_s: float
) -> None:
    """SPEC CRON-15: any two firings count, not only the next ones."""
    with pytest.raises(TooFrequent) as refused:
        spaced(utc(schedule), minimum, OnShort.REJECT, now=NOW)
    assert (refused.value.gap_s, refused.value.minimum_s) == (gap_s, minimum.total_seconds())
    assert refused.value.cron is isinstance(schedule, Cron)


@pytest.mark.parametrize("schedule", [At(NOW), Every(MINUTE), Cron("* * * * *")])
@pytest.mark.parametrize("on_short", OnShort)
def test_what_is_spaced_stays_as_it_is(schedule: Schedule, on_short: OnShort) -> None:
    timing = utc(schedule)
    assert spaced(timing, MINUTE, on_short, now=NOW) == timing


def test_an_interval_that_is_too_short_may_be_made_longer_but_no_cron_expression() -> None:
    timing, ten_s = utc(Every(timedelta(seconds=1), NOW), anchor=Anchor.GRID), timedelta(seconds=10)
    longer = spaced(timing, ten_s, OnShort.CLAMP, now=NOW)
    assert longer == replace(timing, schedule=Every(ten_s, NOW))
    odd = spaced(timing, timedelta(microseconds=1_000_001), OnShort.CLAMP, now=NOW)
    assert odd.schedule == Every(timedelta(milliseconds=1001), NOW)
    with pytest.raises(TooFrequent):
        spaced(utc(Cron("* * * * * *")), ten_s, OnShort.CLAMP, now=NOW)


def test_the_hour_that_is_left_out_in_spring_makes_nothing_too_frequent() -> None:
    """SPEC CRON-15: on one day a year 2:30 is at 3:00, half an hour after 1:30."""
    timing = Timing(Cron("30 1,2 * * *"), "Europe/Berlin")
    eve = datetime(2026, 3, 28, 12, tzinfo=UTC)
    first, second = upcoming(timing, after=eve, count=2)
    assert second - first == 30 * MINUTE
    assert spaced(timing, HOUR, OnShort.REJECT, now=eve) == timing


AT_ONCE = {"first_run": FirstRun.IMMEDIATE}
GRID = {"anchor": Anchor.GRID}
START = {"anchor": Anchor.START}


@pytest.mark.parametrize(("timing", "first"), [
    (utc(HOURLY), NOW + HOUR),
    (utc(HOURLY, **START), NOW + HOUR),
    # Only intervals begin at once.
    (utc(HOURLY, **AT_ONCE), NOW),
    (utc(HOURLY, **AT_ONCE, **START), NOW),
    (utc(DAILY, **AT_ONCE), NOW + HOUR),
    (utc(At(NOW + MINUTE), **AT_ONCE), NOW + MINUTE),
    # A grid goes through its origin and begins there, or follows the clock.
    (utc(Every(HOUR, NOW - 90 * MINUTE), **GRID), NOW + 30 * MINUTE),
    (utc(Every(HOUR, NOW), **GRID), NOW + HOUR),
    (utc(Every(HOUR, NOW - 10_000 * HOUR), **GRID), NOW + HOUR),
    (utc(Every(HOUR, NOW + 5 * HOUR), **GRID), NOW + 5 * HOUR),
    (utc(Every(HOUR), **GRID), NOW + HOUR),
    (utc(Every(7 * MINUTE), **GRID), datetime(2026, 1, 5, 8, 4, tzinfo=UTC)),
    # Cron follows the clock of its zone.
    (Timing(DAILY, "Asia/Kolkata"), datetime(2026, 1, 6, 3, 30, tzinfo=UTC)),
    # The last instant is one at which it may run.
    (utc(DAILY, not_after=NOW + HOUR), NOW + HOUR),
])  # fmt: skip
def test_when_a_job_runs_first(timing: Timing, first: datetime) -> None:
    assert first_run_at(timing, now=NOW) == first


@pytest.mark.parametrize("timing", [
    utc(At(NOW)),
    utc(HOURLY, not_after=NOW + HOUR - MINUTE),
    utc(HOURLY, first_run=FirstRun.IMMEDIATE, not_after=NOW - MINUTE),
    utc(DAILY, not_after=NOW + HOUR - MINUTE),
    utc(Cron("0 0 30 2 *")),
])  # fmt: skip
def test_what_has_nothing_ahead_never_fires(timing: Timing) -> None:
    with pytest.raises(NeverFires):
        first_run_at(timing, now=NOW)


CALENDAR = Cron("0 * * * *")
ON_GRID = utc(Every(HOUR, NOW), anchor=Anchor.GRID)
ENDS = {"not_after": NOW + 30 * MINUTE}


@pytest.mark.parametrize(("timing", "over", "following"), [
    (utc(At(NOW)), Ran(NOW, NOW, NOW + MINUTE), None),
    # An interval counts from the end of a run, or from its start; then a longer run is
    # followed by the next one at once.
    (utc(HOURLY), Ran(NOW, NOW, NOW + 3 * HOUR), NOW + 4 * HOUR),
    (utc(HOURLY, **START), Ran(NOW, NOW + MINUTE, NOW + 5 * MINUTE), NOW + HOUR + MINUTE),
    (utc(HOURLY, **START), Ran(NOW, NOW, NOW + 3 * HOUR), NOW + 3 * HOUR),
    # A run that never began counts from when that was decided.
    (utc(HOURLY), Ran(NOW - 5 * HOUR, None, NOW), NOW + HOUR),
    (utc(HOURLY, **START), Ran(NOW - 5 * HOUR, None, NOW), NOW + HOUR),
    # What came due during a run is left out.
    (ON_GRID, Ran(NOW, NOW, NOW + 3 * HOUR + MINUTE), NOW + 4 * HOUR),
    (utc(CALENDAR), Ran(NOW, NOW, NOW + 3 * HOUR + MINUTE), NOW + 4 * HOUR),
    # If the clock was set back, it is no further ahead than one interval.
    (utc(HOURLY), Ran(NOW, NOW, NOW - HOUR), NOW),
    (utc(HOURLY, **START), Ran(NOW, NOW, NOW - 5 * HOUR), NOW - 4 * HOUR),
    (ON_GRID, Ran(NOW, NOW, NOW - HOUR), NOW),
    (ON_GRID, Ran(NOW, NOW, NOW - 2.5 * HOUR), NOW - 2 * HOUR),
    (utc(CALENDAR), Ran(NOW, NOW, NOW - HOUR), NOW),
    # A small step brings no time again, and three hours none of a rare job.
    (ON_GRID, Ran(NOW, NOW, NOW - MINUTE), NOW + HOUR),
    (utc(CALENDAR), Ran(NOW, NOW, NOW - MINUTE), NOW + HOUR),
    (utc(Cron("0 8 * * *")), Ran(NOW, NOW, NOW - 3 * HOUR), NOW + 24 * HOUR),
    (utc(Cron("0 8 * * *")), Ran(NOW, NOW, NOW - 4 * HOUR), NOW),
    # After its end a job does not run.
    (utc(HOURLY, **ENDS), Ran(NOW, NOW, NOW + MINUTE), None),
    (utc(HOURLY, **ENDS, **START), Ran(NOW, NOW, NOW + MINUTE), None),
    (utc(DAILY, **ENDS), Ran(NOW, NOW, NOW + MINUTE), None),
])  # fmt: skip
def test_when_a_job_runs_next(timing: Timing, over: Ran, following: datetime | None) -> None:
    assert next_run_at(timing, over) == following


JITTER = {"jitter": 0.1, "stagger": True, "spread": JobId("j")}
AT_EIGHT = utc(Cron("0 8 * * *"))


@pytest.mark.parametrize(("timing", "due_at", "again"), [
    # The clock is now that far behind the one that planned these.
    (utc(HOURLY), NOW + 2 * HOUR, NOW + HOUR),
    (utc(HOURLY, **START), NOW + 400 * HOUR, NOW + HOUR),
    (ON_GRID, NOW + 2 * HOUR, NOW + HOUR),
    (utc(Every(HOUR, NOW + 5.5 * HOUR), anchor=Anchor.GRID), NOW + 6.5 * HOUR, NOW + HOUR / 2),
    (utc(Cron("*/5 * * * *")), NOW + HOUR, NOW + 5 * MINUTE),
    (utc(Cron("0 * * * *")), NOW + 2 * HOUR, NOW + HOUR),
    (utc(Cron("0 */6 * * *")), NOW + 10 * HOUR, NOW + 4 * HOUR),
    (AT_EIGHT, NOW + 30 * 24 * HOUR, NOW + 24 * HOUR),
    (utc(Cron("*/5 8 * * *")), NOW + 24 * HOUR, NOW + 5 * MINUTE),
    # These are right.
    (utc(At(NOW + 9 * HOUR)), NOW + 9 * HOUR, None),
    (utc(HOURLY), NOW + HOUR, None),
    (utc(HOURLY, **JITTER), NOW + HOUR + 5 * MINUTE, None),
    (ON_GRID, NOW + HOUR, None),
    (AT_EIGHT, NOW + 24 * HOUR, None),
    (utc(Cron("5 0 1 * *")), NOW + 26 * 24 * HOUR + 16 * HOUR + 5 * MINUTE, None),
    # A step of seconds repeats nothing, and three hours nothing that is rare.
    (utc(Cron("* * * * *")), NOW + 2 * MINUTE, None),
    (utc(Cron("0 9 * * *")), NOW + 25 * HOUR, None),
    (utc(Cron("0 11 * * *")), NOW + 27 * HOUR, None),
    (utc(Cron("1 11 * * *")), NOW + 27 * HOUR + MINUTE, NOW + 3 * HOUR + MINUTE),
])  # fmt: skip
def test_what_a_clock_that_was_ahead_has_planned_is_computed_again(
    timing: Timing, due_at: datetime, again: datetime | None
) -> None:
    """SPEC CRON-4: no further ahead than one interval."""
    assert replanned(timing, due_at, now=NOW) == again


@pytest.mark.parametrize("expression", ["* * * * *", "0 */6 * * *", "0 9 * * 1-5", "0 0 1 1 *"])
@pytest.mark.parametrize("jittered", [{}, JITTER])
def test_what_this_clock_has_planned_stays(expression: str, jittered: dict[str, Any]) -> None:
    timing = utc(Cron(expression), **jittered)
    due_at = first_run_at(timing, now=NOW)
    while_waiting = (NOW + (due_at - NOW) * part / 10 for part in range(10))
    assert {replanned(timing, due_at, now=now) for now in while_waiting} == {None}


@pytest.mark.parametrize(("timing", "after", "found"), [
    # As a job that is made is shown with its next three: 2:30 is left out on the 29th.
    (Timing(Cron("30 2 * * *"), "Europe/Berlin"), datetime(2026, 3, 27, 12, tzinfo=UTC),
     ["28 01:30", "29 01:00", "30 00:30"]),
    (utc(At(NOW + HOUR)), NOW, ["05 09:00"]),
    (utc(At(NOW)), NOW, []),
    # As if runs took no time, and until the job ends.
    (utc(HOURLY), NOW, ["05 09:00", "05 10:00", "05 11:00"]),
    (utc(CALENDAR, not_after=NOW + 2 * HOUR), NOW, ["05 09:00", "05 10:00"]),
    (utc(Cron("0 0 30 2 *")), NOW, []),
])  # fmt: skip
def test_the_next_times_as_people_are_told(
    timing: Timing, after: datetime, found: list[str]
) -> None:
    assert [f"{at:%d %H:%M}" for at in upcoming(timing, after=after, count=3)] == found
    assert [f"{at:%d %H:%M}" for at in islice(firings(timing, after=after), 3)] == found


def test_the_longest_interval_ends_with_the_calendar() -> None:
    found = upcoming(utc(Every(MAX_INTERVAL)), after=NOW, count=10_000)
    assert 690 < len(found) < 700


DAY = 24 * HOUR
LATER = utc(Every(HOUR, NOW + 100 * HOUR), anchor=Anchor.GRID)
EACH_MS = utc(Every(timedelta(milliseconds=1), NOW), anchor=Anchor.GRID)
STAGGERED = replace(ON_GRID, stagger=True, spread=JobId("j"))


@pytest.mark.parametrize(("timing", "passed", "count"), [
    # Each firing of an expression costs its time.
    (utc(Cron("* * * * *")), 365 * DAY, MOST_COUNTED),
    (utc(Cron("* * * * *")), 7.5 * MINUTE, 7), (utc(Cron("* * * * *")), timedelta(), 0),
    (utc(CALENDAR), 3 * HOUR + MINUTE, 3),
    # On a grid they are counted however many they are, as far as they fit into a column.
    (ON_GRID, timedelta(), 0),
    (ON_GRID, HOUR - timedelta(microseconds=1), 0),
    (ON_GRID, HOUR, 1), (ON_GRID, 10_000.5 * HOUR, 10_000),
    (replace(ON_GRID, not_after=NOW + 3 * HOUR), 10_000 * HOUR, 3),
    (replace(ON_GRID, not_after=NOW), 10_000 * HOUR, 0),
    (STAGGERED, 10_000.5 * HOUR, 10_000), (LATER, 99 * HOUR, 0), (LATER, 102 * HOUR, 3),
    (EACH_MS, 300 * DAY, 10**9),
    # Intervals that count from runs come one by one.
    (utc(HOURLY), 10 * HOUR, 0), (utc(HOURLY, **START), 10 * HOUR, 0),
])  # fmt: skip
def test_firings_that_came_due_are_counted(timing: Timing, passed: timedelta, count: int) -> None:
    due_at = NOW + stagger_of(timing)
    assert coalesced(timing, due_at=due_at, now=due_at + passed) == count


def test_firings_are_counted_up_to_a_limit() -> None:
    assert coalesced(utc(Cron("* * * * *")), due_at=NOW, now=NOW + 365 * DAY, most=7) == 7


JOBS = [JobId(f"job {number}") for number in range(200)]


def test_jitter_is_a_part_of_the_time_to_the_following_firing() -> None:
    """SPEC CRON-16: up to 10 % of a day, or of the weekend before Monday's."""
    timing = utc(Cron("0 9 * * 1-5"), jitter=0.1)
    friday = datetime(2026, 1, 9, 8, tzinfo=UTC)
    later = [first_run_at(replace(timing, spread=job), now=friday) - friday - HOUR for job in JOBS]
    assert min(later) >= timedelta()
    assert timedelta(hours=6.5) < max(later) < timedelta(hours=7.2)
    assert len(set(later)) == len(JOBS)


def test_jitter_is_the_same_whenever_it_is_counted() -> None:
    """SPEC CRON-16: it comes from the job and the time alone."""
    timing = utc(HOURLY, jitter=0.1, spread=JobId("b"))
    at = first_run_at(timing, now=NOW)
    assert at == NOW + timedelta(seconds=3696, microseconds=837_137)
    over = Ran(NOW, NOW, NOW)
    assert next_run_at(timing, over) == at
    assert next_run_at(replace(timing, anchor=Anchor.START), over) == at


def test_jitter_differs_from_time_to_time() -> None:
    timing = replace(ON_GRID, jitter=0.1, spread=JobId("b"))
    starts = [NOW + number * HOUR for number in range(50)]
    later = {first_run_at(timing, now=start) - start - HOUR for start in starts}
    assert len(later) == 50
    assert timedelta() <= min(later) < max(later) < 6 * MINUTE


JITTERED = {"jitter": 0.1, "spread": JobId("b")}


@pytest.mark.parametrize(("timing", "first"), [
    # A reminder is never put off; jitter needs a job to count from.
    (utc(At(NOW + HOUR), stagger=True, spread=JobId("a")), NOW + HOUR),
    (utc(At(NOW + HOUR), stagger=True, jitter=0.1, spread=JobId("a")), NOW + HOUR),
    (utc(HOURLY, jitter=0.1, stagger=True), NOW + HOUR),
    (utc(DAILY, jitter=0.1), NOW + HOUR),
    # It never passes the end of a job, and the last firing has none.
    (utc(HOURLY, **JITTERED, not_after=NOW + HOUR + timedelta(seconds=1)),
     NOW + HOUR + timedelta(seconds=1)),
    (utc(DAILY, **JITTERED, not_after=NOW + 3 * HOUR), NOW + HOUR),
])  # fmt: skip
def test_what_is_not_put_off_or_not_by_all_of_it(timing: Timing, first: datetime) -> None:
    assert first_run_at(timing, now=NOW) == first


def test_a_jittered_run_is_followed_by_the_next_firing() -> None:
    """SPEC CRON-16: what was put off is not run a second time."""
    timing = utc(Cron("0 * * * *"), jitter=0.1, spread=JobId("b"))
    at = first_run_at(timing, now=NOW)
    assert at > NOW + HOUR
    following = next_run_at(timing, Ran(at, at, at))
    assert following is not None
    assert NOW + 2 * HOUR <= following < NOW + 2 * HOUR + 6 * MINUTE


def test_stagger_spreads_equal_schedules_by_a_constant() -> None:
    shifts = set()
    for job in JOBS:
        timing = utc(Cron("0 * * * *"), stagger=True, spread=job)
        shift = stagger_of(timing)
        shifts.add(shift)
        found = upcoming(timing, after=NOW + shift, count=3)
        assert [at - shift for at in found] == [NOW + k * HOUR for k in (1, 2, 3)]
    assert timedelta() <= min(shifts) < MINUTE
    assert 5 * MINUTE < max(shifts) < 6 * MINUTE


def test_stagger_stays_within_the_part_that_jitter_names_and_an_hour() -> None:
    narrow = utc(HOURLY, stagger=True, jitter=0.01)
    assert max(stagger_of(replace(narrow, spread=job)) for job in JOBS) < timedelta(seconds=36)
    monthly = utc(Cron("@monthly"), stagger=True)
    assert max(stagger_of(replace(monthly, spread=job)) for job in JOBS) < HOUR
    assert stagger_of(utc(HOURLY)) == timedelta()


def test_an_interval_that_counts_from_runs_is_staggered_once() -> None:
    timing = utc(HOURLY, stagger=True, spread=JobId("a"))
    first = first_run_at(timing, now=NOW)
    assert first == NOW + HOUR + stagger_of(timing) > NOW + HOUR
    assert next_run_at(timing, Ran(first, first, first)) == first + HOUR


def test_a_staggered_grid_begins_with_what_is_still_ahead() -> None:
    """SPEC CRON-16: between a time and its shifted one that one is next."""
    timing = utc(Every(HOUR, NOW), anchor=Anchor.GRID, stagger=True, spread=JobId("a"))
    assert first_run_at(timing, now=NOW) == NOW + stagger_of(timing)


HALF_PAST_FIVE = datetime(2026, 3, 2, 17, 30, tzinfo=UTC)


@pytest.mark.parametrize(("text", "schedule"), [
    ("in 20m", At(HALF_PAST_FIVE + timedelta(minutes=20))),
    ("tomorrow 9:00", At(datetime(2026, 3, 3, 9, tzinfo=UTC))),
    ("2026-05-01 09:00", At(datetime(2026, 5, 1, 9, tzinfo=UTC))),
    ("18:00", At(datetime(2026, 3, 2, 18, tzinfo=UTC))),
    ("10m", Every(timedelta(minutes=10))), ("every  2h", Every(timedelta(hours=2))),
    ("Every 1d", Every(timedelta(days=1))),
    ("0 9 * * 1-5", Cron("0 9 * * 1-5")), ("30  9 1 MAY *", Cron("30 9 1 MAY *")),
    ("0 9 1 1 MON", Cron("0 9 1 1 MON")), ("@daily", Cron("@daily")),
])  # fmt: skip
def test_the_form_of_a_text_says_what_kind_of_schedule_it_is(text: str, schedule: Schedule) -> None:
    """Found by use: a form asked for the kind as well, and refused what its hint had offered."""
    assert read_schedule(text, now=HALF_PAST_FIVE, zone="UTC") == schedule


@pytest.mark.parametrize(("text", "error"), [
    ("1 h", BadInterval), ("every -5m", BadInterval), ("1.5h", BadInterval),
    ("someday", BadMoment), ("in 20 bananas", BadMoment), ("2020-01-01 09:00", BadMoment),
])  # fmt: skip
def test_a_text_without_a_schedule_is_refused(text: str, error: type[BadSchedule]) -> None:
    with pytest.raises(error):
        read_schedule(text, now=HALF_PAST_FIVE, zone="UTC")
