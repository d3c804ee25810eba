"""What every store promises about times of jobs that were given back when people change the job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.jobs.execution_models import OccurrenceClaim, OccurrenceStatus
from goclaw_py.jobs.models import Job, JobState
from tests.support.store_jobs import (
    a_job,
    added,
    by_hand,
    claim,
    claim_one,
    claimed_job,
    ended,
    kept,
    renamed,
    row_of,
    run_end,
    run_for,
)
from tests.support.stores import T0, A, B, World, at, recovered

pytestmark = pytest.mark.real_time

HOUR = timedelta(hours=1)

GiveBack = Callable[[World, OccurrenceClaim], Awaitable[None]]
Change = Callable[[World, Job], Awaitable[object]]


async def by_recovery(world: World, claimed: OccurrenceClaim) -> None:
    await recovered(world)


async def by_leaving(world: World, claimed: OccurrenceClaim) -> None:
    await world.a.leave(A, now=at(9))


async def by_its_node(world: World, claimed: OccurrenceClaim) -> None:
    await world.a.finish_run(run_end(f"run of {claimed.id}"), node=A)
    await world.a.give_back([claimed.id], node=A, status=OccurrenceStatus.SKIPPED)


async def paused(world: World, job: Job) -> bool:
    return await world.b.change_job(replace(job, state=JobState.PAUSED, next_run_at=None))


async def paused_with_its_time(world: World, job: Job) -> bool:
    return await world.b.change_job(replace(job, state=JobState.PAUSED))


async def moved(world: World, job: Job) -> bool:
    return await world.b.change_job(replace(job, next_run_at=T0 + HOUR))


async def deleted(world: World, job: Job) -> bool:
    return await world.b.delete_job(job.id, forget=False)


async def begun(world: World, *slugs: str) -> list[OccurrenceClaim]:
    """Times of jobs, in the order of their names, each with a run that works on node A."""
    await added(world.a, *(a_job(slug) for slug in slugs))
    claimed = await claim(world.a)
    for one in claimed:
        await world.a.begin_run(run_for(f"run of {one.id}", one, started_at=at(2)), node=A)
    return claimed


@pytest.mark.parametrize("change", [paused, paused_with_its_time, moved, deleted])
@pytest.mark.parametrize("give_back", [by_recovery, by_leaving, by_its_node])
async def test_a_change_ends_what_was_given_back_as_it_ends_what_is_given_back_later(
    world: World, give_back: GiveBack, change: Change
) -> None:
    """CRON-11: pause, deletion and another time win; nothing stays open for ever."""
    before, after = await begun(world, "a", "b")
    jobs = [await kept(world.b, one.job) for one in (before, after)]
    await change(world, jobs[0])
    await give_back(world, before)
    if give_back is by_its_node:
        await give_back(world, after)
    assert (await row_of(world.b, after)).finished_at is None
    await change(world, jobs[1])
    first, second = await row_of(world.b, before), await row_of(world.b, after)
    assert first.finished_at is not None
    assert (second.status, second.node) == (first.status, None)
    assert (second.started_at, second.finished_at) == (first.started_at, first.finished_at)
    left = [await world.b.job(job.id) for job in jobs]
    told = [job and (job.running, job.last_run_at, job.last_status) for job in left]
    assert told[0] == told[1]
    assert await claim(world.b, node=B, now=at(60)) == []


async def test_what_could_not_begin_ends_when_it_was_claimed(world: World) -> None:
    (job,) = await added(world.a, a_job("tea"))
    claimed = await claim_one(world.a, now=at(3))
    await world.a.give_back([claimed.id], node=A, status=OccurrenceStatus.SKIPPED)
    await paused(world, job)
    row = await row_of(world.b, claimed)
    assert (row.status, row.started_at, row.finished_at) == (OccurrenceStatus.SKIPPED, None, at(3))
    now = await kept(world.b, job)
    assert (now.last_status, now.last_run_at) == ("skipped", None)


@pytest.mark.parametrize("resumed", [True, False])
async def test_a_job_that_is_resumed_at_the_same_time_begins_anew(
    world: World, resumed: bool
) -> None:
    """CRON-5: one row of a time that has not ended; attempts of the other do not count.

    Another name leaves what was given back to whoever comes first.
    """
    (lost,) = await begun(world, "tea")
    await by_recovery(world, lost)
    if resumed:
        await paused(world, lost.job)
        job = replace(await kept(world.b, lost.job), state=JobState.ACTIVE, next_run_at=T0)
    else:
        job = renamed(lost.job, "coffee")
    assert await world.b.change_job(job)
    again = await claim_one(world.b, node=B, now=at(60))
    assert (again.id == lost.id, again.due_at) == (not resumed, T0)
    assert (again.claims, again.attempts) == ((1, 0) if resumed else (2, 1))


async def test_a_job_that_has_run_by_hand_since_tells_of_that(world: World) -> None:
    (cut,) = await begun(world, "tea")
    await by_its_node(world, cut)
    manual = await by_hand(world.a, cut.job, now=at(20))
    await world.a.end_occurrence(ended(manual), node=A)
    await paused(world, cut.job)
    assert (await row_of(world.b, cut)).finished_at is not None
    now = await kept(world.b, cut.job)
    assert (now.last_status, now.last_run_at) == ("ok", at(20))


async def test_a_change_ends_nothing_that_a_node_works_on(world: World) -> None:
    """CRON-11: a run uses the definition at its claim."""
    claimed = await claimed_job(world.a)
    await moved(world, a_job("tea"))
    await deleted(world, a_job("tea"))
    assert (await row_of(world.b, claimed)).finished_at is None


async def test_of_a_pause_and_a_giving_back_at_once_nothing_stays_open(world: World) -> None:
    claimed = await begun(world, *(f"j{n:02}" for n in range(20)))
    calls: list[Awaitable[object]] = []
    for n, one in enumerate(claimed):
        calls.append(world.a.give_back([one.id], node=A, status=OccurrenceStatus.INTERRUPTED))
        calls.append((paused, deleted)[n % 2](world, one.job))
    await asyncio.gather(*calls)
    assert [row.id for row in await world.b.log_of() if row.finished_at is None] == []
