"""The scheduler as a library: lanes, sessions and policies, and how they are looked at.

SPEC AGENT-3, LANE-2, LANE-6, LANE-7, LANE-9, QUEUE-4, QUEUE-6.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from goclaw_py import (
    Lane,
    Outcome,
    QueuePolicy,
    Reason,
    RunState,
    Scheduler,
    UnknownLane,
)
from tests.unit.scheduler.library_parts import (
    Calls,
    Gate,
    Text,
    nothing,
    states,
    steps,
)


async def gated(gate: Gate, *runs: Text) -> None:
    """Let runs end, one after the other."""
    for run in runs:
        await steps()
        gate.open(run)
    await steps()


async def test_lanes_can_be_added_resized_and_closed() -> None:
    gate = Gate()
    async with Scheduler(gate, [Lane("main", 1)]) as scheduler:
        assert scheduler.add_lane(Lane("new", 1)).concurrency == 1
        assert scheduler.add_lane(Lane("new", 5)).concurrency == 1
        runs = [scheduler.submit(f"s{n}", n, "new") for n in range(4)]
        scheduler.resize_lane("new", 3)
        await steps()
        assert gate.entered == [0, 1, 2]
        scheduler.close_lane("new")
        late = scheduler.submit("late", "late", "new")
        assert (runs[3].outcome, runs[3].reason) == (Outcome.REJECTED, Reason.LANE_CLOSED)
        assert (late.outcome, late.state) == (Outcome.REJECTED, RunState.DONE)
        await gated(gate, *runs[:3])
    assert runs[0].outcome is Outcome.COMPLETED


async def test_what_names_a_lane_that_does_not_exist_says_which_there_are() -> None:
    async with Scheduler(nothing) as scheduler:
        says = "there is no lane 'no'; there are: main"
        with pytest.raises(UnknownLane, match=says):
            scheduler.resize_lane("no", 1)
        with pytest.raises(UnknownLane, match=says):
            scheduler.close_lane("no")


async def test_a_session_can_be_given_more_room() -> None:
    gate = Gate()
    async with Scheduler(gate, [Lane("main", 9)]) as scheduler:
        runs = [scheduler.submit("ann", n) for n in range(4)]
        scheduler.set_concurrency("ann", 3)
        await steps()
        assert gate.entered == [0, 1, 2]
        scheduler.set_concurrency("nobody", 3)
        await gated(gate, *runs)


async def test_an_agent_has_its_limit_over_all_sessions() -> None:
    gate = Gate()
    async with Scheduler(gate, [Lane("main", 9)], agents={"writer": 2}) as scheduler:
        runs = [scheduler.submit(f"s{n}", n, agent="writer") for n in range(3)]
        other = scheduler.submit("other", "other", agent="reader")
        await steps()
        assert gate.entered == [0, 1, "other"]
        await gated(gate, *runs, other)


async def test_a_slow_wait_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def work(_run: Text) -> None:
        await asyncio.sleep(3)

    caplog.set_level(logging.WARNING)
    async with Scheduler(work, [Lane("main", 1)]) as scheduler:
        for n in range(2):
            scheduler.submit(f"s{n}", n)
    assert [r.getMessage() for r in caplog.records] == ["lane_wait_slow"]


# ---------------------------------------------------------------- policies


async def test_messages_of_ten_thousand_in_one_burst_join_in_good_time() -> None:
    policy = QueuePolicy(debounce_s=1, turn_messages=10_000)

    async def count(run: Text) -> int:
        return len(run.messages)

    async with Scheduler(count, policy=policy) as scheduler:
        runs = [scheduler.submit("ann", n, sender="ann") for n in range(10_000)]
        assert await runs[-1] == 10_000


async def test_schedulers_do_not_know_of_each_other() -> None:
    gates = [Gate(), Gate()]
    async with Scheduler(gates[0]) as one, Scheduler(gates[1]) as two:
        schedulers: list[Calls] = [one, two]
        runs = [scheduler.submit("ann", "a") for scheduler in schedulers]
        await steps()
        assert [list(states(scheduler)) for scheduler in schedulers] == [["1"], ["1"]]
        for gate, run in zip(gates, runs, strict=True):
            gate.open(run)
