"""Pass messages to a run in progress.

Prints::

    on the way: by train
    True answer to ['plan a trip', 'by train']
"""

import asyncio

from goclaw_py import Mode, QueuePolicy, Run, Scheduler


async def main() -> None:
    async def agent(run: Run[str, str]) -> str:
        for _ in range(3):  # three calls of a model
            await asyncio.sleep(1)
            for text in scheduler.steer_in(run):
                print("on the way:", text)
        return f"answer to {run.messages}"

    async with Scheduler(agent, policy=QueuePolicy(mode=Mode.STEER)) as scheduler:
        first = scheduler.submit("ann", "plan a trip")
        await asyncio.sleep(1.5)
        second = scheduler.submit("ann", "by train")
        print(await second == await first, await first)


asyncio.run(main())
