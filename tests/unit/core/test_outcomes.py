"""Outcomes as people read them."""

from __future__ import annotations

import pytest

from goclaw_py.core.outcomes import outcome_text


@pytest.mark.parametrize(("value", "words"), [
    ("ok", "completed"),
    ("completed", "completed"),
    ("timed_out", "timed out"),
    ("skipped:no_file", "skipped: no file"),
    ("", ""),
])  # fmt: skip
def test_an_outcome_has_the_word_of_the_glossary(value: str, words: str) -> None:
    assert outcome_text(value) == words
