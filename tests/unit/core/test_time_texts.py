"""Points and lengths of time as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.time import texts as time_texts

BERLIN = "Europe/Berlin"
NINE = datetime(2026, 3, 3, 8, 0, tzinfo=UTC)
"""09:00 in Berlin, a Tuesday."""


@pytest.mark.parametrize(
    ("instant", "words"),
    [
        (NINE, "Tue 3 Mar 2026, 09:00 (Europe/Berlin)"),
        (NINE.replace(second=7), "Tue 3 Mar 2026, 09:00:07 (Europe/Berlin)"),
        (datetime(2026, 12, 31, 23, 30, tzinfo=UTC), "Fri 1 Jan 2027, 00:30 (Europe/Berlin)"),
    ],
)
def test_times_are_those_of_the_zone(instant: datetime, words: str) -> None:
    assert time_texts.at(instant, BERLIN) == words


@given(
    st.integers(2**26, 2**32).map(lambda unix_s: datetime.fromtimestamp(unix_s, UTC)),
    st.sampled_from([BERLIN, "UTC", "Asia/Kathmandu", "America/St_Johns"]),
)
def test_a_time_can_be_read_back_whatever_language_the_process_speaks(
    instant: datetime, zone: str
) -> None:
    text = time_texts.local(instant, zone)
    form = "%a %d %b %Y, %H:%M:%S" if text.count(":") == 2 else "%a %d %b %Y, %H:%M"
    read = datetime.strptime(text, form)  # noqa: DTZ007  local by intention
    assert read == instant.astimezone(time_texts.zone_or_utc(zone)[0]).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (timedelta(hours=2), "2 hours"),
        (timedelta(hours=2) - timedelta(milliseconds=300), "2 hours"),
        (timedelta(minutes=119), "1 hour 59 minutes"),
        (timedelta(days=1, minutes=1), "1 day 1 minute"),
        (timedelta(days=3, hours=4, minutes=5), "3 days 4 hours"),
        (timedelta(seconds=59.5), "1 minute"),
        (timedelta(seconds=1.5), "2 seconds"),
        (timedelta(0), "less than a second"),
    ],
)
def test_what_is_left_is_not_a_minute_less_because_some_time_passed(
    time: timedelta, words: str
) -> None:
    assert time_texts.left(time) == words


@pytest.mark.parametrize(
    ("away", "words"),
    [
        (timedelta(hours=3), "today 12:00"),
        (timedelta(hours=3, seconds=5), "today 12:00:05"),
        (timedelta(hours=15), "tomorrow 00:00"),
        (timedelta(days=1), "tomorrow 09:00"),
        (timedelta(days=3), "Fri 09:00"),
        (timedelta(days=6), "Mon 09:00"),
        (timedelta(days=7), "Tue 10 Mar 09:00"),
        (timedelta(days=304), "Fri 1 Jan 2027 09:00"),
        (-timedelta(minutes=1), "today 08:59"),
        (-timedelta(hours=9, minutes=50), "yesterday 23:10"),
        (-timedelta(days=3), "Sat 09:00"),
        (-timedelta(days=6), "Wed 09:00"),
        (-timedelta(days=7), "Tue 24 Feb 09:00"),
    ],
)
def test_a_time_that_is_near_is_said_as_people_say_it(away: timedelta, words: str) -> None:
    """SPEC CMD-5."""
    assert time_texts.friendly(NINE + away, BERLIN, NINE) == words


def test_a_zone_that_is_no_more_is_told_as_utc() -> None:
    assert time_texts.at(NINE, "Atlantis/Port") == "Tue 3 Mar 2026, 08:00 (UTC)"


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (timedelta(0), "less than a second"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=119), "1 minute"),
        (timedelta(hours=23, minutes=59), "23 hours"),
        (timedelta(days=400), "400 days"),
    ],
)
def test_a_length_of_time_is_told_in_its_largest_unit(time: timedelta, words: str) -> None:
    assert time_texts.lasting(time) == words
