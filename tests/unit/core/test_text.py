"""``goclaw_py.core.text``: nothing visible is lost, nothing is cut through."""

from __future__ import annotations

import json
import unicodedata
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from goclaw_py.core.text import (
    count,
    curly,
    error_text,
    first_words,
    is_blank,
    natural_key,
    requirement,
    split_half,
    split_text,
    truncate,
    utf16_len,
    well_formed,
    well_formed_json,
    without_source,
)

FAMILY = "👨\u200d👩\u200d👧"
TONED = "👍🏽"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
ACCENTED = "e\u0301"
CHARACTERS = [FAMILY, TONED, SCOTLAND, ACCENTED, "🇩🇪", "각", "❤️", "x"]

texts = st.text(
    st.one_of(
        st.sampled_from(" \n\n\n.!\t\r\u00a0\u200d\u0301🇩🏽😀aé"),
        st.characters(),
        st.sampled_from("\ud83d\ude00"),
    ),
    max_size=300,
)


def visible(text: str) -> str:
    return "".join(c for c in text if not c.isspace() and unicodedata.category(c) not in "Cc Cf")


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@given(texts)
def test_the_length_is_that_of_the_utf16_encoding(text: str) -> None:
    assert utf16_len(text) == units(text)


@pytest.mark.parametrize(("text", "blank"), [
    ("", True), (" \n\u200b\u00a0", True), ("\u2800", True), ("\u3164 \u3164", True),
    ("\ufe0f", True), ("\u2801", False), ("가", False), ("❤\ufe0f", False), ("a\u2800", False),
])  # fmt: skip
def test_a_text_of_signs_that_nobody_can_see_is_blank(text: str, blank: bool) -> None:
    assert is_blank(text) is blank


@given(texts, st.integers(2, 60))
@example("😀" * 40, 3)
@example("\u0301" * 200, 5)
@example(" a" * 40, 2)
def test_parts_fit_and_keep_every_visible_character_in_order(text: str, limit: int) -> None:
    parts = split_text(text, limit)
    assert all(units(part) <= limit for part in parts)
    assert not any(is_blank(part) for part in parts)
    assert visible("".join(parts)) == visible(text)
    if units(text) <= limit and not is_blank(text):
        assert len(parts) == 1
    # No lone surrogate comes up.
    assert all(part == well_formed(part) for part in split_text(well_formed(text), limit))


@given(st.lists(st.sampled_from(CHARACTERS), max_size=60), st.integers(16, 40))
def test_no_cut_goes_through_what_a_person_sees_as_one_character(
    characters: list[str], limit: int
) -> None:
    text = "".join(characters)
    place = 0
    boundaries = {0}
    for character in characters:
        place += len(character)
        boundaries.add(place)
    cut = 0
    for part in split_text(text, limit):
        cut += len(part)
        assert cut in boundaries


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n\u00a0", "\u200b\u2060", "\x00\x01"])
def test_a_text_of_which_nothing_can_be_seen_has_no_parts(text: str) -> None:
    assert is_blank(text)
    assert split_text(text, 10) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two. three\n\nfour five", ["one two. three", "four five"]),
        ("one two. three\nfour five", ["one two. three", "four five"]),
        ("one two three. four five", ["one two three.", "four five"]),
        ("one two three four five", ["one two three four", "five"]),
        ("onetwothreefourfivesixseven", ["onetwothreefourfives", "ixseven"]),
        ("a\n\nbcd efgh ijkl mno qrst", ["a\n\nbcd efgh ijkl mno", "qrst"]),
        (
            "一二三四五六七八九十一二三。 四五六七八九十",
            ["一二三四五六七八九十一二三。", "四五六七八九十"],
        ),
    ],
)
def test_the_cut_prefers_the_larger_gap(text: str, parts: list[str]) -> None:
    assert split_text(text, 20) == parts


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("a" * 9 + "      b c", 10, ["a" * 9, "b c"]),
        ("one two \u0301three", 8, ["one", "two \u0301thr", "ee"]),
        (
            "\n  \n  a = 1\n  if a:\n    \n    b = 22",
            18,
            ["  a = 1\n  if a:", "    b = 22"],
        ),
        ("abc\ud83d\ude00def", 4, ["abc", "\ud83d\ude00de", "f"]),
        ("🇩🇪🇫🇷🇮🇹", 10, ["🇩🇪🇫🇷", "🇮🇹"]),
    ],
    ids=["blanks at the cut", "accent on a blank", "indentation", "surrogate pair", "flags"],
)
def test_a_cut_keeps_together_what_belongs_together(
    text: str, limit: int, parts: list[str]
) -> None:
    assert split_text(text, limit) == parts


def test_an_endless_character_is_cut_all_the_same() -> None:
    assert [len(part) for part in split_text("a" + "\u0301" * 499, 200)] == [200, 200, 100]
    text = "a" + "\u0301" * 198 + "\ud83d\ude00" + "\u0301" * 200
    assert all(well_formed(part).count("\ufffd") == 0 for part in split_text(text, 200))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("plain", "plain"),
        ("a\ud83d\ude00b", "a😀b"),
        ("a\ud83db", "a\ufffdb"),
        ("\ude00é", "\ufffdé"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, whole: str) -> None:
    assert well_formed(text) == whole


