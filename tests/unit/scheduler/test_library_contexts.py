"""The scheduler as a library: the context variables of a run are its own."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import Context, ContextVar, copy_context
from typing import Any

import pytest

from goclaw_py import Lane, Scheduler
from tests.unit.scheduler.library_parts import Text, do, forever, outcome_of, steps

var: ContextVar[str] = ContextVar("var", default="unset")


@pytest.mark.parametrize("waits", [False, True])
async def test_what_a_run_sets_in_its_context_no_other_sees(waits: bool) -> None:
    seen = []

    async def work(run: Text) -> None:
        seen.append(var.get())
        var.set(run.message)
        if waits:
            await asyncio.sleep(1)
            assert var.get() == run.message
        if run.message == "b":
            raise LookupError

    async with Scheduler(work, [Lane("main", 2)]) as scheduler:
        runs = [scheduler.submit(s, s) for s in "abcd"]
        await asyncio.gather(*runs, return_exceptions=True)
    assert seen == ["unset"] * 4
    assert var.get() == "unset"


async def test_a_run_can_be_given_a_context_of_which_it_gets_a_copy() -> None:
    async def work(_run: Text) -> str:
        before = var.get()
        var.set("changed")
        await asyncio.sleep(0)
        return before

    async with Scheduler(work) as scheduler:
        context = copy_context()
        context.run(var.set, "mine")
        runs = [scheduler.submit("ann", 1, context=context) for _ in range(2)]
        assert await asyncio.gather(*runs) == ["mine", "mine"]
        assert context[var] == "mine"
        assert await scheduler.submit("ann", 1) == "unset"
        assert runs[0].context is None, "it is not kept"
        context.run(var.set, "scheduler's")
        other: Scheduler[Any, str] = context.run(Scheduler, work)
        assert await other.submit("ann", 1, context=Context()) == "unset", "an empty one is one"
        await other.drain()


async def test_a_run_that_goes_on_keeps_nothing_of_the_one_that_submitted_it() -> None:
    class Big:
        pass

    holder: ContextVar[Big] = ContextVar("holder")

    async def outer(_run: Text) -> tuple[weakref.ref[Big], Text]:
        await asyncio.sleep(1)  # so that the next run gets a task made just now
        big = Big()
        holder.set(big)
        return weakref.ref(big), scheduler.submit("bob", forever)

    async with Scheduler(do) as scheduler:
        known, inner = await scheduler.submit("ann", outer)
        await steps()
        gc.collect()
        assert known() is None
        scheduler.stop("bob")
        await outcome_of(inner)


async def test_a_run_that_submits_passes_nothing_of_its_context_on() -> None:
    async def outer(_run: Text) -> Text:
        var.set("outer")
        return scheduler.submit("bob", inner)

    async def inner(_run: Text) -> str:
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return var.get()

    async with Scheduler(do) as scheduler:
        assert await (await scheduler.submit("ann", outer)) == "unset"


@pytest.mark.parametrize("how", ["returns", "raises", "is stopped"])
async def test_a_variable_can_be_reset_in_clean_up(how: str) -> None:
    cleaned = []

    async def work(_run: Text) -> None:
        token = var.set("here")
        try:
            await asyncio.sleep(1)
            if how == "raises":
                raise LookupError
            if how == "is stopped":
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            cleaned.append(var.get())
            var.reset(token)
            cleaned.append(var.get())

    async with Scheduler(work) as scheduler:
        run = scheduler.submit("ann", 1)
        await asyncio.sleep(1.5)
        if how == "is stopped":
            scheduler.stop("ann")
        await outcome_of(run)
    assert cleaned == ["here", "unset"]


def test_a_variable_can_be_reset_when_the_loop_ends_in_the_middle() -> None:
    cleaned = []

    async def work(_run: Text) -> None:
        token = var.set("here")
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(var.get())
            var.reset(token)

    loop = asyncio.new_event_loop()

    async def main() -> None:
        Scheduler(work).submit("ann", 1)
        await steps()

    loop.run_until_complete(main())
    (task,) = asyncio.all_tasks(loop)
    coroutine = task.get_coro()
    assert coroutine is not None
    coroutine.close()  # as the collector of garbage would do it
    assert cleaned == ["here"]
    task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
