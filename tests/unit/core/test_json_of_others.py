"""``parse_json``: JSON of others is read as far as anybody could read it."""

from __future__ import annotations

import pytest

from goclaw_py.core.storable import parse_json


@pytest.mark.parametrize(("data", "found"), [
    (rb'{"a": "b"}', {"a": "b"}),
    (rb'["\ud83d", "\ude00\ud83d", "\ud83d\ude00"]', ["\ud83d", "\ude00\ud83d", "😀"]),
    (b'["a\xff\xfeb"]', ["a\ufffd\ufffdb"]),
    (b'["\xf0\x9f\x98"]', ["\ufffd"]),
    (b'["\xed\xa0\xbd"]', ["\ufffd\ufffd\ufffd"]),  # half of a pair in bytes
    (b'["a\x00b\tc\nd"]', ["a\0b\tc\nd"]),
    (b'\xef\xbb\xbf["\xef\xbf\xbe"]', ["\ufffe"]),
])  # fmt: skip
def test_a_text_that_is_no_text_costs_only_its_own_characters(data: bytes, found: object) -> None:
    assert parse_json(data) == found


@pytest.mark.parametrize("data", [
    b"", b"no", b'{"a"', b"\xff", b"[" * 100_000, b"[" + b"1" * 5000 + b"]",
    '["a"]'.encode("utf-16"),
])  # fmt: skip
def test_what_is_no_json_is_an_error_of_one_kind(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  whatever the words
        parse_json(data)