@given(st.lists(st.text("ab\ud83d\ude00😀")))
def test_pieces_of_a_text_are_joined_across_their_ends(pieces: list[str]) -> None:
    half, whole = "", ""
    for piece in pieces:
        text, half = split_half(half + piece)
        whole += text
    assert whole + well_formed(half) == well_formed("".join(pieces))


@given(st.text('ab\ud83d\ude00😀\\"\n'), st.booleans())
def test_json_is_parsed_without_halves(text: str, ascii_only: bool) -> None:
    written = well_formed_json(json.dumps({text: [text]}, ensure_ascii=ascii_only))
    assert json.loads(well_formed(written)) == {well_formed(text): [well_formed(text)]}


@given(texts)
def test_well_formed_text_can_be_encoded(text: str) -> None:
    assert well_formed(text).encode().decode() == well_formed(text)


@given(texts, st.integers(1, 40))
def test_a_cut_text_is_a_beginning_of_it(text: str, limit: int) -> None:
    cut = truncate(text, limit)
    assert len(cut) <= limit
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("one two", 5, "one…"),
        ("abé" + ACCENTED + "f", 5, "abé…"),
        ("ab", 1, "…"),
    ],
)
def test_a_cut_text_ends_at_a_character(text: str, limit: int, cut: str) -> None:
    assert truncate(text, limit) == cut


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 entries"), (1, "1 entry"), (2, "2 entries"), (12_345, "12,345 entries")],
)
def test_a_count_has_its_noun(number: int, words: str) -> None:
    assert count(number, "entry", "entries") == words
    assert count(number, "run") == words.replace("entries", "runs").replace("entry", "run")


@given(texts, st.integers(1, 40))
def test_first_words_are_one_line(text: str, limit: int) -> None:
    found = first_words(text, limit)
    assert len(found) <= limit
    assert found == " ".join(found.split())


def test_a_word_that_is_too_long_is_cut_and_not_left_out() -> None:
    assert first_words("a\nword-without-end", 8) == "a word-…"


@pytest.mark.parametrize("cause", [RuntimeError(), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_that_cannot_write_itself_has_a_text(cause: BaseException) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise cause

    assert error_text(Odd()) == "Odd"
    assert error_text(ValueError("bad")) == "ValueError: bad"


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("[scheduler:morning-news] what is new?", "what is new?"),
        ("[scheduler:news]", ""),
        ("[scheduler:] empty", "[scheduler:] empty"),
        ("see [scheduler:news] there", "see [scheduler:news] there"),
    ],
)
def test_the_mark_of_a_job_is_not_shown(prompt: str, shown: str) -> None:
    assert without_source(prompt) == shown


def test_numbers_in_names_are_sorted_by_their_size() -> None:
    """Found by use: agent10 to agent19 were listed before agent1."""
    names = ["agent10", "agent2", "agent", "agent1", "agent02", "b1", "9" * 5000, "7"]
    in_order = ["7", "9" * 5000, "agent", "agent1", "agent2", "agent02", "agent10", "b1"]
    assert sorted(names, key=natural_key) == in_order


@pytest.mark.parametrize(
    ("rules", "value", "words"),
    [
        ({"ge": 1}, "x", "must be a whole number"),
        ({"ge": 1}, "0", "must be at least 1"),
        ({"le": 9}, "10", "must be at most 9"),
        ({"gt": 1}, "1", "must be more than 1"),
        ({"lt": 9}, "9", "must be less than 9"),
    ],
)
def test_a_wrong_number_is_explained_in_plain_words(
    rules: dict[str, Any], value: str, words: str
) -> None:
    assert refused(Annotated[int, Field(**rules)], value) == words


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (float, "x", "must be a number"),
        (Decimal, "x", "must be a number"),
        (bool, "x", "must be true or false"),
        (str, 1, "must be text"),
        (list[int], 1, "must be a list"),
        (dict[str, int], 1, "must be an object"),
        (Literal["a", "b"], "c", "must be 'a' or 'b'"),
        (Annotated[str, Field(max_length=3)], "long", "must have at most 3 characters"),
        (Annotated[list[int], Field(min_length=2)], [1], "must have at least 2 items"),
    ],
)
def test_a_wrong_value_is_explained_in_plain_words(kind: Any, value: object, words: str) -> None:
    assert refused(kind, value) == words


def refused(kind: Any, value: object) -> str:
    """Why pydantic refuses a value, as people read it."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    return requirement(caught.value.errors()[0]["msg"])


@pytest.mark.parametrize(("given", "shown"), [
    ("no agent 'x y'; it's gone", "no agent “x y”; it's gone"),
    ('must be positive, such as "5m"', "must be positive, such as “5m”"),
    ('unknown time zone "o\'clock"', "unknown time zone “o'clock”"),
])  # fmt: skip
def test_errors_have_the_quotation_marks_of_chats(given: str, shown: str) -> None:
    assert curly(given) == shown
