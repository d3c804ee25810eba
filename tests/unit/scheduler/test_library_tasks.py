"""The scheduler as a library: what a run may expect of its task, its context and the loop."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import Context
from typing import Any

import pytest
import uvloop

from goclaw_py import Lane, NotCompleted, Outcome, QueuePolicy, Run, Scheduler
from tests.unit.scheduler.library_parts import Gate, Text, do, forever, nothing, outcome_of, steps

ROOMY = QueuePolicy(capacity=100_000)


# ---------------------------------------------------------------- what people use in runs


async def test_time_limits_groups_threads_and_generators_work_in_a_run() -> None:
    async def numbers() -> AsyncIterator[int]:
        for n in range(3):
            await asyncio.sleep(1)
            yield n

    async def work(_run: Text) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.sleep(2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(2), 1)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(1, n)) for n in range(2)]
        with pytest.raises(ExceptionGroup):
            await fail_together()
        threaded = await asyncio.to_thread(lambda: "threaded")
        total = sum([n async for n in numbers()])
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        return f"{[t.result() for t in tasks]} {threaded} {total}"

    async def fail() -> None:
        raise LookupError

    async def fail_together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await asyncio.sleep(100)

    async with Scheduler(work, [Lane("main", 3)]) as scheduler:
        runs = [scheduler.submit(s, s) for s in "abcde"]
        assert set(await asyncio.gather(*runs)) == {"[0, 1] threaded 3"}


async def test_a_time_limit_of_one_run_never_cancels_another() -> None:
    async def work(run: Text) -> str:
        if run.message % 2:
            return "at once"
        limit = asyncio.timeout(1)
        await limit.__aenter__()  # and never left: the limit outlives the run
        await asyncio.sleep(0.5)
        return "later"

    async with Scheduler(work, [Lane("main", 1)], policy=ROOMY) as scheduler:
        runs = [scheduler.submit("ann", n) for n in range(40)]
        assert await asyncio.gather(*runs) == ["later", "at once"] * 20


async def test_whoever_keeps_the_task_of_a_run_that_waited_can_reach_no_other_run() -> None:
    kept: list[asyncio.Task[Any]] = []

    async def work(_run: Text) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert task not in kept
        kept.append(task)
        await asyncio.sleep(0.01)
        kept[0].cancel()

    async with Scheduler(work, [Lane("main", 1)]) as scheduler:
        first, *others = [scheduler.submit("ann", n) for n in range(5)]
    assert first.outcome is Outcome.COMPLETED
    assert [run.outcome for run in others] == [Outcome.COMPLETED] * 4


async def test_callbacks_of_a_task_are_called_when_its_run_has_ended() -> None:
    async def work(run: Text) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert task.get_name() != f"run {run.id}"
        await asyncio.sleep(1)
        assert task.get_name() == f"run {run.id}"
        task.add_done_callback(lambda _task: called.append(run.message))

    called: list[int] = []
    async with Scheduler(work) as scheduler:
        for n in range(3):
            await scheduler.submit("ann", n)
            await steps()
            assert called == list(range(n + 1))


async def test_a_task_is_not_kept_from_ending_by_what_a_run_does_afterwards() -> None:
    async def work(_run: Text) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.Event().wait()
        await asyncio.sleep(1)
        raise asyncio.CancelledError

    async with Scheduler(work) as scheduler:
        assert await outcome_of(scheduler.submit("ann", 1)) is Outcome.CANCELLED


# ---------------------------------------------------------------- the loop


@pytest.mark.real_time
@pytest.mark.parametrize("size", [1, 30])
async def test_runs_that_never_wait_let_the_loop_do_other_things(size: int) -> None:
    async def busy(_run: Text) -> None:
        until = time.perf_counter() + 0.0002
        while time.perf_counter() < until:
            pass

    async with Scheduler(busy, [Lane("main", size)], policy=ROOMY) as scheduler:
        for n in range(1000):
            scheduler.submit(f"s{n % 50}", n)
        turns = 0
        while scheduler.runs():
            turns += 1
            await asyncio.sleep(0)
    assert turns > 100, "1,000 runs of 0.2 ms, and no turn of much more than 1 ms"


@pytest.mark.slow
async def test_ten_thousand_runs_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # a log keeps the failures

    class Message:
        def __init__(self, number: int) -> None:
            self.number = number

    async def work(run: Run[Message, None]) -> None:
        if run.message.number % 3 == 0:
            await asyncio.sleep(0.001)
        if run.message.number % 5 == 0:
            raise LookupError

    loop: Any = asyncio.get_running_loop()
    gc.collect()
    known = []
    scheduler = Scheduler(work, [Lane("main", 8)], policy=ROOMY)
    async with scheduler:
        for n in range(10_000):
            message = Message(n)
            known.append(weakref.ref(message))
            scheduler.submit(f"s{n % 500}", message, run_timeout_s=3600, deadline_s=86_400)
            del message
        await asyncio.sleep(0)
    await steps()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [t for t in loop._scheduled if not t.cancelled()] == []
    gc.collect()
    assert [ref for ref in known if ref() is not None] == []
    gone = weakref.ref(scheduler)
    del scheduler
    gc.collect()
    assert gone() is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_handful_of_things_work_on_uvloop_too() -> None:
    async def main() -> None:
        policy = QueuePolicy(debounce_s=0.01)
        async with Scheduler(do, [Lane("main", 2)], policy=policy, cancel_grace_s=0.01) as s:
            quick = [s.submit("ann", nothing) for _ in range(5)]
            await asyncio.gather(*quick)
            debounced = s.submit("ann", nothing, sender="ann")
            joined = s.submit("ann", nothing, sender="ann")
            await joined
            assert joined.into is debounced
            late = s.submit("bob", forever, run_timeout_s=0.001)
            assert await outcome_of(late) is Outcome.TIMED_OUT
            huge = s.submit("bob", nothing, deadline_s=1e300)
            await huge
            working = s.submit("bob", forever)
            await asyncio.sleep(0.001)
            s.stop("bob")
            with pytest.raises(NotCompleted):
                await working
            await s.drain(1e300)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


Factory = Callable[..., asyncio.Task[Any]]


def counting(made: list[str]) -> Factory:
    def factory(
        loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **more: Any
    ) -> asyncio.Task[Any]:
        made.append(getattr(coro, "__name__", ""))
        return asyncio.Task(coro, loop=loop, **more)

    return factory


class EagerTask(asyncio.Task[Any]):
    """Makes its first step while it is made, like those of Python 3.12's eager factory."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, loop: Any, **more: Any) -> None:
        before = asyncio.current_task(loop)
        if before is not None:
            asyncio._leave_task(loop, before)
        asyncio._enter_task(loop, self)
        try:
            yielded = Context().run(coro.send, None)
        finally:
            asyncio._leave_task(loop, self)
            if before is not None:
                asyncio._enter_task(loop, before)
        super().__init__(_goes_on(coro, yielded), loop=loop, **more)


