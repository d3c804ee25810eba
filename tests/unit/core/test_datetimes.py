"""Points in time as they are written and read (SPEC CRON-1, CRON-2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.core.errors import BadMoment, UnknownZone
from goclaw_py.core.time.datetimes import clock_change, local_text, parse_moment, strict_moment

NOW = datetime(2026, 2, 25, 2, 30, tzinfo=UTC)
"""A Wednesday; 08:00 in Kolkata."""
KOLKATA = "Asia/Kolkata"
BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("2026-02-25 09:00", "2026-02-25 09:00:00"),
        ("2026-02-25T09:00:30", "2026-02-25 09:00:30"),
        ("2026-02-25 9:00", "2026-02-25 09:00:00"),
        ("2026-02-25T09:00:00Z", "2026-02-25 14:30:00"),
        ("2026-02-25T09:00:00.250z", "2026-02-25 14:30:00"),
        ("2026-02-25 09:00 +01:00", "2026-02-25 13:30:00"),
        ("2026-02-25T09:00-0330", "2026-02-25 18:00:00"),
        ("08:01", "2026-02-25 08:01:00"),
        ("8:00", "2026-02-26 08:00:00"),
        ("at 7:59:59", "2026-02-26 07:59:59"),
        ("in 20m", "2026-02-25 08:20:00"),
        ("in 1h30m", "2026-02-25 09:30:00"),
        ("in 1h 30 min", "2026-02-25 09:30:00"),
        ("In 2 Hours", "2026-02-25 10:00:00"),
        ("in 90 seconds", "2026-02-25 08:01:30"),
        ("in 1w", "2026-03-04 08:00:00"),
        ("today 18:00", "2026-02-25 18:00:00"),
        (" Tomorrow  at 9:00 ", "2026-02-26 09:00:00"),
        ("monday 9:00", "2026-03-02 09:00:00"),
        ("wed 9:00", "2026-02-25 09:00:00"),
        ("wednesday 7:00", "2026-03-04 07:00:00"),
    ],
)
def test_what_people_write_is_local_to_the_zone(text: str, local: str) -> None:
    at = parse_moment(text, now=NOW, zone=KOLKATA)
    assert at.tzinfo is UTC
    assert local_text(at, KOLKATA) == f"{local} IST"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-13-01 09:00", "there is no month 13"),
        ("2026-00-01", "there is no month 0"),
        ("2026-02-30 09:00", "month 2 of 2026 has no day 30"),
        ("2026-03-01", "the time of day is missing, such as 2026-03-01 09:00"),
        ("2026-03-01 25:00", "there is no hour 25"),
        ("24:00", "there is no hour 24, midnight is 00:00"),
        ("monday 9:60", "there is no minute 60"),
        ("in 5", 'the unit is missing; for minutes write "5m"'),
        ("in 1.5h", 'the number must be whole; write "90m"'),
        ("in -5m", "must be positive"),
    ],
)
def test_the_part_of_a_time_that_is_wrong_is_named(text: str, reason: str) -> None:
    with pytest.raises(BadMoment) as refused:
        parse_moment(text, now=NOW, zone=KOLKATA)
    said = str(refused.value).replace("the interval ", "")
    assert f"understand: {reason}" in said
    assert "in 20m" in said
    assert len(said) < 300


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "9", "9:60", "funday 9:00", "next monday 9:00", "in", "in 5 parsecs"),
        *("2026-02-25", "20260225T0900", "2026-02-25 09:00 CET", "2026-02-25 09:00 +99:00"),
        *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "\u0661\u0662:00"),
        *("in " + "9" * 30 + "m", "x" * 100_000),
    ],
)
def test_anything_else_is_refused_with_the_forms_that_there_are(text: str) -> None:
    with pytest.raises(BadMoment, match="in 20m") as refused:
        parse_moment(text, now=NOW, zone=KOLKATA)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("2026-02-25 07:00", "1 h"),
        ("2026-02-24T02:30:00Z", "1 d"),
        ("today 7:40", "20 min"),
        ("in 0m", "0 s"),
        ("0002-01-01T00:00Z", "739306 d 3 h"),
    ],
)
def test_a_time_that_is_over_is_refused_with_now_and_the_difference(text: str, gap: str) -> None:
    """SPEC CRON-2."""
    with pytest.raises(BadMoment) as refused:
        parse_moment(text, now=NOW, zone=KOLKATA)
    said = str(refused.value)
    assert "given " in said
    assert "now 2026-02-25 08:00:00 IST" in said
    assert f"which is {gap} later" in said
    assert repr(text) in said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("in 999999999w", "beyond the calendar"),
        ("2126-03-01 00:00", "at most 100 years"),
        ("9998-12-31 23:59", "at most 100 years"),
        ("in 999999999d", "at most 100 years"),
    ],
)
def test_what_is_too_far_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadMoment, match=reason):
        parse_moment(text, now=NOW, zone=KOLKATA)


def test_a_time_in_a_gap_is_its_end() -> None:
    at = parse_moment("2026-03-29 02:10", now=NOW, zone=BERLIN)
    assert local_text(at, BERLIN) == "2026-03-29 03:00:00 CEST"


def test_a_time_that_comes_twice_is_the_first_that_lies_ahead() -> None:
    first = datetime(2026, 10, 25, 0, 10, tzinfo=UTC)
    hour = timedelta(hours=1)
    assert parse_moment("2026-10-25 02:10", now=NOW, zone=BERLIN) == first
    assert parse_moment("2:10", now=first, zone=BERLIN) == first + hour
    day = timedelta(days=1)
    assert parse_moment("2:10", now=first + hour, zone=BERLIN) == first + hour + day


def test_a_day_from_now_is_24_hours() -> None:
    now = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert parse_moment("in 1d", now=now, zone=BERLIN) - now == timedelta(hours=24)


def test_an_unknown_zone_is_said() -> None:
    with pytest.raises(UnknownZone):
        parse_moment("9:00", now=NOW, zone="Europe/Nowhere")


def test_programs_write_an_offset() -> None:
    given = "2026-02-25T09:00:00+05:30"
    assert strict_moment(given, now=NOW) == datetime(2026, 2, 25, 3, 30, tzinfo=UTC)


def test_a_time_without_an_offset_is_answered_with_now_as_it_is_written() -> None:
    with pytest.raises(BadMoment) as refused:
        strict_moment("2026-02-25T09:00:00", now=NOW, zone=KOLKATA)
    assert "2026-02-25T08:00:00+05:30 (Asia/Kolkata)" in str(refused.value)
    with pytest.raises(BadMoment, match=r"2026-02-25T02:30:00\+00:00 \(UTC\)"):
        strict_moment("2026-02-25T09:00:00", now=NOW)


@pytest.mark.parametrize("text", ["", "9:00", "in 20m", "2026-02-30T09:00:00Z", "x" * 10_000])
def test_programs_may_write_nothing_else(text: str) -> None:
    with pytest.raises(BadMoment, match="no time in ISO 8601") as refused:
        strict_moment(text, now=NOW)
    assert "2026-02-25T02:30:00+00:00" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-02-25T02:00:00Z", "which is 30 min later"),
        ("2026-13-01T09:00:00Z", "there is no month 13"),
    ],
)
def test_a_program_is_told_the_reason_too(text: str, reason: str) -> None:
    with pytest.raises(BadMoment, match=reason):
        strict_moment(text, now=NOW)


def test_a_zone_without_an_abbreviation_shows_its_offset() -> None:
    assert local_text(NOW, "America/Sao_Paulo") == "2026-02-24 23:30:00 -03"


@pytest.mark.parametrize(("text", "words"), [
    ("2026-03-29 02:30", "clocks in Europe/Berlin skip 02:30 on that day: it is 03:00"),
    ("2026-10-25 02:30",
     ("clocks in Europe/Berlin show 02:30 twice on that day: it is the first time")),
    ("2026-10-25 02:30:00+01:00", ""),
    ("2026-10-25T00:30Z", ""),
    ("2026-03-29 03:30", ""),
    ("18:30", ""),
    ("in 20m", ""),
])  # fmt: skip
def test_a_time_that_clocks_skip_or_repeat_is_said_to_be(text: str, words: str) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    at = parse_moment(text, now=now, zone="Europe/Berlin")
    assert clock_change(text, at, zone="Europe/Berlin") == words
