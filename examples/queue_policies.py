"""Collect waiting messages, debounce a burst, and limit a queue.

Prints::

    ['hello', 'are you there? + anybody?', 'are you there? + anybody?']
    a + b + c
    run 8 ended dropped (queue_dropped)
"""

import asyncio

from goclaw_py import Drop, Mode, QueueDropped, QueuePolicy, Run, Scheduler


async def work(run: Run[str, str]) -> str:
    await asyncio.sleep(1)
    return " + ".join(run.messages)


async def main() -> None:
    async with Scheduler(work, policy=QueuePolicy(mode=Mode.COLLECT)) as scheduler:
        runs = [scheduler.submit("ann", text) for text in ("hello", "are you there?", "anybody?")]
        print([await run for run in runs])

        typing = QueuePolicy(debounce_s=0.8)
        runs = [scheduler.submit("bob", text, sender="bob", policy=typing) for text in "abc"]
        print(await runs[0])

        small = QueuePolicy(capacity=1, drop=Drop.OLD)
        runs = [scheduler.submit("cat", text, policy=small) for text in "xyz"]
        try:
            await runs[1]
        except QueueDropped as error:
            print(error)


asyncio.run(main())
