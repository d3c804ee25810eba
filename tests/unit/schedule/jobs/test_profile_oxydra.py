"""The profile ``oxydra``, clause by clause of its document (Phase 19: Scheduler System).

What it says: off until it is switched on; five-field cron, ``once``, intervals from 60 s, all in
Asia/Kolkata unless told otherwise; two runs at once; ten turns and half a dollar each; a session of
its own for each schedule; results told always, never, or when they begin with ``[NOTIFY]``; five
failures in a row switch a schedule off; a ``once`` that ran is completed and stays; 20 runs are
kept, and go with their schedule; a restart makes up for what was missed once; an edit during a run
wins; runs have the scheduling tools; the end of the program cancels runs.

What is deliberately different, and why: docs/guide/profiles.md. Also, all firings
have to lie a minute apart, not only the next two.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.errors import AgentError, BadCron, TooFrequent, TooManyJobs, UnknownJob
from goclaw_py.operations.jobs.models import JobChange, RunNow
from goclaw_py.schedule.jobs.models import JobState, Notify, TargetKind
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron
from goclaw_py.testing.agents import Fail, Say
from tests.support.harness import here
from tests.support.jobs import IN_CHAT, OPERATOR, Wanted, every, log_of, make, service
from tests.unit.schedule.jobs.timeline import Timeline

OXYDRA = PROFILES["oxydra"]
ON = replace(OXYDRA, enabled=True)
BROKEN = Fail(AgentError("It broke.", "500", retryable=True), 5)


async def test_nothing_runs_until_somebody_switches_it_on() -> None:
    """Step 3, *enabled*; SPEC CRON-4: jobs can be edited meanwhile."""
    line = Timeline()
    async with line.gateway(OXYDRA) as gateway:
        await make(gateway, Wanted(every(60), "report", "report"))
        await service(gateway).edit("report", JobChange(name="Report"), OPERATOR)
        await line.until("03:30")
        assert await service(gateway).run_now("report", OPERATOR) is RunNow.OFF
        assert line.table == []


async def test_two_runs_at_once_in_sessions_and_budgets_of_their_own() -> None:
    """Steps 3 and 8, *Edge Cases* 4 and 6; SPEC AGENT-5, CRON-14."""
    line = Timeline()
    await line.until("04:00")
    async with line.gateway(ON) as gateway:
        one = await make(gateway, Wanted(Cron("35 9 * * *"), "one", "one"))
        assert one.spec.zone == "Asia/Kolkata"
        await line.until("04:00:01")
        two = await make(gateway, Wanted(every(300), "two", "two"))
        await line.until("04:00:02")
        await make(gateway, Wanted(every(300), "three", "three"))
        await line.until("04:08")
        requests = gateway.scripted.requests
        assert [request.session for request in requests[:2]] == [
            f"agent:main:cron:{one.id}",
            f"agent:main:cron:{two.id}",
        ]
        for request in requests:
            assert (request.budget.turns, request.budget.usd) == (10, Decimal("0.50"))
            assert here(request).jobs is not None
    assert line.told("""
        Fri 04:05:00 one runs
        Fri 04:05:01 two runs
        Fri 04:06:00 one ok; next Sat 04:05:00
        Fri 04:06:00 three runs
        Fri 04:06:00 ann reads: 🗓 one done
        Fri 04:06:01 two ok; next Fri 04:11:01
        Fri 04:06:01 ann reads: 🗓 two done
        Fri 04:07:00 three ok; next Fri 04:12:00
        Fri 04:07:00 ann reads: 🗓 three done
    """)


async def test_results_are_told_always_when_they_say_so_or_never() -> None:
    """Step 8.8; SPEC CRON-13."""
    line = Timeline(
        {"weather": [Say("fine"), Say("[NOTIFY] A storm comes."), Say(" \n[NOTIFY] It is here.")]}
    )
    await line.until("04:00")
    async with line.gateway(ON) as gateway:
        await make(gateway, Wanted(every(60), "weather", "weather", notify=Notify.CONDITIONAL))
        await line.until("04:00:30")
        await make(gateway, Wanted(every(180), "tidy", "tidy", notify=Notify.NEVER))
        await line.until("04:03:50")
    assert line.told("""
        Fri 04:01:00 weather runs
        Fri 04:01:00 weather ok (no_notify); next Fri 04:02:00
        Fri 04:02:00 weather runs
        Fri 04:02:00 weather ok; next Fri 04:03:00
        Fri 04:02:00 ann reads: 🗓 weather A storm comes.
        Fri 04:03:00 weather runs
        Fri 04:03:00 weather ok; next Fri 04:04:00
        Fri 04:03:00 ann reads: 🗓 weather It is here.
        Fri 04:03:30 tidy runs
    """)


async def test_five_failures_in_a_row_switch_a_schedule_off() -> None:
    """Step 8.7 and 8.9; SPEC CRON-8: no retries; a success begins a new row."""
    line = Timeline({"report": [BROKEN, BROKEN, Say("ok"), *[BROKEN] * 5, Say("well again")]})
    await line.until("04:00")
    async with line.gateway(ON) as gateway:
        await make(gateway, Wanted(every(60), "report", "report", notify=Notify.NEVER))
        await line.until("04:30")
        await service(gateway).edit("report", JobChange(state=JobState.ACTIVE), OPERATOR)
        await line.until("04:31:30")
    assert line.told("""
        Fri 04:01:00 report runs
        Fri 04:01:05 report failed; next Fri 04:02:05, 1 failed
        Fri 04:02:05 report runs
        Fri 04:02:10 report failed; next Fri 04:03:10, 2 failed
        Fri 04:03:10 report runs
        Fri 04:03:10 report ok; next Fri 04:04:10
        Fri 04:04:10 report runs
        Fri 04:04:15 report failed; next Fri 04:05:15, 1 failed
        Fri 04:05:15 report runs
        Fri 04:05:20 report failed; next Fri 04:06:20, 2 failed
        Fri 04:06:20 report runs
        Fri 04:06:25 report failed; next Fri 04:07:25, 3 failed
        Fri 04:06:25 ann reads: ⚠️ “report” has failed three ti…
        Fri 04:07:25 report runs
        Fri 04:07:30 report failed; next Fri 04:08:30, 4 failed
        Fri 04:08:30 report runs
        Fri 04:08:35 report failed; disabled, 5 failed
        Fri 04:08:35 ann reads: ⚠️ “report” has failed 5 times …
        Fri 04:31:00 report runs
        Fri 04:31:00 report ok; next Fri 04:32:00
    """)


async def test_what_ran_once_is_completed_and_stays_until_it_is_deleted_with_its_runs() -> None:
    """*Edge Cases* 3, step 7d; SPEC CRON-9."""
    line = Timeline({"tea": [Say("Tea!")], "call": [BROKEN]})
    await line.until("04:00")
    async with line.gateway(ON) as gateway:
        now = gateway.clock.now()
        tea = await make(gateway, Wanted(At(now + timedelta(minutes=1)), "tea", "tea"))
        call = await make(gateway, Wanted(At(now + timedelta(minutes=2)), "call", "call"))
        await line.until("04:05")
        assert (await service(gateway).get("tea", OPERATOR)).state is JobState.COMPLETED
        assert [row.status for row in await log_of(gateway, call)] == ["failed"]
        for job in (tea, call):
            await service(gateway).delete(job.id, OPERATOR)
            with pytest.raises(UnknownJob):
                await service(gateway).log(job.id, OPERATOR)
    assert line.told("""
        Fri 04:01:00 tea runs
        Fri 04:01:00 tea ok; completed
        Fri 04:01:00 ann reads: ⏰ Tea!
        Fri 04:02:00 call runs
        Fri 04:02:05 call failed; failed, 1 failed
        Fri 04:02:05 ann reads: ⚠️ “call”, due today 09:32 (Asi…
    """)


async def test_edits_and_pauses_win_over_the_run_that_goes_on() -> None:
    """*Edge Cases* 2, step 7c; SPEC CRON-11."""
    line = Timeline({"report": [Say("1", 120)], "fetch": [Say("1", 120)]})
    await line.until("04:00")
    async with line.gateway(ON) as gateway:
        await make(gateway, Wanted(every(600), "report", "report", target=TargetKind.NONE))
        await line.until("04:01")
        await make(gateway, Wanted(every(600), "fetch", "fetch", target=TargetKind.NONE))
        await line.until("04:11:30")
        await service(gateway).edit("report", JobChange(schedule=Cron("50 9 * * *")), OPERATOR)
        await service(gateway).edit("fetch", JobChange(state=JobState.PAUSED), OPERATOR)
        await line.until("04:15")
        await service(gateway).edit("fetch", JobChange(state=JobState.ACTIVE), OPERATOR)
        await line.until("04:26")
    assert line.told("""
        Fri 04:10:00 report runs
        Fri 04:11:00 fetch runs
        Fri 04:12:00 report ok; next Fri 04:20:00
        Fri 04:13:00 fetch ok; paused
        Fri 04:20:00 report runs
        Fri 04:21:00 report ok; next Sat 04:20:00
        Fri 04:25:00 fetch runs
    """)


async def test_a_restart_makes_up_for_what_was_missed_once() -> None:
    """*Edge Cases* 1, step 10; SPEC CRON-5, CRON-6; ``shutdown.wait`` is 0."""
    line = Timeline({"report": [Say("1", 600)]})
    await line.until("04:00")
    async with line.gateway(ON) as gateway:
        await make(gateway, Wanted(every(60), "report", "report", target=TargetKind.NONE))
        await line.until("04:00:30")
        await make(gateway, Wanted(Cron("*/5 * * * *"), "fetch", "fetch", target=TargetKind.NONE))
        await line.until("04:01:30")
        await gateway.shut_down(wait_s=ON.shutdown_wait_s)
    await line.until("06:02")
    async with line.gateway(ON):
        await line.until("06:03:30")
    assert line.told("""
        Fri 04:01:00 report runs
        Fri 04:01:30 report interrupted; next Fri 04:01:00
        Fri 06:02:00 report runs
        Fri 06:02:01 fetch runs
        Fri 06:03:00 report ok; next Fri 06:04:00
        Fri 06:03:01 fetch ok; next Fri 06:05:00, 23 coalesced
    """)


async def test_what_is_refused_when_it_is_made() -> None:
    """Steps 3, 6 and 7a; SPEC CRON-2, CRON-15: 50 schedules, 60 s, five fields."""
    line = Timeline()
    async with line.gateway(ON) as gateway:
        with pytest.raises(TooFrequent):
            await make(gateway, Wanted(every(59)))
        with pytest.raises(BadCron):
            await make(gateway, Wanted(Cron("0 0 8 * * *")))
        for number in range(50):
            await make(gateway, Wanted(every(60), slug=f"job-{number}"), IN_CHAT)
        with pytest.raises(TooManyJobs):
            await make(gateway, Wanted(every(60), slug="one-more"), IN_CHAT)
