"""Start runs from a run, and await them without a deadlock.

Prints::

    this session has no room before I have ended
    LOOK IT UP, CHECK IT
"""

import asyncio

from goclaw_py import Lane, Run, Scheduler, WouldDeadlock


async def main() -> None:
    async def work(run: Run[str, str]) -> str:
        if run.message != "a question":
            await asyncio.sleep(1)
            return run.message.upper()
        parts = [
            scheduler.submit(f"{run.session}/{part}", part, parent=run, awaited=True)
            for part in ("look it up", "check it")
        ]
        found = await asyncio.gather(*parts)
        try:
            await scheduler.submit(run.session, "and this")
        except WouldDeadlock:
            print("this session has no room before I have ended")
        return ", ".join(found)

    async with Scheduler(work, [Lane("main", 1)]) as scheduler:
        print(await scheduler.submit("ann", "a question"))


asyncio.run(main())
