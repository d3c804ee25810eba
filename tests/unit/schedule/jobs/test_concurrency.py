"""Jobs that wait for others of their agent (SPEC CRON-5, CRON-10, CRON-6)."""

from __future__ import annotations

from dataclasses import replace

from goclaw_py.core.errors import AgentError
from goclaw_py.schedule.jobs.models import TargetKind
from goclaw_py.schedule.jobs.policy import PROFILES, policy_with
from goclaw_py.schedule.jobs.schedule import Cron
from goclaw_py.testing.agents import Fail, Say
from tests.support.jobs import Wanted, make
from tests.unit.schedule.jobs.timeline import Timeline

HERDCTL = PROFILES["herdctl"]
WAITING = replace(HERDCTL, policy=policy_with(HERDCTL.policy, {"on_busy": "queue", "retries": 1}))
DOWN = Fail(AgentError("The model is busy.", "429", retryable=True), 60)


def wanted(slug: str, minute: int) -> Wanted:
    return Wanted(Cron(f"{minute} * * * *"), slug, slug, target=TargetKind.NONE)


async def test_what_waits_when_the_gateway_ends_is_released_and_does_not_begin() -> None:
    line = Timeline({"first": [Say("1", 75)]})
    await line.until("04:00")
    async with line.gateway(WAITING) as gateway:
        await make(gateway, wanted("first", 1))
        await make(gateway, wanted("second", 2))
        await line.until("04:02:05")
        await gateway.shut_down(wait_s=30)
    assert line.told("""
        Fri 04:01:00 first runs
        Fri 04:02:05 second interrupted; next Fri 04:02:00
        Fri 04:02:15 first ok; next Fri 05:01:00
    """)


async def test_what_was_missed_comes_one_after_the_other_too() -> None:
    line = Timeline()
    await line.until("04:00")
    async with line.gateway(WAITING) as gateway:
        for minute, slug in enumerate(("first", "second", "third"), start=1):
            await make(gateway, wanted(slug, minute))
        await gateway.shut_down()
    await line.until("04:30")
    async with line.gateway(WAITING):
        await line.until("04:34")
    assert line.told("""
        Fri 04:30:00 first runs
        Fri 04:31:00 first ok; next Fri 05:01:00
        Fri 04:31:00 second runs
        Fri 04:32:00 second ok; next Fri 05:02:00
        Fri 04:32:00 third runs
        Fri 04:33:00 third ok; next Fri 05:03:00
    """)


async def test_what_waits_for_its_next_attempt_keeps_its_place(no_jitter: None) -> None:
    """SPEC CRON-7: its lane slot is free meanwhile, but its agent is not."""
    line = Timeline({"first": [DOWN, DOWN]})
    await line.until("04:00")
    async with line.gateway(WAITING) as gateway:
        await make(gateway, wanted("first", 1))
        await make(gateway, wanted("second", 2))
        await line.until("04:05")
    assert line.told("""
        Fri 04:01:00 first runs
        Fri 04:02:02 first runs
        Fri 04:03:02 first failed; next Fri 05:01:00, 1 failed
        Fri 04:03:02 second runs
        Fri 04:04:02 second ok; next Fri 05:02:00
    """)
