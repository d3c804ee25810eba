"""The scheduler as a library: how it is closed, and how the loop may end before it.

SPEC QUEUE-11.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time

import pytest

from goclaw_py import (
    Lane,
    NotCompleted,
    Outcome,
    QueuePolicy,
    Reason,
    RunState,
    Scheduler,
    WouldDeadlock,
)
from tests.unit.scheduler.library_parts import (
    Text,
    do,
    forever,
    nothing,
    outcome_of,
    steps,
    stubborn,
)

HOUR_S = 3600.0


async def test_drain_interrupts_what_waits_and_gives_time_to_what_runs() -> None:
    async with Scheduler(stubborn) as scheduler:
        short, waiting = scheduler.submit("ann", 5), scheduler.submit("ann", 5)
        long = scheduler.submit("bob", 100)
        await steps()
        await scheduler.drain(30)
        assert asyncio.get_running_loop().time() == 40
        assert (short.outcome, waiting.outcome) == (Outcome.COMPLETED, Outcome.INTERRUPTED)
        assert (long.outcome, long.reason) == (Outcome.ABANDONED, Reason.SHUTDOWN)
        await asyncio.sleep(100)


async def test_a_closed_scheduler_rejects_and_says_what_to_do() -> None:
    scheduler = Scheduler(nothing)
    await scheduler.drain()
    run = scheduler.submit("ann", "a")
    assert (run.outcome, run.state) == (Outcome.REJECTED, RunState.DONE)
    assert repr(run) == "<Run 1 of 'ann': rejected>"
    with pytest.raises(NotCompleted, match=r"\(draining\): the scheduler is closed; make a new"):
        await run


async def test_a_second_drain_cuts_the_first_one_short() -> None:
    scheduler = Scheduler(forever)
    run = scheduler.submit("ann", "a")
    first = asyncio.create_task(scheduler.drain(None))
    await asyncio.sleep(HOUR_S)
    assert not first.done()
    await scheduler.drain(0)
    await first
    await scheduler.drain()
    assert asyncio.get_running_loop().time() == HOUR_S
    assert run.outcome is Outcome.INTERRUPTED


@pytest.mark.parametrize("wait_s", [-1, float("nan")])
async def test_drain_refuses_a_time_that_is_none(wait_s: float) -> None:
    async with Scheduler(nothing) as scheduler:
        with pytest.raises(ValueError, match="wait_s is a number of seconds"):
            await scheduler.drain(wait_s)
        assert await scheduler.submit("ann", "a") == "a", "it was not closed"


async def test_a_run_cannot_drain_its_own_scheduler() -> None:
    async def drain(_run: Text) -> None:
        await scheduler.drain()

    async with Scheduler(do) as scheduler:
        with pytest.raises(WouldDeadlock, match="cannot wait for the end of all runs"):
            await scheduler.submit("ann", drain)
        assert await outcome_of(scheduler.submit("ann", drain)) is Outcome.FAILED


async def test_leaving_the_block_waits_for_all_that_was_submitted() -> None:
    async def twice(run: Text) -> None:
        await asyncio.sleep(1)
        if run.message:
            later.append(scheduler.submit("bob", run.message - 1))

    later: list[Text] = []
    async with Scheduler(twice) as scheduler:
        runs = [scheduler.submit("ann", 2) for _ in range(3)]
    assert {run.outcome for run in [*runs, *later]} == {Outcome.COMPLETED}
    assert len(later) == 6


async def test_leaving_the_block_by_an_exception_cancels_what_runs_and_waits_for_its_end() -> None:
    ended = []

    async def work(run: Text) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(2)
            ended.append(run.message)

    async def break_off() -> None:
        async with Scheduler(work) as scheduler:
            runs.extend(scheduler.submit("ann", m) for m in "ab")
            await asyncio.sleep(1)
            raise LookupError

    runs: list[Text] = []
    with pytest.raises(LookupError):
        await break_off()
    assert [run.outcome for run in runs] == [Outcome.INTERRUPTED] * 2
    assert (ended, asyncio.get_running_loop().time()) == (["a"], 3)


@pytest.mark.parametrize("after_s", [0.5, 1.5], ids=["in the block", "while leaving it"])
async def test_who_is_cancelled_in_the_block_leaves_nothing_behind(after_s: float) -> None:
    runs = []

    async def serve() -> None:
        async with Scheduler(forever) as scheduler:
            runs.append(scheduler.submit("ann", "a"))
            await asyncio.sleep(1)

    server = asyncio.create_task(serve())
    await asyncio.sleep(after_s)
    server.cancel()
    with pytest.raises(asyncio.CancelledError):
        await server
    assert [run.outcome for run in runs] == [Outcome.INTERRUPTED]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_messages_that_debounce_are_run_before_the_block_is_left() -> None:
    policy = QueuePolicy(debounce_s=5)
    async with Scheduler(nothing, policy=policy) as scheduler:
        run = scheduler.submit("ann", "a", sender="ann")
    assert run.outcome is Outcome.COMPLETED
    assert asyncio.get_running_loop().time() == 5


def test_a_loop_that_ends_before_the_scheduler_tears_runs_down_and_begins_none(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    begun, cleaned = [], []

    async def work(run: Text) -> None:
        begun.append(run.message)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(run.message)

    async def main() -> None:
        scheduler = Scheduler(work, [Lane("main", 3)])
        for n in range(10):
            scheduler.submit(f"s{n}", n)
        await asyncio.sleep(0.01)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
        gc.collect()
    assert (begun, sorted(cleaned)) == ([0, 1, 2], [0, 1, 2])
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("after_steps", range(4))
async def test_whenever_others_cancel_all_tasks_no_run_is_lost(after_steps: int) -> None:
    async def work(_run: Text) -> str:
        await asyncio.sleep(1)
        return "done"

    async with Scheduler(work, [Lane("main", 3)]) as scheduler:
        runs = [scheduler.submit(f"s{n}", n) for n in range(6)]
        await steps(after_steps)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        async with asyncio.timeout(100):
            outcomes = [await outcome_of(run) for run in runs]
    assert set(outcomes) <= {Outcome.COMPLETED, Outcome.CANCELLED}
    assert outcomes[3:] == [Outcome.COMPLETED] * 3


async def test_runs_that_never_wait_survive_the_loss_of_the_task_that_they_share() -> None:
    async def busy(_run: Text) -> None:
        until = time.perf_counter() + 0.0015  # more than the task goes on at a stretch
        while time.perf_counter() < until:
            pass

    async with Scheduler(busy, [Lane("main", 1)]) as scheduler:
        runs = [scheduler.submit("ann", n) for n in range(10)]
        await steps(3)
        assert {run.outcome for run in runs} == {Outcome.COMPLETED, None}
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
    assert [run.outcome for run in runs] == [Outcome.COMPLETED] * 10
