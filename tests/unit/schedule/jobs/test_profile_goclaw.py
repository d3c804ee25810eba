"""The profile ``goclaw``, clause by clause of its document (08, Scheduling, Cron & Heartbeat).

What it says of cron: a loop that looks every second; three kinds of schedules; one run at a time in
the lane ``cron``; three retries after 2 s, 4 s and 8 s; ``at`` jobs are deleted after their run;
jobs can be paused; results are logged; sessions are serialized.

What is deliberately different, and why: docs/guide/profiles.md.
"""

from __future__ import annotations

import pytest

from goclaw_py.core.errors import AgentError
from goclaw_py.operations.jobs.models import JobChange
from goclaw_py.schedule.jobs.models import JobState
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron
from goclaw_py.testing.agents import Fail, Say
from goclaw_py.testing.clock import START
from tests.support.jobs import OPERATOR, Wanted, every, log_of, make, service
from tests.unit.schedule.jobs.timeline import Timeline

GOCLAW = PROFILES["goclaw"]
DOWN = AgentError("The model is busy.", "429", retryable=True)
NO_KEY = AgentError("I have no key.", "401")

pytestmark = pytest.mark.usefixtures("no_jitter")


def at(hour: int, minute: int, second: int = 0) -> At:
    return At(START.replace(hour=hour, minute=minute, second=second))


async def test_the_three_kinds_of_schedules_and_what_becomes_of_them() -> None:
    """Lifecycle, *Schedule Types*, *Job States*; SPEC CRON-4, CRON-9, CRON-11, CRON-13."""
    line = Timeline({"tea": [Say("Tea!", 5)], "call": [Fail(NO_KEY, 5)], "fetch": [Say("1", 60)]})
    await line.until("04:00")
    async with line.gateway(GOCLAW) as gateway:
        await make(gateway, Wanted(at(4, 10), "tea", "tea"))
        await make(gateway, Wanted(at(4, 20), "call", "call"))
        await make(gateway, Wanted(every(1800), "fetch", "fetch"))
        await make(gateway, Wanted(Cron("40 * * * *"), "daily", "daily"))
        await line.until("04:50")
        assert line.told("""
            Fri 04:10:00 tea runs
            Fri 04:10:05 tea ok; completed
            Fri 04:10:05 ann reads: ⏰ Tea!
            Fri 04:20:00 call runs
            Fri 04:20:05 call failed; failed, 1 failed
            Fri 04:20:05 ann reads: ⚠️ “call”, due today 04:20 (UTC…
            Fri 04:30:00 fetch runs
            Fri 04:31:00 fetch ok; next Fri 05:01:00
            Fri 04:31:00 ann reads: 🗓 fetch 1
            Fri 04:40:00 daily runs
            Fri 04:41:00 daily ok; next Fri 05:40:00
            Fri 04:41:00 ann reads: 🗓 daily done
        """)
        paused = await service(gateway).edit("daily", JobChange(state=JobState.PAUSED), OPERATOR)
        assert paused.next_run_at is None
        await line.until("05:45")
        resumed = await service(gateway).edit("daily", JobChange(state=JobState.ACTIVE), OPERATOR)
        assert resumed.next_run_at == START.replace(hour=6, minute=40, second=0)
        assert line.told("""
            Fri 05:01:00 fetch runs
            Fri 05:02:00 fetch ok; next Fri 05:32:00
            Fri 05:02:00 ann reads: 🗓 fetch done
            Fri 05:32:00 fetch runs
            Fri 05:33:00 fetch ok; next Fri 06:03:00
            Fri 05:33:00 ann reads: 🗓 fetch done
        """)


