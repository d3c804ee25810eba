"""SPEC SEC-4, as far as it is about how a path is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.core.messages import Target
from goclaw_py.core.targets import parse_target, target_text
from goclaw_py.core.workspace.paths import BadPath, split_file_path, split_path


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        *(("a", ("a",)), ("a/b.md", ("a", "b.md")), ("./a//b/./c/", ("a", "b", "c"))),
        *(("", ()), (".", ()), ("...", ("...",)), ("..a/b..", ("..a", "b.."))),
        *(("~/a", ("~", "a")), ("a\\..\\b", ("a\\..\\b",)), ("ü/日本", ("ü", "日本"))),
        *(("/srv/ws/a", ("a",)), ("/srv/ws", ()), ("/srv/ws/", ())),
    ],
)
def test_a_path_is_taken_apart(path: str, parts: tuple[str, ...]) -> None:
    assert split_path(path, "/srv/ws") == parts
    assert split_path("/etc/hosts", "/") == ("etc", "hosts"), "a workspace may be the root itself"


@pytest.mark.parametrize(
    ("reason", "paths"),
    [
        ("must not have .. in it", ["..", "a/../b", "/srv/ws/../etc"]),
        ("is absolute", ["/etc/passwd", "/", "/srv/wsx", "/srv//ws/a", "//srv/ws/a"]),
        ("control characters", ["a\0b", "a\nb", "\x7f"]),
        ("broken ones", ["\ud800"]),
        ("more than 255 bytes", ["x" * 256, "ü" * 128]),
        ("deeper than 32 folders", ["a/" * 33]),
        ("longer than 1,000 bytes", [f"{'x' * 250}/" * 5]),
    ],
)
def test_a_path_that_may_lead_out_or_cannot_be_is_refused(reason: str, paths: list[str]) -> None:
    for path in paths:
        with pytest.raises(BadPath, match=reason):
            split_path(path, "/srv/ws")
    with pytest.raises(BadPath, match="this one is absolute"):
        split_path("/a")


def test_a_file_has_a_name() -> None:
    for path in ("", ".", "/srv/ws", "a/", "a/."):
        with pytest.raises(BadPath, match="must name a file"):
            split_file_path(path, "/srv/ws")
    assert split_file_path("a/b", "/srv/ws") == ("a", "b")


@given(st.text(st.sampled_from("a./\\~ é\0\n"), max_size=30))
def test_no_part_of_a_path_leads_anywhere_by_itself(path: str) -> None:
    try:
        parts = split_path(path, "/a")
    except BadPath:
        return
    assert all(part not in ("", ".", "..") and "/" not in part for part in parts)


names = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True)
ids = st.text(st.sampled_from("-_0123456789abcXYZé@."), min_size=1, max_size=20)
targets = st.builds(Target, names, names, ids, st.none() | ids)


@given(targets)
def test_a_target_is_read_as_it_was_written(target: Target) -> None:
    assert parse_target(target_text(target)) == target


def test_the_account_default_has_no_suffix() -> None:
    """As in session keys (SPEC IO-7)."""
    for text, target in (
        ("telegram:12345", Target("telegram", "default", "12345")),
        ("telegram:-100:7", Target("telegram", "default", "-100", "7")),
        ("telegram.work:-100:7", Target("telegram", "work", "-100", "7")),
    ):
        assert parse_target(text) == target
        assert target_text(target) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "telegram", "telegram:", ":1", "telegram:1:", "telegram:1:2:3", "telegram:1 2"),
        *("Telegram:1", "telegram.:1", ".work:1", "telegram.a.b:1", "telegram:1\n"),
        *("telegram:\0", "telegram:" + "1" * 129),
    ],
)
def test_anything_else_is_no_target(text: str) -> None:
    assert parse_target(text) is None
