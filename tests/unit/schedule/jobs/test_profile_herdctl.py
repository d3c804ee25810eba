"""The profile ``herdctl``, clause by clause of its document (PRD 6: Scheduler, Interval-Based MVP).

What it says: intervals count from the end of a run, and the first run is at once; one run of an
agent at a time, others of it are skipped; an error stops nobody else, and the next run comes as
planned; work is fetched before a run and its outcome is reported, without work a run is skipped;
a schedule without prompt says ``Execute scheduled task``; a schedule can be triggered by hand; what
is due at the start runs at once; at the end nothing starts and runs have 30 s.

What is deliberately different, and why: docs/guide/profiles.md.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import MAIN_AGENT, AgentName, JobId
from goclaw_py.operations.jobs.models import JobDraft, RunNow, StartedNow
from goclaw_py.schedule.jobs.models import Prompt, TargetKind, WorkItem
from goclaw_py.schedule.jobs.policy import PROFILES, policy_with
from goclaw_py.testing.agents import Fail, Say
from tests.support.harness import GatewayProcess
from tests.support.jobs import OPERATOR, after, at, every, service
from tests.unit.schedule.jobs.timeline import OTHER, Timeline

HERDCTL = PROFILES["herdctl"]
BROKEN = Fail(AgentError("It broke.", "500", retryable=True), 60)


async def add(
    gateway: GatewayProcess, slug: str, minutes: int, agent: AgentName = MAIN_AGENT, **facts: Any
) -> None:
    """A schedule that tells nobody."""
    draft = JobDraft(
        every(60 * minutes), Prompt(slug), slug=slug, agent=agent, target=TargetKind.NONE
    )
    await service(gateway).create(replace(draft, **facts), OPERATOR)


@dataclass(slots=True)
class Pile:
    """A work source."""

    items: list[WorkItem]
    reports: list[str] = field(default_factory=list)

    async def claim(self, job: JobId) -> WorkItem | None:
        return self.items.pop(0) if self.items else None

    async def done(self, item: WorkItem, *, ok: bool, text: str) -> None:
        self.reports.append(f"{item.id} {'ok' if ok else 'failed'}: {text}")

    async def give_back(self, item: WorkItem, reason: str) -> None:
        self.reports.append(f"{item.id} back: {reason}")


async def test_intervals_count_from_the_end_and_an_agent_does_one_thing_at_a_time() -> None:
    """US-3, US-4, US-6, *Notes*; SPEC CRON-3, CRON-10: 5 minutes after 10 minutes are 15."""
    line = Timeline({"build": [Say("1", 600)]})
    await line.until("04:00")
    async with line.gateway(HERDCTL) as gateway:
        await add(gateway, "build", 5)
        await line.until("04:00:01")
        await add(gateway, "watch", 4)
        await line.until("04:00:02")
        await add(gateway, "test", 20, agent=OTHER)
        await line.until("04:17")
    assert line.told("""
        Fri 04:00:00 build runs
        Fri 04:00:02 test runs
        Fri 04:01:02 test ok; next Fri 04:21:02
        Fri 04:10:00 build ok; next Fri 04:15:00
        Fri 04:10:00 watch runs
        Fri 04:11:00 watch ok; next Fri 04:15:00
        Fri 04:15:00 build runs
        Fri 04:16:00 build ok; next Fri 04:21:00
        Fri 04:16:00 watch runs
    """)


@pytest.mark.parametrize("on_busy", ["queue", "delay"])
async def test_an_agent_does_one_thing_at_a_time_whatever_its_jobs_do(on_busy: str) -> None:
    """SPEC CRON-10, CRON-17: also where they wait, and for what is due once."""
    line = Timeline({"build": [Say("1", 600)]})
    policy = policy_with(HERDCTL.policy, {"on_busy": on_busy, "busy_delay": 300})
    await line.until("04:00")
    async with line.gateway(replace(HERDCTL, policy=policy)) as gateway:
        await add(gateway, "build", 60)
        await line.until("04:00:01")
        await add(gateway, "watch", 60)
        tea = at((gateway.clock.now() - after(0)).total_seconds() + 59)
        await add(gateway, "tea", 1, schedule=tea, policy={"on_busy": "skip"})
        await line.until("04:12")
    queued = """
        Fri 04:00:00 build runs
        Fri 04:10:00 build ok; next Fri 05:10:00
        Fri 04:10:00 watch runs
        Fri 04:11:00 watch ok; next Fri 05:11:00
        Fri 04:11:00 tea runs
    """
    delayed = """
        Fri 04:00:00 build runs
        Fri 04:00:01 watch skipped (at_capacity); next Fri 04:05:01
        Fri 04:05:01 watch skipped (at_capacity); next Fri 04:10:01
        Fri 04:10:00 build ok; next Fri 05:10:00
        Fri 04:10:00 tea runs
        Fri 04:10:01 watch skipped (at_capacity); next Fri 04:15:01
        Fri 04:11:00 tea ok; deleted
    """
    assert line.told(queued if on_busy == "queue" else delayed)


async def test_an_error_stops_nobody_and_changes_no_plan() -> None:
    """US-7; SPEC CRON-7, CRON-8: no retries, no backoff, nothing is switched off."""
    line = Timeline({"broken": [BROKEN] * 99})
    await line.until("04:00")
    async with line.gateway(HERDCTL) as gateway:
        await add(gateway, "broken", 5)
        await add(gateway, "fine", 10, agent=OTHER)
        await line.until("04:08")
        assert (await service(gateway).get("broken", OPERATOR)).last_error == "AgentError: 500"
    assert [row for row in line.table if " fine " in row] == [
        "Fri 04:00:00 fine runs",
        "Fri 04:01:00 fine ok; next Fri 04:11:00",
    ]
    assert [row for row in line.table if " broken " in row] == [
        "Fri 04:00:00 broken runs",
        "Fri 04:01:00 broken failed; next Fri 04:06:00, 1 failed",
        "Fri 04:06:00 broken runs",
        "Fri 04:07:00 broken failed; next Fri 04:12:00, 2 failed",
    ]


async def test_work_is_fetched_before_a_run_and_reported_after_it() -> None:
    """US-5, *Integration with Work Sources*; SPEC CRON-18: without work a run is skipped."""
    line = Timeline({"work": [Say("fixed", 60), BROKEN]})
    pile = Pile([WorkItem("7", "Fix the door"), WorkItem("8", "Paint it", "Red.", "http://x/8")])
    await line.until("04:00")
    async with line.gateway(HERDCTL, {"pile": pile}) as gateway:
        await add(gateway, "work", 5, source="pile")
        await line.until("04:20")
        first, second = gateway.scripted.prompts
    assert "Fix the door" in first
    assert "Paint it" in second
    assert "http://x/8" in second
    assert pile.reports == ["7 ok: fixed", "8 failed: It broke.\n\nAgentError: 500"]
    assert line.told("""
        Fri 04:00:00 work runs
        Fri 04:01:00 work ok; next Fri 04:06:00
        Fri 04:06:00 work runs
        Fri 04:07:00 work failed; next Fri 04:12:00, 1 failed
        Fri 04:12:00 work skipped (no_work); next Fri 04:17:00, 1 failed
        Fri 04:17:00 work skipped (no_work); next Fri 04:22:00, 1 failed
    """)


async def test_a_schedule_without_prompt_and_one_triggered_by_hand() -> None:
    """``executeSchedule``, *trigger*; SPEC CRON-11."""
    line = Timeline({"Execute scheduled task": [Say("1", 120)]})
    await line.until("04:00")
    async with line.gateway(HERDCTL) as gateway:
        await add(gateway, "bare", 5, payload=None)
        await line.until("04:00:01")
        await add(gateway, "other", 30, paused=True)
        work = service(gateway)
        await line.until("04:01")
        assert await work.run_now("other", OPERATOR) is RunNow.AT_CAPACITY
        await line.until("04:03")
        started = await work.run_now("other", OPERATOR)
        assert isinstance(started, StartedNow)
        assert started.run is not None
        assert await work.run_now("bare", OPERATOR) is RunNow.AT_CAPACITY
        await line.until("04:05")
    assert line.told("""
        Fri 04:00:00 Execute scheduled task runs
        Fri 04:02:00 bare ok; next Fri 04:07:00
        Fri 04:03:00 other runs
        Fri 04:04:00 other ok; paused
    """)


async def test_runs_have_half_a_minute_at_the_end_and_what_is_due_at_the_start_runs_once() -> None:
    """US-2, US-3, US-8; SPEC CRON-5, CRON-6; ``shutdown.wait``."""
    line = Timeline({"short": [Say("1", 40)], "long": [Say("1", 600), Say("2", 30)]})
    await line.until("04:00")
    async with line.gateway(HERDCTL) as gateway:
        await add(gateway, "short", 5)
        later = {"first_run": "after_interval"}
        await add(gateway, "long", 5, agent=OTHER, schedule=every(90), policy=later)
        await line.until("04:00:30")
        await gateway.shut_down(wait_s=HERDCTL.shutdown_wait_s)
    await line.until("04:02")
    async with line.gateway(HERDCTL) as gateway:
        await line.until("04:02:10")
        await gateway.shut_down(wait_s=HERDCTL.shutdown_wait_s)
    await asyncio.sleep(3600)
    async with line.gateway(HERDCTL) as gateway:
        await line.until("05:05")
    assert line.told("""
        Fri 04:00:00 short runs
        Fri 04:00:40 short ok; next Fri 04:05:40
        Fri 04:02:00 long runs
        Fri 04:02:40 long interrupted; next Fri 04:01:30
        Fri 05:02:40 long runs
        Fri 05:02:41 short runs
        Fri 05:03:10 long ok; next Fri 05:04:40
        Fri 05:03:41 short ok; next Fri 05:08:41
        Fri 05:04:40 long runs
    """)


async def test_what_was_due_while_nothing_ran_waits_for_its_agent_too() -> None:
    """US-3, US-6; SPEC CRON-6, CRON-10: it is made up for once, one thing at a time."""
    line = Timeline({"one": [Say("1", 60), Say("2", 120)]})
    await line.until("04:00")
    async with line.gateway(HERDCTL) as gateway:
        await add(gateway, "one", 30)
        await line.until("04:05")
        await add(gateway, "two", 30)
        await line.until("04:10")
        await gateway.shut_down(wait_s=HERDCTL.shutdown_wait_s)
    await line.until("05:00")
    async with line.gateway(HERDCTL):
        await line.until("05:05")
    assert line.told("""
        Fri 04:00:00 one runs
        Fri 04:01:00 one ok; next Fri 04:31:00
        Fri 04:05:00 two runs
        Fri 04:06:00 two ok; next Fri 04:36:00
        Fri 05:00:00 one runs
        Fri 05:02:00 one ok; next Fri 05:32:00
        Fri 05:02:00 two runs
        Fri 05:03:00 two ok; next Fri 05:33:00
    """)
