"""A clock that goes back an hour, in gateways and libraries that share a database.

After a fail-over to a server with another clock, a restored machine or a step of NTP. SPEC CRON-4,
HB-1, NODE-1, IO-4.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

from goclaw_py import Cron, Every, JobScheduler, MemoryStore
from goclaw_py.core.errors import RateLimited
from goclaw_py.schedule.heartbeat.active_hours import read_hours
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.testing.agents import Block, Say, ScriptedAgent
from goclaw_py.testing.clock import START, LoopClock
from tests.support.harness import GatewayProcess, a_process, until
from tests.support.heartbeat_gateway import (
    EVERY,
    asked,
    beating,
    heartbeat_gateway,
    outcomes,
    until_ended,
)
from tests.support.jobs import Wanted, every, log_of, make
from tests.support.memory_store import MemoryDatabase
from tests.unit.schedule.jobs.service_parts import Script, service

BACK = timedelta(hours=1)


def set_back(*processes: GatewayProcess) -> None:
    for one in processes:
        one.clock.advance(-BACK)


async def test_two_gateways_go_on_with_jobs_and_heartbeats_and_repeat_none() -> None:
    database = MemoryDatabase()
    async with (
        beating(database=database, spoken_by=None) as first,
        beating(database=database, spoken_by=None) as second,
    ):
        job = await make(first, Wanted(every(60), message=True))
        await until_ended(first, 2)
        before = len(await log_of(first, job))
        set_back(first, second)
        await asyncio.sleep(3 * EVERY.total_seconds() + 5)
        assert len(asked(first)) + len(asked(second)) in (4, 5)
        assert set(await outcomes(first)) == {"ok"}
        rows = await log_of(first, job)
        assert len(rows) - before in (14, 15, 16)
        assert {row.status for row in rows} == {"ok"}
        assert len(first.channel.texts() + second.channel.texts()) == len(rows)


async def test_the_work_of_a_gateway_that_dies_before_the_clock_goes_back_is_taken_over() -> None:
    """Its lease ends an hour later, by the new clock."""
    database = MemoryDatabase()
    async with (
        a_process(ScriptedAgent(Block()), database=database) as first,
        a_process(ScriptedAgent(Say("done")), database=database) as second,
    ):
        await first.say("long")
        await until(lambda: bool(first.scripted.active))
        first.kill()
        await asyncio.sleep(0.5)
        set_back(second)
        await until(lambda: second.channel.texts() == ["done"], within_s=30)


@pytest.mark.parametrize("nodes", [1, 2])
async def test_messages_are_answered_and_sent_at_once(nodes: int) -> None:
    database = MemoryDatabase()
    async with a_process(database=database) as first, a_process(database=database) as second:
        if nodes == 1:
            await second.shut_down()
        assert await first.ask("one") == "re: one"
        first.channel.fail(RateLimited("slow down", 20.0))
        await first.say("two")
        await asyncio.sleep(3)
        set_back(first, second)
        await until(
            lambda: "re: two" in first.channel.texts() + second.channel.texts(), within_s=40
        )
        await first.say("three")
        await until(
            lambda: "re: three" in first.channel.texts() + second.channel.texts(), within_s=10
        )


@pytest.mark.parametrize("wait_s", [100.0, 2000.0])
async def test_a_small_step_back_ends_no_wait(wait_s: float) -> None:
    """The server of a channel has asked for it."""
    async with a_process() as gateway:
        gateway.channel.fail(RateLimited("slow down", wait_s))
        await gateway.say("one")
        await asyncio.sleep(10)
        gateway.clock.advance(-timedelta(seconds=2))
        await asyncio.sleep(wait_s - 20)
        assert gateway.channel.texts() == []
        await asyncio.sleep(30)
        assert gateway.channel.texts() == ["re: one"]


@pytest.mark.parametrize(("hours", "back_to_active"), [
    (("02:00", "03:30"), True),   # quiet when it goes back, active then
    (("03:00", "05:00"), False),  # active when it goes back, quiet then
])  # fmt: skip
async def test_active_hours_are_those_of_the_new_clock(
    hours: tuple[str, str], back_to_active: bool
) -> None:
    """The clock of these tests begins at 03:04."""
    policy = HeartbeatPolicy(interval=EVERY, hours=read_hours(*hours, "UTC"))
    async with beating(ways=heartbeat_gateway(policy), spoken_by=None) as gateway:
        await asyncio.sleep(1900)  # 03:35
        before = len(asked(gateway))
        set_back(gateway)  # 02:35
        await asyncio.sleep(EVERY.total_seconds() + 5)
        assert (len(asked(gateway)) > before) is back_to_active
        await asyncio.sleep(1800)  # 03:10
        assert len(asked(gateway)) > before
        await asyncio.sleep(1800)  # 03:40
        known = len(asked(gateway))
        await asyncio.sleep(EVERY.total_seconds() + 5)
        assert (len(asked(gateway)) > known) is not back_to_active


@pytest.mark.parametrize("schedule", [Every(timedelta(minutes=1)), Cron("* * * * *")])
async def test_two_schedulers_of_the_library_go_on_and_repeat_nothing(
    schedule: Every | Cron,
) -> None:
    store, script, clocks = MemoryStore(), Script(), (LoopClock(), LoopClock())
    jobs = [service(store, script, clock=clock) for clock in clocks]
    await asyncio.gather(*(one.start() for one in jobs))
    await jobs[0].add("job", schedule)
    await asyncio.sleep(200)
    for clock in clocks:
        clock.advance(-BACK)
    await asyncio.sleep(300)
    await asyncio.gather(*(one.stop(0) for one in jobs))
    gaps = [later - earlier for earlier, later in pairwise(script.at)]
    assert min(gaps) > 50
    assert max(gaps) < 122, "at most an interval after the clock went back"


async def test_active_hours_of_a_job_are_those_of_the_new_clock() -> None:
    assert START.hour == 3
    script, clock = Script(), LoopClock()
    jobs: JobScheduler = service(MemoryStore(), script, clock=clock)
    await jobs.start()
    await jobs.add("job", Cron("*/5 3 * * *"))
    await asyncio.sleep(1900)
    before = len(script.at)
    clock.advance(-BACK)
    await asyncio.sleep(1400)
    assert len(script.at) == before, "it is two o'clock"
    await asyncio.sleep(600)
    await jobs.stop(0)
    assert len(script.at) > before
