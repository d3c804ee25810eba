"""How services of the library begin and end, alone and several of them.

SPEC CRON-5, CRON-21, CRON-2, CRON-11, NODE-1.
"""

from __future__ import annotations

import asyncio
import math
from datetime import datetime, timedelta
from typing import Any

import pytest

from goclaw_py import (
    At,
    Cron,
    Due,
    Every,
    JobChange,
    JobQuery,
    JobScheduler,
    MemoryDatabase,
    MemoryStore,
    Prompt,
)
from goclaw_py.model.errors import (
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
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.jobs import after, at, every
from tests.unit.jobs.service_parts import (
    Script,
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

# ---------------------------------------------------------------------------- beginning


async def test_a_service_needs_a_handler_and_is_started_once() -> None:
    jobs = JobScheduler(MemoryStore(), clock=LoopClock())
    with pytest.raises(RuntimeError, match="on_due"):
        await jobs.start()
    jobs.on_due(Script())
    await jobs.start()
    with pytest.raises(RuntimeError, match="once"):
        await jobs.start()
    await jobs.stop()
    with pytest.raises(RuntimeError, match="once"):
        await jobs.start()


async def test_a_service_that_was_not_started_can_be_stopped_for_good() -> None:
    jobs = service()
    await jobs.stop()
    await jobs.stop()
    with pytest.raises(RuntimeError, match="once"):
        await jobs.start()


async def test_leaving_the_block_stops_and_leaves_no_task_behind() -> None:
    database = MemoryDatabase()
    async with service(database) as jobs:
        await jobs.start()
        assert len(database.nodes) == 1
    assert database.nodes == {}
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


# ---------------------------------------------------------------------------- stop


async def test_a_stop_lets_handlers_end_and_starts_nothing_more() -> None:
    script = Script([takes(20)])
    jobs = service(handler=script)
    await jobs.start()
    await jobs.add("job", every(60))
    await jobs.add("next", at(70))
    await asyncio.sleep(65)
    await jobs.stop(30)
    assert asyncio.get_running_loop().time() == 80
    assert await ends(jobs) == ["ok"]
    await asyncio.sleep(600)
    assert script.slugs() == ["job"]


async def test_what_takes_longer_is_cancelled_and_given_back() -> None:
    """SPEC CRON-5: it runs again at the next start, as the same occurrence."""
    database, script = MemoryDatabase(), Script([hangs])
    jobs = service(database, script)
    await jobs.start()
    job = await jobs.add("job", at(10))
    await asyncio.sleep(15)
    await jobs.stop(30)
    assert asyncio.get_running_loop().time() == 45
    assert (await ends(jobs), script.ended) == (["interrupted"], ["job"])
    async with started(script, database) as again:
        await asyncio.sleep(1)
        (row,) = await log_of(again, job.id)
    assert row.status == "ok"
    assert [due.occurrence for due in script.begun] == [row.id, row.id]
    # A shutdown takes no attempt.
    assert [due.attempt for due in script.begun] == [1, 1]


async def test_what_waits_for_a_free_place_is_given_back_at_once() -> None:
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


async def test_a_crowd_that_waits_for_its_time_is_given_back_at_once() -> None:
    database, script = MemoryDatabase(), Script()
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


@pytest.mark.usefixtures("no_jitter")
async def test_what_waits_for_its_next_attempt_is_given_back_at_once() -> None:
    script = Script([fails(ConnectionError("down"))] * 9)
    jobs = service(handler=script)
    await jobs.start()
    await jobs.add("job", at(10))
    await asyncio.sleep(17)
    await jobs.stop(60)
    assert asyncio.get_running_loop().time() == 17
    assert (await ends(jobs), script.at) == (["interrupted"], [10, 12, 16])


async def test_a_failure_during_a_stop_is_not_tried_again_here() -> None:
    script = Script([fails(ConnectionError("down"), after_s=10)])
    jobs = service(handler=script)
    await jobs.start()
    await jobs.add("job", at(10))
    await asyncio.sleep(15)
    await jobs.stop(60)
    assert asyncio.get_running_loop().time() == 20
    assert (await ends(jobs), len(script.begun)) == (["interrupted"], 1)


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


async def test_a_handler_that_ignores_its_cancellation_is_not_waited_for_for_ever() -> None:
    """Its late result is refused: the occurrence is not this process's any more."""
    database, script = MemoryDatabase(), Script([ignores(300)])
    jobs = service(database, script)
    await jobs.start()
    job = await jobs.add("job", at(10))
    await asyncio.sleep(15)
    await jobs.stop(5)
    assert asyncio.get_running_loop().time() == 30
    assert await ends(jobs) == ["interrupted"]
    async with started(Script(), database) as again:
        await asyncio.sleep(600)
        (row,) = await log_of(again, job.id)
    assert (script.ended, row.output) == (["job"], "done")


async def test_a_result_is_stored_although_the_time_to_end_is_over() -> None:
    """A handler that is done is not cancelled: nothing would be left of its work."""
    store = FlakyStore()
    store.slow_before_s["end_occurrence"] = 3
    jobs = service(store, Script())
    await jobs.start()
    job = await jobs.add("job", at(10))
    await asyncio.sleep(11)
    await jobs.stop(0)
    assert await ends(jobs, job.id) == ["ok"]


async def test_a_stop_ends_although_the_database_is_away() -> None:
    store, script = FlakyStore(), Script([hangs, fails(ConnectionError("down")), hangs])
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


# ---------------------------------------------------------------------------- several processes


async def test_a_restart_keeps_the_schedule() -> None:
    database, script = MemoryDatabase(), Script()
    async with started(script, database) as jobs:
        before = await jobs.add("job", Cron("*/10 * * * *"))
    async with started(script, database) as jobs:
        assert await jobs.get("job") == before
        await asyncio.sleep(1200)
    assert [due.due_at.minute for due in script.begun] == [10, 20]


async def test_two_services_run_each_occurrence_once() -> None:
    database, one, other = MemoryDatabase(), Script([takes(5)] * 500), Script([takes(5)] * 500)
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


async def test_a_run_by_hand_that_a_crash_cut_does_not_run_again() -> None:
    database, script = MemoryDatabase(), Script()
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


async def test_what_a_crash_cut_runs_again_in_another_process() -> None:
    """SPEC CRON-5: within the lease and a look; it is the second attempt."""
    database, script = MemoryDatabase(), Script()
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
    database, begun = MemoryDatabase(), Script([hangs] * 9)
    first = service(database)
    job = await first.add("job", at(10))
    for _ in range(4):
        async with process(database, begun):
            await asyncio.sleep(30)
    assert [due.attempt for due in begun.begun] == [1, 2, 3]
    (row,) = await log_of(first, job.id)
    assert row.status == "lost"


async def test_a_service_that_was_declared_dead_writes_nothing_late_and_works_on() -> None:
    database, late, script = MemoryDatabase(), Script([ignores(40)]), Script([takes(60)])
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
    store, script = FlakyStore(), Script([ignores(20), takes(60, "second")])
    jobs = service(store, script)
    await jobs.start()
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
    await jobs.stop()


async def test_jobs_go_on_when_the_database_is_back() -> None:
    store, script = FlakyStore(), Script()
    jobs = service(store, script)
    await jobs.start()
    await jobs.add("job", every(60))
    await asyncio.sleep(50)
    store.away = True
    await asyncio.sleep(60)
    store.away = False
    await asyncio.sleep(10)
    assert await ends(jobs) == ["ok"]
    await jobs.stop()


async def test_a_bug_below_ends_no_duty(caplog: pytest.LogCaptureFixture) -> None:
    store, script = FlakyStore(), Script()
    jobs = service(store, script)
    await jobs.start()
    await jobs.add("job", every(60))
    await asyncio.sleep(30)
    store.errors["next_job_due"] = ZeroDivisionError("a bug")
    await asyncio.sleep(60)
    assert script.slugs() == ["job"]
    assert "background_task_crashed" in [record.getMessage() for record in caplog.records]
    await jobs.stop()


# ---------------------------------------------------------------------------- wrong input


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
        ("0 9 * * *", {}, TypeError),
        (timedelta(minutes=1), {}, TypeError),
        (None, {}, TypeError),
    ],
)
async def test_a_job_that_cannot_be_is_refused_and_nothing_is_stored(
    schedule: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    jobs = service()
    with pytest.raises(error):
        await jobs.add("job", schedule, **options)
    assert (await jobs.list()).total == 0


@pytest.mark.parametrize("slug", ["", "Daily", "../etc", "a b", "-x", "a" * 65, "ä"])
async def test_a_slug_is_short_and_plain(slug: str) -> None:
    with pytest.raises((BadJob, ValueError)):
        await service().add(slug, every(60), "report")


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
    asked = [jobs.get, jobs.remove, jobs.pause, jobs.resume, jobs.run_log, jobs.stats]
    for ask in asked:
        with pytest.raises(UnknownJob, match="no job 'daily'"):
            await ask("daily")  # type: ignore[operator]


async def test_numbers_that_make_no_sense_are_refused() -> None:
    jobs = service()
    await jobs.add("job", every(60))
    with pytest.raises(ValueError, match="limit"):
        await jobs.run_log("job", limit=0)
    with pytest.raises(ValueError, match="limit"):
        await jobs.list(JobQuery(limit=0))
    with pytest.raises(ValueError, match="offset"):
        await jobs.list(JobQuery(offset=-1))
    with pytest.raises(ValueError, match="offset"):
        await jobs.stats(since=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="wait_s"):
        await jobs.stop(math.nan)
    with pytest.raises(ValueError, match="concurrency"):
        service(concurrency=0)
    with pytest.raises(ValueError, match="max_jobs"):
        service(max_jobs=0)
    with pytest.raises(TypeError, match="handler"):
        jobs.on_due("report")  # type: ignore[type-var]