async def _goes_on(coro: Coroutine[Any, Any, Any], yielded: Any) -> Any:
    assert yielded is None, "only a bare yield is known here"
    await asyncio.sleep(0)
    return await _Steps(coro)


class _Steps:
    def __init__(self, coro: Coroutine[Any, Any, Any]) -> None:
        self._coro = coro

    def __await__(self) -> Any:
        return (yield from self._coro.__await__())


@pytest.mark.parametrize("eager", [False, True])
async def test_a_task_factory_of_the_loop_is_used_and_does_no_harm(eager: bool) -> None:
    made: list[str] = []
    factory: Any = counting(made)

    def eager_factory(loop: Any, coro: Any, **more: Any) -> asyncio.Task[Any]:
        ours = coro.__name__.startswith("_begin")
        return EagerTask(coro, loop=loop, **more) if ours else factory(loop, coro, **more)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(eager_factory if eager else factory)
    gate = Gate()
    try:
        async with Scheduler(gate, [Lane("main", 2)]) as scheduler:
            runs: list[Run[Any, Any]] = [scheduler.submit(f"s{n}", n) for n in range(4)]
            scheduler.stop("s0")
            assert gate.entered == [], "nothing begins before submit has returned"
            for _ in range(3):
                await steps()
                for run in runs:
                    if run.task is not None:
                        gate.open(run)
    finally:
        loop.set_task_factory(None)
    assert [run.outcome for run in runs] == [Outcome.CANCELLED] + [Outcome.COMPLETED] * 3
    assert eager or "_begin_all" in made
