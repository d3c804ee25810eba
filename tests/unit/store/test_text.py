"""Text that PostgreSQL can hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.messages import PeerKind, Sender
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.storable import storable_json
from goclaw_py.core.text import well_formed
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


class Wordless:
    def __str__(self) -> str:
        raise ValueError("no words")


@dataclass(frozen=True)
class Record:
    text: str
    count: int


def nested(depth: int) -> object:
    value: object = "end"
    for _ in range(depth):
        value = [value]
    return value


def endless() -> object:
    value: dict[str, object] = {}
    value["self"] = [value, value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, None, True, "é"]}, '{"a":[1,null,true,"é"]}'),
        ([2**64, -(2**80)], "[18446744073709551616,-1208925819614629174706176]"),
        (["\ud83d", "\ud83d\ude00"], '["\ufffd","😀"]'),
        ([math.nan, math.inf, 2**64], "[null,null,18446744073709551616]"),
        ({1: "a", None: "b", (2, "\ud83d"): "c"}, '{"1":"a","None":"b","(2, \'\\\\ud83d\')":"c"}'),
        ([Record("\ud83d", 2**64)], '[{"text":"\ufffd","count":18446744073709551616}]'),
        ([Trigger.CHAT, 2**64], '["chat",18446744073709551616]'),
        ([Decimal("0.1"), 2**64], '["0.1",18446744073709551616]'),
        ([Wordless(), 2**64], '["<Wordless>",18446744073709551616]'),
        ({Wordless(): {2**64}}, '{"<Wordless>":[18446744073709551616]}'),
        (endless(), '{"self":["…","…"]}'),
    ],
)
def test_any_value_is_json(value: object, text: str) -> None:
    assert storable_json(value).decode() == text


@pytest.mark.parametrize(
    "value",
    [nested(250), nested(2_000), nested(100_000), 2**20_000],
    ids=["deep", "deeper", "deepest", "large"],
)
def test_what_is_too_deep_or_too_large_is_json_that_can_be_read(value: object) -> None:
    orjson.loads(storable_json([value, 2**64]))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.binary(max_size=3),
    lambda inner: st.lists(inner) | st.dictionaries(any_text | st.integers() | st.none(), inner),
    max_leaves=10,
)


@given(ANYTHING)
def test_what_is_written_can_be_read(value: object) -> None:
    orjson.loads(storable_json(value))
