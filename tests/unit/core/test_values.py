"""Values that are frozen for the type checker only behave like frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from goclaw_py.core.messages import Target
from goclaw_py.core.values import value


@dataclass(frozen=True, slots=True)
class _Frozen:
    name: str
    tags: tuple[str, ...] = ()
    note: str = field(default="", compare=False)


@value(frozen=True, slots=True)
class _Value:
    name: str
    tags: tuple[str, ...] = ()
    note: str = field(default="", compare=False)


def test_equality_hash_copies_and_patterns_are_those_of_a_frozen_dataclass() -> None:
    mine, theirs = _Value("a", ("b",), "c"), _Frozen("a", ("b",), "c")
    assert mine == _Value("a", ("b",), "another note") != _Value("a")
    assert hash(mine) == hash(theirs)
    assert replace(mine, name="x") == _Value("x", ("b",))
    assert [one.name for one in fields(mine)] == [one.name for one in fields(theirs)]
    assert _Value.__match_args__ == _Frozen.__match_args__
    assert not hasattr(mine, "__dict__")


def test_a_target_can_be_a_key() -> None:
    assert {Target("c", "a", "1"): 1}[Target("c", "a", "1")] == 1
