"""The jobs of a gateway on PostgreSQL, with an agent that takes no time."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from goclaw_py.cluster.membership import Membership
from goclaw_py.core.ids import CRON_LANE, MAIN_AGENT, MAIN_LANE, JobId
from goclaw_py.core.targets import Maker
from goclaw_py.core.time.clocks import SystemClock, new_id
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.records import Notice
from goclaw_py.records.bound import bind
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.runs.toolbox import NO_TOOLS, Toolbox, ToolContext
from goclaw_py.schedule.jobs.models import OPERATOR, Job, JobSpec, Prompt, TargetKind
from goclaw_py.schedule.jobs.schedule import At, Schedule
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.store.migrate import migrate
from goclaw_py.store.postgres import Address, PostgresStore, connection

CLOCK = SystemClock()
_FAR = timedelta(days=365)


@dataclass(slots=True)
class Instant:
    """An agent that answers at once and notes when it was asked, in seconds since 1970."""

    asked: list[float] = field(default_factory=list)

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Answer."""
        del request, emit
        self.asked.append(time.time())
        return AgentResult("done")

    async def warm_up(self) -> None:
        """Nothing is slow here."""

    async def close(self) -> None:
        """Nothing is open."""


class _NoTools:
    def toolbox(self, here: ToolContext) -> Toolbox:
        del here
        return NO_TOOLS


@asynccontextmanager
async def fresh_store(address: Address, name: str, far: int = 0) -> AsyncIterator[PostgresStore]:
    """A store over a database of its own, which goes afterwards.

    ``far``: so many jobs are in it that are due in a year.
    """
    async with connection(address) as one:
        await one.script(f"drop database if exists {name} with (force)")
        await one.script(f"create database {name}")
    own = replace(address, database=name)
    async with connection(own) as one:
        await migrate(one)
    store = await PostgresStore.open(host=own.host, user=own.user, database=own.database)
    try:
        if far:
            await _add_far(store, own, far)
        yield store
    finally:
        await store.close()
        async with connection(address) as one:
            await one.script(f"drop database if exists {name} with (force)")


@asynccontextmanager
async def jobs_of(store: PostgresStore, agent: Instant, *, lane: int) -> AsyncIterator[Container]:
    """What a gateway runs for jobs, at work."""
    lost = asyncio.Event()
    cluster = Membership(
        store, CLOCK, "bench", on_recovery=lambda _: None, on_lost=lambda _: lost.set()
    )
    await cluster.join()
    with tempfile.TemporaryDirectory() as folder:
        deps = GatewayDependencies(
            channels={},
            rules={},
            agents={MAIN_AGENT: agent},
            workspaces={MAIN_AGENT: Path(folder)},
            context_windows={MAIN_AGENT: 100_000},
            tool_factory=_NoTools(),
        )
        # As the settings have it: jobs of all nodes count.
        scheduler = RunScheduler({MAIN_LANE: 1, CRON_LANE: lane}, shared=[CRON_LANE])
        container = Container(bind(store, lambda: cluster.node.id), CLOCK, scheduler, deps)
        job_module = container.job_module

        def hear(notice: Notice) -> None:
            if notice is Notice.CRON:
                job_module.wake.call()

        store.on_notice(hear)
        works_for_good = (cluster.renew_regularly(), job_module.run(), container.lane_permits.run())
        duties = [asyncio.create_task(duty) for duty in works_for_good]
        try:
            yield container
        finally:
            await job_module.close()
            await container.dispatcher.drain(5, asyncio.Event())
            for duty in duties:
                duty.cancel()
            await asyncio.gather(*duties, return_exceptions=True)
            await cluster.leave()


def a_job(number: int, schedule: Schedule, next_run_at: datetime) -> Job:
    """A job of the operator's that tells nobody."""
    now = CLOCK.now()
    spec = JobSpec(f"job-{number}", schedule, "UTC", Prompt("work"), target=TargetKind.NONE)
    return Job(
        JobId(new_id(CLOCK)), OPERATOR, Maker.OPERATOR, spec, now, now, next_run_at=next_run_at
    )


async def add_all(store: PostgresStore, jobs: Sequence[Job]) -> None:
    """Store jobs, some at a time."""
    line = iter(jobs)

    async def add() -> None:
        for job in line:
            await store.add_job(job, most=1_000_000)

    await asyncio.gather(*(add() for _ in range(10)))


async def _add_far(store: PostgresStore, address: Address, count: int) -> None:
    """One as the store makes it, and copies of it by one statement."""
    at = CLOCK.now() + _FAR
    await store.add_job(a_job(0, At(at), at), most=1)
    async with connection(address) as one:
        await one.script(
            "insert into cron_jobs (id, owner, slug, name, search_text, agent, kind, spec, maker,"
            " notify, state, revision, created_at, updated_at, next_run_at)"
            " select 'far-' || n, 'far', 'far-' || n, name, search_text, agent, kind, spec, maker,"
            " notify, state, 1, created_at, updated_at, next_run_at + n * interval '1 second'"
            f" from cron_jobs, generate_series(1, {count}) as n; analyze cron_jobs"
        )
