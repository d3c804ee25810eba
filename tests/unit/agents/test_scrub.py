from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.agents.models.scrub import MAX_CHARS, hide, scrub

KEY = "my-own-key-0123456789-abcdef"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        f"key {KEY[:8]}*****{KEY[-4:]} is wrong",
        f"begins with {KEY[:12]}",
        f"ends with ...{KEY[-8:]}",
        f"Authorization: Bearer {KEY}",
        f"Illegal header value b'Bearer {KEY}\\n'",
    ],
)
def test_the_key_and_its_parts_are_hidden(text: str) -> None:
    """SPEC SEC-2."""
    clean = scrub(text, [KEY])
    assert KEY[:8] not in clean
    assert KEY[-8:] not in clean
    assert "[hidden]" in clean


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("use sk-proj-AbCdEf123456 instead", "AbCdEf"),
        ("sk-ant-api03-XYZXYZ_xyz", "XYZ"),
        ("Bearer eyJhbGciOi.abc.def", "eyJ"),
        ("key abcd*****wxyz", "wxyz"),
        ("API key AIzaSyA-1234567890_abc not valid", "1234567890"),
        ("credential AKIA" + "IOSFODNN7EXAMPLE", "FODNN7"),
        ("token hf_AbCdEfGhIjKl is expired", "AbCdEf"),
        ("github_pat_11ABCDEFG0123 has no rights", "11ABC"),
    ],
)
def test_what_looks_like_a_key_is_hidden_though_it_is_not_ours(text: str, hidden: str) -> None:
    assert hidden not in scrub(text)


def test_ordinary_words_stay() -> None:
    text = (
        "status_code: 429, model_name: gpt-4o, body: {'message': 'Rate limit, risk-free task-list'}"
    )
    assert scrub(text, ["", "abc", KEY]) == text


def test_a_secret_across_the_cut_is_hidden_before_cutting() -> None:
    text = "x" * (MAX_CHARS - 5) + KEY
    clean = scrub(text, [KEY])
    assert KEY[:4] not in clean
    assert len(clean) <= MAX_CHARS


@given(
    before=st.text(max_size=400),
    after=st.text(max_size=400),
    key=st.from_regex(r"[A-Za-z0-9_-]{16,60}", fullmatch=True),
)
def test_no_text_around_a_key_lets_it_through(before: str, after: str, key: str) -> None:
    clean = scrub(before + key + after, [key])
    assert key not in clean
    assert len(clean) <= MAX_CHARS


@pytest.mark.parametrize("letter", ["a", "*", "a.", "-", "sk-", "…", "\u00e9"])
def test_a_text_without_end_takes_no_time(letter: str) -> None:
    """Found by a review: a provider's or a tool's words must not stop the whole gateway."""
    text = letter * (1_000_000 // len(letter))
    # It would take hours if it were not linear.
    assert len(hide(text, ["a-secret-of-some-length", "another-secret-of-length"])) <= len(text)
    assert len(scrub(text, ["a-secret-of-some-length"])) <= MAX_CHARS
