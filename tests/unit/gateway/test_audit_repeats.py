"""Equal entries without effect are stored once a minute, and none is missing (SPEC SEC-9)."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from goclaw_py.gateway.audit.repeats import APART, MOST_KINDS, RepeatedEntries
from goclaw_py.records import AuditEntry
from tests.support.stores import T0

SECOND = timedelta(seconds=1)
STOP = AuditEntry(
    0, T0, "person", "Bob", "", "x", "n1", "session.stop", "s", None, None, "not allowed"
)


def stop(at_s: float, actor: str = "Bob") -> AuditEntry:
    return replace(STOP, at=T0 + at_s * SECOND, actor=actor)


def repeated(entry: AuditEntry) -> Any:
    return (entry.after or {}).get("repeated", 0)


def test_the_first_is_stored_at_once_and_the_next_after_a_minute_has_the_number_between() -> None:
    repeats = RepeatedEntries()
    rows = [repeats.add(stop(at), "r") for at in (0, 1, 59, 60, 61)]
    assert [[repeated(one) for one in some] for some in rows] == [[0], [], [], [2], []]


def test_the_last_one_is_stored_when_no_other_follows() -> None:
    repeats = RepeatedEntries()
    for at in (0, 1, 2, 3):
        repeats.add(stop(at), "r")
    assert repeats.due(T0 + 59 * SECOND) == []
    assert repeats.due(T0 + APART) == [replace(stop(3), after={"repeated": 2})]
    assert repeats.due(T0 + 9 * APART) == []


@pytest.mark.parametrize("field", ["kind", "actor", "action"])
def test_others_are_stored_at_once(field: str) -> None:
    repeats = RepeatedEntries()
    repeats.add(STOP, "r")
    other: Any = replace(STOP, **{field: "other"})  # type: ignore[arg-type]
    assert repeats.add(other, "r") == [other]
    assert repeats.add(STOP, "another reason") == [STOP]
    assert repeats.add(replace(STOP, subject="other", via="other"), "r") == []


def test_after_the_clock_has_gone_back_an_entry_is_stored_soon() -> None:
    repeats = RepeatedEntries()
    repeats.add(stop(3600), "r")
    assert len(repeats.add(stop(0), "r")) == 1


def test_memory_is_bounded_and_what_is_forgotten_is_stored() -> None:
    repeats = RepeatedEntries()
    repeats.add(stop(0), "r")
    repeats.add(stop(0), "r")
    rows = [one for n in range(9 * MOST_KINDS) for one in repeats.add(stop(1, f"p{n}"), "r")]
    assert len(repeats._kinds) == MOST_KINDS
    assert [one for one in rows if one.actor == "Bob"] == [stop(0)]


@pytest.mark.parametrize("seed", range(50))
def test_none_is_missing_and_no_kind_has_two_rows_within_a_minute(seed: int) -> None:
    chance, repeats, at = random.Random(seed), RepeatedEntries(), 0.0
    rows: dict[str, list[tuple[float, AuditEntry]]] = {actor: [] for actor in "ABC"}
    added = dict.fromkeys(rows, 0)
    for _ in range(500):
        at += chance.choice((0, 0.1, 5, 70))
        if chance.random() < 0.1:
            found = repeats.due(T0 + at * SECOND)
        else:
            actor = chance.choice("ABC")
            added[actor] += 1
            found = repeats.add(stop(at, actor), "r")
            assert found or rows[actor]
        for one in found:
            rows[one.actor].append((at, one))
    for one in repeats.due(T0 + at * SECOND + APART):
        rows[one.actor].append((at + 60, one))
    for actor, stored in rows.items():
        assert sum(1 + repeated(one) for _, one in stored) == added[actor]
        times = [when for when, _ in stored]
        assert all(b - a > 59.9 for a, b in pairwise(times))
