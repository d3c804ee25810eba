"""Laws of cron expressions, and ours beside Debian's cron (rules R1 to R11 of cron-rules.md)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from goclaw_py.core.errors import BadCron
from goclaw_py.schedule.cron.expression import CronExpression, parse
from tests.property.naive_cron import MINUTE, NaiveCron, transitions, utc

ZONES = [
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll"),
    *("Asia/Kolkata", "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo", "Asia/Tehran"),
    *("America/Caracas", "Asia/Pyongyang", "Pacific/Chatham", "Antarctica/Casey"),
]
"""Shifts of 30 minutes, two hours and a day; shifts back in spring; changes at midnight; none."""

BEGIN, END = utc(2005), utc(2027)

EXPRESSIONS = [
    *("* * * * *", "30 2 * * *", "0 * * * *", "*/15 1-3 * * *", "0-59 0-23 * * *"),
    *("0,30 0-4 * * *", "59 23 * * *", "0 0 * * *", "30 1,2,3 * * *", "*/7 */2 * * *"),
    *("15 0 L * 0,5#3", "45 1 1-7 * 0"),
]


def term(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(sorted).map(lambda ends: f"{ends[0]}-{ends[1]}")
    step = st.integers(1, high + 3)
    return st.one_of(
        number.map(str),
        span,
        st.builds("{}/{}".format, span, step),
        step.map("*/{}".format),
        st.just("*"),
    )


def texts(low: int, high: int, *special: str) -> st.SearchStrategy[str]:
    terms = term(low, high) | st.sampled_from(special) if special else term(low, high)
    return st.just("*") | st.lists(terms, min_size=1, max_size=3).map(",".join)


expressions = st.tuples(
    texts(0, 59),
    texts(0, 23),
    texts(1, 31, "L"),
    texts(1, 12),
    texts(0, 7, "5#3", "0L", "7#1", "1L"),
).map(" ".join)
"""Of five fields, all of them right; some never fire."""

zones = st.sampled_from(ZONES).map(ZoneInfo)
instants = st.datetimes(datetime(2005, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
changes = st.sampled_from(
    [(zone, at) for zone in ZONES for at in transitions(ZoneInfo(zone), BEGIN, END)]
)


def after(cron: CronExpression, zone: ZoneInfo, begin: datetime, end: datetime) -> list[datetime]:
    found = []
    at = cron.next_after(zone, begin)
    while at is not None and at <= end:
        found.append(at)
        at = cron.next_after(zone, at)
    return found


@pytest.mark.parametrize("name", ZONES)
@pytest.mark.slow
def test_every_change_of_clocks_goes_as_in_debian(name: str) -> None:
    """Rules R4 to R9: each change of 22 years, with two of the expressions in turn."""
    zone = ZoneInfo(name)
    for number, at in enumerate(transitions(zone, BEGIN, END)):
        begin, end = at - timedelta(hours=4), at + timedelta(hours=8)
        for expression in (EXPRESSIONS[number % 12], EXPRESSIONS[(number * 5 + 7) % 12]):
            wanted = list(NaiveCron(expression).firings(zone, begin, end))
            assert after(parse(expression), zone, begin, end) == wanted, (expression, at)


@given(expressions, changes, st.integers(1, 5 * 60))
def test_any_expression_goes_as_in_debian(
    expression: str, change: tuple[str, datetime], ahead: int
) -> None:
    """Rules R2 to R10; what starts in a second pass knows of no first one, so it starts before."""
    zone = ZoneInfo(change[0])
    begin = change[1] - ahead * MINUTE
    end = begin + timedelta(hours=10)
    wanted = list(NaiveCron(expression).firings(zone, begin, end))
    assert after(parse(expression), zone, begin, end) == wanted


@given(expressions, st.integers(2005, 2100), st.integers(0, 11))
def test_the_days_of_any_expression_are_debians(expression: str, year: int, month: int) -> None:
    """Rules R3 and R10, over two months."""
    cron, utc_zone = parse(expression), ZoneInfo("UTC")
    naive = NaiveCron(expression)
    first = utc(year, month + 1).date()
    fitting = [
        day
        for number in range(60)
        if (day := first + timedelta(days=number)).month in naive.sets[3] and naive.on_day(day)
    ]
    found = []
    evening = utc(year, month + 1) - timedelta(seconds=1)
    while (following := cron.next_after(utc_zone, evening)) is not None:
        if following.date() >= first + timedelta(days=60):
            break
        found.append(following.date())
        evening = following.replace(hour=23, minute=59, second=59)
    assert found == fitting


@given(expressions, zones, instants, st.floats(0, 1))
def test_the_next_firing_lies_ahead_with_nothing_in_between(
    expression: str, zone: ZoneInfo, begin: datetime, part: float
) -> None:
    """Rule R4: wherever one begins before a firing, that is the next one."""
    cron = parse(expression)
    following = cron.next_after(zone, begin)
    assume(following is not None)
    assert following is not None
    assert following > begin
    assert following.microsecond == 0
    between = begin + (following - begin) * part
    assume(between < following)
    assert cron.next_after(zone, between) == following


@given(expressions, zones, changes, st.integers(-7200, 7200))
def test_so_it_is_around_a_change_of_clocks(
    expression: str, zone: ZoneInfo, change: tuple[str, datetime], seconds: int
) -> None:
    """Rule R4: the sequence is the same wherever in it one begins."""
    zone = ZoneInfo(change[0])
    cron = parse(expression)
    begin = change[1] + timedelta(seconds=seconds)
    first = cron.next_after(zone, begin)
    earlier = cron.next_after(zone, begin - timedelta(hours=3))
    while earlier is not None and earlier <= begin:
        earlier = cron.next_after(zone, earlier)
    assert earlier == first


@given(expressions, zones, instants)
def test_six_fields_with_a_second_of_0_are_the_five(
    expression: str, zone: ZoneInfo, begin: datetime
) -> None:
    """Rule R6."""
    assert parse(f"0 {expression}").next_after(zone, begin) == parse(expression).next_after(
        zone, begin
    )


@given(expressions)
def test_an_expression_never_fires_if_no_year_of_four_hundred_has_its_days(expression: str) -> None:
    """Rule R11: calendars repeat after 400 years, and each of their shapes within 40."""
    cron = parse(expression)
    found = cron.next_after(ZoneInfo("UTC"), utc(2000))
    assert cron.fires() == (found is not None)


@given(expressions)
def test_no_two_of_sixty_firings_are_closer_than_the_least_gap(expression: str) -> None:
    """SPEC CRON-15."""
    cron, at = parse(expression), utc(2000)
    gap = cron.least_gap()
    for number in range(60):
        following = cron.next_after(ZoneInfo("UTC"), at)
        if following is None:
            return
        assert number == 0 or following - at >= gap
        at = following


@given(expressions, instants, zones)
def test_the_zone_of_the_process_does_not_matter(
    expression: str, begin: datetime, zone: ZoneInfo
) -> None:
    cron = parse(expression)
    found = set()
    for name in ("UTC", "America/New_York", "Pacific/Apia"):
        with process_zone(name):
            found.add(cron.next_after(zone, begin))
    assert len(found) == 1


@contextmanager
def process_zone(name: str) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


@given(st.text(alphabet="0123456789*/,-LW#? @abcRH\t", max_size=40) | st.text(max_size=20))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    """Rule R2, SPEC CRON-2."""
    try:
        cron = parse(text)
    except BadCron:
        return
    assert cron.next_after(ZoneInfo("UTC"), BEGIN) is None or cron.fires()
