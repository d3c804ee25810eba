"""Store jobs in PostgreSQL, so that several processes share them.

Prints::

    report about sales
"""

import asyncio
import os
from contextlib import suppress
from datetime import timedelta

from goclaw_py import Due, Every, JobScheduler, PostgresStore, SlugTaken

done = asyncio.Event()


async def report(due: Due) -> str:
    print("report about", due.text)
    done.set()
    return "three pages"


async def main() -> None:
    store = await PostgresStore.open(os.environ["GOCLAW_DATABASE_URL"])
    try:
        async with JobScheduler(store) as jobs:
            jobs.on_due(report)
            await jobs.start()
            with suppress(SlugTaken):  # another process was here before
                await jobs.add("report", Every(timedelta(seconds=1)), "sales")
            await done.wait()
    finally:
        await store.close()


asyncio.run(main())
