"""Thoughts in the answers of models (SPEC AGENT-1)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.runs.thoughts import Separated, ThoughtFilter, separate

ALERT = "The disk is overfull"

ANSWERS = {
    "<think>If all is well I say HEARTBEAT_OK.</think>" + ALERT: ALERT,
    "<think>hm</think>\n\n" + ALERT: ALERT,
    "\n<think>\nhm\n</think>\n" + ALERT: "\n" + ALERT,
    "<THINK>hm</Think>" + ALERT: ALERT,
    "<thinking>hm</thinking> " + ALERT: ALERT,
    "<thought>hm</thought>" + ALERT: ALERT,
    "<reasoning>hm</reasoning>" + ALERT: ALERT,
    "[THINK]hm[/THINK]" + ALERT: ALERT,
    "◁think▷hm◁/think▷" + ALERT: ALERT,
    "<think>hm</thinking>" + ALERT: ALERT,
    # Other names, and attributes.
    "<thoughts>hm</thoughts>" + ALERT: ALERT,
    "<reflection>hm</reflection>" + ALERT: ALERT,
    "<scratchpad>hm</scratchpad>" + ALERT: ALERT,
    "<seed:think>hm</seed:think>" + ALERT: ALERT,
    "<redacted_thinking>hm</redacted_thinking>" + ALERT: ALERT,
    "<chain_of_thought>hm</chain_of_thought>" + ALERT: ALERT,
    "<|begin_of_thought|>hm<|end_of_thought|>" + ALERT: ALERT,
    ALERT + '.\n<think class="x">HEARTBEAT_OK</think>': ALERT + ".\n",
    ALERT + '.\n<thinking mode="deep" id=1>hm</thinking>\nNow.': ALERT + ".\nNow.",
    ALERT + ".\n<think\nbudget='1'>hm</think>": ALERT + ".\n",
    # Several blocks, and blocks between words.
    "<think>a</think><think>b</think>" + ALERT: ALERT,
    "Let me see.\n\n<think>hm</think>\n\n" + ALERT: "Let me see.\n\n" + ALERT,
    "Let me see.\n<think>hm</think>\n\n" + ALERT: "Let me see.\n\n" + ALERT,
    "Hello <think>hm</think> world": "Hello world",
    "Hello<think>hm</think> world": "Hello world",
    # Without an end, and without a beginning.
    "<think>The disk": "",
    "All well.\n<think>or not": "All well.\n",
    "hm, HEARTBEAT_OK?\n</think>\n\n" + ALERT: ALERT,
    "hm, HEARTBEAT_OK?</think>" + ALERT: ALERT,
    "First.\n<think>a <think>b</think> c</think>Second": "First.\nSecond",
    "<think></think>" + ALERT: ALERT,
}

KEPT = [
    "",
    "a < b and std::vector<int>",
    "In `<think>` is a tag, and `</think>` ends it.",
    "```xml\n<think>hm</think>\n```\nThat is it.",
    "~~~\n<think>\n~~~",
    "Use ``<think>`` here.",
    "Tags:\n\n`<think>` begins, `</think>` ends.",
    "Write <think> to begin",
    "Write </think> to end",
    "<thinker> and <think-tank>",
    "<think twice> and <think/> and <rethink>",
    "<user_id> and <a:b> and <|end|>",
    "ends with <think class=",
    "ends with <|begin_of",
    "[THINKING] about it",
    "it`s fine <b>",
    "ends with <",
    "ends with <thi",
]


@pytest.mark.parametrize(("answer", "text"), ANSWERS.items())
def test_thoughts_are_no_part_of_an_answer(answer: str, text: str) -> None:
    assert separate(answer).text == text


def test_thoughts_are_kept() -> None:
    found = separate("<think>a</think>One.\n<thinking>\nb\n</thinking>\nTwo.")
    assert found == Separated("One.\nTwo.", ("a", "\nb\n"))
    assert separate("a</think>One.").thoughts == ("a",)
    assert separate("One.\n<think>tw") == Separated("One.\n", ("tw",), is_cut=True)


@pytest.mark.parametrize("answer", KEPT)
def test_texts_without_thoughts_are_kept_as_they_are(answer: str) -> None:
    assert separate(answer) == Separated(answer)


@pytest.mark.parametrize("answer", [*ANSWERS, *KEPT])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_pieces_make_no_difference(answer: str, size: int) -> None:
    shown = ThoughtFilter()
    seen = "".join(shown.feed(answer[at : at + size]) for at in range(0, len(answer), size))
    seen += shown.end()
    assert shown.result.text == separate(answer).text
    # What comes before a closing tag without an opening one was shown already.
    assert seen.endswith(shown.result.text) or "</" in answer


PLAIN = ["a", "b.", " ", "\n", "\n\n", "`", "```", "~~~", "<", "/"]
TAGS = [
    "<think>",
    "</think>",
    "[THINK]",
    "<think",
    ">",
    ' a="b"',
    "<a:think>",
    "<|end_of_thought|>",
]


@given(st.lists(st.sampled_from([*PLAIN, *TAGS])).map("".join), st.lists(st.integers(0, 60)))
def test_any_pieces_of_any_answer_mean_the_same(answer: str, cuts: list[int]) -> None:
    whole, pieces = ThoughtFilter(), ThoughtFilter()
    whole.feed(answer)
    whole.end()
    edges = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})
    for begin, end in pairwise(edges):
        pieces.feed(answer[begin:end])
    pieces.end()
    assert pieces.result == whole.result


@given(st.lists(st.sampled_from(PLAIN)).map("".join))
def test_without_tags_the_visible_text_is_the_written_text(answer: str) -> None:
    shown = ThoughtFilter()
    assert "".join(map(shown.feed, answer)) + shown.end() == answer
