"""Stop a run, and shut the scheduler down.

Prints::

    StopReport(stopped=('1',), dropped=(), already_stopping=False, unsent=0, asking=0)
    cleaning up after one
    cleaning up after two
    ['cancelled, stopped', 'interrupted, shutdown', 'interrupted, shutdown']
    rejected draining
"""

import asyncio

from goclaw_py import Run, Scheduler


async def work(run: Run[str, None]) -> None:
    try:
        await asyncio.sleep(60)
    finally:
        print("cleaning up after", run.message)


async def main() -> None:
    scheduler = Scheduler(work)
    runs = [scheduler.submit("ann", text) for text in ("one", "two", "three")]
    await asyncio.sleep(1)
    print(scheduler.stop("ann"))
    await asyncio.sleep(1)
    await scheduler.drain(5)
    print([f"{run.outcome}, {run.reason}" for run in runs])
    late = scheduler.submit("ann", "four")
    print(late.outcome, late.reason)


asyncio.run(main())
