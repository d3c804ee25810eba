"""How long a heartbeat is to be silent, in words (SPEC CMD-5)."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.errors import HeartbeatError
from goclaw_py.schedule.heartbeat.chat_texts import mute_too_long, unknown_duration
from goclaw_py.schedule.heartbeat.mute import LONGEST_MUTE, mute_end

NINE = datetime(2026, 3, 3, 8, 0, tzinfo=UTC)
"""09:00 in Berlin, a Tuesday."""


def end(text: str, zone: str = "Europe/Berlin") -> datetime | None:
    return mute_end(text, now=NINE, zone=zone)


@pytest.mark.parametrize(("text", "lasts"), [
    ("2h", timedelta(hours=2)), ("1h30m", timedelta(minutes=90)),
    ("2 hours", timedelta(hours=2)), ("FOR  2\tHours", timedelta(hours=2)),
    ("in 2h", timedelta(hours=2)), ("until 18:00", timedelta(hours=9)),
    ("until tomorrow 9:00", timedelta(days=1)), ("365d", LONGEST_MUTE),
])  # fmt: skip
def test_a_mute_ends_when_people_say(text: str, lasts: timedelta) -> None:
    assert end(text) == NINE + lasts


@pytest.mark.parametrize("text", ["off", " OFF "])
def test_off_ends_a_mute(text: str) -> None:
    assert end(text) is None


def test_in_a_zone_that_nobody_knows_the_clock_is_that_of_utc() -> None:
    assert end("until 18:00", "Nowhere/At_All") == NINE + timedelta(hours=10)


@pytest.mark.parametrize("text", ["", "2", "soon", "0s", "until", "2h please", "9" * 999])
def test_what_is_no_duration_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(HeartbeatError) as refused:
        end(text)
    assert str(refused.value) == unknown_duration(text)


@pytest.mark.parametrize("text", ["366d", "until 2030-01-01 09:00"])
def test_no_mute_is_longer_than_a_year(text: str) -> None:
    with pytest.raises(HeartbeatError) as refused:
        end(text)
    assert str(refused.value) == mute_too_long(LONGEST_MUTE)


@given(st.text() | st.from_regex(r"(until )?[0-9]{1,3} ?[smhdw:][0-9]{0,2}", fullmatch=True))
def test_whatever_is_said_a_mute_ends_ahead_and_within_a_year(text: str) -> None:
    with suppress(HeartbeatError):
        until = end(text)
        assert until is None or NINE < until <= NINE + LONGEST_MUTE
