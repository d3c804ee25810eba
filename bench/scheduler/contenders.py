"""Ways to run a coroutine for each message, at most so many at once.

Each takes batches of messages, hands every message over as soon as it has it, and returns when all
runs have ended. All of them look at the exceptions of the runs and count those that failed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiojobs

from goclaw_py import Lane, QueuePolicy, Run, Scheduler

Submission = tuple[str, int]
"""A session, and a message for it."""

Batches = AsyncIterable[Iterable[Submission]]

Work = Callable[[int], Coroutine[Any, Any, None]]

_UNBOUNDED = 1_000_000
"""Messages that may wait in a session: nobody else has such a bound."""

_LOOK_AGAIN_S = 0.001


@dataclass(frozen=True, slots=True)
class Count:
    """How many runs ended, by how."""

    completed: int
    failed: int


Contender = Callable[[int, Batches, Work], Coroutine[Any, Any, Count]]
"""Given the size of the lane, what comes, and what is to be done for each message."""


async def nothing(_message: object) -> None:
    """Do the cheapest work there is."""


async def goclaw(lane: int, batches: Batches, work: Work) -> Count:
    """Run the messages through the public API, with all its rules and counters."""

    async def unpacked(run: Run[int, None]) -> None:
        await work(run.message)

    # Nobody else awaits the work from inside another coroutine.
    fit = nothing if work is nothing else unpacked
    policy = QueuePolicy(capacity=_UNBOUNDED)
    scheduler: Scheduler[int, None] = Scheduler(fit, [Lane("main", lane)], policy=policy)
    async with scheduler:
        async for batch in batches:
            for session, message in batch:
                scheduler.submit(session, message)
    view = next(view for view in scheduler.lanes() if view.name == "main")
    return Count(view.finished - view.failed - view.cancelled, view.failed)


class Floor:
    """The least that keeps the order of each session: a task per run, a deque, a counter.

    No stops, no bounds, no time limits, no statistics; nobody can ask what became of a message.
    """

    def __init__(self, lane: int, work: Work) -> None:
        self._work = work
        self._free = lane
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, deque[int]] = {}
        self._ready: deque[str] = deque()
        self._left = 0
        self._done: asyncio.Future[None] | None = None
        self.completed = 0
        self.failed = 0

    def submit(self, session: str, message: int) -> None:
        self._left += 1
        waiting = self._waiting.get(session)
        if waiting is not None:
            waiting.append(message)
            return
        self._waiting[session] = deque((message,))
        self._ready.append(session)
        self._pump()

    async def until_done(self) -> None:
        if self._left:
            self._done = self._loop.create_future()
            await self._done

    def _pump(self) -> None:
        ready = self._ready
        while ready and self._free:
            session = ready.popleft()
            self._free -= 1
            task = self._loop.create_task(self._work(self._waiting[session].popleft()))
            task.add_done_callback(partial(self._finish, session))

    def _finish(self, session: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is None:
            self.completed += 1
        else:
            self.failed += 1
        self._free += 1
        if self._waiting[session]:
            self._ready.append(session)
        else:
            del self._waiting[session]
        self._left -= 1
        self._pump()
        if not self._left and self._done is not None:
            self._done.set_result(None)


async def floor(lane: int, batches: Batches, work: Work) -> Count:
    """Run the messages through a hand-written loop."""
    loop = Floor(lane, work)
    async for batch in batches:
        for session, message in batch:
            loop.submit(session, message)
    await loop.until_done()
    return Count(loop.completed, loop.failed)


class Semaphore:
    """What is written most often: a task per message, all behind one semaphore.

    It keeps no order: two messages of a session may be worked on at once.
    """

    def __init__(self, lane: int, work: Work) -> None:
        self._work = work
        self._slots = asyncio.Semaphore(lane)
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._done: asyncio.Future[None] | None = None
        self.completed = 0
        self.failed = 0

    def submit(self, message: int) -> None:
        task = self._loop.create_task(self._guarded(message))
        self._tasks.add(task)
        task.add_done_callback(self._finish)

    async def until_done(self) -> None:
        if self._tasks:
            self._done = self._loop.create_future()
            await self._done

    async def _guarded(self, message: int) -> None:
        async with self._slots:
            await self._work(message)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is None:
            self.completed += 1
        else:
            self.failed += 1
        if not self._tasks and self._done is not None:
            self._done.set_result(None)


async def semaphore(lane: int, batches: Batches, work: Work) -> Count:
    """Run the messages through ``asyncio.Semaphore``."""
    tasks = Semaphore(lane, work)
    async for batch in batches:
        for _, message in batch:
            tasks.submit(message)
    await tasks.until_done()
    return Count(tasks.completed, tasks.failed)


async def aiojobs_scheduler(lane: int, batches: Batches, work: Work) -> Count:
    """Run the messages through ``aiojobs``, which knows one limit, and no sessions or order."""
    failed: list[object] = []
    # Without a bound on what waits, as everybody else here.
    scheduler = aiojobs.Scheduler(
        limit=lane, pending_limit=0, exception_handler=lambda _, context: failed.append(context)
    )
    handed_over = 0
    async for batch in batches:
        for _, message in batch:
            await scheduler.spawn(work(message))
            handed_over += 1
    # ``wait_and_close`` would make two more tasks for each job that is left.
    while len(scheduler):  # noqa: ASYNC110  # it has no event for this
        await asyncio.sleep(_LOOK_AGAIN_S)
    await scheduler.close()
    return Count(handed_over - len(failed), len(failed))


CONTENDERS: dict[str, Contender] = {
    "goclaw_py": goclaw,
    "floor": floor,
    "semaphore": semaphore,
    "aiojobs": aiojobs_scheduler,
}
KEEP_ORDER = ("goclaw_py", "floor")
"""Those in which the messages of a session are worked on one by one, in order."""
