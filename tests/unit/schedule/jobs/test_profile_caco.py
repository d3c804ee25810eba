"""The profile ``caco``, clause by clause of its document (Scheduler Design).

What it says: a check every 30 minutes; what is overdue at the start runs once, one after the other;
a failed run is tried again at the next check; a busy session delays a run by an hour; nothing runs
more often than once an hour, checked when it is made and when it runs; runs that were edited
meanwhile go on; ``POST …/run`` runs at once; nothing is waited for at the end.

What is deliberately different, and why: docs/guide/profiles.md.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.core.errors import BadCron, TooFrequent
from goclaw_py.operations.jobs.models import JobChange, StartedNow
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron, Every
from goclaw_py.testing.agents import Fail, Say
from tests.support.jobs import Wanted, make
from tests.support.memory_store import MemoryStore
from tests.unit.schedule.jobs.timeline import Timeline

CACO = PROFILES["caco"]
MONDAY = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
RESUME = Fail(RuntimeError("resume failed"), 60)
NETWORK = Fail(ConnectionError("no route"), 60)


async def test_failures_are_tried_again_on_the_grid_of_half_hours() -> None:
    """*HTTP Response Handling*, *Error Handling*; SPEC CRON-3, CRON-8: no retry before that."""
    line = Timeline({"standup": [RESUME, NETWORK], "stats": [Say("fine", 600), RESUME]}, MONDAY)
    async with line.service(CACO) as jobs:
        await jobs.add("standup", Cron("0 9 * * 1-5"))
        await line.until("08:00:30")
        await jobs.add("stats", Every(HOUR))
        await line.until("10:12")
    assert line.told("""
        Mon 09:00:00 standup runs
        Mon 09:01:00 standup failed; next Mon 09:30:00, 1 failed
        Mon 09:01:00 stats runs
        Mon 09:11:00 stats ok; next Mon 10:01:00
        Mon 09:30:00 standup runs
        Mon 09:31:00 standup failed; next Mon 10:00:00, 2 failed
        Mon 10:00:00 standup runs
        Mon 10:01:00 standup ok; next Tue 09:00:00
        Mon 10:01:00 stats runs
        Mon 10:02:00 stats failed; next Mon 10:30:00, 1 failed
    """)


async def test_what_is_overdue_at_the_start_runs_once_and_one_after_the_other() -> None:
    """*Startup Behavior*, *Single Execution*; SPEC CRON-6, LANE-1."""
    line = Timeline(start=MONDAY)
    async with line.service(CACO) as jobs:
        for minute, slug in enumerate(("first", "second", "third", "off"), start=5):
            await jobs.add(slug, Cron(f"{minute} * * * *"))
        await jobs.pause("off")
    await asyncio.sleep(timedelta(days=3, minutes=10).total_seconds())
    async with line.service(CACO):
        await line.until("Thu 08:20")
    assert line.told("""
        Thu 08:10:00 first runs
        Thu 08:11:00 first ok; next Thu 09:05:00, 72 coalesced
        Thu 08:11:00 second runs
        Thu 08:12:00 second ok; next Thu 09:06:00, 72 coalesced
        Thu 08:12:00 third runs
        Thu 08:13:00 third ok; next Thu 09:07:00, 72 coalesced
    """)


async def test_nothing_runs_more_often_than_once_an_hour() -> None:
    """*Minimum Interval*; SPEC CRON-15."""
    line = Timeline(start=MONDAY)
    async with line.service(CACO) as jobs:
        for schedule in (
            Every(timedelta(minutes=59)),
            Cron("*/30 * * * *"),
            Cron("0,30 9 * * *"),
            Cron("0,59 0-23/2 * * *"),
        ):
            with pytest.raises(TooFrequent):
                await jobs.add("hasty", schedule)
        with pytest.raises(BadCron):
            await jobs.add("hasty", Cron("0 0 9 * * *"))
        edited = await jobs.add("slow", Every(HOUR))
        with pytest.raises(TooFrequent):
            await jobs.update("slow", JobChange(schedule=Every(HOUR / 2)))
        spec = replace(edited.spec, schedule=Every(timedelta(minutes=20)))
        next_at = MONDAY + timedelta(minutes=20)
        # By somebody who edits what is stored, past all checks.
        await MemoryStore(line.database).change_job(replace(edited, spec=spec, next_run_at=next_at))
        await line.until("08:50")
    assert line.told("""
        Mon 08:20:00 slow skipped (too_frequent); next Mon 08:40:00
        Mon 08:40:00 slow skipped (too_frequent); next Mon 09:00:00
    """)


@pytest.mark.slow
async def test_a_busy_session_delays_a_run_by_an_hour() -> None:
    """409; SPEC CRON-10."""
    line = Timeline({"hello": [Say("hi", 90)]})
    await line.until("04:00")
    async with line.gateway(CACO) as gateway:
        in_chat = (("session", "main"),)
        await make(gateway, Wanted(Cron("10 4 * * *"), "fetch", "fetch", policy=in_chat))
        at = At(gateway.clock.now() + timedelta(minutes=10, seconds=30))
        await make(gateway, Wanted(at, "tea", "tea", policy=in_chat))
        await line.until("04:09:30")
        await gateway.say("hello")
        await line.until("05:15")
    assert line.told("""
        Fri 04:09:30.800 hello runs
        Fri 04:10:00 fetch skipped (busy); next Fri 05:10:00
        Fri 04:10:30 tea skipped (busy); next Fri 05:10:30
        Fri 04:11:00.800 ann reads: hi
        Fri 05:10:00 fetch runs
        Fri 05:10:30 tea skipped (busy); next Fri 06:10:30
        Fri 05:11:00 fetch ok; next Sat 04:10:00
        Fri 05:11:00 ann reads: 🗓 fetch done
    """)


async def test_runs_by_hand_edits_and_the_end_of_the_program() -> None:
    """*API*, *Updates while running*; SPEC CRON-5, CRON-11; ``shutdown.wait`` is 0."""
    line = Timeline({"standup": [Say("done", 300)] * 9}, MONDAY)
    async with line.service(CACO) as jobs:
        await jobs.add("standup", Cron("0 9 * * 1-5"))
        await line.until("08:10")
        assert isinstance(await jobs.run("standup"), StartedNow)
        await line.until("08:12")
        await jobs.update("standup", JobChange(schedule=Cron("30 8 * * 1-5")))
        await line.until("08:32")
        await jobs.update("standup", JobChange(schedule=Cron("0 10 * * 1-5")))
        await line.until("10:02")
    await line.until("14:00")
    async with line.service(CACO):
        await line.until("14:06")
    assert line.told("""
        Mon 08:10:00 standup runs by hand
        Mon 08:15:00 standup ok; next Mon 08:30:00
        Mon 08:30:00 standup runs
        Mon 08:35:00 standup ok; next Mon 10:00:00
        Mon 10:00:00 standup runs
        Mon 10:02:00 standup interrupted; next Mon 10:00:00
        Mon 14:00:00 standup runs
        Mon 14:05:00 standup ok; next Tue 10:00:00
    """)
