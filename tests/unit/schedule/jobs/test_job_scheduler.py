"""The job service as a library: what its handlers get, and what becomes of them.

SPEC CRON-21, CRON-4, CRON-6, CRON-8, CRON-10, CRON-11, CRON-12, CRON-17.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from goclaw_py import (
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
from goclaw_py.core.errors import AgentError, BadInterval, UnknownJob
from goclaw_py.core.ids import NodeId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import NewWork
from goclaw_py.schedule.jobs.decisions import Finish
from goclaw_py.schedule.jobs.execution import JobExecution
from goclaw_py.schedule.jobs.execution_models import OUTPUT_BYTES, OccurrenceStatus
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import parse_interval
from goclaw_py.schedule.jobs.work_items import WorkItems
from goclaw_py.schedule.models import Attempt
from goclaw_py.schedule.sources import TableSource
from goclaw_py.testing.clock import START, LoopClock
from tests.support.flaky_store import FlakyJobs
from tests.support.jobs import after, at, every
from tests.support.memory_store import MemoryStore as GatewayMemoryStore
from tests.unit.schedule.jobs.occurring import PLAIN, a_job, claimed
from tests.unit.schedule.jobs.service_parts import (
    Script,
    ends,
    fails,
    hangs,
    log_of,
    service,
    started,
    takes,
)


async def test_a_handler_is_told_what_is_due() -> None:
    script = Script([takes(5, "twelve pages")])
    async with started(script) as jobs:
        job = await jobs.add("daily", Cron("10 3 * * *"), "sales")
        await jobs.add("clean-up", at(1000))
        await asyncio.sleep(1001)
        due, no_text = script.begun
        (row,) = await log_of(jobs, "daily")
        later = await jobs.get("daily")
    assert (due.job.id, due.text, due.attempt, due.manual) == (job.id, "sales", 1, False)
    assert due.due_at == START.replace(minute=10, second=0)
    assert due.occurrence == row.id
    assert (row.status, row.output, row.error, row.attempts) == ("ok", "twelve pages", "", 1)
    assert (row.started_at, row.finished_at) == (due.due_at, due.due_at + timedelta(seconds=5))
    assert later.next_run_at == due.due_at + timedelta(days=1)
    assert no_text.text == "clean-up"


async def test_times_of_the_calendar_are_those_of_the_zone_of_a_job() -> None:
    """SPEC CRON-1: 03:10 UTC is 04:10 in Berlin, and 08:40 in Kolkata."""
    script = Script()
    async with started(script) as jobs:
        await jobs.add("kolkata", Cron("40 8 * * *"), zone="Asia/Kolkata")
        await jobs.add("berlin", Cron("11 4 * * *"), zone="Europe/Berlin")
        await jobs.add("utc", Cron("12 3 * * *"))
        await asyncio.sleep(3600)
    assert script.slugs() == ["kolkata", "berlin", "utc"]


async def test_jobs_are_there_before_the_service_is_started_but_none_runs() -> None:
    script = Script()
    jobs = service(handler=script)
    await jobs.add("job", at(10))
    await asyncio.sleep(20)
    assert await jobs.run("job") is RunNow.OFF
    assert script.begun == []
    await jobs.start()
    await asyncio.sleep(1)
    assert script.slugs() == ["job"]
    await jobs.add("later", every(60))
    await jobs.stop()
    assert await jobs.run("later") is RunNow.OFF
    assert script.slugs() == ["job"]


async def test_a_job_that_is_added_while_the_loop_sleeps_is_on_time() -> None:
    """SPEC CRON-4: a change wakes it."""
    script = Script()
    async with started(script) as jobs:
        await asyncio.sleep(0.5)
        await jobs.add("job", At(after(0.9)))
        await asyncio.sleep(10)
    assert script.at == [0.9]


async def test_a_handler_can_be_exchanged() -> None:
    async with started(takes(0, "first")) as jobs:
        await jobs.add("job", every(60))
        await asyncio.sleep(61)
        jobs.on_due(takes(0, None))
        await asyncio.sleep(60)
        assert [row.output for row in await log_of(jobs)] == ["first", ""]


async def test_after_a_failure_the_job_goes_on(caplog: pytest.LogCaptureFixture) -> None:
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


async def impatient(due: Due) -> str:
    async with asyncio.timeout(1):
        await asyncio.sleep(2)
    return "never"


async def no_text(due: Due) -> int:
    return 7


@pytest.mark.parametrize(("handler", "policy", "status", "error"), [
    (hangs, {"run_timeout": 30}, "timed_out", "it took longer than 30 s"),
    (impatient, {"retries": 0}, "failed", "TimeoutError"),
    (takes(7200), {"run_timeout": 0}, "ok", ""),
    (no_text, {}, "failed", "TypeError: a handler returns text or None, not int"),
    (lambda due: "done", {}, "failed", "TypeError: "),
])  # fmt: skip
async def test_what_a_handler_does_wrong_is_a_failure(
    handler: Any, policy: dict[str, object], status: str, error: str
) -> None:
    async with started(handler) as jobs:
        job = await jobs.add("job", at(10), policy=policy)
        await asyncio.sleep(7300 if status == "ok" else 60)
        (row,) = await log_of(jobs, job.id)
    assert (row.status, row.attempts) == (status, 1)
    assert row.error.startswith(error)
    assert handler is not hangs or row.finished_at == after(40)


async def test_long_texts_are_cut_and_all_others_can_be_kept() -> None:
    script = Script([takes(0, "ä" * OUTPUT_BYTES), fails(ValueError("ä" * OUTPUT_BYTES))])
    async with started(script) as jobs:
        await jobs.add("job", every(60))
        await asyncio.sleep(121)
        well, badly = await log_of(jobs)
    sizes = [len(text.encode()) for text in (well.output, badly.error)]
    assert sizes == [OUTPUT_BYTES, OUTPUT_BYTES]


async def test_a_handler_that_hangs_delays_no_other_job() -> None:
    script = Script([hangs])
    async with started(script, concurrency=2) as jobs:
        await jobs.add("hung", at(10))
        await jobs.add("job", every(60))
        await asyncio.sleep(301)
    assert script.at == [10, 60, 120, 180, 240, 300]


async def test_no_more_handlers_work_at_once_than_were_allowed() -> None:
    """The wait for others is no part of the time limit."""
    script = Script([takes(10)] * 9)
    async with started(script, concurrency=3) as jobs:
        for number in range(9):
            await jobs.add(f"job-{number}", at(60), policy={"run_timeout": 15})
        await asyncio.sleep(120)
        stats = await jobs.stats()
    assert (script.most_active, len(script.begun), stats.ok) == (3, 9, 9)
    assert script.at == [60] * 3 + [70] * 3 + [80] * 3


async def test_a_job_runs_once_at_a_time_and_what_comes_meanwhile_is_counted() -> None:
    script = Script([takes(150)])
    async with started(script) as jobs:
        await jobs.add("job", Cron("* * * * *"))
        await asyncio.sleep(300)
        job = await jobs.get("job")
    # Due at 03:05, busy until 03:07:30.
    assert script.at == [55, 55 + 180, 55 + 240]
    assert (script.most_active, job.coalesced) == (1, 2)


@pytest.mark.parametrize("meddled", [0, 2])
async def test_a_crowd_begins_on_time_but_for_what_is_taken_out_just_before(meddled: int) -> None:
    script = Script()
    async with started(script, concurrency=100) as jobs:
        for number in range(100):
            await jobs.add(f"job-{number}", at(60))
        await asyncio.sleep(59.95)
        if meddled:
            await jobs.remove("job-7")
            await jobs.pause("job-8")
        await asyncio.sleep(10)
    assert script.at == [60] * (100 - meddled)
    assert not meddled or {"job-7", "job-8"}.isdisjoint(script.slugs())


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


async def test_an_update_during_a_run_holds_for_the_next_one() -> None:
    """SPEC CRON-11: a run uses the definition at its start."""
    script = Script([takes(30)])
    async with started(script) as jobs:
        await jobs.add("job", every(60), "old")
        await asyncio.sleep(70)
        change = JobChange(schedule=every(100), payload=Prompt("new"), policy={"retries": 0})
        await jobs.update("job", change)
        await asyncio.sleep(200)
    assert ([due.text for due in script.begun], script.at) == (["old", "new"], [60, 170])


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
        for name in ("job", job.id):
            assert await ends(jobs, name) == ["ok"]


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


GRID = {"anchor": "grid"}


@pytest.mark.parametrize(("schedule", "policy", "apart_s"), [
    (every(10), {}, 11), (every(10), {"anchor": "start"}, 10), (every(10), GRID, 10),
    (every(600), {}, 601), (every(600), GRID, 600),
    (Cron("* * * * *"), {}, 60), (Cron("*/10 * * * *"), {}, 600),
    (Cron("0,20,40 3-5 * * *"), {}, 1200),
])  # fmt: skip
@pytest.mark.parametrize(("runs", "back_s"), [(False, 86_400 * 30), (True, 3600)])
async def test_a_clock_that_goes_back_silences_no_job(
    schedule: Every | Cron, policy: dict[str, object], apart_s: float, runs: bool, back_s: int
) -> None:
    """CRON-4: it waits no longer than an interval, also if its run saw both times."""
    script = Script([takes(1)] * 9)
    clock = LoopClock()
    async with started(script, clock=clock) as jobs:
        await jobs.add("job", schedule, policy=policy)
        while len(script.at) < 3 if runs else len(script.ended) < 3:
            await asyncio.sleep(0.5)
        clock.advance(-timedelta(seconds=back_s))
        begins = asyncio.get_running_loop().time()
        while len(script.at) < 5:
            await asyncio.sleep(1)
            assert asyncio.get_running_loop().time() < begins + 2 * apart_s + 4
    gaps = [later - earlier for earlier, later in pairwise(script.at[1:])]
    assert min(gaps) > min(apart_s, 60) - 2


async def test_a_clock_that_goes_back_while_nothing_runs_silences_no_job() -> None:
    """CRON-4: restored machines and other database servers have other times."""
    database, script = MemoryStore(), Script()
    ahead = LoopClock(START + timedelta(days=9))
    async with started(script, database, clock=ahead) as jobs:
        # It has not failed, so nothing delays it.
        await jobs.add("each", every(60), policy={"backoff": [86_400]})
        await jobs.add("daily", Cron("5 3 * * *"))
        await jobs.add("once", At(START + timedelta(days=10)))
        await asyncio.sleep(3600)
    script.begun.clear()
    # An hour has passed for both.
    behind = LoopClock(START - timedelta(days=2, hours=1))
    async with started(script, database, clock=behind) as jobs:
        await asyncio.sleep(120)
        assert set(script.slugs()) == {"each", "daily"}


async def test_a_process_that_starts_slowly_plans_no_job_too_early() -> None:
    """CRON-4: the due times that it reads are compared with the time after it has read them."""
    database, script = MemoryStore(), Script()
    late = FlakyJobs(database)
    late.slow_before_s["jobs_ahead"] = 20.5
    async with started(script, database) as jobs:
        await jobs.add("job", every(10))
        async with started(script, late):
            await asyncio.sleep(60)
    assert {later - earlier for earlier, later in pairwise(script.at)} == {10.0}


async def test_a_step_of_the_clock_repeats_nothing() -> None:
    """CRON-4: a daily job does not run twice a day because of a step of three hours."""
    script, clock = Script(), LoopClock()
    async with started(script, clock=clock) as jobs:
        await jobs.add("minute", Cron("* * * * *"))
        await jobs.add("daily", Cron("10 3 * * *"))
        await asyncio.sleep(400)
        begun = script.slugs()
        assert begun.count("daily") == 1
        clock.advance(-timedelta(seconds=30))
        await asyncio.sleep(60)
        assert script.slugs() == [*begun, "minute"]
        clock.advance(-timedelta(hours=3))
        await jobs.remove("minute")
        await asyncio.sleep(4 * 3600)
        assert script.slugs().count("daily") == 1


async def test_a_job_that_waits_longer_on_purpose_goes_on_waiting() -> None:
    """CRON-4: backoff and delays are further ahead than an interval, and stay."""
    database = MemoryStore()
    policy = {"backoff": [600]}
    async with started(Script([fails(ValueError("no"))]), database) as jobs:
        await jobs.add("job", every(10), policy=policy)
        await asyncio.sleep(20)
        before = (await jobs.get("job")).next_run_at
        assert before is not None
        assert before > after(600)
    async with started(Script(), database) as jobs:
        await asyncio.sleep(5)
        assert (await jobs.get("job")).next_run_at == before


@pytest.mark.parametrize(("takes_s", "have_ended"), [(5, True), (50, False)])
async def test_it_is_known_whether_it_runs_and_whether_all_has_ended(
    takes_s: float, have_ended: bool
) -> None:
    """CRON-21."""
    jobs = service(handler=Script([takes(takes_s)]))
    assert not jobs.is_running()
    await jobs.start()
    assert jobs.is_running()
    await jobs.add("job", at(10))
    await asyncio.sleep(11)
    assert await jobs.stop(20) is have_ended
    assert not jobs.is_running()
    assert await jobs.stop() is True


@pytest.mark.parametrize("text", ["5x", "", "-5m", "x" * 100, "99999999d"])
def test_a_bad_interval_carries_what_was_given(text: str) -> None:
    with pytest.raises(BadInterval) as caught:
        parse_interval(text)
    assert caught.value.interval == text


async def test_a_profile_without_a_zone_has_that_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CRON-17: Halo's jobs go by the clock on the wall."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    async with started(Script(), profile=PROFILES["halo"]) as jobs:
        job = await jobs.add("job", Cron("40 8 * * *"))
        other = await jobs.add("other", Cron("40 8 * * *"), zone="UTC")
    assert (job.spec.zone, other.spec.zone) == ("Asia/Kolkata", "UTC")


@pytest.mark.parametrize(("attempt", "text"), [
    (Attempt(Outcome.COMPLETED, text="fixed"), "fixed"),
    (Attempt(Outcome.FAILED, text="half", friendly="It failed.", error="401: no key"),
     "It failed.\n\n401: no key"),
    (Attempt(Outcome.FAILED, friendly="401: no key", error="401: no key"), "401: no key"),
])  # fmt: skip
async def test_a_work_item_is_reported_with_the_cause(attempt: Attempt, text: str) -> None:
    """CRON-18: not with what an agent had said before it failed."""
    store = GatewayMemoryStore()
    source = TableSource(store, LoopClock(), "q", forgotten_after=timedelta(days=1))
    await store.add_work(NewWork("q", "title"), now=START)
    job = a_job(source="q")
    execution = JobExecution(claimed(job), PLAIN, node=NodeId("n"))
    items = WorkItems({"q": source})
    await items.claim(execution)
    ok = attempt.outcome is Outcome.COMPLETED
    end = Finish(OccurrenceStatus.OK if ok else OccurrenceStatus.FAILED)
    await items.finish(execution, end, attempt)
    (item,) = await store.work()
    assert item.outcome == text
