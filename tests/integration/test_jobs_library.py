"""The job service as a library over PostgreSQL (SPEC CRON-5, CRON-21)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py import At, Due, Every, JobScheduler
from goclaw_py.model.errors import TooManyJobs
from tests.support.guides import programs
from tests.support.postgres import Database

pytestmark = pytest.mark.real_time

(PROGRAM,) = (one for one in programs("jobs-library.md") if "PostgresStore" in one.code)


def url_of(database: Database) -> str:
    address = database.address
    return f"postgresql://{address.user}@/{address.database}?host={address.host}"


async def test_the_program_of_the_guide_prints_what_the_guide_says(
    postgres_database: Database,
) -> None:
    environment = {**os.environ, "GOCLAW_DATABASE_URL": url_of(postgres_database)}
    for _ in range(2):
        # The second one finds the job there.
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", PROGRAM.code],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
        )
        assert (done.stdout, done.stderr, done.returncode) == (PROGRAM.prints, "", 0)


async def test_two_services_run_each_occurrence_once(postgres_database: Database) -> None:
    stores = [await postgres_database.open() for _ in range(2)]
    services = [JobScheduler(store) for store in stores]
    begun: list[Due] = []
    finished = asyncio.Event()

    async def handler(due: Due) -> str:
        begun.append(due)
        await asyncio.sleep(0.05)
        if len(begun) >= 60:
            finished.set()
        return due.text

    for jobs in services:
        jobs.on_due(handler)
        await jobs.start()
    for number in range(20):
        policy = {"anchor": "start"}
        await services[0].add(
            f"job-{number}", Every(timedelta(seconds=1)), str(number), max_runs=3, policy=policy
        )
    async with asyncio.timeout(60):
        await finished.wait()
    for jobs in services:
        await jobs.stop()
    rows = [row for n in range(20) for row in await services[0].run_log(f"job-{n}")]
    stats = await services[0].stats()
    for store in stores:
        await store.close()
    assert sorted(due.occurrence for due in begun) == sorted(row.id for row in rows)
    assert {row.status.value for row in rows} == {"ok"}
    assert (stats.runs, stats.ok) == (60, 60)


async def test_what_a_stop_gave_back_runs_in_the_other_process_at_once(
    postgres_database: Database,
) -> None:
    stores = [await postgres_database.open() for _ in range(2)]
    first, second = (JobScheduler(store) for store in stores)
    hung, done = asyncio.Event(), asyncio.Event()

    @first.on_due
    async def hang(due: Due) -> None:
        hung.set()
        await asyncio.Event().wait()

    @second.on_due
    async def work(due: Due) -> str:
        done.set()
        return "\x00 and \ud800"

    await first.start()
    job = await first.add("job", At(datetime.now(UTC) + timedelta(seconds=0.2)))
    async with asyncio.timeout(30):
        await hung.wait()
        await second.start()
        await first.stop(0)
        await done.wait()
    await second.stop()
    (row,) = await second.run_log(job.id)
    for store in stores:
        await store.close()
    assert (row.status, row.output) == ("ok", "\ufffd and \ufffd")


async def test_only_so_many_jobs_are_stored(postgres_database: Database) -> None:
    store = await postgres_database.open()
    jobs = JobScheduler(store, max_jobs=1)
    await jobs.add("one", Every(timedelta(hours=1)))
    with pytest.raises(TooManyJobs):
        await jobs.add("two", Every(timedelta(hours=1)))
    await jobs.stop()
    await store.close()
