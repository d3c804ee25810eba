"""``goclaw_py.core.pagination``: places in lists, as they stand in addresses."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goclaw_py.core.pagination import NEWEST, Cursor

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.datetimes(timezones=st.just(UTC)), st.lists(texts, min_size=1, max_size=6))
def test_a_place_comes_back_as_it_was(at: datetime, keys: list[str]) -> None:
    cursor = Cursor(at, tuple(keys))
    assert Cursor.parse(str(cursor), keys=len(keys)) == cursor
    assert re.fullmatch("[A-Za-z0-9_-]+", str(cursor))


def test_an_instant_is_the_same_in_every_zone() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert str(Cursor(elsewhere, ("x",))) == str(Cursor(AT, ("x",)))


def raw(text: str) -> str:
    return urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


@given(st.text(max_size=60))
@example("")
@example(str(Cursor(AT, ("a", "b"))))
@example(str(Cursor(AT, ())))
@example(str(Cursor(AT, ("a",))) + "=")
@example(str(Cursor(AT, ("a",))) + "\n")
@example(raw('["2026-01-02T03:04:05", "a"]'))
@example(raw('["2026-01-02T03:04:05+00:00", "a"]'))
@example(raw('["2026-01-02T03:04:05+00:00",1]'))
@example(raw('["0001-01-01T00:00:00+14:00","a"]'))
@example(raw('["2026-01-02T03:04:05+00:00",null]'))
@example(raw('{"a":1}'))
@example(raw("[]"))
@example(raw("1"))
@example(raw("[" * 5000))
def test_anything_else_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match="no place in this list"):
        Cursor.parse(text)


def test_places_are_in_the_order_of_instants_and_then_of_texts() -> None:
    later = Cursor(AT + timedelta(microseconds=1), ("a",))
    assert Cursor(AT, ("a",)) < Cursor(AT, ("b",)) < later < NEWEST
