"""Text that PostgreSQL can hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.model.messages import PeerKind, Sender
from goclaw_py.store.text import storable

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_every_text_becomes_storable_and_keeps_its_length(text: str) -> None:
    cleaned = storable(text)
    cleaned.encode()
    assert "\x00" not in cleaned
    assert len(cleaned) == len(text)


@given(any_text)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    cleaned = storable(text)
    assert storable(cleaned) is cleaned


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_a_text_that_can_be_stored_is_returned_itself(text: str) -> None:
    assert storable(text) is text


def test_texts_inside_of_values_are_cleaned() -> None:
    value = (1, ["a\x00"], Sender("\ud800", "fine"), None)
    assert storable(value) == (1, ["a\ufffd"], Sender("\ufffd", "fine"), None)


def test_values_that_need_no_change_are_returned_themselves() -> None:
    value = (1, ["a"], Sender("1"), PeerKind.DIRECT, b"\x00")
    assert storable(value) is value
