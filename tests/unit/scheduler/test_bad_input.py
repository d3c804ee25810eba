"""What is wrong is refused at once, with words, and changes nothing.

SPEC LANE-2, QUEUE-1, QUEUE-2, QUEUE-8, QUEUE-9, QUEUE-10, QUEUE-12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goclaw_py.core.ids import AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.scheduler.child_runs import NestingLimits
from goclaw_py.scheduler.models import MAX_DEBOUNCE_S, Drop, LaneState, Mode, QueuePolicy, Request
from goclaw_py.scheduler.scheduler import DuplicateRequest, RunScheduler, UnknownLane
from goclaw_py.scheduler.states import IllegalTransition
from goclaw_py.scheduler.views import RunState
from tests.unit.scheduler.shell import TYPING, Shell, told

NAN, INFINITE = float("nan"), float("inf")
NO_COUNT = [0, -1, -(10**30), 1.0, 1.5, True, False, NAN, INFINITE, None, "1", "many"]
NO_TIME = [-1, -0.001, NAN, INFINITE, -INFINITE, 10**400]
WRONG: list[tuple[Callable[[Any], object], list[Any], str]] = [
    (lambda n: QueuePolicy(capacity=n), NO_COUNT, "capacity is a whole number, at least 1"),
    (lambda n: QueuePolicy(concurrency=n), NO_COUNT, "concurrency is a whole number, at least 1"),
    (lambda n: NestingLimits(depth=n), NO_COUNT, "depth is a whole number, at least 1"),
    (lambda n: NestingLimits(children=n), NO_COUNT, "children is a whole number, at least 1"),
    (
        lambda n: LaneState(LaneName("own"), n),
        NO_COUNT,
        "lane own: concurrency is a whole number, at least 1",
    ),
    (lambda n: RunScheduler({LaneName("main"): n}), NO_COUNT, "lane main: concurrency"),
    (
        lambda n: RunScheduler(agents={AgentName("main"): n}),
        [wrong for wrong in NO_COUNT if wrong is not None],
        "max_concurrent is a whole number, at least 1",
    ),
    (lambda s: RunScheduler(cancel_grace_s=s), NO_TIME, "cancel_grace_s is a number of seconds"),
    (
        lambda s: QueuePolicy(debounce_s=s),
        [*NO_TIME, MAX_DEBOUNCE_S + 0.1],
        "debounce_s is from 0 to 3600",
    ),
    (
        lambda word: QueuePolicy(debounce=word),
        ["", "eager", "FIXED", None, 1],
        "debounce must be one of fixed, speculative",
    ),
    (
        lambda word: QueuePolicy(mode=word),
        ["", "queued", "INTERRUPT", "drop", None, 1],
        "mode must be one of queue, followup, interrupt",
    ),
    (
        lambda word: QueuePolicy(drop=word),
        ["", "oldest", "NEW", None, 0],
        "drop must be one of old, new, not ",
    ),
]


# ---------------------------------------------------------------------- sizes and policies


@pytest.mark.parametrize(
    ("make", "wrong", "says"),
    [(make, wrong, says) for make, wrongs, says in WRONG for wrong in wrongs],
)
def test_a_wrong_size_time_or_word_is_refused(
    make: Callable[[Any], object], wrong: Any, says: str
) -> None:
    """SPEC AGENT-3, LANE-1, LANE-8, QUEUE-1 to QUEUE-6: the message names what is wrong."""
    with pytest.raises(ValueError, match=says):
        make(wrong)


def test_windows_at_the_edges_and_plain_words_are_taken() -> None:
    """SPEC QUEUE-3, QUEUE-5, QUEUE-6: a word from a file works like the member."""
    for window_s in (0, 0.0, 1, 0.001, MAX_DEBOUNCE_S):
        assert QueuePolicy(debounce_s=window_s).debounce_s == window_s
    for mode in Mode:
        assert QueuePolicy(mode=mode.value).mode is mode  # type: ignore[arg-type]
    for drop in Drop:
        assert QueuePolicy(drop=drop.value).drop is drop  # type: ignore[arg-type]


def test_a_grace_period_of_zero_gives_up_at_once() -> None:
    shell = Shell(grace_s=0)
    shell.submit("deaf")
    shell.stop()
    shell.wait(0)
    assert shell.state("deaf") is RunState.ABANDONED


def test_an_unknown_lane_cannot_be_closed_resized_or_looked_into() -> None:
    """SPEC LANE-6, LANE-9: requests fall back to ``main``, but people get to know their slip."""
    shell = Shell()
    for ask in (
        lambda: shell.close_lane("mian"),
        lambda: shell.resize("mian", 3),
        lambda: shell.occupants("mian"),
    ):
        with pytest.raises(UnknownLane, match="there is no lane 'mian'; there are: main, subagent"):
            ask()
    assert not shell.lane("main").closed


# ---------------------------------------------------------------------- requests


@pytest.mark.parametrize("wrong", NO_TIME)
@pytest.mark.parametrize("name", ["deadline_s", "run_timeout_s"])
def test_a_time_limit_that_is_none_is_refused_and_leaves_nothing_behind(
    name: str, wrong: float
) -> None:
    """SPEC QUEUE-9. A huge whole number left a request behind that was nowhere."""
    shell = Shell()
    with pytest.raises(ValueError, match=f"{name} is a number of seconds, at least 0"):
        shell.submit("a", "chat", **{name: wrong})
    shell.assert_nothing_left()
    assert told(shell.submit("a")) == ["start a"]


@pytest.mark.parametrize("limit_s", [0, 0.0, 10**300, 1e308])
@pytest.mark.parametrize("name", ["deadline_s", "run_timeout_s"])
def test_time_limits_at_the_edges_are_taken(name: str, limit_s: float) -> None:
    shell = Shell()
    shell.submit("a", "chat", **{name: limit_s})
    shell.wait(1)
    assert (shell.cancelled == {}) is (limit_s > 0)


def one_that_is(state: str) -> Shell:
    shell = Shell({"main": 1})
    if state in {"queued", "ready"}:
        shell.submit("blocks", "chat" if state == "queued" else "other")
    shell.submit("a", sender="ann", policy=TYPING if state == "collecting" else QueuePolicy())
    if state == "abandoned":
        shell.stop()
        shell.wait(10)
    assert shell.state("a") == state
    return shell


@pytest.mark.parametrize("state", ["collecting", "queued", "ready", "running", "abandoned"])
def test_an_id_is_taken_as_long_as_its_request_lives(state: str) -> None:
    """SPEC QUEUE-10: an abandoned run can still be named."""
    shell = one_that_is(state)
    with pytest.raises(DuplicateRequest, match="a was submitted before and is still live"):
        shell.submit("a", "elsewhere")
    assert shell.view("a").session == "chat"


@pytest.mark.parametrize("ended", [False, True])
def test_the_same_request_object_is_not_taken_twice(ended: bool) -> None:
    """SPEC QUEUE-10. What it had been through before was taken for its own."""
    scheduler = RunScheduler()
    request = Request(RunId("a"), SessionKey("chat"))
    scheduler.submit(request, 0)
    if ended:
        scheduler.finished(request.id, Outcome.COMPLETED, 0)
    with pytest.raises(DuplicateRequest, match="request a"):
        scheduler.submit(request, 1)
    assert len(scheduler.runs(1)) == (0 if ended else 1)


# ---------------------------------------------------------------------- shells that err


@pytest.mark.parametrize("state", ["collecting", "queued", "ready", "running"])
def test_a_run_is_not_put_away_before_its_task_has_ended(state: str) -> None:
    shell = one_that_is(state)
    with pytest.raises(IllegalTransition, match=f"a: {state} cannot become done"):
        shell.release("a")
    if state != "running":
        with pytest.raises(IllegalTransition, match=f"a: {state} cannot become finishing"):
            shell.done("a")
    assert shell.state("a") == state


def test_what_is_over_may_be_finished_and_released_again_without_effect() -> None:
    """SPEC QUEUE-10: a late callback harms nobody."""
    shell = Shell()
    shell.submit("a")
    shell.done("a")
    assert (shell.finish("a"), shell.release("a"), shell.done("a")) == ([], [], [])
    shell.assert_nothing_left()


def test_sessions_lanes_and_senders_with_empty_names_are_names_too() -> None:
    shell = Shell()
    shell.submit("a", "", lane="", sender="")
    shell.submit("b", "", lane="")
    assert (shell.view("a").lane, shell.state("b")) == ("main", RunState.QUEUED)
