"""Sizes that change while runs work: of lanes and of sessions.

SPEC LANE-1, LANE-2, LANE-3, LANE-4, LANE-9, QUEUE-7.
"""

from __future__ import annotations

import pytest

from tests.unit.scheduler.shell import GROUP, Shell, told


def full(size: int, waiting: int) -> Shell:
    """A lane with so many that run, and so many that wait for it."""
    shell = Shell({"main": size})
    for number in range(size + waiting):
        shell.submit(str(number), f"session {number}")
    return shell


# ---------------------------------------------------------------------- lanes on demand


def test_a_lane_made_on_demand_takes_requests_and_bounds_them() -> None:
    shell = Shell()
    made = shell.get_or_create("own", 1)
    assert (made.name, made.concurrency, made.active) == ("own", 1, 0)
    shell.submit("a", "one", lane="own")
    shell.submit("b", "two", lane="own")
    assert shell.working == ["a"]
    assert shell.lane("main").active == 0


def test_a_second_call_with_another_size_keeps_the_first() -> None:
    shell = Shell()
    shell.get_or_create("own", 3)
    assert shell.get_or_create("own", 9).concurrency == 3
    assert shell.get_or_create("main", 9).concurrency == 2


# ---------------------------------------------------------------------- resize


def test_a_lane_that_grows_starts_those_who_wait_in_their_order() -> None:
    shell = full(1, waiting=3)
    assert told(shell.resize("main", 3)) == ["start 1", "start 2"]
    assert (shell.lane().concurrency, shell.lane().active, shell.lane().waiting) == (3, 3, 1)


def test_a_lane_that_shrank_starts_nobody_until_it_is_below_its_size() -> None:
    shell = full(3, waiting=1)
    shell.resize("main", 1)
    shell.done_all("0", "1")
    assert shell.working == ["2"]
    shell.done("2")
    assert shell.working == ["3"]


# ---------------------------------------------------------------------- sessions


def test_a_session_that_may_run_more_at_once_starts_those_who_wait() -> None:
    shell = Shell({"main": 9})
    shell.submit_all(*"abcd")
    assert told(shell.set_concurrency(3)) == ["start b", "start c"]


def test_a_throttled_session_cancels_nobody_and_starts_nobody_before_it_has_room() -> None:
    shell = Shell({"main": 9})
    shell.submit_all(*"abcd", policy=GROUP)
    assert shell.set_concurrency(1) == []
    shell.done_all("a", "b")
    assert shell.working == ["c"]
    shell.done("c")
    assert shell.working == ["d"]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, 2.0, True, None, "3", float("nan")])
def test_a_size_that_is_none_changes_nothing(wrong: int) -> None:
    shell = full(2, waiting=1)
    for change in (
        lambda: shell.resize("main", wrong),
        lambda: shell.set_concurrency(wrong, "session 0"),
        lambda: shell.get_or_create("own", wrong),
    ):
        with pytest.raises(ValueError, match="concurrency is a whole number, at least 1"):
            change()
    assert (shell.lane().concurrency, shell.lane().waiting) == (2, 1)
    assert "own" not in [lane.name for lane in shell.scheduler.lanes()]
