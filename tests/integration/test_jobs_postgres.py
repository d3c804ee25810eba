"""Several programs on one PostgreSQL: each time a job is due, one of them runs it (SPEC CRON-5).

Real time and the real library; what differs from several processes is that their clocks and their
ends belong to the tests.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from goclaw_py.cluster import membership as cluster
from goclaw_py.core.ids import NodeId, OccurrenceId
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.schedule.jobs.embedded.job_scheduler import Due, JobScheduler
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence, OccurrenceStatus
from goclaw_py.schedule.jobs.models import Job
from goclaw_py.schedule.jobs.schedule import Cron
from goclaw_py.store import migrate
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address, PostgresStore, connection
from tests.support.postgres import Database

pytestmark = pytest.mark.real_time

AT_ONCE = 6
"""So few that one program cannot have all that is due in a second."""

PATIENCE_S = 60.0
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
EVERY_SECOND, EVERY_MINUTE = Cron("* * * * * *"), Cron("* * * * *")


class JumpingClock:
    """The machine's clock, as far as somebody has put it forward or back."""

    def __init__(self) -> None:
        self.by = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.by


class Line:
    """A process's way to its store. When it is cut no call returns, and no further one is made."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.cut = False

    def __getattr__(self, name: str) -> object:
        method = getattr(self.store, name)
        return self._through(method) if asyncio.iscoroutinefunction(method) else method

    def _through(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: object, **options: object) -> object:
            result = None if self.cut else await method(*args, **options)
            if self.cut:
                await asyncio.Event().wait()
            return result

        return call


@dataclass(eq=False)
class Program:
    """A process with a job service. ``ran`` holds what its handler has begun.

    Args:
        lasts_s: How long its handler takes.
    """

    clock: Clock
    lasts_s: float
    ran: list[Due] = field(default_factory=list)
    at_work: set[OccurrenceId] = field(default_factory=set)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    line: Line = field(init=False)
    service: JobScheduler = field(init=False)

    async def start(self, database: Database) -> None:
        """Begin to run jobs. All tasks that are made in here are this program's."""
        INSIDE.set(self)
        self.line = Line(await database.open(max_size=4))
        store = cast("PostgresStore", self.line)
        self.service = JobScheduler(store, clock=self.clock, concurrency=AT_ONCE)
        self.service.on_due(self._run)
        await self.service.start()

    async def _run(self, due: Due) -> str:
        if self.line.cut:
            await asyncio.Event().wait()
        self.ran.append(due)
        self.at_work.add(due.occurrence)
        await asyncio.sleep(self.lasts_s)
        self.at_work.discard(due.occurrence)
        return due.job.spec.slug

    async def kill(self) -> None:
        """As ``kill -9``: it writes nothing and runs nothing any more, and gives nothing back."""
        self.line.cut = True
        for _ in range(100):
            # A task may tell the store of its own end: that has to be ended, too.
            for task in self.tasks:
                task.cancel()
            await asyncio.sleep(0.001)
        assert not self.tasks

    async def end(self) -> None:
        """End in order, unless it was killed."""
        if not self.line.cut:
            await self.service.stop()

    async def close(self) -> None:
        """Give its connections back, however it ended."""
        await self.line.store.close()


INSIDE: ContextVar[Program | None] = ContextVar("inside", default=None)
"""Whose code runs: nobody's but the test's, or that of a program."""


def _task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
    **options: Any,
) -> asyncio.Task[Any]:
    """Make a task that belongs to the program that makes it."""
    made: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
    if (program := INSIDE.get()) is not None:
        program.tasks.add(made)
        made.add_done_callback(program.tasks.discard)
    return made


@dataclass
class World:
    """Programs on one database, and a look at that database."""

    store: PostgresStore
    programs: Sequence[Program]

    async def make(self, number: int, schedule: Cron = EVERY_SECOND) -> list[Job]:
        """That many jobs that are due at the same times."""
        service = self.programs[0].service
        return [await service.add(f"job-{n}", schedule) for n in range(number)]

    def begun(self) -> Counter[OccurrenceId]:
        """How often each occurrence was begun, whoever did it."""
        return Counter(due.occurrence for program in self.programs for due in program.ran)

    async def ran_more(self, runs: int) -> None:
        """Wait until so many more have begun."""
        most = self.begun().total() + runs
        await look(f"{runs} more runs", lambda: self.begun().total() >= most)

    async def at_rest(self) -> None:
        """Wait until nothing runs and all ends are stored."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.store.log_of(limit=1, status=OccurrenceStatus.RUNNING):
                await asyncio.sleep(0.02)

    async def end(self) -> None:
        """Let what runs end; nothing begins any more."""
        await asyncio.gather(*(program.end() for program in self.programs))

    async def nodes(self) -> set[NodeId]:
        """Who is alive by the database."""
        return {node.id for node in await self.store.nodes()}

    async def rows(
        self, jobs: Sequence[Job], *, apart: timedelta = SECOND
    ) -> list[LoggedOccurrence]:
        """All that has ended. Each time at which a job was due is there once, or was coalesced."""
        rows: list[LoggedOccurrence] = []
        for job in jobs:
            log = await self.store.log_of(job.id, limit=1000)
            over = [row for row in reversed(log) if row.finished_at is not None]
            due = [row.scheduled_at for row in over]
            stored = await self.store.job(job.id)
            assert stored is not None
            assert stored.next_run_at is not None
            assert len(set(due)) == len(due), "a time has two rows"
            assert {row.status for row in over} == {OccurrenceStatus.OK}
            times = (stored.next_run_at - due[0]) / apart
            assert times == len(due) + stored.coalesced
            rows += over
        return rows


@asynccontextmanager
async def world_on(
    database: Database, *, clock: Clock | None = None, lasts_s: float = 0.1
) -> AsyncIterator[World]:
    """Three programs at work on a database."""
    asyncio.get_running_loop().set_task_factory(_task)
    async with AsyncExitStack() as stack:
        store = await database.open(max_size=2)
        stack.push_async_callback(store.close)
        made = [Program(clock or SystemClock(), lasts_s) for _ in range(3)]
        for program in made:
            await asyncio.create_task(program.start(database))
            stack.push_async_callback(program.close)
            stack.push_async_callback(program.end)
        yield World(store, made)


async def look(what: str, true: Callable[[], bool]) -> None:
    """Look until it is true. Real time, bounded."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"never happened: {what}")


