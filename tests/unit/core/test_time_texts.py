"""Points and lengths of time as people read them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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
    ("away", "words"),
    [
        (timedelta(hours=3), "today 12:00"),
        (timedelta(hours=3, seconds=5), "today 12:00"),
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


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("", "today 09:00 (Europe/Berlin)"),
        (BERLIN, "today 09:00"),
        ("Africa/Lagos", "today 09:00"),
        ("UTC", "today 08:00 (Tue 09:00 in Europe/Berlin)"),
        ("Asia/Tokyo", "today 17:00 (Tue 09:00 in Europe/Berlin)"),
        ("Pacific/Honolulu", "yesterday 22:00 (Tue 09:00 in Europe/Berlin)"),
    ],
)
def test_a_reader_in_another_zone_is_told_what_people_typed(zone: str, words: str) -> None:
    now = NINE.replace(hour=12, minute=0)
    assert time_texts.for_reader(NINE, zone, BERLIN, now) == words


def test_a_zone_that_is_no_more_is_told_as_utc() -> None:
    assert time_texts.at(NINE, "Atlantis/Port") == "Tue 3 Mar 2026, 08:00 (UTC)"


CASES = json.loads((Path(__file__).parents[2] / "support/durations.json").read_text())
"""Durations in seconds and their texts, which the browser is tested with, too."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["seconds"]))
def test_durations_are_rounded_to_their_text(case: dict[str, Any]) -> None:
    seconds = case["seconds"]
    moment = timedelta(seconds=seconds)
    texts = {
        "duration": time_texts.duration(seconds),
        "rough": time_texts.rough(seconds),
        "age": time_texts.age(NINE - moment, NINE),
        "until": time_texts.age(NINE + moment, NINE),
    }
    assert texts == {name: text for name, text in case.items() if name != "seconds"}


def test_a_duration_is_empty_if_unknown_and_never_negative() -> None:
    assert time_texts.duration(None) == ""
    assert time_texts.duration(-3.0) == time_texts.rough(-3.0) == "0 s"


@given(st.floats(0, 10**8))
def test_a_rough_duration_is_wrong_by_a_third_at_most(seconds: float) -> None:
    number, unit = time_texts.rough(seconds).split()
    shown = int(number) * {"s": 1, "min": 60, "h": 3600, "d": 86_400}[unit]
    assert abs(shown - seconds) <= max(0.5, seconds / 3)
