"""Laws of schedules: whatever a job's timing is, it only ever goes on (SPEC CRON-1 to CRON-16)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from goclaw_py.core.errors import BadSchedule, NeverFires, TooFrequent
from goclaw_py.core.ids import JobId
from goclaw_py.core.time.datetimes import local_text, parse_moment, strict_moment
from goclaw_py.schedule.jobs.policy import Anchor, FirstRun, OnShort
from goclaw_py.schedule.jobs.schedule import (
    MAX_INTERVAL,
    At,
    Cron,
    Every,
    Ran,
    Timing,
    check,
    coalesced,
    describe,
    first_run_at,
    interval_text,
    next_run_at,
    parse_interval,
    schedule_json,
    schedule_of,
    spaced,
    upcoming,
)

MILLISECOND = timedelta(milliseconds=1)

zones = st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Caracas"])
instants = st.datetimes(datetime(2010, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
intervals = st.integers(1, MAX_INTERVAL // MILLISECOND).map(lambda ms: ms * MILLISECOND) | (
    st.integers(1, 10**8).map(lambda ms: ms * MILLISECOND)
)
crons = st.sampled_from(
    [
        "* * * * *",
        "*/7 * * * *",
        "30 1-3 * * *",
        "0 9 * * 1-5",
        "*/20 0 2 * * *",
        "0 0 L * *",
        "0 0 29 2 *",
        "@hourly",
        "0,30 9 13 * 5",
    ]
).map(Cron)
schedules = crons | st.builds(At, instants) | st.builds(Every, intervals, st.none() | instants)
timings = st.builds(
    Timing,
    schedules,
    zones,
    anchor=st.sampled_from(Anchor),
    first_run=st.sampled_from(FirstRun),
    spread=st.none() | st.text(min_size=1, max_size=8).map(JobId),
    jitter=st.sampled_from([0.0, 0.01, 0.1]),
    stagger=st.booleans(),
    not_after=st.none() | instants,
)
lengths = st.timedeltas(timedelta(), timedelta(days=400))


def first(timing: Timing, now: datetime) -> datetime:
    """The first run, or nothing to test."""
    try:
        return first_run_at(timing, now=now)
    except NeverFires:
        assume(condition=False)
        raise


@given(timings, instants)
def test_the_first_run_lies_ahead(timing: Timing, now: datetime) -> None:
    """SPEC CRON-3, CRON-20."""
    at = first(timing, now)
    at_once = isinstance(timing.schedule, Every) and timing.first_run is FirstRun.IMMEDIATE
    assert at == now if at_once else at > now
    assert at.tzinfo is UTC
    assert timing.not_after is None or at <= timing.not_after


@given(timings, instants, st.lists(st.tuples(lengths, lengths), min_size=1, max_size=6))
def test_a_run_is_followed_by_a_later_one(
    timing: Timing, now: datetime, runs: list[tuple[timedelta, timedelta]]
) -> None:
    """SPEC CRON-3, CRON-16: with any waits and lengths of runs."""
    due = first(timing, now)
    for wait, length in runs:
        started = due + wait
        over = Ran(due, started, started + length)
        following = next_run_at(timing, over)
        if following is None:
            return
        late = timing.anchor is Anchor.START and isinstance(timing.schedule, Every)
        assert following >= over.ended_at if late else following > over.ended_at
        assert following > due or length == wait == timedelta()
        assert timing.not_after is None or following <= timing.not_after
        due = following


@given(timings, instants)
def test_upcoming_times_strictly_increase_and_go_on_from_any_of_them(
    timing: Timing, now: datetime
) -> None:
    """SPEC CRON-2."""
    found = upcoming(timing, after=now, count=8)
    assert all(before < after for before, after in pairwise([now, *found]))
    calendar = timing.anchor is Anchor.GRID or not isinstance(timing.schedule, Every)
    if found and calendar:
        assert upcoming(timing, after=found[0], count=7) == found[1:]


@given(timings, instants)
def test_jitter_puts_off_but_never_beyond_the_following_firing(
    timing: Timing, now: datetime
) -> None:
    """SPEC CRON-16."""
    assume(timing.anchor is Anchor.GRID or not isinstance(timing.schedule, Every))
    timing = replace(timing, first_run=FirstRun.AFTER_INTERVAL)
    at = first(timing, now)
    due, *more = upcoming(timing, after=now, count=2)
    assert due <= at
    if more:
        assert at - due <= (more[0] - due) * timing.jitter + timedelta(microseconds=1)
        assert at < more[0]
    else:
        assert at == due
    assert isinstance(timing.schedule, Cron | Every) or at == timing.schedule.at


@given(timings, instants, st.integers(0, 20))
def test_as_many_are_coalesced_as_have_come(timing: Timing, now: datetime, count: int) -> None:
    """SPEC CRON-10."""
    found = upcoming(timing, after=now, count=count)
    assume(found)
    come = coalesced(timing, due_at=now, now=found[-1])
    one_by_one = isinstance(timing.schedule, Every) and timing.anchor is not Anchor.GRID
    assert come == (0 if one_by_one else len(found))


@given(timings, instants, intervals)
def test_what_is_spaced_has_no_two_times_that_are_closer(
    timing: Timing, now: datetime, minimum: timedelta
) -> None:
    """SPEC CRON-15."""
    timing = replace(timing, zone="UTC", stagger=False, not_after=None)
    try:
        longer = spaced(timing, minimum, OnShort.CLAMP, now=now)
    except TooFrequent:
        assert isinstance(timing.schedule, Cron)
        return
    found = upcoming(longer, after=now, count=60)
    # The first point of a grid is as far away as it is.
    assert all(after - before >= minimum for before, after in pairwise(found))


@given(schedules)
def test_a_schedule_is_read_as_it_was_stored(schedule: At | Every | Cron) -> None:
    assert schedule_of(schedule_json(schedule)) == schedule
    assert describe(schedule, "Europe/Berlin")


@given(st.integers(1, 3660), st.sampled_from("smhd"))
def test_an_interval_is_shown_as_it_is_read(count: int, unit: str) -> None:
    """SPEC CRON-1."""
    interval = parse_interval(f"{count}{unit}")
    assert parse_interval(interval_text(interval)) == interval


@given(st.text(max_size=30), zones, instants)
def test_any_text_is_read_or_refused(text: str, zone: str, now: datetime) -> None:
    """SPEC CRON-2."""
    for read in (
        lambda: parse_interval(text),
        lambda: parse_moment(text, now=now, zone=zone),
        lambda: strict_moment(text, now=now, zone=zone),
        lambda: check(Timing(Cron(text), zone), now=now),
        lambda: check(Timing(At(now), text), now=now),
    ):
        with suppress(BadSchedule):
            read()


@given(instants, st.timedeltas(timedelta(seconds=1), timedelta(days=9000)), zones)
def test_what_is_shown_is_read_as_the_same_time(now: datetime, ahead: timedelta, zone: str) -> None:
    """SPEC CRON-1: but in a repeated time, where the first pass counts."""
    at = (now + ahead).replace(microsecond=0)
    assume(at > now)
    local, _, _ = local_text(at, zone).rpartition(" ")
    assert abs(parse_moment(local, now=now, zone=zone) - at) in (
        timedelta(),
        timedelta(minutes=30),
        timedelta(hours=1),
    )
    assert strict_moment(at.isoformat(), now=now) == at
