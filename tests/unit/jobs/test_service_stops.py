"""How a service ends, and what handlers may do to it (SPEC CRON-5, CRON-21)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from goclaw_py.jobs.embedded.job_scheduler import Due, JobScheduler
from goclaw_py.jobs.execution_models import OccurrenceStatus
from goclaw_py.jobs.policy import PROFILES
from goclaw_py.store.memory import MemoryStore
from goclaw_py.testing.agents import Say
from goclaw_py.testing.clock import LoopClock
from tests.support.jobs import every
from tests.unit.jobs.timeline import Timeline

ONE_AT_ONCE = replace(PROFILES["goclaw"], lane=1)


async def test_what_waits_for_its_turn_at_the_end_does_not_begin_any_more() -> None:
    line = Timeline({"first": [Say("1", 40)]})
    await line.until("04:00")
    async with line.service(ONE_AT_ONCE) as jobs:
        await jobs.add("first", every(60))
        await line.until("04:00:01")
        await jobs.add("second", every(60))
        await line.until("04:01:20")
    assert line.told("""
        Fri 04:01:00 first runs
        Fri 04:01:20 second interrupted; next Fri 04:01:01
        Fri 04:01:40 first ok; next Fri 04:02:40
    """)


async def test_a_handler_that_cancels_itself_has_ended_so() -> None:
    """Or its job would be due again at once, and again."""

    async def give_up(due: Due) -> str:
        raise asyncio.CancelledError

    jobs = JobScheduler(MemoryStore(), clock=LoopClock())
    jobs.on_due(give_up)
    async with jobs:
        await jobs.add("report", every(60))
        await jobs.start()
        await asyncio.sleep(90)
        (row,) = await jobs.run_log("report")
    assert row.status is OccurrenceStatus.CANCELLED


async def test_nothing_is_left_running_when_a_service_has_stopped() -> None:
    line = Timeline({"long": [Say("1", 600)]})
    await line.until("04:00")
    async with line.service(ONE_AT_ONCE) as jobs:
        await jobs.add("long", every(60))
        await line.until("04:01:20")
    assert line.told("""
        Fri 04:01:00 long runs
        Fri 04:01:50 long interrupted; next Fri 04:01:00
    """)
    assert asyncio.all_tasks() == {asyncio.current_task()}
