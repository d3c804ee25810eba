"""Await results: a run returns a value, fails, or times out.

Prints::

    2.5 completed
    failed: division by zero
    timed_out run_timeout
"""

import asyncio

from goclaw_py import NotCompleted, Run, Scheduler


async def divide(run: Run[int, float]) -> float:
    await asyncio.sleep(run.message)
    return 10 / run.message


async def main() -> None:
    async with Scheduler(divide) as scheduler:
        good = scheduler.submit("ann", 4)
        bad = scheduler.submit("bob", 0)
        slow = scheduler.submit("bob", 60, run_timeout_s=5)
        print(await good, good.outcome)
        for run in (bad, slow):
            try:
                await run
            except ZeroDivisionError as error:
                print("failed:", error)
            except NotCompleted as error:
                print(error.outcome, error.reason)


asyncio.run(main())
