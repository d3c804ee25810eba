"""What every store promises about how long jobs and their log are kept (SPEC DB-5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.jobs.execution_models import JobUpdate, OccurrenceStatus
from goclaw_py.jobs.models import JobState
from goclaw_py.ports.store import JobQuery, Notice
from goclaw_py.store import job_rules
from tests.support.store_jobs import a_job, added, by_hand, claim, claim_one, ended
from tests.support.stores import T0, A, World, at, listen, until

pytestmark = pytest.mark.real_time

KEPT = timedelta(days=90)
HOUR = timedelta(hours=1)


async def slugs(world: World) -> list[str]:
    return sorted(job.spec.slug for job in (await world.b.jobs(JobQuery())).jobs)


async def test_rows_of_the_log_are_kept_for_ninety_days(world: World) -> None:
    await added(world.a, a_job("tea"))
    for hour in range(3):
        now = T0 + hour * HOUR
        end = ended(await claim_one(world.a, now=now), now=now)
        await world.a.end_occurrence(end, node=A)
    assert await world.a.sweep_jobs(now=T0 + KEPT) == 0
    assert await world.a.sweep_jobs(now=T0 + KEPT + HOUR + HOUR) == 2
    assert [row.scheduled_at for row in await world.b.log_of()] == [T0 + 2 * HOUR]
    assert await slugs(world) == ["tea"]


async def test_what_was_due_long_ago_and_ended_just_now_is_kept(world: World) -> None:
    """A process that was off for months."""
    await added(world.a, a_job("tea"), a_job("coffee"))
    claimed, _ = await claim(world.a, now=T0 + 2 * KEPT)
    end = ended(claimed, now=T0 + 2 * KEPT)
    await world.a.end_occurrence(end, node=A)
    assert await world.a.sweep_jobs(now=T0 + 2 * KEPT) == 0
    assert len(await world.a.log_of()) == 2


@pytest.mark.parametrize("state", JobState)
async def test_only_jobs_that_are_over_are_deleted(world: World, state: JobState) -> None:
    over = state in (JobState.COMPLETED, JobState.FAILED)
    await added(world.a, replace(a_job("tea", due_at=None), state=state))
    assert await world.a.sweep_jobs(now=T0 + KEPT) == 0
    heard = listen(world.b)
    assert await world.a.sweep_jobs(now=T0 + KEPT + HOUR) == int(over)
    assert await slugs(world) == ([] if over else ["tea"])
    if over:
        await until(heard.expect(Notice.CRON))


@pytest.mark.parametrize("last", ["changed", "ran", "runs"])
async def test_a_job_that_is_over_is_kept_as_long_as_anything_happens_to_it(
    world: World, last: str
) -> None:
    (job,) = await added(world.a, replace(a_job("tea", due_at=None), state=JobState.COMPLETED))
    late = T0 + timedelta(days=80)
    if last == "changed":
        await world.a.change_job(replace(job, updated_at=late))
    else:
        claimed = await by_hand(world.a, job, now=late)
        if last == "ran":
            end = replace(ended(claimed, OccurrenceStatus.SKIPPED, now=late), started_at=None)
            await world.a.end_occurrence(end, node=A)
    assert await world.a.sweep_jobs(now=T0 + KEPT + HOUR) == 0
    assert await slugs(world) == ["tea"]
    left = [] if last != "runs" else ["tea"]
    while await world.a.sweep_jobs(now=late + KEPT + HOUR):
        pass
    assert await slugs(world) == left


async def test_a_job_goes_with_the_last_row_of_its_log(world: World) -> None:
    """CRON-9: a failed one is kept, but not for ever."""
    await added(world.a, a_job("tea"))
    update = JobUpdate(None, JobState.FAILED, failed=True, ran=True)
    end = ended(await claim_one(world.a), OccurrenceStatus.FAILED, now=at(9), update=update)
    await world.a.end_occurrence(end, node=A)
    assert await world.a.sweep_jobs(now=at(9) + KEPT) == 0
    assert await world.a.sweep_jobs(now=at(10) + KEPT) == 2
    assert (await world.a.log_of(), await slugs(world)) == ([], [])


async def test_one_sweep_deletes_only_so_many(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_rules, "MOST_SWEPT", 2)
    jobs = [replace(a_job(f"j{n}"), updated_at=at(n)) for n in range(5)]
    await added(world.a, *(replace(job, state=JobState.COMPLETED) for job in jobs))
    assert await world.a.sweep_jobs(now=at(99) + KEPT) == 2
    assert await slugs(world) == ["j2", "j3", "j4"]
    assert [await world.a.sweep_jobs(now=at(99) + KEPT) for _ in range(3)] == [2, 1, 0]
