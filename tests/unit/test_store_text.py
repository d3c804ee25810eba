"""Text that PostgreSQL can hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.common.text import well_formed
from goclaw_py.model.messages import PeerKind, Sender
from goclaw_py.store.text import storable

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_every_text_becomes_storable_and_nothing_else_of_it_changes(text: str) -> None:
    cleaned = storable(text)
    cleaned.encode()
    assert cleaned == well_formed(text).replace("\x00", "\ufffd")


@given(any_text)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    cleaned = storable(text)
    assert storable(cleaned) is cleaned


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_a_text_that_can_be_stored_is_returned_itself(text: str) -> None:
    assert storable(text) is text


def test_texts_inside_of_values_are_cleaned() -> None:
    value = (1, ["a\x00"], Sender("\ud800", "fine"), {"\ud83d\ude00": ["\ude00"]}, None)
    cleaned = (1, ["a\ufffd"], Sender("\ufffd", "fine"), {"😀": ["\ufffd"]}, None)
    assert storable(value) == cleaned


def test_values_that_need_no_change_are_returned_themselves() -> None:
    value = (1, ["a"], Sender("1"), PeerKind.DIRECT, b"\x00", {"a": ["b"]})
    assert storable(value) is value
