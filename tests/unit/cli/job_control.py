"""A control whose jobs are real ones, in memory, at a time that stands still."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from goclaw_py.core.ids import NodeId, OccurrenceId, Owner, RunId
from goclaw_py.core.run_events import Usage
from goclaw_py.core.targets import Maker
from goclaw_py.core.time.clocks import new_id
from goclaw_py.operations.jobs.models import JobDraft, Requester, RunNow, StartedNow
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import JobQuery, Node
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.execution_models import (
    JobUpdate,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
    Why,
)
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import Cron
from tests.support.memory_store import MemoryStore
from tests.unit.web.fakes import FakeControl

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
"""A Friday, 13:00 in Berlin."""
OPERATOR = Requester(None)
ANN = Requester(Owner("telegram:direct:5"), Maker.MODEL)
NODE = NodeId("node-1")


class StandingClock:
    """Implements ``Clock``."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at


class FakeJobRunner:
    """Starts no runs: says what it is told to."""

    def __init__(self) -> None:
        self.answer: StartedNow | RunNow = StartedNow(OccurrenceId("o-1"), RunId("run-1"), "s")
        self.asked: list[str] = []

    async def run_now(self, job: Job) -> StartedNow | RunNow:
        self.asked.append(job.spec.slug)
        return self.answer


class Reachable(JobService):
    """Its results reach all chats."""

    async def no_route(self, job: str, by: Requester) -> str:
        del job, by
        return ""


class JobControl(FakeControl):
    """No gateway, and a database with jobs in it."""

    def __init__(self) -> None:
        super().__init__()
        self.gateway = False
        self.clock = StandingClock()
        self.store = MemoryStore()
        self.runner = FakeJobRunner()
        self.rules = JobCreationRules(PROFILES["goclaw"], sources=("issues",))
        self.connected = True
        self.knows_chats = False

    @property
    def jobs(self) -> JobService:
        kind = JobService if self.knows_chats else Reachable
        run_now = self.runner.run_now if self.connected else None
        return kind(self.store, self.clock, self.rules, run_now=run_now, gateway=self.store)

    def stored(self) -> list[Job]:
        page = asyncio.run(self.jobs.search(JobQuery(limit=1000), OPERATOR))
        return list(page.jobs)

    def all(self) -> dict[str, Job]:
        return {job.spec.slug: job for job in self.stored()}

    def one(self) -> Job:
        (job,) = self.all().values()
        return job

    def make(self, draft: JobDraft, by: Requester = OPERATOR) -> Job:
        return asyncio.run(self.jobs.create(draft, by))

    def stand(self, slug: str, state: JobState, failures: int = 0) -> None:
        """Put a job into a state, also one that nobody can choose."""
        job = replace(self.all()[slug], state=state, next_run_at=None, failures=failures)
        asyncio.run(self.store.change_job(job))

    def distort(self, slug: str, zone: str | None = None, schedule: Cron | None = None) -> None:
        """Store what no job of this release can be."""
        job = self.all()[slug]
        spec = replace(job.spec, zone=zone or job.spec.zone, schedule=schedule or job.spec.schedule)
        asyncio.run(self.store.change_job(replace(job, spec=spec)))

    def claim(self, slug: str) -> OccurrenceClaim:
        job = self.all()[slug]

        async def claim() -> OccurrenceClaim | None:
            now = self.clock.now()
            await self.store.join(Node(NODE, "host", 1, "0", now, now + timedelta(days=1)))
            occurrence = OccurrenceId(new_id(self.clock))
            return await self.store.claim_now(NODE, job.id, now=now, occurrence=occurrence)

        claimed = asyncio.run(claim())
        assert claimed is not None
        return claimed

    def ran(
        self,
        slug: str,
        status: OccurrenceStatus = OccurrenceStatus.OK,
        *,
        output: str = "",
        error: str = "",
        why: Why | None = None,
        update: JobUpdate | None = None,
    ) -> None:
        """Let a job have run for 90 seconds."""
        claimed, now = self.claim(slug), self.clock.now()
        end = OccurrenceEnd(
            *(claimed.id, claimed.job.id, claimed.job.revision, status, now, update),
            why=why,
            output=output,
            error=error,
            attempts=1,
            started_at=now - timedelta(seconds=90),
            usage=Usage(1, 2, 3, cost_usd=Decimal("0.25")),
        )
        asyncio.run(self.store.end_occurrence(end, node=NODE))