async def test_retries_in_a_lane_of_one() -> None:
    """*Retry*, *Lane Defaults*; SPEC CRON-7, LANE-1: what waits for a retry takes no slot."""
    slow, fast = Fail(DOWN, 20), Fail(DOWN)
    line = Timeline({"fetch": [slow, slow, Say("got it", 20), *[fast] * 4]})
    await line.until("04:00")
    async with line.gateway(GOCLAW) as gateway:
        fetch = await make(gateway, Wanted(Cron("0,30 * * * *"), "fetch", "fetch"))
        await make(gateway, Wanted(at(4, 30, 1), "tea", "tea"))
        await line.until("05:01")
        assert line.told("""
            Fri 04:30:00 fetch runs
            Fri 04:30:20 tea runs
            Fri 04:31:20 tea ok; completed
            Fri 04:31:20 fetch runs
            Fri 04:31:20 ann reads: ⏰ done (Late by 1 min: it was d…
            Fri 04:31:44 fetch runs
            Fri 04:32:04 fetch ok; next Fri 05:00:00
            Fri 04:32:04 ann reads: 🗓 fetch got it
            Fri 05:00:00 fetch runs
            Fri 05:00:02 fetch runs
            Fri 05:00:06 fetch runs
            Fri 05:00:14 fetch runs
            Fri 05:00:14 fetch failed; next Fri 05:30:00, 1 failed
            Fri 05:00:14 ann reads: ⚠️ “fetch”, due today 05:00 (UT…
        """)
        log = await log_of(gateway, fetch)
        assert [(row.status, row.attempts, len(row.runs)) for row in log] == [
            ("ok", 3, 3),
            ("failed", 4, 4),
        ]
        assert [row.error for row in log] == ["", "AgentError: 429"]


async def test_a_busy_conversation_is_waited_for() -> None:
    """*Session Queue*; SPEC CRON-10: ``on_busy = queue``."""
    line = Timeline({"hello": [Say("hi", 90)]})
    await line.until("04:00")
    async with line.gateway(GOCLAW) as gateway:
        in_chat = (("session", "main"),)
        await make(gateway, Wanted(Cron("10 * * * *"), "fetch", "fetch", policy=in_chat))
        await line.until("04:09:30")
        await gateway.say("hello")
        await line.until("04:15")
    assert line.told("""
        Fri 04:09:30.800 hello runs
        Fri 04:11:00.800 fetch runs
        Fri 04:11:00.800 ann reads: hi
        Fri 04:12:00.800 fetch ok; next Fri 05:10:00
        Fri 04:12:00.800 ann reads: 🗓 fetch done
    """)


async def test_a_restart_cuts_what_is_too_long_and_makes_up_for_what_was_missed() -> None:
    """SPEC CRON-5, CRON-6, and ``shutdown.wait``."""
    line = Timeline({"short": [Say("in time", 40)], "long": [Say("never", 600)]})
    await line.until("04:00")
    async with line.gateway(GOCLAW) as gateway:
        await make(gateway, Wanted(Cron("0 5 * * *"), "short", "short"))
        await make(gateway, Wanted(Cron("1 5 * * *"), "long", "long"))
        await make(gateway, Wanted(at(9, 0), "tea", "tea"))
        await make(gateway, Wanted(Cron("30 * * * *"), "poll", "poll"))
        await line.until("05:00:20")
        await gateway.shut_down(wait_s=GOCLAW.shutdown_wait_s)
    await line.until("05:01")
    async with line.gateway(GOCLAW) as gateway:
        await line.until("05:01:10")
        await gateway.shut_down(wait_s=GOCLAW.shutdown_wait_s)
    await line.until("09:10")
    async with line.gateway(GOCLAW):
        await line.until("09:14")
    assert line.told("""
        Fri 04:30:00 poll runs
        Fri 04:31:00 poll ok; next Fri 05:30:00
        Fri 04:31:00 ann reads: 🗓 poll done
        Fri 05:00:00 short runs
        Fri 05:00:40 short ok; next Sat 05:00:00
        Fri 05:00:40 ann reads: 🗓 short in time
        Fri 05:01:00 long runs
        Fri 05:01:40 long interrupted; next Fri 05:01:00
        Fri 09:10:00 long runs
        Fri 09:11:00 long ok; next Sat 05:01:00
        Fri 09:11:00 poll runs
        Fri 09:11:00 ann reads: 🗓 long done
        Fri 09:12:00 poll ok; next Fri 09:30:00, 3 coalesced
        Fri 09:12:00 tea runs
        Fri 09:12:00 ann reads: 🗓 poll done
        Fri 09:13:00 tea ok; completed
        Fri 09:13:00 ann reads: ⏰ done (Late by 13 min: it was …
    """)
