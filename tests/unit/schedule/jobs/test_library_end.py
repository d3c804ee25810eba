"""How services of the library begin and end, alone and several of them.

SPEC CRON-5, CRON-21, CRON-2, CRON-11, NODE-1.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from goclaw_py import At, Cron, Due, Every, JobChange, JobQuery, JobScheduler, MemoryStore, Prompt
from goclaw_py.core.errors import (
    BadCron,
    BadJob,
    BadMoment,
    BadSchedule,
    PastMoment,
    SlugTaken,
    TooFrequent,
    TooManyJobs,
    UnknownJob,
    UnknownZone,
)
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.testing.agents import Say
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyJobs
from tests.support.jobs import after, at, every
from tests.unit.schedule.jobs.service_parts import (
    Script,
    Step,
    ends,
    fails,
    hangs,
    ignores,
    log_of,
    process,
    service,
    started,
    takes,
)
from tests.unit.schedule.jobs.timeline import Timeline

DOWN = ConnectionError("down")
BAD_SLUGS = ["", "Daily", "../etc", "a b", "-x", "a" * 65, "ä"]


async def test_a_service_needs_a_handler_and_is_started_once() -> None:
    jobs = JobScheduler(MemoryStore(), clock=LoopClock())
    with pytest.raises(RuntimeError, match="on_due"):
        await jobs.start()
    jobs.on_due(Script())
    await jobs.start()
    with pytest.raises(RuntimeError, match="once"):
        await jobs.start()
    stopped_before = service()
    for ended in (jobs, stopped_before, stopped_before):
        await ended.stop()
    for ended in (jobs, stopped_before):
        with pytest.raises(RuntimeError, match="once"):
            await ended.start()


async def test_leaving_the_block_stops_and_leaves_no_task_behind() -> None:
    store = MemoryStore()
    async with service(store) as jobs:
        await jobs.start()
        assert len(await store.nodes()) == 1
    assert await store.nodes() == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_exception_in_the_block_does_not_wait_for_handlers() -> None:
    script = Script([hangs])
    loop = asyncio.get_running_loop()

    async def program() -> None:
        async with service(handler=script) as jobs:
            await jobs.start()
            await jobs.add("job", at(10))
            await asyncio.sleep(11)
            raise LookupError

    with pytest.raises(LookupError):
        await program()
    assert (loop.time(), script.ended) == (11, ["job"])


@pytest.mark.usefixtures("no_jitter")
@pytest.mark.parametrize(("steps", "stop_at", "wait_s", "ends_at", "status", "begun_at"), [
    ([takes(20)], 15, 30, 30, "ok", [10]),
    ([hangs], 15, 30, 45, "interrupted", [10]),
    ([ignores(300)], 15, 5, 30, "interrupted", [10]),
    ([fails(DOWN)] * 9, 17, 60, 17, "interrupted", [10, 12, 16]),
    ([fails(DOWN, after_s=10)], 15, 60, 20, "interrupted", [10]),
], ids=["waited for", "cut", "cut in vain", "between attempts", "not tried again"])  # fmt: skip
async def test_a_stop_lets_handlers_end_and_releases_what_they_do_not(
    steps: list[Step],
    stop_at: float,
    wait_s: float,
    ends_at: float,
    status: str,
    begun_at: list[float],
) -> None:
    """SPEC CRON-5: it runs again at the next start, as the same occurrence and attempt."""
    database, script, second = MemoryStore(), Script(list(steps)), Script()
    jobs = service(database, script)
    await jobs.start()
    job = await jobs.add("job", at(10))
    await jobs.add("next", at(stop_at + 1))
    await asyncio.sleep(stop_at)
    await jobs.stop(wait_s)
    assert asyncio.get_running_loop().time() == ends_at
    assert await ends(jobs, job.id) == [status]
    async with started(second, database) as again:
        await asyncio.sleep(600)
        (row,) = await log_of(again, job.id)
    assert (script.at, set(script.slugs())) == (begun_at, {"job"})
    # What a handler says that ignored its cancellation is refused.
    assert (row.status, row.output) == ("ok", "done")
    again_begun = [(due.occurrence, due.attempt) for due in second.begun if due.job.id == job.id]
    assert again_begun == ([] if status == "ok" else [(row.id, 1)])


async def test_what_waits_for_a_free_slot_is_released_at_once() -> None:
    script = Script([takes(20)] * 2)
    jobs = service(handler=script, concurrency=1)
    await jobs.start()
    await jobs.add("first", at(10))
    await jobs.add("second", at(11))
    await asyncio.sleep(15)
    stop = asyncio.create_task(jobs.stop(60))
    await asyncio.sleep(1)
    assert await ends(jobs, "second") == ["interrupted"]
    await stop
    assert script.slugs() == ["first"]


async def test_a_crowd_that_waits_for_its_time_is_released_at_once() -> None:
    database, script = MemoryStore(), Script()
    jobs = service(database, script, concurrency=100)
    await jobs.start()
    for number in range(100):
        await jobs.add(f"job-{number}", at(60))
    await asyncio.sleep(59.95)
    await jobs.stop(60)
    assert asyncio.get_running_loop().time() == 59.95
    assert script.begun == []
    async with started(script, database, concurrency=100):
        await asyncio.sleep(10)
    assert len(script.begun) == 100


async def test_a_second_stop_cuts_the_wait_short() -> None:
    script = Script([hangs])
    jobs = service(handler=script)
    await jobs.start()
    await jobs.add("job", at(10))
    await asyncio.sleep(15)
    first = asyncio.create_task(jobs.stop(3600))
    await asyncio.sleep(5)
    await jobs.stop(0)
    await first
    assert asyncio.get_running_loop().time() == 20
    assert await ends(jobs) == ["interrupted"]


async def test_a_result_is_stored_although_the_time_to_end_is_over() -> None:
    """A handler that is done is not cancelled: nothing would be left of its work."""
    store = FlakyJobs()
    store.slow_before_s["end_occurrence"] = 3
    jobs = service(store, Script())
    await jobs.start()
    job = await jobs.add("job", at(10))
    await asyncio.sleep(11)
    await jobs.stop(0)
    assert await ends(jobs, job.id) == ["ok"]


async def test_a_stop_ends_although_the_database_is_away() -> None:
    store, script = FlakyJobs(), Script([hangs, fails(ConnectionError("down")), hangs])
    jobs = service(store, script, concurrency=2)
    await jobs.start()
    for second in (10, 11, 12):
        await jobs.add(f"job-{second}", at(second))
    await asyncio.sleep(11.5)
    store.away = True
    await jobs.stop(5)
    assert asyncio.get_running_loop().time() < 30
    assert script.active == 0


async def test_a_handler_cannot_stop_the_service_that_waits_for_it() -> None:
    jobs = service()

    @jobs.on_due
    async def handler(due: Due) -> str:
        with pytest.raises(RuntimeError, match="handler"):
            await jobs.stop()
        return "went on"

    await jobs.start()
    job = await jobs.add("job", at(10))
    await asyncio.sleep(11)
    (row,) = await log_of(jobs, job.id)
    await jobs.stop()
    assert row.output == "went on"


async def test_two_services_run_each_occurrence_once() -> None:
    database, one, other = MemoryStore(), Script([takes(5)] * 500), Script([takes(5)] * 500)
    async with started(one, database) as jobs, started(other, database):
        for number in range(20):
            await jobs.add(f"job-{number}", every(30 + number))
        await asyncio.sleep(600)
        rows = [await log_of(jobs, f"job-{number}") for number in range(20)]
        # What is cut in the end runs again in the other one.
        begun = [due.occurrence for due in (*one.begun, *other.begun)]
    assert len(begun) == len(set(begun))
    assert sorted(begun) == sorted(row.id for log in rows for row in log)
    assert one.begun
    assert other.begun


async def test_a_run_by_hand_that_a_crash_interrupted_does_not_run_again() -> None:
    database, script = MemoryStore(), Script()
    async with process(database, hangs) as (dead, store):
        job = await dead.add("job", at(20))
        # By hand it is the first one that works on it, although the other one is there.
        async with started(script, database) as jobs:
            await dead.run("job")
            await asyncio.sleep(1)
            store.cut = True
            await asyncio.sleep(60)
            rows = await log_of(jobs, job.id)
    # Nobody asked for a run by hand a second time; the schedule was waited for.
    assert [(row.status, row.manual) for row in rows] == [("lost", True), ("ok", False)]
    assert [due.manual for due in script.begun] == [False]


async def test_what_a_crash_interrupted_runs_again_in_another_process() -> None:
    """SPEC CRON-5: within the lease and a look; it is the second attempt."""
    database, script = MemoryStore(), Script()
    async with process(database, hangs) as (dead, _):
        job = await dead.add("job", at(10))
        await asyncio.sleep(11)
    async with started(script, database) as jobs:
        await asyncio.sleep(15)
        (row,) = await log_of(jobs, job.id)
    assert [(due.occurrence, due.attempt) for due in script.begun] == [(row.id, 2)]
    assert (row.status, row.claims) == ("ok", 2)


async def test_an_occurrence_that_kills_each_process_is_given_up() -> None:
    """SPEC CRON-5: after three of them."""
    database, begun = MemoryStore(), Script([hangs] * 9)
    first = service(database)
    job = await first.add("job", at(10))
    for _ in range(4):
        async with process(database, begun):
            await asyncio.sleep(30)
    assert [due.attempt for due in begun.begun] == [1, 2, 3]
    (row,) = await log_of(first, job.id)
    assert row.status == "lost"


async def test_a_service_that_has_expired_writes_nothing_late_and_continues() -> None:
    database, late, script = MemoryStore(), Script([ignores(40)]), Script([takes(60)])
    async with process(database, late) as (frozen, store):
        job = await frozen.add("job", at(10))
        await asyncio.sleep(11)
        async with started(script, database) as jobs:
            store.away = True
            await asyncio.sleep(25)
            store.away = False
            await asyncio.sleep(60)
            (row,) = await log_of(jobs, job.id)
            assert (row.output, row.claims) == ("done", 2)
        await frozen.add("later", every(10))
        await asyncio.sleep(11)
    assert late.slugs() == ["job", "later"]


async def test_a_service_that_claims_its_lost_occurrence_again_has_one_result_of_it() -> None:
    """What the first handler says after that belongs to nobody."""
    store, script = FlakyJobs(), Script([ignores(20), takes(60, "second")])
    async with started(script, store) as jobs:
        job = await jobs.add("job", at(10))
        await asyncio.sleep(11)
        (node,) = await store.nodes()
        await store.end_lease(node.id, now=after(0))
        await store.recover(now=after(11), max_attempts=3, apology="")
        await asyncio.sleep(30)
        (row,) = await log_of(jobs, job.id)
        assert (row.status, len(script.begun), script.active) == ("running", 2, 1)
        await asyncio.sleep(60)
        (row,) = await log_of(jobs, job.id)
        assert (row.status, row.output) == ("ok", "second")


async def test_jobs_go_on_when_the_database_is_back() -> None:
    store, script = FlakyJobs(), Script()
    async with started(script, store) as jobs:
        await jobs.add("job", every(60))
        await asyncio.sleep(50)
        store.away = True
        await asyncio.sleep(60)
        store.away = False
        await asyncio.sleep(10)
        assert await ends(jobs) == ["ok"]


async def test_a_bug_below_ends_no_duty(caplog: pytest.LogCaptureFixture) -> None:
    store, script = FlakyJobs(), Script()
    async with started(script, store) as jobs:
        await jobs.add("job", every(60))
        await asyncio.sleep(30)
        store.errors["next_job_due"] = ZeroDivisionError("a bug")
        await asyncio.sleep(60)
        assert script.slugs() == ["job"]
        assert "background_task_crashed" in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("schedule", "options", "error"),
    [
        (Cron("* * *"), {}, BadCron),
        (Cron("0 9 * * *"), {"zone": "Mars/Base"}, UnknownZone),
        (at(-1), {}, PastMoment),
        (At(datetime(2030, 1, 1)), {}, BadMoment),  # noqa: DTZ001
        (Every(timedelta(0)), {}, BadSchedule),
        (Every(timedelta(seconds=-5)), {}, BadSchedule),
        (Every(timedelta(milliseconds=5)), {}, TooFrequent),
        (Cron("0 0 30 2 *"), {}, BadSchedule),
        (every(60), {"policy": {"retrys": 3}}, BadJob),
        (every(60), {"policy": {"retries": -1}}, BadJob),
        (every(60), {"policy": {"session": "main"}}, BadJob),
        (every(60), {"max_runs": 0}, BadJob),
        (every(60), {"text": "x" * 100_001}, BadJob),
        *((every(60), {"slug": slug}, (BadJob, ValueError)) for slug in BAD_SLUGS),
        ("0 9 * * *", {}, TypeError),
        (timedelta(minutes=1), {}, TypeError),
        (None, {}, TypeError),
    ],
)
async def test_a_job_that_cannot_be_is_refused_and_nothing_is_stored(
    schedule: Any, options: dict[str, Any], error: type[Exception] | tuple[type[Exception], ...]
) -> None:
    jobs = service()
    with pytest.raises(error):
        await jobs.add(**{"slug": "job", "schedule": schedule, **options})
    assert (await jobs.list()).total == 0


async def test_slugs_are_taken_once_and_there_are_only_so_many_jobs() -> None:
    jobs = service(max_jobs=2)
    await jobs.add("one", every(60))
    with pytest.raises(SlugTaken):
        await jobs.add("one", every(60))
    await jobs.add("two", every(60))
    with pytest.raises(TooManyJobs):
        await jobs.add("three", every(60))
    await jobs.remove("one")
    await jobs.add("three", every(60))
    assert {job.spec.slug for job in (await jobs.list()).jobs} == {"two", "three"}


async def test_a_wrong_update_changes_nothing() -> None:
    jobs = service()
    before = await jobs.add("job", every(60))
    for change in (
        JobChange(schedule=Cron("never")),
        JobChange(payload=Prompt(" ")),
        JobChange(slug="No"),
        JobChange(policy={"jitter": 2}),
    ):
        with pytest.raises((BadJob, BadSchedule)):
            await jobs.update("job", change)
    with pytest.raises(TypeError):
        await jobs.update("job", JobChange(schedule="0 9 * * *"))  # type: ignore[arg-type]
    assert await jobs.get("job") == before


async def test_what_is_not_there_is_named() -> None:
    jobs = service()
    for ask in (jobs.get, jobs.remove, jobs.pause, jobs.resume, jobs.run_log, jobs.stats):
        with pytest.raises(UnknownJob, match="no job 'daily'"):
            await ask("daily")


@pytest.mark.parametrize(("ask", "named"), [
    (lambda jobs: jobs.run_log("job", limit=0), "limit"),
    (lambda jobs: jobs.list(JobQuery(limit=0)), "limit"),
    (lambda jobs: jobs.list(JobQuery(offset=-1)), "offset"),
    (lambda jobs: jobs.stats(since=datetime(2026, 1, 1)), "offset"),  # noqa: DTZ001
    (lambda jobs: jobs.stop(math.nan), "wait_s"),
])  # fmt: skip
async def test_numbers_that_make_no_sense_are_refused(
    ask: Callable[[JobScheduler], Awaitable[object]], named: str
) -> None:
    jobs = service()
    await jobs.add("job", every(60))
    with pytest.raises(ValueError, match=named):
        await ask(jobs)


async def test_a_service_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="concurrency"):
        service(concurrency=0)
    with pytest.raises(ValueError, match="max_jobs"):
        service(max_jobs=0)
    with pytest.raises(TypeError, match="handler"):
        service().on_due("report")  # type: ignore[type-var]


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
