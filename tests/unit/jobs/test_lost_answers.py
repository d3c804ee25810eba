"""Claims that took effect although nobody heard of it (SPEC CRON-5, DB-4)."""

from __future__ import annotations

import asyncio

from goclaw_py.jobs.embedded.job_scheduler import Due, JobScheduler
from goclaw_py.jobs.execution_models import OccurrenceStatus
from goclaw_py.jobs.models import TargetKind
from goclaw_py.ports.jobs import StartedNow
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.harness import a_process
from tests.support.jobs import OPERATOR, Wanted, every, log_of, make, service

SILENT = Wanted(every(60), target=TargetKind.NONE)


async def test_what_was_claimed_without_an_answer_runs_all_the_same() -> None:
    async with a_process() as gateway:
        job = await make(gateway, SILENT)
        gateway.store.lose_answer["claim_due"] = 2
        await asyncio.sleep(150)
        log = await log_of(gateway, job)
        assert [(row.status, row.claims) for row in log] == [(OccurrenceStatus.OK, 1)] * 2
        assert log[0].scheduled_at == job.next_run_at


async def test_what_runs_while_an_answer_is_lost_goes_on_undisturbed() -> None:
    async def slow(due: Due) -> None:
        ran.append(due.job.spec.slug)
        await asyncio.sleep(30)

    ran: list[str] = []
    store = FlakyStore()
    async with JobScheduler(store, clock=LoopClock()) as jobs:
        jobs.on_due(slow)
        await jobs.add("first", every(60))
        await jobs.start()
        await asyncio.sleep(50)
        await jobs.add("second", every(20))
        await asyncio.sleep(15)
        store.lose_answer["claim_due"] = 1
        await asyncio.sleep(20)
        assert ran == ["first", "second"]
        assert {row.claims for row in await store.log_of()} == {1}


async def test_a_run_by_hand_whose_claim_had_no_answer_begins_once() -> None:
    """CRON-11."""
    async with a_process() as gateway:
        job = await make(gateway, SILENT)
        gateway.store.lose_answer["claim_now"] = 1
        assert isinstance(await service(gateway).run_now(job.id, OPERATOR), StartedNow)
        await asyncio.sleep(30)
        (row,) = await log_of(gateway, job)
        assert (row.status, row.manual) == (OccurrenceStatus.OK, True)
        assert len(gateway.scripted.requests) == 1


async def test_a_service_runs_by_hand_what_it_claimed_without_an_answer() -> None:
    async def count(due: Due) -> None:
        ran.append(due.manual)

    ran: list[bool] = []
    store = FlakyStore()
    async with JobScheduler(store, clock=LoopClock()) as jobs:
        jobs.on_due(count)
        await jobs.add("first", every(60))
        await jobs.start()
        store.lose_answer["claim_now"] = 1
        assert isinstance(await jobs.run("first"), StartedNow)
        await asyncio.sleep(90)
        assert ran == [True, False]
