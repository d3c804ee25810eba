"""The job service as a library: what its handlers get, and what becomes of them.

SPEC CRON-21, CRON-4, CRON-6, CRON-8, CRON-10, CRON-11, CRON-12, CRON-17.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from goclaw_py import (
    PROFILES,
    At,
    Cron,
    Due,
    Every,
    JobChange,
    JobScheduler,
    JobState,
    MemoryStore,
    Prompt,
    RunNow,
    StartedNow,
)
from goclaw_py.jobs.execution_models import OUTPUT_BYTES, Why
from goclaw_py.model.errors import AgentError, UnknownJob
from goclaw_py.testing.clock import START, LoopClock
from tests.support.jobs import after, at, every
from tests.unit.jobs.service_parts import (
    Script,
    ends,
    fails,
    hangs,
    log_of,
    service,
    started,
    takes,
)

# ---------------------------------------------------------------------------- what is due


async def test_a_handler_is_told_what_is_due() -> None:
    script = Script([takes(5, "twelve pages")])
    async with started(script) as jobs:
        job = await jobs.add("daily", Cron("10 3 * * *"), "sales")
        await asyncio.sleep(600)
        (due,) = script.begun
        (row,) = await log_of(jobs, "daily")
        later = await jobs.get("daily")
    assert (due.job.id, due.text, due.attempt, due.manual) == (job.id, "sales", 1, False)
    assert due.due_at == START.replace(minute=10, second=0)
    assert due.occurrence == row.id
    assert (row.status, row.output, row.error, row.attempts) == ("ok", "twelve pages", "", 1)
    assert (row.started_at, row.finished_at) == (due.due_at, due.due_at + timedelta(seconds=5))
    assert later.next_run_at == due.due_at + timedelta(days=1)


async def test_a_job_without_text_says_its_slug() -> None:
    script = Script()
    async with started(script) as jobs:
        await jobs.add("clean-up", at(10))
        await asyncio.sleep(11)
    assert [due.text for due in script.begun] == ["clean-up"]


async def test_times_of_the_calendar_are_those_of_the_zone_of_a_job() -> None:
    """SPEC CRON-1: 03:10 UTC is 04:10 in Berlin, and 08:40 in Kolkata."""
    script = Script()
    async with started(script) as jobs:
        await jobs.add("kolkata", Cron("40 8 * * *"), zone="Asia/Kolkata")
        await jobs.add("berlin", Cron("11 4 * * *"), zone="Europe/Berlin")
        await jobs.add("utc", Cron("12 3 * * *"))
        await asyncio.sleep(3600)
    assert script.slugs() == ["kolkata", "berlin", "utc"]


async def test_jobs_are_there_before_the_service_is_started() -> None:
    script = Script()
    jobs = service(handler=script)
    await jobs.add("job", at(10))
    await asyncio.sleep(20)
    assert script.begun == []
    await jobs.start()
    await asyncio.sleep(1)
    assert script.slugs() == ["job"]
    await jobs.stop()


async def test_a_job_that_is_added_while_the_loop_sleeps_is_on_time() -> None:
    """SPEC CRON-4: a change wakes it."""
    script = Script()
    async with started(script) as jobs:
        await asyncio.sleep(0.5)
        await jobs.add("job", At(after(0.9)))
        await asyncio.sleep(10)
    assert script.at == [0.9]


async def test_a_handler_can_be_named_by_a_decorator_and_exchanged() -> None:
    jobs = service()

    @jobs.on_due
    async def first(due: Due) -> str:
        return "first"

    async def second(due: Due) -> None:
        return None

    async with jobs:
        await jobs.start()
        await jobs.add("job", every(60))
        await asyncio.sleep(61)
        jobs.on_due(second)
        await asyncio.sleep(60)
        assert [row.output for row in await log_of(jobs)] == ["first", ""]


# ---------------------------------------------------------------------------- failures


async def test_a_failure_is_logged_and_counted_and_the_job_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = Script([fails(LookupError("no such table"))])
    async with started(script) as jobs:
        await jobs.add("job", every(60))
        await asyncio.sleep(61)
        (row,) = await log_of(jobs)
        job = await jobs.get("job")
        assert (row.status, row.error) == ("failed", "LookupError: no such table")
        assert (job.failures, job.last_error) == (1, "LookupError: no such table")
        (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
        assert warning.getMessage() == "job_failed"
        assert vars(warning)["error"] == "LookupError: no such table"
        assert vars(warning)["slug"] == "job"
        await asyncio.sleep(60)
        assert await ends(jobs) == ["failed", "ok"]
        assert (await jobs.get("job")).failures == 0


@pytest.mark.usefixtures("no_jitter")
@pytest.mark.parametrize("error", [
    ConnectionResetError("reset"),
    TimeoutError("slow"),
    AgentError("Sorry.", "overloaded", retryable=True),
])  # fmt: skip
async def test_what_may_be_over_in_a_moment_is_tried_again(error: Exception) -> None:
    """SPEC CRON-7: 2 s, 4 s and 8 s later, then it has failed."""
    script = Script([fails(error)] * 4)
    async with started(script) as jobs:
        await jobs.add("job", at(10))
        await asyncio.sleep(60)
        (row,) = await log_of(jobs)
    assert script.at == [10, 12, 16, 24]
    assert [due.attempt for due in script.begun] == [1, 2, 3, 4]
    assert len({due.occurrence for due in script.begun}) == 1
    assert (row.status, row.attempts) == ("failed", 4)


@pytest.mark.parametrize("error", [ValueError("no"), AgentError("Sorry.", "401"), KeyError("x")])
async def test_other_failures_are_tried_again_only_if_the_policy_says_so(error: Exception) -> None:
    """SPEC CRON-7: ``retry.on``."""
    script = Script([fails(error), fails(error)])
    async with started(script) as jobs:
        await jobs.add("job", at(10))
        patient = await jobs.add("patient", at(20), policy={"retry_on": "any"})
        await asyncio.sleep(60)
        assert await ends(jobs) == ["failed"]
        assert await ends(jobs, patient.id) == ["ok"]
    assert script.slugs() == ["job", "patient", "patient"]


async def test_a_handler_that_takes_too_long_is_cancelled() -> None:
    script = Script([hangs])
    async with started(script) as jobs:
        await jobs.add("job", at(10), policy={"run_timeout_s": 30})
        await asyncio.sleep(100)
        (row,) = await log_of(jobs)
    assert (row.status, row.attempts, row.finished_at) == ("timed_out", 1, after(40))
    assert row.error == "it took longer than 30 s"


async def test_a_handlers_own_time_limit_is_a_failure_like_any_other() -> None:
    async def impatient(due: Due) -> str:
        async with asyncio.timeout(1):
            await asyncio.sleep(2)
        return "never"

    async with started(impatient) as jobs:
        await jobs.add("job", at(10), policy={"retries": 0})
        await asyncio.sleep(60)
        assert await ends(jobs) == ["failed"]


async def test_without_a_time_limit_a_handler_may_take_hours() -> None:
    script = Script([takes(7200)])
    async with started(script) as jobs:
        job = await jobs.add("job", at(10), policy={"run_timeout_s": 0})
        await asyncio.sleep(7300)
        assert await ends(jobs, job.id) == ["ok"]


async def test_what_is_no_text_is_a_failure() -> None:
    async def count(due: Due) -> int:
        return 7

    jobs = JobScheduler(MemoryStore(), clock=LoopClock())
    jobs.on_due(count)  # type: ignore[type-var]
    async with jobs:
        await jobs.start()
        await jobs.add("job", at(10))
        await asyncio.sleep(11)
        (row,) = await log_of(jobs)
    assert row.error == "TypeError: a handler returns text or None, not int"


async def test_a_function_that_is_no_coroutine_function_is_a_failure() -> None:
    jobs = JobScheduler(MemoryStore(), clock=LoopClock())
    jobs.on_due(lambda due: "done")  # type: ignore[type-var]
    async with jobs:
        await jobs.start()
        await jobs.add("job", at(10))
        await asyncio.sleep(11)
        (row,) = await log_of(jobs)
    assert row.error.startswith("TypeError: ")


async def test_long_texts_are_cut_and_all_others_can_be_kept() -> None:
    script = Script([takes(0, "ä" * OUTPUT_BYTES), fails(ValueError("ä" * OUTPUT_BYTES))])
    async with started(script) as jobs:
        await jobs.add("job", every(60))
        await asyncio.sleep(121)
        well, badly = await log_of(jobs)
    sizes = [len(text.encode()) for text in (well.output, badly.error)]
    assert sizes == [OUTPUT_BYTES, OUTPUT_BYTES]


async def test_five_failures_in_a_row_switch_a_job_off_if_the_policy_says_so() -> None:
    script = Script([fails(ValueError("no"))] * 5)
    async with started(script) as jobs:
        await jobs.add("job", every(60), policy={"auto_disable_after": 5})
        await asyncio.sleep(1000)
        assert (await jobs.get("job")).state is JobState.DISABLED
        assert len(script.begun) == 5
        await jobs.resume("job")
        await asyncio.sleep(61)
        job = await jobs.get("job")
    assert (job.state, job.failures, len(script.begun)) == (JobState.ACTIVE, 0, 6)


# ---------------------------------------------------------------------------- several at once


async def test_a_handler_that_hangs_delays_no_other_job() -> None:
    script = Script([hangs])
    async with started(script, concurrency=2) as jobs:
        await jobs.add("hung", at(10))
        await jobs.add("job", every(60))
        await asyncio.sleep(301)
    assert script.at == [10, 60, 120, 180, 240, 300]


async def test_no_more_handlers_work_at_once_than_were_allowed() -> None:
    script = Script([takes(10)] * 9)
    async with started(script, concurrency=3) as jobs:
        for number in range(9):
            await jobs.add(f"job-{number}", at(60))
        await asyncio.sleep(120)
    assert (script.most_active, len(script.begun)) == (3, 9)
    assert script.at == [60] * 3 + [70] * 3 + [80] * 3


async def test_the_wait_for_others_is_no_part_of_the_time_limit() -> None:
    script = Script([takes(20), takes(20)])
    async with started(script, concurrency=1) as jobs:
        two = [await jobs.add(slug, at(60), policy={"run_timeout_s": 30}) for slug in "ab"]
        await asyncio.sleep(120)
        assert [await ends(jobs, job.id) for job in two] == [["ok"], ["ok"]]
    assert script.at == [60, 80]


async def test_a_job_runs_once_at_a_time_and_what_comes_meanwhile_is_counted() -> None:
    script = Script([takes(150)])
    async with started(script) as jobs:
        await jobs.add("job", Cron("* * * * *"))
        await asyncio.sleep(300)
        job = await jobs.get("job")
    # Due at 03:05, busy until 03:07:30.
    assert script.at == [55, 55 + 180, 55 + 240]
    assert (script.most_active, job.coalesced) == (1, 2)


async def test_a_crowd_is_claimed_before_its_time_and_begins_on_time() -> None:
    script = Script()
    async with started(script, concurrency=100) as jobs:
        for number in range(100):
            await jobs.add(f"job-{number}", at(60))
        await asyncio.sleep(61)
    assert script.at == [60] * 100


async def test_what_is_removed_just_before_its_time_does_not_run_in_a_crowd_either() -> None:
    script = Script()
    async with started(script, concurrency=100) as jobs:
        for number in range(100):
            await jobs.add(f"job-{number}", at(60))
        await asyncio.sleep(59.95)
        await jobs.remove("job-7")
        await jobs.pause("job-8")
        await asyncio.sleep(10)
    assert {"job-7", "job-8"}.isdisjoint(script.slugs())
    assert len(script.begun) == 98


# ---------------------------------------------------------------------------- by hand


async def test_a_run_by_hand_leaves_the_schedule_as_it_is() -> None:
    """SPEC CRON-11: in every state."""
    script = Script()
    async with started(script) as jobs:
        before = await jobs.add("job", every(60), max_runs=5)
        await jobs.pause("job")
        ran = await jobs.run("job")
        await asyncio.sleep(1)
        paused = await jobs.get("job")
        resumed = await jobs.resume("job")
    assert isinstance(ran, StartedNow)
    (due,) = script.begun
    assert (due.manual, due.occurrence) == (True, ran.occurrence)
    assert (paused.state, paused.next_run_at, paused.runs) == (JobState.PAUSED, None, 0)
    assert before.next_run_at == after(60)
    assert resumed.next_run_at == after(61)


async def test_a_job_that_runs_is_not_run_by_hand() -> None:
    script = Script([hangs])
    async with started(script) as jobs:
        await jobs.add("job", at(10))
        await asyncio.sleep(11)
        assert await jobs.run("job") is RunNow.ALREADY_RUNNING
        with pytest.raises(UnknownJob):
            await jobs.run("other")


async def test_before_the_start_and_after_the_end_nothing_runs_by_hand() -> None:
    script = Script()
    jobs = service(handler=script)
    await jobs.add("job", every(60))
    assert await jobs.run("job") is RunNow.OFF
    await jobs.start()
    await jobs.stop()
    assert await jobs.run("job") is RunNow.OFF
    assert script.begun == []


# ---------------------------------------------------------------------------- meanwhile


async def test_a_pause_during_a_run_wins() -> None:
    script = Script([takes(30)])
    async with started(script) as jobs:
        await jobs.add("job", every(60))
        await asyncio.sleep(70)
        await jobs.pause("job")
        await asyncio.sleep(600)
        job = await jobs.get("job")
        assert await ends(jobs) == ["ok"]
        assert (job.state, job.next_run_at, job.runs) == (JobState.PAUSED, None, 1)
        await jobs.resume("job")
        await asyncio.sleep(61)
        assert await ends(jobs) == ["ok", "ok"]


async def test_an_update_during_a_run_holds_for_the_next_one() -> None:
    """SPEC CRON-11: a run uses the definition at its start."""
    script = Script([takes(30)])
    async with started(script) as jobs:
        await jobs.add("job", every(60), "old")
        await asyncio.sleep(70)
        change = JobChange(schedule=every(100), payload=Prompt("new"), policy={"retries": 0})
        await jobs.update("job", change)
        await asyncio.sleep(200)
    assert [(due.text, began) for due, began in zip(script.begun, script.at, strict=True)] == [
        ("old", 60),
        ("new", 170),
    ]


async def test_a_job_that_is_removed_during_its_run_is_gone_and_its_log_stays() -> None:
    script = Script([takes(30)])
    async with started(script) as jobs:
        job = await jobs.add("job", every(60))
        await asyncio.sleep(70)
        await jobs.remove("job")
        await asyncio.sleep(600)
        assert script.ended == ["job"]
        with pytest.raises(UnknownJob):
            await jobs.get("job")
        with pytest.raises(UnknownJob):
            await jobs.run_log("job")
        assert await ends(jobs, job.id) == ["ok"]


@pytest.mark.parametrize("meddle", [
    lambda jobs, job: jobs.remove(job), lambda jobs, job: jobs.pause(job),
    lambda jobs, job: jobs.add("another", every(60)),
])  # fmt: skip
async def test_a_handler_may_change_jobs_its_own_too(
    meddle: Callable[[JobScheduler, str], Awaitable[object]],
) -> None:
    jobs = service()

    @jobs.on_due
    async def handler(due: Due) -> str:
        await meddle(jobs, due.job.id)
        return "done"

    async with jobs:
        await jobs.start()
        job = await jobs.add("job", at(10))
        await asyncio.sleep(11)
        assert await ends(jobs, job.id) == ["ok"]


# ---------------------------------------------------------------------------- looking


async def test_what_jobs_did_is_counted() -> None:
    script = Script([takes(10), fails(ValueError("no"), 20), takes(30)])
    async with started(script) as jobs:
        await jobs.add("job", every(60), max_runs=3)
        await jobs.add("other", at(1000))
        await asyncio.sleep(1001)
        one, every_one = await jobs.stats("job"), await jobs.stats()
        late = await jobs.stats(since=after(999))
        job = await jobs.get("job")
    assert (one.runs, one.ok, one.failed, one.skipped) == (3, 2, 1, 0)
    assert (one.mean_s, one.p95_s) == (20, 30)
    assert one.success_rate == 2 / 3
    assert (every_one.runs, late.runs) == (4, 1)
    assert (job.state, job.runs) == (JobState.COMPLETED, 3)


async def test_the_log_is_the_newest_first_and_as_long_as_asked_for() -> None:
    script = Script([takes(0, str(number)) for number in range(5)])
    async with started(script) as jobs:
        await jobs.add("job", every(60), policy={"history_keep": 3})
        await asyncio.sleep(301)
        assert [row.output for row in await jobs.run_log("job")] == ["4", "3", "2"]
        assert [row.output for row in await jobs.run_log("job", limit=1)] == ["4"]


async def test_a_run_that_was_missed_for_too_long_is_left_out_if_the_policy_says_so() -> None:
    store, script = MemoryStore(), Script()
    before = service(store)
    await before.add("once", every(600))
    await before.add("skips", every(600), policy={"misfire": "skip"})
    await asyncio.sleep(3000)
    async with started(script, store) as jobs:
        await asyncio.sleep(10)
        (skipped,) = await log_of(jobs, "skips")
    assert script.slugs() == ["once"]
    assert (skipped.status, skipped.why) == ("skipped", Why.MISSED)


async def test_the_profile_decides_how_jobs_behave() -> None:
    script = Script([takes(45)])
    async with started(script, profile=PROFILES["halo"]) as jobs:
        await jobs.add("job", Every(timedelta(minutes=1)))
        await asyncio.sleep(200)
    # Points of a grid, not a minute after the end.
    assert script.at == [60, 120, 180]
