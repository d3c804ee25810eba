"""What the tests of the job service as a library share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from goclaw_py import Due, JobScheduler, MemoryStore
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyJobs

Step = Callable[[Due], Awaitable[str | None]]


def takes(seconds: float, text: str | None = "done") -> Step:
    """A run that takes so long."""

    async def work(due: Due) -> str | None:
        await asyncio.sleep(seconds)
        return text

    return work


def fails(error: BaseException, after_s: float = 0.0) -> Step:
    """A run that raises."""

    async def work(due: Due) -> str | None:
        await asyncio.sleep(after_s)
        raise error

    return work


async def hangs(due: Due) -> str | None:
    """A run that ends by cancellation only."""
    await asyncio.Event().wait()
    return None


def ignores(seconds: float) -> Step:
    """A run that ignores each cancellation for so many seconds."""

    async def work(due: Due) -> str | None:
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        while (left := ends - loop.time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue
        return "too late"

    return work


@dataclass(slots=True)
class Script:
    """A handler that does the next of its steps for each run; without any it is done at once."""

    steps: list[Step] = field(default_factory=list)
    begun: list[Due] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    """When each began, by the loop's clock."""
    active: int = 0
    most_active: int = 0

    async def __call__(self, due: Due) -> str | None:
        self.begun.append(due)
        self.at.append(asyncio.get_running_loop().time())
        self.active += 1
        self.most_active = max(self.active, self.most_active)
        try:
            return await self.steps.pop(0)(due) if self.steps else "done"
        finally:
            self.active -= 1
            self.ended.append(due.job.spec.slug)

    def slugs(self) -> list[str]:
        """The jobs whose runs began, in that order."""
        return [due.job.spec.slug for due in self.begun]


def service(
    store: MemoryStore | None = None, handler: Step | None = None, **options: Any
) -> JobScheduler:
    """A service in virtual time that was not started."""
    jobs = JobScheduler(store or MemoryStore(), **{"clock": LoopClock(), **options})
    jobs.on_due(handler or Script())
    return jobs


@asynccontextmanager
async def started(
    handler: Step, store: MemoryStore | None = None, **options: Any
) -> AsyncIterator[JobScheduler]:
    """A started service; in the end what it does is cut at once."""
    jobs = service(store, handler, **options)
    await jobs.start()
    try:
        yield jobs
    finally:
        await jobs.stop(0)


@asynccontextmanager
async def process(
    database: MemoryStore, handler: Step
) -> AsyncIterator[tuple[JobScheduler, FlakyJobs]]:
    """A started service in a process that dies with ``cut`` of its store, or in the end."""
    others = asyncio.all_tasks()
    store = FlakyJobs(database)
    jobs = service(store, handler)
    await jobs.start()
    try:
        yield jobs, store
    finally:
        store.cut = True
        # Once for the handler, once for the end that it cannot store.
        for _ in range(2):
            for task in asyncio.all_tasks() - others:
                task.cancel()
            for _ in range(20):
                await asyncio.sleep(0)


async def log_of(jobs: JobScheduler, job: str = "job") -> list[LoggedOccurrence]:
    """What became of a job, the oldest first."""
    return list(reversed(await jobs.run_log(job)))


async def ends(jobs: JobScheduler, job: str = "job") -> list[str]:
    """How each occurrence stands, the oldest first."""
    return [row.status.value for row in await log_of(jobs, job)]
