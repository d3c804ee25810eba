"""Change, pause and resume a job, run it by hand, and read its log.

Prints, when started on 2 January 2026 at 03:04:05 UTC::

    03:04:07 the old page on time
    03:04:10 the new page on time
    begun
    03:04:15 the new page by hand
    next at 03:04:19
    03:04:15 ok, by hand
    03:04:10 ok, on time
    03:04:07 ok, on time
    3 runs, 100% well
"""

import asyncio
from datetime import timedelta

from goclaw_py import Due, Every, JobChange, JobScheduler, MemoryStore, Prompt, StartedNow


async def handler(due: Due) -> None:
    """Say when the job was due, and why it runs."""
    print(f"{due.due_at:%H:%M:%S}", due.text, "by hand" if due.manual else "on time")


async def main() -> None:
    """Let the job run at intervals while it is changed. All times are in UTC."""
    async with JobScheduler(MemoryStore()) as jobs:
        jobs.on_due(handler)
        await jobs.start()
        await jobs.add("poll", Every(timedelta(seconds=2)), "the old page")
        await asyncio.sleep(2.5)
        change = JobChange(payload=Prompt("the new page"), schedule=Every(timedelta(seconds=3)))
        await jobs.update("poll", change)
        await asyncio.sleep(3.5)
        await jobs.pause("poll")
        await asyncio.sleep(4)
        ran = await jobs.run("poll")
        print("begun" if isinstance(ran, StartedNow) else ran)
        await asyncio.sleep(1)
        resumed = await jobs.resume("poll")
        print(f"next at {resumed.next_run_at:%H:%M:%S}")
        for row in await jobs.run_log("poll"):
            print(
                f"{row.scheduled_at:%H:%M:%S} {row.status},", "by hand" if row.manual else "on time"
            )
        stats = await jobs.stats("poll")
        print(f"{stats.runs} runs, {stats.success_rate:.0%} well")
        await jobs.remove("poll")


asyncio.run(main())
