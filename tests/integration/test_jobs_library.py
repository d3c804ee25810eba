"""The job service as a library over PostgreSQL (SPEC CRON-5, CRON-21)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py import At, Due, JobScheduler
from tests.examples.programs import program
from tests.support.postgres import Database

pytestmark = pytest.mark.real_time

PROGRAM = program("shared_jobs")


def url_of(database: Database) -> str:
    address = database.address
    return f"postgresql://{address.user}@/{address.database}?host={address.host}"


@pytest.mark.slow
async def test_the_program_with_a_database_prints_what_it_says(
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
