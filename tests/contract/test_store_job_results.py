"""What every store promises about results that could not be delivered (SPEC CRON-9, CRON-13)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.jobs.execution_models import JobUpdate, OccurrenceClaim, OccurrenceStatus
from goclaw_py.jobs.models import Job, JobState
from goclaw_py.model.ids import OccurrenceId
from tests.support.store_jobs import a_job, added, claim_one, ended
from tests.support.stores import ANN, BOB, T0, A, World, at, say

pytestmark = pytest.mark.real_time

HOUR = timedelta(hours=1)
ONCE = JobUpdate(None, JobState.COMPLETED, ran=True, delete=True, when_delivered=True)
FORGET = JobUpdate(
    None, JobState.COMPLETED, ran=True, delete=True, forget=True, when_delivered=True
)


async def ran(
    world: World,
    job: Job,
    status: OccurrenceStatus = OccurrenceStatus.OK,
    *texts: str,
    update: JobUpdate | None = None,
) -> OccurrenceClaim:
    """Let a job that is due run, and say something."""
    claimed = await claim_one(world.a, now=job.next_run_at or T0)
    error = "" if status is OccurrenceStatus.OK else "nobody is there"
    end = replace(ended(claimed, status, update=update), output="out", error=error)
    await world.a.end_occurrence(end, tuple(map(say, texts)), node=A)
    return claimed


async def die(world: World, why: str = "blocked") -> None:
    await world.a.mark_dead(await world.claimed(now=at(1)), why, now=at(2))


async def status_of(world: World, occurrence: OccurrenceId) -> tuple[OccurrenceStatus, str]:
    row = await world.b.logged(occurrence)
    assert row is not None
    return row.status, row.error


@pytest.mark.parametrize("forget", [False, True])
async def test_a_job_is_deleted_once_its_result_has_been_delivered(
    world: World, *, forget: bool
) -> None:
    (job,) = await added(world.a, a_job("tea"))
    claimed = await ran(
        world, job, OccurrenceStatus.OK, "1", "2", update=FORGET if forget else ONCE
    )
    for number in (1, 2):
        assert await world.a.settle_results(now=at(1)) == []
        kept = await world.b.job(job.id)
        assert kept is not None
        assert kept.state is JobState.COMPLETED
        await world.a.mark_sent(await world.claimed(now=at(1)), f"m{number}", now=at(1))
    assert await world.a.settle_results(now=at(1)) == []
    assert await world.b.job(job.id) is None
    assert (await world.b.logged(claimed.id) is None) is forget


async def test_a_job_whose_result_its_chat_refuses_is_kept(world: World) -> None:
    (job,) = await added(world.a, a_job("tea"))
    claimed = await ran(world, job, OccurrenceStatus.OK, "1", update=ONCE)
    await die(world)
    (lost,) = await world.a.settle_results(now=at(3))
    assert (lost.id, lost.job.id, lost.output) == (claimed.id, job.id, "out")
    assert (lost.error, lost.refused_by) == ("blocked", ANN)
    assert await status_of(world, claimed.id) == (OccurrenceStatus.UNDELIVERED, "blocked")
    kept = await world.b.job(job.id)
    assert kept is not None
    assert (kept.last_status, kept.last_error) == ("undelivered", "blocked")
    # Once it is told elsewhere nothing is left to do, and the job is still there.
    calls = [store.tell_result(lost.id, [say("x", BOB)], now=at(4)) for store in (world.a, world.b)]
    assert sorted(await asyncio.gather(*calls)) == [False, True]
    assert await world.a.settle_results(now=at(5)) == []
    row = await world.b.logged(claimed.id)
    assert row is not None
    assert row.told_at == at(4)
    assert await world.b.job(job.id) == kept


async def test_a_job_that_was_changed_before_its_delivery_is_kept(world: World) -> None:
    (job,) = await added(world.a, a_job("tea"))
    await ran(world, job, OccurrenceStatus.OK, "1", update=ONCE)
    completed = await world.a.job(job.id)
    assert completed is not None
    again = replace(completed, state=JobState.ACTIVE, next_run_at=at(3600))
    assert await world.a.change_job(again)
    await world.a.mark_sent(await world.claimed(now=at(1)), "m", now=at(1))
    await world.a.settle_results(now=at(2))
    assert await world.b.job(job.id) is not None


async def test_a_result_without_a_chat_is_told_until_somebody_was_told(world: World) -> None:
    """Of a job only the newest one, and of those that reached somebody none."""
    (job,) = await added(world.a, a_job("tea"))
    reached = await ran(world, job)
    for one in (reached.id, OccurrenceId("unknown")):
        assert not await world.a.tell_result(one, [say("x")], now=at(1))
    later = [replace(job, next_run_at=T0 + hour * HOUR) for hour in (1, 2)]
    _, newest = [await ran(world, due, OccurrenceStatus.NO_ROUTE) for due in later]
    for store in (world.a, world.b):
        (lost,) = await store.settle_results(now=at(9000))
        assert (lost.id, lost.error, lost.refused_by) == (newest.id, "nobody is there", None)
    assert await world.a.tell_result(newest.id, [say("later")], now=at(9001))
    assert await world.b.settle_results(now=at(9002)) == []
    assert [row.message.text for row in await world.b.outbox()] == ["later"]


async def test_what_an_operator_has_given_up_or_what_died_long_ago_is_not_told(
    world: World,
) -> None:
    (job,) = await added(world.a, a_job("tea"))
    claimed = await ran(world, job, OccurrenceStatus.OK, "1")
    await die(world)
    assert await world.a.settle_results(now=at(2) + timedelta(days=1, seconds=1)) == []
    assert await status_of(world, claimed.id) == (OccurrenceStatus.OK, "")
    assert len(await world.a.settle_results(now=at(3))) == 1
    (dead,) = await world.a.outbox()
    await world.a.drop_outbox([dead.id], now=at(4))
    assert await world.b.settle_results(now=at(5)) == []
