"""Items of a checklist with their marks, and taking one out (SPEC HB-3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.errors import BadChecklist
from goclaw_py.schedule.heartbeat.checklist.checklist import CheckboxItem, marks, parse, without

LIST = (
    "# Mine\n\n- [ ] a\n  more\n  - [x] inner\n- [x] done <!-- c -->\n\n"
    "Heading\n===\n* every 2h: z\n"
)
PIECES = [
    "- a", "  - b", "- [x] c", "  more", "", "# H", "H\n==", "<!-- x", "--> y", "```", "* ",
    "> - q",
]  # fmt: skip
lists = st.lists(st.sampled_from(PIECES), max_size=8).map("\n".join) | st.text(max_size=40)


def test_items_have_their_marks_and_the_numbers_of_the_open_ones() -> None:
    assert marks(LIST) == (
        CheckboxItem(0, "a more", 1),
        CheckboxItem(1, "inner", None, depth=1),
        CheckboxItem(2, "done", None),
        CheckboxItem(3, "every 2h: z", 2, every="every 2h"),
    )


def test_an_item_leaves_with_all_that_is_in_it_and_nothing_else_changes() -> None:
    assert without(LIST, 0) == LIST.replace("- [ ] a\n  more\n  - [x] inner\n", "")
    assert without(LIST, 1) == LIST.replace("  - [x] inner\n", "")
    assert without(LIST, 3) == LIST.replace("* every 2h: z\n", "")


@pytest.mark.parametrize(("text", "place", "why"), [
    (LIST, -1, "no such item"),
    (LIST, 4, "no such item"),
    (LIST, 10**9, "no such item"),
    ("- a <!-- from here\n- b --> \n- c\n", 0, "cannot be taken out alone"),
])  # fmt: skip
def test_no_item_or_one_that_hides_others_is_not_taken_out(text: str, place: int, why: str) -> None:
    with pytest.raises(BadChecklist, match=why):
        without(text, place)


@given(lists)
def test_open_items_are_those_of_the_checklist(text: str) -> None:
    open_ones = [(mark.number, mark.text, mark.every) for mark in marks(text) if not mark.is_done]
    assert open_ones == [(item.number, item.text, item.every) for item in parse(text).items]


@given(lists, st.integers(0, 7))
def test_what_is_left_says_what_it_said(text: str, place: int) -> None:
    before = marks(text)
    try:
        left = without(text, place)
    except BadChecklist:
        return
    after = [(mark.text, mark.is_done) for mark in marks(left)]
    assert len(left) < len(text)
    rest = iter([(mark.text, mark.is_done) for mark in before])
    assert all(mark in rest for mark in after)
