"""Jobs with a past, for pages that show it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from goclaw_py.core.ids import NodeId, OccurrenceId
from goclaw_py.core.run_events import Usage
from goclaw_py.records import Node
from goclaw_py.schedule.jobs.execution_models import JobUpdate, OccurrenceEnd, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Job
from tests.unit.web.fake_jobs import Jobs

NODE = NodeId("node-1")


async def ran(
    jobs: Jobs,
    job: Job,
    status: OccurrenceStatus,
    *,
    number: int = 1,
    took_s: float | None = 2.5,
    why: Why | None = None,
    output: str = "",
    error: str = "",
) -> OccurrenceId:
    """Let a job have run: the greater ``number``, the later."""
    await began(jobs, job, number=number)
    which = OccurrenceId(f"019c0000-0000-7000-8000-{number:012}")
    at = jobs.clock.at + timedelta(minutes=number)
    end = OccurrenceEnd(
        which, job.id, job.revision, status, at + timedelta(seconds=took_s or 0.0),
        JobUpdate(job.next_run_at, failed=status is OccurrenceStatus.FAILED, ran=True), why, output,
        error, 1, None if took_s is None else at, Usage(1, 2000, 300, 4, Decimal("0.0123")),
    )  # fmt: skip
    await jobs.store.end_occurrence(end, node=NODE)
    return which


async def began(jobs: Jobs, job: Job, *, number: int = 1) -> OccurrenceId:
    """Let a job run."""
    at = jobs.clock.at + timedelta(minutes=number)
    await jobs.store.join(Node(NODE, "here", 1, "0", at, at + timedelta(hours=1)))
    which = OccurrenceId(f"019c0000-0000-7000-8000-{number:012}")
    await jobs.store.claim_now(NODE, job.id, now=at, occurrence=which)
    return which