# ---------------------------------------------------------------------------- the tests


async def test_three_programs_run_each_occurrence_once(postgres_database: Database) -> None:
    """CRON-5: and all three have their share."""
    async with world_on(postgres_database) as world:
        jobs = await world.make(30)
        await world.ran_more(150)
        await world.end()
        rows = await world.rows(jobs)
        assert world.begun() == dict.fromkeys((row.id for row in rows), 1)
        assert {row.claims for row in rows} == {1}
        assert all(program.ran for program in world.programs)


async def test_what_a_killed_program_ran_runs_again_and_the_log_shows_it(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CRON-5: in another program, after the lease; the rest runs once."""
    monkeypatch.setattr(cluster, "LEASE", timedelta(seconds=3))
    monkeypatch.setattr(cluster, "RENEW_S", 0.5)
    monkeypatch.setattr(cluster, "RECOVER_S", 0.3)
    async with world_on(postgres_database, lasts_s=0.4) as world:
        jobs = await world.make(15)
        await world.ran_more(30)
        await look("something to lose", lambda: any(each.at_work for each in world.programs))
        victim = next(each for each in world.programs if each.at_work)
        lost = set(victim.at_work)
        await victim.kill()
        await look("another run of it", lambda: all(world.begun()[one] == 2 for one in lost))
        await world.end()
        rows = await world.rows(jobs)
        assert lost <= {row.id for row in rows if row.claims == 2}
        # Who was claimed and had not begun in the dead program ran once, with two claims.
        assert all(1 <= world.begun()[row.id] <= row.claims for row in rows)


async def test_a_clock_that_is_put_forward_loses_nothing_and_nobody_dies(
    postgres_database: Database,
) -> None:
    """CRON-6, CRON-10: what lies between comes once, and the rest of it is counted."""
    clock = JumpingClock()
    async with world_on(postgres_database, clock=clock) as world:
        nodes = await world.nodes()
        jobs = await world.make(6, EVERY_MINUTE)
        for jump in (MINUTE, HOUR, MINUTE):
            clock.by += jump
            await world.ran_more(6)
            await world.at_rest()
        assert await world.nodes() == nodes, "somebody was taken for dead"
        await world.end()
        rows = await world.rows(jobs, apart=MINUTE)
        assert world.begun() == dict.fromkeys((row.id for row in rows), 1)
        for job in jobs:
            stored = await world.store.job(job.id)
            assert stored is not None
            # A real minute may end meanwhile.
            assert 58 <= stored.coalesced <= 62


async def test_a_clock_that_is_put_back_silences_no_job(postgres_database: Database) -> None:
    """CRON-4: jobs go on at once, by the new time, and each occurrence begins once."""
    clock = JumpingClock()
    async with world_on(postgres_database, clock=clock) as world:
        nodes = await world.nodes()
        jobs = await world.make(6)
        await world.ran_more(12)
        clock.by -= HOUR
        await world.ran_more(24)
        assert await world.nodes() == nodes, "somebody was taken for dead"
        await world.end()
        assert set(world.begun().values()) == {1}
        for job in jobs:
            log = await world.store.log_of(job.id, limit=1000)
            assert {row.status for row in log} == {OccurrenceStatus.OK}


@pytest.mark.slow
async def test_a_restart_of_the_database_doubles_and_loses_nothing(
    own_server: EmbeddedPostgres,
) -> None:
    """DB-4, CRON-5: what was running ends when it is back."""
    started = await asyncio.to_thread(own_server.start)
    address = Address(host=started.host, user=started.user, database=started.database)
    async with connection(address) as direct:
        await migrate.migrate(direct)
    async with world_on(Database(address)) as world:
        jobs = await world.make(10)
        for _ in range(2):
            await world.ran_more(20)
            await asyncio.to_thread(own_server.stop)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(own_server.start)
        await world.ran_more(50)
        await world.end()
        rows = await world.rows(jobs)
        assert world.begun() == dict.fromkeys((row.id for row in rows), 1)
