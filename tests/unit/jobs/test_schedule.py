"""When a job runs (SPEC CRON-1 to CRON-3, CRON-15, CRON-16, CRON-20, CRON-10, CRON-17)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from goclaw_py.jobs.policy import Anchor, FirstRun, OnShort
from goclaw_py.jobs.schedule import (
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
    schedule_json,
    schedule_of,
    spaced,
    stagger_of,
    upcoming,
)
from goclaw_py.model.errors import (
    BadCron,
    BadInterval,
    BadMoment,
    BadSchedule,
    NeverFires,
    TooFrequent,
    UnknownZone,
)
from goclaw_py.model.ids import JobId

NOW = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
HOURLY = Every(HOUR)
DAILY = Cron("0 9 * * *")


def utc(schedule: Schedule, **more: object) -> Timing:
    return replace(Timing(schedule, "UTC"), **more)  # type: ignore[arg-type]


def ran(due: datetime, started: datetime | None, ended: datetime) -> Ran:
    return Ran(due, started, ended)


# ---------------------------------------------------------------------------- intervals
@pytest.mark.parametrize(("text", "interval"), [
    ("1s", timedelta(seconds=1)),
    ("30s", timedelta(seconds=30)),
    ("5m", 5 * MINUTE),
    ("005m", 5 * MINUTE),
    ("2h", 2 * HOUR),
    ("1d", timedelta(days=1)),
    ("3660d", MAX_INTERVAL),
])  # fmt: skip
def test_an_interval_is_a_whole_number_and_a_unit(text: str, interval: timedelta) -> None:
    assert parse_interval(text) == interval


@pytest.mark.parametrize(("text", "reason"), [
    ("", "a whole number"),
    ("5", 'the unit is missing; for minutes write "5m"'),
    ("m", "a whole number"),
    ("5 m", "a whole number"),
    (" 5m", "a whole number"),
    ("5m\n", "a whole number"),
    ("+5m", "a whole number"),
    ("-5m", "must be positive"),
    ("1.5h", 'must be whole; write "90m"'),
    ("0.1s", 'must be whole; write "1s"'),
    ("2.5d", 'must be whole; write "60h"'),
    ("999999999.9d", "must be whole"),
    ("1h30m", "a whole number"),
    ("5M", 'units are in lower case; write "5m"'),
    ("5w", "'w' is no unit"),
    ("5ms", "a whole number"),
    ("1e3s", "a whole number"),
    ("1_000s", "a whole number"),
    ("\u0665m", "a whole number"),
    ("0s", "must be positive"),
    ("000d", "must be positive"),
    ("3661d", "at most 3660 days"),
    ("999999999999d", "at most 3660 days"),
    ("1" + "0" * 30 + "s", "at most 3660 days"),
    ("9" * 10_000 + "d", "at most 3660 days"),
])  # fmt: skip
def test_nothing_else_is_an_interval(text: str, reason: str) -> None:
    with pytest.raises(BadInterval) as refused:
        parse_interval(text)
    assert reason in refused.value.reason
    assert refused.value.reason in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("text", ["1s", "90s", "90m", "25h", "14d"])
def test_an_interval_is_shown_as_it_may_be_written(text: str) -> None:
    assert interval_text(parse_interval(text)) == text


def test_an_interval_is_shown_in_its_largest_unit() -> None:
    assert interval_text(timedelta(seconds=7200)) == "2h"
    assert interval_text(timedelta(milliseconds=1500)) == "1500ms"


# ---------------------------------------------------------------------------- stored and shown
@pytest.mark.parametrize(("schedule", "stored"), [
    (At(NOW), {"kind": "at", "at": "2026-01-05T08:00:00Z"}),
    (HOURLY, {"kind": "every", "every_ms": 3_600_000}),
    (Every(timedelta(milliseconds=1), NOW),
     {"kind": "every", "every_ms": 1, "origin": "2026-01-05T08:00:00Z"}),
    (DAILY, {"kind": "cron", "expression": "0 9 * * *"}),
])  # fmt: skip
def test_a_schedule_is_read_as_it_was_stored(schedule: Schedule, stored: dict[str, object]) -> None:
    assert schedule_json(schedule) == stored
    assert schedule_of(stored) == schedule


def test_an_instant_is_stored_in_utc() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert schedule_json(At(elsewhere)) == {"kind": "at", "at": "2026-01-05T08:00:00Z"}


@pytest.mark.parametrize(("stored", "error"), [
    ({}, BadSchedule),
    ({"kind": "sometimes"}, BadSchedule),
    ({"kind": "at"}, BadSchedule),
    ({"kind": "at", "at": None}, BadMoment),
    ({"kind": "at", "at": 5}, BadMoment),
    ({"kind": "at", "at": "2026-01-05T08:00:00"}, BadMoment),
    ({"kind": "at", "at": "9999-12-31T23:59:59-12:00"}, BadMoment),
    ({"kind": "every"}, BadSchedule),
    ({"kind": "every", "every_ms": "5"}, BadSchedule),
    ({"kind": "every", "every_ms": True}, BadSchedule),
    ({"kind": "every", "every_ms": 1.5}, BadSchedule),
    ({"kind": "every", "every_ms": 0}, BadInterval),
    ({"kind": "every", "every_ms": -1}, BadInterval),
    ({"kind": "every", "every_ms": 10**30}, BadInterval),
    ({"kind": "every", "every_ms": 10**5000}, BadInterval),
    ({"kind": "every", "every_ms": -(10**5000)}, BadInterval),
    ({"kind": "every", "every_ms": 1000, "origin": 7}, BadMoment),
    ({"kind": "every", "every_ms": 1000, "origin": "noon"}, BadMoment),
    ({"kind": "cron", "expression": None}, BadSchedule),
])  # fmt: skip
def test_what_is_no_schedule_is_refused(
    stored: dict[str, object], error: type[BadSchedule]
) -> None:
    with pytest.raises(error) as refused:
        schedule_of(stored)
    assert type(refused.value) is error


# ---------------------------------------------------------------------------- what may be
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
        (utc(At(NOW)), BadMoment, "which is less than 1 s later"),
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
        (
            utc(At(NOW + 2 * HOUR), not_after=NOW + HOUR),
            NeverFires,
            "all its times are in the past",
        ),
        (utc(HOURLY, not_after=NOW + MINUTE), NeverFires, "every hour: all its times"),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(
    timing: Timing, error: type[BadSchedule], said: str
) -> None:
    with pytest.raises(error) as refused:
        check(timing, now=NOW)
    assert said in str(refused.value)


def test_seconds_may_be_forbidden() -> None:
    with pytest.raises(BadCron, match="seconds"):
        check(utc(Cron("0 0 9 * * *")), now=NOW, cron_fields=(5,))


# ---------------------------------------------------------------------------- how often
@pytest.mark.parametrize(("schedule", "minimum", "gap_s"), [
    (Every(timedelta(seconds=59)), MINUTE, 59),
    (Cron("0,30 9 * * *"), HOUR, 1800),
    (Cron("*/2 * * * *"), 3 * MINUTE, 120),
    (Cron("0 0,23 28,29 2 *"), 2 * HOUR, 3600),
    (Cron("* * * * * *"), timedelta(seconds=2), 1),
])  # fmt: skip
def test_what_is_too_frequent_is_refused(
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


def test_an_interval_that_is_too_short_may_be_made_longer() -> None:
    timing = utc(Every(timedelta(seconds=1), NOW), anchor=Anchor.GRID)
    longer = spaced(timing, timedelta(seconds=10), OnShort.CLAMP, now=NOW)
    assert longer == replace(timing, schedule=Every(timedelta(seconds=10), NOW))
    odd = spaced(timing, timedelta(microseconds=1_000_001), OnShort.CLAMP, now=NOW)
    assert odd.schedule == Every(timedelta(milliseconds=1001), NOW)


def test_a_cron_expression_that_is_too_frequent_is_never_changed() -> None:
    with pytest.raises(TooFrequent):
        spaced(utc(Cron("* * * * * *")), timedelta(seconds=10), OnShort.CLAMP, now=NOW)


def test_the_hour_that_is_left_out_in_spring_makes_nothing_too_frequent() -> None:
    """SPEC CRON-15: on one day a year 2:30 is at 3:00, half an hour after 1:30."""
    timing = Timing(Cron("30 1,2 * * *"), "Europe/Berlin")
    eve = datetime(2026, 3, 28, 12, tzinfo=UTC)
    first, second = upcoming(timing, after=eve, count=2)
    assert second - first == 30 * MINUTE
    assert spaced(timing, HOUR, OnShort.REJECT, now=eve) == timing


# ---------------------------------------------------------------------------- the first run
@pytest.mark.parametrize("anchor", [Anchor.COMPLETION, Anchor.START])
def test_an_interval_begins_with_itself_or_at_once(anchor: Anchor) -> None:
    assert first_run_at(utc(HOURLY, anchor=anchor), now=NOW) == NOW + HOUR
    at_once = utc(HOURLY, anchor=anchor, first_run=FirstRun.IMMEDIATE)
    assert first_run_at(at_once, now=NOW) == NOW


def test_only_intervals_begin_at_once() -> None:
    cron = utc(DAILY, first_run=FirstRun.IMMEDIATE)
    assert first_run_at(cron, now=NOW) == NOW + HOUR
    once = utc(At(NOW + MINUTE), first_run=FirstRun.IMMEDIATE)
    assert first_run_at(once, now=NOW) == NOW + MINUTE


@pytest.mark.parametrize(("origin", "first"), [
    (NOW - 90 * MINUTE, NOW + 30 * MINUTE),
    (NOW, NOW + HOUR),
    (NOW - 10_000 * HOUR, NOW + HOUR),
    (NOW + 5 * HOUR, NOW + 5 * HOUR),
    (None, NOW + HOUR),
])  # fmt: skip
def test_a_grid_goes_through_its_origin_and_begins_there(
    origin: datetime | None, first: datetime
) -> None:
    """SPEC CRON-3: the next point of the grid, never a past one."""
    assert first_run_at(utc(Every(HOUR, origin), anchor=Anchor.GRID), now=NOW) == first


def test_a_grid_without_an_origin_follows_the_clock() -> None:
    timing = utc(Every(10 * MINUTE), anchor=Anchor.GRID)
    assert first_run_at(timing, now=NOW + 3 * MINUTE) == NOW + 10 * MINUTE


def test_cron_follows_the_clock_of_its_zone() -> None:
    timing = Timing(DAILY, "Asia/Kolkata")
    assert first_run_at(timing, now=NOW) == datetime(2026, 1, 6, 3, 30, tzinfo=UTC)


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


def test_the_last_instant_is_one_at_which_it_may_run() -> None:
    assert first_run_at(utc(DAILY, not_after=NOW + HOUR), now=NOW) == NOW + HOUR


# ---------------------------------------------------------------------------- the next run
def test_a_reminder_runs_once() -> None:
    assert next_run_at(utc(At(NOW)), ran(NOW, NOW, NOW + MINUTE)) is None


def test_an_interval_counts_from_the_end_of_a_run() -> None:
    """SPEC CRON-3, the default."""
    over = ran(NOW, NOW, NOW + 3 * HOUR)
    assert next_run_at(utc(HOURLY), over) == NOW + 4 * HOUR


def test_an_interval_may_count_from_the_start_of_a_run() -> None:
    timing = utc(HOURLY, anchor=Anchor.START)
    assert next_run_at(timing, ran(NOW, NOW + MINUTE, NOW + 5 * MINUTE)) == NOW + HOUR + MINUTE


def test_after_a_run_that_was_longer_than_its_interval_the_next_is_due_at_once() -> None:
    timing = utc(HOURLY, anchor=Anchor.START)
    assert next_run_at(timing, ran(NOW, NOW, NOW + 3 * HOUR)) == NOW + 3 * HOUR


@pytest.mark.parametrize("anchor", [Anchor.COMPLETION, Anchor.START])
def test_a_run_that_never_began_counts_from_when_that_was_decided(anchor: Anchor) -> None:
    skipped = ran(NOW - 5 * HOUR, None, NOW)
    assert next_run_at(utc(HOURLY, anchor=anchor), skipped) == NOW + HOUR


@pytest.mark.parametrize(("timing", "following"), [
    (utc(Every(HOUR, NOW), anchor=Anchor.GRID), NOW + 4 * HOUR),
    (utc(Cron("0 * * * *")), NOW + 4 * HOUR),
])  # fmt: skip
def test_what_came_due_during_a_run_is_left_out(timing: Timing, following: datetime) -> None:
    over = ran(NOW, NOW, NOW + 3 * HOUR + MINUTE)
    assert next_run_at(timing, over) == following
    assert coalesced(timing, due_at=NOW, now=over.ended_at) == 3


@pytest.mark.parametrize(
    "timing", [utc(Every(HOUR, NOW), anchor=Anchor.GRID), utc(Cron("0 * * * *"))]
)
def test_a_clock_that_was_set_back_brings_no_time_again(timing: Timing) -> None:
    """SPEC CRON-5: each occurrence once."""
    over = ran(NOW, NOW, NOW - HOUR)
    assert next_run_at(timing, over) == NOW + HOUR


@pytest.mark.parametrize("timing", [utc(HOURLY), utc(HOURLY, anchor=Anchor.START), utc(DAILY)])
def test_after_its_end_a_job_does_not_run(timing: Timing) -> None:
    ended = replace(timing, not_after=NOW + 30 * MINUTE)
    assert next_run_at(ended, ran(NOW, NOW, NOW + MINUTE)) is None


# ---------------------------------------------------------------------------- all of them
def test_the_next_times_are_those_that_people_are_told() -> None:
    """SPEC CRON-2: creating echoes the next three."""
    timing = Timing(Cron("30 2 * * *"), "Europe/Berlin")
    found = upcoming(timing, after=datetime(2026, 3, 27, 12, tzinfo=UTC), count=3)
    assert [f"{at:%d %H:%M}" for at in found] == ["28 01:30", "29 01:00", "30 00:30"]


def test_a_reminder_has_one_time() -> None:
    assert upcoming(utc(At(NOW + HOUR)), after=NOW, count=3) == [NOW + HOUR]
    assert upcoming(utc(At(NOW)), after=NOW, count=3) == []


def test_an_interval_is_counted_as_if_runs_took_no_time() -> None:
    assert upcoming(utc(HOURLY), after=NOW, count=2) == [NOW + HOUR, NOW + 2 * HOUR]


def test_times_end_where_the_job_does() -> None:
    timing = utc(Cron("0 * * * *"), not_after=NOW + 2 * HOUR)
    assert list(firings(timing, after=NOW)) == [NOW + HOUR, NOW + 2 * HOUR]
    assert list(firings(utc(Cron("0 0 30 2 *")), after=NOW)) == []


def test_the_longest_interval_ends_with_the_calendar() -> None:
    found = upcoming(utc(Every(MAX_INTERVAL)), after=NOW, count=10_000)
    assert 690 < len(found) < 700


def test_firings_of_an_expression_are_counted_up_to_a_limit() -> None:
    """SPEC CRON-10: each of them costs its time."""
    timing = utc(Cron("* * * * *"))
    year = NOW + timedelta(days=365)
    assert coalesced(timing, due_at=NOW, now=year) == MOST_COUNTED
    assert coalesced(timing, due_at=NOW, now=year, most=7) == 7
    assert coalesced(timing, due_at=NOW, now=NOW + 7.5 * MINUTE) == 7
    assert coalesced(timing, due_at=NOW, now=NOW) == 0


@pytest.mark.parametrize(("more", "after_due", "count"), [
    ({}, timedelta(), 0),
    ({}, HOUR - timedelta(microseconds=1), 0),
    ({}, HOUR, 1),
    ({}, 10_000.5 * HOUR, 10_000),
    ({"not_after": NOW + 3 * HOUR}, 10_000 * HOUR, 3),
    ({"not_after": NOW}, 10_000 * HOUR, 0),
    ({"stagger": True, "spread": JobId("j")}, 10_000.5 * HOUR, 10_000),
])  # fmt: skip
def test_firings_on_a_grid_are_counted_however_many_they_are(
    more: dict[str, object], after_due: timedelta, count: int
) -> None:
    timing = utc(Every(HOUR, NOW), anchor=Anchor.GRID, **more)
    due_at = NOW + stagger_of(timing)
    assert coalesced(timing, due_at=due_at, now=due_at + after_due) == count


def test_a_grid_is_counted_from_its_origin_on() -> None:
    timing = utc(Every(HOUR, NOW + 100 * HOUR), anchor=Anchor.GRID)
    assert coalesced(timing, due_at=NOW, now=NOW + 99 * HOUR) == 0
    assert coalesced(timing, due_at=NOW, now=NOW + 102 * HOUR) == 3


def test_the_number_of_firings_fits_into_a_column() -> None:
    timing = utc(Every(timedelta(milliseconds=1), NOW), anchor=Anchor.GRID)
    assert coalesced(timing, due_at=NOW, now=NOW + timedelta(days=300)) < 2**31


@pytest.mark.parametrize("timing", [utc(HOURLY), utc(HOURLY, anchor=Anchor.START)])
def test_intervals_that_count_from_runs_come_one_by_one(timing: Timing) -> None:
    assert coalesced(timing, due_at=NOW, now=NOW + 10 * HOUR) == 0


# ---------------------------------------------------------------------------- jitter and stagger

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
    assert (
        at == first_run_at(timing, now=NOW) == NOW + timedelta(seconds=3696, microseconds=837_137)
    )
    over = ran(NOW, NOW, NOW)
    assert next_run_at(timing, over) == at
    assert next_run_at(replace(timing, anchor=Anchor.START), over) == at


def test_jitter_differs_from_time_to_time() -> None:
    timing = utc(Every(HOUR, NOW), anchor=Anchor.GRID, jitter=0.1, spread=JobId("b"))
    later = {
        first_run_at(timing, now=NOW + number * HOUR) - NOW - (number + 1) * HOUR
        for number in range(50)
    }
    assert len(later) == 50
    assert timedelta() <= min(later) < max(later) < 6 * MINUTE


@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_a_reminder_is_never_put_off(jitter: float) -> None:
    timing = utc(At(NOW + HOUR), jitter=jitter, stagger=True, spread=JobId("a"))
    assert first_run_at(timing, now=NOW) == NOW + HOUR


def test_jitter_needs_a_job_to_count_from() -> None:
    assert first_run_at(utc(HOURLY, jitter=0.1, stagger=True), now=NOW) == NOW + HOUR
    assert first_run_at(utc(DAILY, jitter=0.1), now=NOW) == NOW + HOUR


def test_jitter_never_passes_the_end_of_a_job() -> None:
    end = NOW + HOUR + timedelta(seconds=1)
    timing = utc(HOURLY, jitter=0.1, spread=JobId("b"), not_after=end)
    assert first_run_at(timing, now=NOW) == end


def test_the_last_firing_has_no_jitter() -> None:
    timing = utc(DAILY, jitter=0.1, spread=JobId("b"), not_after=NOW + 3 * HOUR)
    assert first_run_at(timing, now=NOW) == NOW + HOUR


def test_a_jittered_run_is_followed_by_the_next_firing() -> None:
    """SPEC CRON-16: what was put off is not run a second time."""
    timing = utc(Cron("0 * * * *"), jitter=0.1, spread=JobId("b"))
    at = first_run_at(timing, now=NOW)
    assert at > NOW + HOUR
    following = next_run_at(timing, ran(at, at, at))
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
    assert next_run_at(timing, ran(first, first, first)) == first + HOUR


def test_a_staggered_grid_begins_with_what_is_still_ahead() -> None:
    """SPEC CRON-16: between a time and its shifted one that one is next."""
    timing = utc(Every(HOUR, NOW), anchor=Anchor.GRID, stagger=True, spread=JobId("a"))
    assert first_run_at(timing, now=NOW) == NOW + stagger_of(timing)
