"""Each thing costs what docs/costs.md says."""

from __future__ import annotations

import pytest

from tests.ledger.costs import (
    PAGE,
    WRITE,
    differences,
    is_same_python,
    measured,
    page,
    planted,
    stored,
)

COSTS = {"answered message": {"statements": 6, "WAL bytes": 10_000, "function calls": 2_000}}


def test_nothing_costs_more_or_less_than_the_page_says() -> None:
    text = PAGE.read_text("utf-8")
    found = differences(stored(text), measured(), same_python=is_same_python(text))
    assert found == [], f"costs differ; if that is meant, run {WRITE}, which writes docs/costs.md"


def test_a_page_is_read_as_it_was_written() -> None:
    assert stored(page("", COSTS)) == COSTS


def test_a_difference_is_said_by_scenario_and_counter() -> None:
    now = {"answered message": {"statements": 8, "WAL bytes": 10_000, "function calls": 2_000}}
    assert differences(COSTS, now) == ["answered message: statements 6 -> 8"]


def test_a_cost_that_falls_is_a_difference() -> None:
    now = {"answered message": {"statements": 5, "WAL bytes": 10_000, "function calls": 2_000}}
    assert differences(COSTS, now) == ["answered message: statements 6 -> 5"]


def test_what_swings_may_swing_by_three_percent() -> None:
    now = {"answered message": {"statements": 6, "WAL bytes": 10_300, "function calls": 1_939}}
    assert differences(COSTS, now) == ["answered message: function calls 2000 -> 1939"]


def test_allocated_blocks_may_swing_by_fifty() -> None:
    before, now, later = ({"web chat": {"allocated blocks": blocks}} for blocks in (300, 350, 351))
    assert differences(before, now) == []
    assert differences(before, later) == ["web chat: allocated blocks 300 -> 351"]


def test_calls_of_functions_are_not_compared_across_versions_of_python() -> None:
    now = {"answered message": {"statements": 6, "WAL bytes": 10_000, "function calls": 9_000}}
    assert differences(COSTS, now, same_python=False) == []


@pytest.mark.slow  # Whoever changes what things cost runs it.
def test_planted_faults_are_differences_by_name() -> None:
    found = planted()
    before = found.pop("")
    for counter, costs in found.items():
        said = differences(before, costs)
        more = costs["answered message"].get(counter, 0)
        less = before["answered message"].get(counter, 0)
        assert more > less
        assert f"answered message: {counter} {less} -> {more}" in said
