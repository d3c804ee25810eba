"""The scheduler as a library: failures that nobody asks for."""

from __future__ import annotations

import asyncio
import gc

import pytest

from goclaw_py import NotCompleted, Outcome, Scheduler
from tests.unit.scheduler.library_parts import Text, steps


async def fail(_run: Text) -> None:
    raise LookupError("no such thing")


def library_logs(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.startswith("goclaw_py")]


async def test_a_failure_that_nobody_awaits_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Scheduler(fail) as scheduler:
        run = scheduler.submit("ann", "a")
        await asyncio.sleep(9)
        assert library_logs(caplog) == []
        await asyncio.sleep(2)
        assert library_logs(caplog) == ["run_failed_unawaited"]
        await asyncio.sleep(100)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert (vars(record)["run_id"], vars(record)["session"]) == (run.id, "ann")
    assert isinstance(record.exc_info[1], LookupError)
    del run, record
    gc.collect()
    assert len(library_logs(caplog)) == 1


async def test_a_failure_that_nobody_can_await_any_more_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Scheduler(fail) as scheduler:
        scheduler.submit("ann", "a")
    await steps()
    gc.collect()
    assert library_logs(caplog) == ["run_failed_unawaited"]


async def test_many_failures_are_each_logged_in_their_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Scheduler(fail) as scheduler:
        runs = []
        for _ in range(3):
            runs.append(scheduler.submit("ann", "a"))
            await asyncio.sleep(4)
        with pytest.raises(LookupError):
            await runs[1]
        await asyncio.sleep(0.5)
        assert len(library_logs(caplog)) == 1
        await asyncio.sleep(20)
        assert [vars(r)["run_id"] for r in caplog.records] == [runs[0].id, runs[2].id]


@pytest.mark.parametrize("late_s", [0, 9])
async def test_a_failure_that_is_awaited_is_not_logged(
    late_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    async with Scheduler(fail) as scheduler:
        runs = [scheduler.submit("ann", n) for n in range(3)]
        await asyncio.sleep(late_s)
        await asyncio.gather(*runs, return_exceptions=True)
        await asyncio.sleep(100)
    del runs
    gc.collect()
    assert library_logs(caplog) == []


async def test_a_failure_that_is_awaited_after_the_block_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Scheduler(fail) as scheduler:
        run = scheduler.submit("ann", "a")
    await asyncio.sleep(100)
    with pytest.raises(LookupError):
        await run
    del run
    gc.collect()
    assert library_logs(caplog) == []


def test_a_failure_is_logged_when_the_program_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Scheduler(fail) as scheduler:
            scheduler.submit("ann", "a")

    asyncio.run(main())
    gc.collect()
    assert library_logs(caplog) == ["run_failed_unawaited"]


async def test_what_a_stopped_run_raises_while_it_cleans_up_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(_run: Text) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError("while cleaning up")

    async with Scheduler(work) as scheduler:
        run = scheduler.submit("ann", "a")
        await steps()
        scheduler.stop("ann")
        with pytest.raises(NotCompleted):
            await run
    assert (run.outcome, run.error) == (Outcome.CANCELLED, None)
    assert library_logs(caplog) == ["stopped_run_failed"]
