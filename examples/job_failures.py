"""Retry a job, limit its time, and disable it after failures in a row.

Prints::

    flaky attempt 1
    slow attempt 1
    flaky attempt 2
    broken attempt 1
    flaky attempt 3
    broken attempt 1
    flaky ok got it
    flaky completed
    slow timed_out it took longer than 2 s
    slow completed
    broken failed LookupError: no such page
    broken failed LookupError: no such page
    broken disabled
"""

import asyncio
from datetime import timedelta

from goclaw_py import Due, Every, JobScheduler, MemoryStore


async def fetch(due: Due) -> str:
    print(due.text, "attempt", due.attempt)
    if due.text == "flaky" and due.attempt < 3:
        raise ConnectionError("no route")
    if due.text == "slow":
        await asyncio.sleep(60)
    if due.text == "broken":
        raise LookupError("no such page")
    return "got it"


async def main() -> None:
    async with JobScheduler(MemoryStore()) as jobs:
        jobs.on_due(fetch)
        await jobs.start()
        second = timedelta(seconds=1)
        await jobs.add("flaky", Every(second), max_runs=1)
        await jobs.add("slow", Every(2 * second), max_runs=1, policy={"run_timeout": 2})
        await jobs.add("broken", Every(5 * second), policy={"auto_disable_after": 2})
        await asyncio.sleep(12)
        for slug in ("flaky", "slow", "broken"):
            job = await jobs.get(slug)
            for row in await jobs.run_log(slug):
                print(slug, row.status, row.error or row.output)
            print(slug, job.state)


asyncio.run(main())
