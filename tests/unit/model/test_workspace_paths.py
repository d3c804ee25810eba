"""SPEC SEC-4, as far as it is about how a path is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.model.messages import Target
from goclaw_py.model.targets import parse_target, target_text
from goclaw_py.model.workspace_paths import BadPath, split_file_path, split_path


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a", ("a",)),
        ("a/b.md", ("a", "b.md")),
        ("./a//b/./c/", ("a", "b", "c")),
        ("", ()),
        (".", ()),
        ("...", ("...",)),
        ("..a/b..", ("..a", "b..")),
        ("~/a", ("~", "a")),
        ("a\\..\\b", ("a\\..\\b",)),
        ("/srv/ws/a", ("a",)),
        ("/srv/ws", ()),
        ("/srv/ws/", ()),
        ("ü/日本", ("ü", "日本")),
    ],
)
def test_a_path_is_taken_apart(path: str, parts: tuple[str, ...]) -> None:
    assert split_path(path, "/srv/ws") == parts


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("..", "must not have .. in it"),
        ("a/../b", "must not have .. in it"),
        ("/srv/ws/../etc", "must not have .. in it"),
        ("/etc/passwd", "this one is absolute"),
        ("/", "this one is absolute"),
        ("/srv/wsx", "this one is absolute"),
        ("/srv//ws/a", "this one is absolute"),
        ("//srv/ws/a", "this one is absolute"),
        ("a\0b", "control characters"),
        ("a\nb", "control characters"),
        ("\x7f", "control characters"),
        ("\ud800", "broken ones"),
        ("x" * 256, "more than 255 bytes"),
        ("ü" * 128, "more than 255 bytes"),
        ("a/" * 33, "deeper than 32 folders"),
        (f"{'x' * 250}/" * 5, "longer than 1,000 bytes"),
    ],
)
def test_a_path_that_may_lead_out_or_cannot_be_is_refused(path: str, reason: str) -> None:
    with pytest.raises(BadPath, match=reason):
        split_path(path, "/srv/ws")


def test_without_a_root_no_absolute_path_is_taken() -> None:
    with pytest.raises(BadPath, match="this one is absolute"):
        split_path("/a")


def test_a_workspace_may_be_the_root_itself() -> None:
    assert split_path("/etc/hosts", "/") == ("etc", "hosts")


@pytest.mark.parametrize("path", ["", ".", "/srv/ws", "a/", "a/."])
def test_a_file_has_a_name(path: str) -> None:
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


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("telegram:12345", Target("telegram", "default", "12345")),
        ("telegram:-100:7", Target("telegram", "default", "-100", "7")),
        ("telegram.work:-100:7", Target("telegram", "work", "-100", "7")),
    ],
)
def test_the_account_default_has_no_suffix(text: str, target: Target) -> None:
    """As in session keys (SPEC IO-7)."""
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
