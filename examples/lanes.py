"""Limit how many runs are in progress, see what waits, and enlarge a lane.

Prints::

    begin a report
    begin a question
    ann running 0.5 s now
    bob ready 0.5 s lane
    cat running 0.5 s now
    main 1 0
    slow 1 1
    begin another report
"""

import asyncio

from goclaw_py import Lane, Run, Scheduler


async def work(run: Run[str, None]) -> None:
    """Take a second."""
    print("begin", run.message)
    await asyncio.sleep(1)


async def main() -> None:
    """Submit two reports to a lane for one, and a question to another lane."""
    async with Scheduler(work, [Lane("main", 1), Lane("slow", 1)]) as scheduler:
        scheduler.submit("ann", "a report", "slow")
        scheduler.submit("bob", "another report", "slow")
        scheduler.submit("cat", "a question")
        await asyncio.sleep(0.5)
        for run in scheduler.runs():
            print(run.session, run.state, f"{run.for_s:.1f} s", run.waits_for or "now")
        for lane in scheduler.lanes():
            if lane.active:
                print(lane.name, lane.active, lane.waiting)
        scheduler.resize_lane("slow", 2)  # a smaller size would cancel nothing


asyncio.run(main())
