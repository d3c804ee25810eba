"""The profile ``halo``, clause by clause of its document (Scheduler Module, Design Decisions).

What it says: intervals are points of a grid, at least 10 s apart, shorter ones are made longer;
a failure puts off the next run by 30 s, 1, 5, 15, 60 minutes and never brings it forward; five in a
row switch a job off, resuming it begins anew; a job that runs is not run again, and after two hours
counts as stuck; what was missed runs once; ``once`` is over after its run, well or not; cron has
five or six fields in the zone of the job; jobs do not wait for each other; nothing is waited for
at the end, and what was cut runs at the next start.

What is deliberately different, and why: docs/guide/profiles.md.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.core.errors import BadCron
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from goclaw_py.testing.agents import Fail, Say
from tests.support.jobs import Wanted, make
from tests.support.memory_store import MemoryStore
from tests.unit.schedule.jobs.timeline import Timeline

MACHINE = "Europe/Berlin"
HALO = replace(PROFILES["halo"], zone=MACHINE)
"""As the settings make it: the zone of the machine has a name."""
MONDAY = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
BROKEN = Fail(ConnectionError("broken"))


def every(**length: int) -> Every:
    return Every(timedelta(**length))


async def test_intervals_are_points_of_a_grid_at_least_ten_seconds_apart() -> None:
    """2.1, 2.4; SPEC CRON-3, CRON-10, CRON-15."""
    line = Timeline({"fast": [Say("1", 3), Say("2", 25), Say("3", 10), Say("4", 3)]}, MONDAY)
    async with line.service(HALO) as jobs:
        made = await jobs.add("fast", every(seconds=5))
        assert made.spec.schedule == Every(timedelta(seconds=10), MONDAY)
        await line.until("08:01:15")
    assert line.told("""
        Mon 08:00:10 fast runs
        Mon 08:00:13 fast ok; next Mon 08:00:20
        Mon 08:00:20 fast runs
        Mon 08:00:45 fast ok; next Mon 08:00:50, 2 coalesced
        Mon 08:00:50 fast runs
        Mon 08:01:00 fast ok; next Mon 08:01:10, 3 coalesced
        Mon 08:01:10 fast runs
        Mon 08:01:13 fast ok; next Mon 08:01:20, 3 coalesced
    """)


async def test_failures_put_off_further_and_further_and_switch_off_at_last() -> None:
    """2.3; SPEC CRON-8: nothing is tried again at once."""
    line = Timeline({"broken": [BROKEN] * 5, "rare": [BROKEN]}, MONDAY)
    async with line.service(HALO) as jobs:
        await jobs.add("broken", every(seconds=10))
        await jobs.add("rare", every(minutes=15))
        await line.until("08:25")
        assert (await jobs.get("broken")).last_error == "ConnectionError: broken"
        resumed = await jobs.resume("broken")
        assert resumed.failures == 0
        await line.until("08:26:15")
    assert line.told("""
        Mon 08:00:10 broken runs
        Mon 08:00:10 broken failed; next Mon 08:00:40, 1 failed
        Mon 08:00:40 broken runs
        Mon 08:00:40 broken failed; next Mon 08:01:40, 2 failed
        Mon 08:01:40 broken runs
        Mon 08:01:40 broken failed; next Mon 08:06:40, 3 failed
        Mon 08:06:40 broken runs
        Mon 08:06:40 broken failed; next Mon 08:21:40, 4 failed
        Mon 08:15:00 rare runs
        Mon 08:15:00 rare failed; next Mon 08:30:00, 1 failed
        Mon 08:21:40 broken runs
        Mon 08:21:40 broken failed; disabled, 5 failed
        Mon 08:25:10 broken runs
        Mon 08:26:10 broken ok; next Mon 08:26:20, 6 coalesced
    """)


@pytest.mark.slow
async def test_what_is_stuck_for_two_hours_has_failed() -> None:
    """2.4; SPEC CRON-7."""
    line = Timeline({"stuck": [Say("never", 99_999), Say("ok")]}, MONDAY)
    async with line.service(HALO) as jobs:
        await jobs.add("stuck", every(minutes=50))
        await line.until("11:21")
    assert line.told("""
        Mon 08:50:00 stuck runs
        Mon 10:50:00 stuck timed_out; next Mon 11:20:00, 1 failed, 2 coalesced
        Mon 11:20:00 stuck runs
        Mon 11:20:00 stuck ok; next Mon 12:10:00, 2 coalesced
    """)


async def test_once_and_cron_in_the_zone_of_the_job_or_of_the_machine() -> None:
    """2.7, 2.8; SPEC CRON-1, CRON-9: the log stays until a job is deleted, and goes with it."""
    line = Timeline({"call": [BROKEN], "tick": [Say("ok")] * 9}, MONDAY)
    async with line.service(HALO) as jobs:
        await jobs.add("tea", At(MONDAY + timedelta(minutes=1)))
        await jobs.add("call", At(MONDAY + timedelta(minutes=2, seconds=30)))
        tick = await jobs.add("tick", Cron("15 3 9 * * *"))
        far = await jobs.add("far", Cron("4 16 * * *"), zone="Asia/Shanghai")
        assert (tick.spec.zone, far.spec.zone) == (MACHINE, "Asia/Shanghai")
        with pytest.raises(BadCron):
            await jobs.add("wrong", Cron("0 0 9 * * * *"))
        await line.until("08:06")
        assert [row.status for row in await jobs.run_log("call")] == ["failed"]
        call = await jobs.remove("call")
    assert not await MemoryStore(line.database).log_of(call.id)
    assert line.told("""
        Mon 08:01:00 tea runs
        Mon 08:02:00 tea ok; completed
        Mon 08:02:30 call runs
        Mon 08:02:30 call failed; failed, 1 failed
        Mon 08:03:15 tick runs
        Mon 08:03:15 tick ok; next Tue 08:03:15
        Mon 08:04:00 far runs
        Mon 08:05:00 far ok; next Tue 08:04:00
    """)


async def test_jobs_do_not_wait_for_each_other() -> None:
    """2.4, *Global concurrency*."""
    line = Timeline({f"job-{number}": [Say("1", 600)] for number in range(100)}, MONDAY)
    async with line.service(HALO) as jobs:
        for number in range(50):
            await jobs.add(f"job-{number}", every(minutes=1))
        await line.until("08:01:30")
        assert len(line.table) == 50
        assert all(row.startswith("Mon 08:01:00 ") for row in line.table)


async def test_a_start_recovers_what_was_interrupted_and_makes_up_for_what_was_missed_once() -> (
    None
):
    """2.5, 2.9; SPEC CRON-5, CRON-6; ``shutdown.wait`` is 0."""
    line = Timeline({"long": [Say("1", 600)]}, MONDAY)
    async with line.service(HALO) as jobs:
        await jobs.add("long", every(minutes=20))
        await jobs.add("short", every(minutes=30))
        await jobs.add("tea", At(MONDAY + timedelta(minutes=40)))
        await line.until("08:21")
    await asyncio.sleep(3 * 3600)
    async with line.service(HALO):
        await line.until("11:23")
    assert line.told("""
        Mon 08:20:00 long runs
        Mon 08:21:00 long interrupted; next Mon 08:20:00
        Mon 11:21:00 long runs
        Mon 11:21:01 short runs
        Mon 11:21:02 tea runs
        Mon 11:22:00 long ok; next Mon 11:40:00, 9 coalesced
        Mon 11:22:01 short ok; next Mon 11:30:00, 5 coalesced
        Mon 11:22:02 tea ok; completed
    """)


async def test_a_busy_conversation_leaves_a_run_out() -> None:
    """``on_busy = skip``; SPEC CRON-10: what is due once waits instead."""
    line = Timeline({"hello": [Say("hi", 90)]})
    await line.until("04:00")
    async with line.gateway(HALO) as gateway:
        in_chat = (("session", "main"),)
        await make(gateway, Wanted(every(minutes=10), "fetch", "fetch", policy=in_chat))
        tea = At(gateway.clock.now() + timedelta(minutes=10, seconds=30))
        await make(gateway, Wanted(tea, "tea", "tea", policy=in_chat))
        await line.until("04:09:30")
        await gateway.say("hello")
        await line.until("04:22")
    assert line.told("""
        Fri 04:09:30.800 hello runs
        Fri 04:10:00 fetch skipped (busy); next Fri 04:20:00
        Fri 04:11:00.800 tea runs
        Fri 04:11:00.800 ann reads: hi
        Fri 04:12:00.800 tea ok; completed
        Fri 04:12:00.800 ann reads: ⏰ done (Late by 2 min: it was d…
        Fri 04:20:00 fetch runs
        Fri 04:21:00 fetch ok; next Fri 04:30:00
        Fri 04:21:00 ann reads: 🗓 fetch done
    """)
