"""The scheduler as a library: runs that are stopped, time out, will not end, or are left behind.

SPEC QUEUE-2, QUEUE-8, QUEUE-9.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from goclaw_py import Lane, NotCompleted, Outcome, Reason, RunState, Scheduler, StopReport
from tests.unit.scheduler.library_parts import (
    Gate,
    Text,
    forever,
    lane,
    nothing,
    outcome_of,
    steps,
    stubborn,
)

HOUR_S = 3600.0


async def test_stop_cancels_the_oldest_run_and_stop_all_everything() -> None:
    async with Scheduler(forever) as scheduler:
        first, second, third = [scheduler.submit("ann", m) for m in "abc"]
        await steps()
        assert scheduler.stop("ann") == StopReport(stopped=(first.id,))
        assert scheduler.stop("ann") == StopReport(already_stopping=True)
        assert await outcome_of(first) is Outcome.CANCELLED
        assert first.reason is Reason.STOPPED
        await steps()
        assert scheduler.stop_all("ann") == StopReport((second.id,), (third.id,))
        assert await outcome_of(second) is Outcome.CANCELLED
        assert (third.outcome, third.reason) == (Outcome.CANCELLED, Reason.STOPPED_ALL)
        assert scheduler.stop("ann") == StopReport()


async def test_a_run_that_is_stopped_before_its_first_step_never_makes_one() -> None:
    gate = Gate()
    async with Scheduler(gate, [Lane("main", 1)]) as scheduler:
        run, next_run = scheduler.submit("ann", "a"), scheduler.submit("bob", "b")
        assert run.state is RunState.RUNNING
        scheduler.stop("ann")
        assert await outcome_of(run) is Outcome.CANCELLED
        await steps()
        assert gate.entered == ["b"]
        gate.open(next_run)


async def test_only_the_stopped_one_of_many_that_begin_together_is_left_out() -> None:
    gate = Gate()
    async with Scheduler(gate, [Lane("main", 5)]) as scheduler:
        runs = [scheduler.submit(f"s{n}", n) for n in range(5)]
        scheduler.stop("s0")
        scheduler.stop("s3")
        await steps()
        assert gate.entered == [1, 2, 4]
        for n in (1, 2, 4):
            gate.open(runs[n])
    assert [run.outcome for run in runs].count(Outcome.CANCELLED) == 2


@pytest.mark.parametrize("waits", [False, True])
async def test_a_run_that_stops_itself_ends_stopped_and_harms_no_other(waits: bool) -> None:
    async def work(run: Text) -> str:
        if run.message == "stop":
            scheduler.stop("ann")
            assert run.state is RunState.STOPPING
            if waits:
                await asyncio.sleep(1)
        else:
            await asyncio.sleep(1)
        return "done"

    async with Scheduler(work) as scheduler:
        run, other = scheduler.submit("ann", "stop"), scheduler.submit("ann", "other")
        with pytest.raises(NotCompleted, match=r"run 1 ended cancelled \(stopped\)"):
            await run
        assert await other == "done"


async def test_a_run_that_stops_another_one_at_its_first_step_cancels_only_that() -> None:
    async def work(run: Text) -> None:
        if run.message == "stop":
            scheduler.stop("bob")
            return
        await asyncio.sleep(1)

    async with Scheduler(work, [Lane("main", 3)]) as scheduler:
        waits, stops, cat = [
            scheduler.submit(*one) for one in (("bob", ""), ("ann", "stop"), ("cat", ""))
        ]
    assert waits.outcome is Outcome.CANCELLED
    assert (stops.outcome, cat.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)


# ---------------------------------------------------------------- runs that do not end


async def test_what_a_run_returns_after_it_was_given_up_does_not_count() -> None:
    async with Scheduler(stubborn, cancel_grace_s=1) as scheduler:
        run = scheduler.submit("ann", 10)
        await steps()
        scheduler.stop("ann")
        assert await outcome_of(run) is Outcome.ABANDONED
        finished = lane(scheduler)
        await asyncio.sleep(20)
        assert (run.outcome, run.state) == (Outcome.ABANDONED, RunState.DONE)
        assert lane(scheduler) == finished
        with pytest.raises(NotCompleted):
            await run


async def test_what_a_run_raises_after_it_was_given_up_is_logged_and_does_not_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(run: Text) -> None:
        await stubborn(run)
        raise LookupError

    async with Scheduler(work, cancel_grace_s=1) as scheduler:
        run = scheduler.submit("ann", 10)
        await steps()
        scheduler.stop("ann")
        await asyncio.sleep(20)
    assert (run.outcome, run.error) == (Outcome.ABANDONED, None)
    assert [r.getMessage() for r in caplog.records if r.name.startswith("goclaw")] == [
        "stopped_run_failed"
    ]


# ---------------------------------------------------------------- time limits


async def test_a_deadline_ends_a_message_that_waits_and_nothing_else_happens() -> None:
    gate = Gate()
    async with Scheduler(gate) as scheduler:
        working = scheduler.submit("ann", "a")
        waiting = scheduler.submit("ann", "b", deadline_s=5)
        loop = asyncio.get_running_loop()
        assert await outcome_of(waiting) is Outcome.TIMED_OUT
        assert (loop.time(), waiting.reason) == (5, Reason.DEADLINE)
        gate.open(working)


@pytest.mark.parametrize("limit_s", [1e12, 1e300])
async def test_a_huge_time_limit_is_none(limit_s: float) -> None:
    async with Scheduler(nothing) as scheduler:
        run = scheduler.submit("ann", "a", deadline_s=limit_s, run_timeout_s=limit_s)
        assert await run == "a"
        await scheduler.drain(limit_s)


async def test_a_deadline_in_a_hundred_days_comes_in_a_hundred_days(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()

    def call_at(when: float, *arguments: Any, **more: Any) -> asyncio.TimerHandle:
        assert when - loop.time() <= 86_400, "some loops know no longer timers than days"
        return asyncio.SelectorEventLoop.call_at(loop, when, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_at", call_at)
    async with Scheduler(forever) as scheduler:
        run = scheduler.submit("ann", "a", deadline_s=100 * 86_400.0)
        assert await outcome_of(run) is Outcome.TIMED_OUT
        assert asyncio.get_running_loop().time() == 100 * 86_400.0
