"""What every store promises about results of jobs, what was given back, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.ids import OccurrenceId
from goclaw_py.records import JobQuery, Notice
from goclaw_py.schedule.jobs import job_rules
from goclaw_py.schedule.jobs.execution_models import JobUpdate, OccurrenceClaim, OccurrenceStatus
from goclaw_py.schedule.jobs.models import Job, JobState
from tests.support.store_jobs import (
    a_job,
    added,
    by_hand,
    claim,
    claim_one,
    claimed_job,
    ended,
    renamed,
    row_of,
    run_end,
    run_for,
    stored_job,
    with_id,
)
from tests.support.stores import (
    ANN,
    BOB,
    T0,
    A,
    B,
    JobWorld,
    World,
    at,
    listen,
    recovered,
    say,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

HOUR = timedelta(hours=1)
ONCE = JobUpdate(None, JobState.COMPLETED, ran=True, delete=True, when_delivered=True)
FORGET = JobUpdate(
    None, JobState.COMPLETED, ran=True, delete=True, forget=True, when_delivered=True
)


async def ran(
    world: JobWorld,
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


async def status_of(world: JobWorld, occurrence: OccurrenceId) -> tuple[OccurrenceStatus, str]:
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
        kept = await with_id(world.b, job.id)
        assert kept is not None
        assert kept.state is JobState.COMPLETED
        await world.a.mark_sent(await world.claimed(now=at(1)), f"m{number}", now=at(1))
    assert await world.a.settle_results(now=at(1)) == []
    assert await with_id(world.b, job.id) is None
    assert (await world.b.logged(claimed.id) is None) is forget


async def test_a_job_whose_result_its_chat_refuses_is_kept(world: World) -> None:
    (job,) = await added(world.a, a_job("tea"))
    claimed = await ran(world, job, OccurrenceStatus.OK, "1", update=ONCE)
    await die(world)
    (lost,) = await world.a.settle_results(now=at(3))
    assert (lost.id, lost.job.id, lost.output) == (claimed.id, job.id, "out")
    assert (lost.error, lost.refused_by) == ("blocked", ANN)
    assert await status_of(world, claimed.id) == (OccurrenceStatus.UNDELIVERED, "blocked")
    kept = await with_id(world.b, job.id)
    assert kept is not None
    assert (kept.last_status, kept.last_error) == ("undelivered", "blocked")
    # Once it is told elsewhere nothing is left to do, and the job is still there.
    calls = [
        store.notify_result(lost.id, [say("x", BOB)], now=at(4)) for store in (world.a, world.b)
    ]
    assert sorted(await asyncio.gather(*calls)) == [False, True]
    assert await world.a.settle_results(now=at(5)) == []
    row = await world.b.logged(claimed.id)
    assert row is not None
    assert row.told_at == at(4)
    assert await with_id(world.b, job.id) == kept


async def test_a_job_that_was_changed_before_its_delivery_is_kept(world: World) -> None:
    (job,) = await added(world.a, a_job("tea"))
    await ran(world, job, OccurrenceStatus.OK, "1", update=ONCE)
    completed = await with_id(world.a, job.id)
    assert completed is not None
    again = replace(completed, state=JobState.ACTIVE, next_run_at=at(3600))
    assert await world.a.change_job(again)
    await world.a.mark_sent(await world.claimed(now=at(1)), "m", now=at(1))
    await world.a.settle_results(now=at(2))
    assert await with_id(world.b, job.id) is not None


async def test_a_result_without_a_chat_is_told_until_somebody_was_told(world: World) -> None:
    """Of a job only the newest one, and of those that reached somebody none."""
    (job,) = await added(world.a, a_job("tea"))
    reached = await ran(world, job)
    for one in (reached.id, OccurrenceId("unknown")):
        assert not await world.a.notify_result(one, [say("x")], now=at(1))
    later = [replace(job, next_run_at=T0 + hour * HOUR) for hour in (1, 2)]
    _, newest = [await ran(world, due, OccurrenceStatus.NO_ROUTE) for due in later]
    for store in (world.a, world.b):
        (lost,) = await store.settle_results(now=at(9000))
        assert (lost.id, lost.error, lost.refused_by) == (newest.id, "nobody is there", None)
    assert await world.a.notify_result(newest.id, [say("later")], now=at(9001))
    assert await world.b.settle_results(now=at(9002)) == []
    assert [row.message.text for row in await world.b.outbox()] == ["later"]


async def test_what_was_given_up_or_died_long_ago_is_not_told(world: World) -> None:
    (job,) = await added(world.a, a_job("tea"))
    claimed = await ran(world, job, OccurrenceStatus.OK, "1")
    await die(world)
    assert await world.a.settle_results(now=at(2) + timedelta(days=1, seconds=1)) == []
    assert await status_of(world, claimed.id) == (OccurrenceStatus.OK, "")
    assert len(await world.a.settle_results(now=at(3))) == 1
    (dead,) = await world.a.outbox()
    await world.a.drop_outbox([dead.id], now=at(4))
    assert await world.b.settle_results(now=at(5)) == []


# ------------------------------------------------------------------------- given back, then changed


GiveBack = Callable[[JobWorld, OccurrenceClaim], Awaitable[None]]
Change = Callable[[JobWorld, Job], Awaitable[object]]


async def by_recovery(world: JobWorld, claimed: OccurrenceClaim) -> None:
    await recovered(world)


async def by_leaving(world: JobWorld, claimed: OccurrenceClaim) -> None:
    await world.a.leave(A, now=at(9))


async def by_its_node(world: JobWorld, claimed: OccurrenceClaim) -> None:
    if isinstance(world, World):
        await world.a.finish_run(run_end(f"run of {claimed.id}"), node=A)
    await world.a.give_back([claimed.id], node=A, status=OccurrenceStatus.SKIPPED)


async def paused(world: JobWorld, job: Job) -> bool:
    return await world.b.change_job(replace(job, state=JobState.PAUSED, next_run_at=None))


async def paused_with_its_time(world: JobWorld, job: Job) -> bool:
    return await world.b.change_job(replace(job, state=JobState.PAUSED))


async def moved(world: JobWorld, job: Job) -> bool:
    return await world.b.change_job(replace(job, next_run_at=T0 + HOUR))


async def deleted(world: JobWorld, job: Job) -> bool:
    return await world.b.delete_job(job.id, forget=False)


async def begun(world: JobWorld, *slugs: str) -> list[OccurrenceClaim]:
    """Times of jobs, in the order of their names, each with a run that works on node A.

    Without one if the store has no runs.
    """
    await added(world.a, *(a_job(slug) for slug in slugs))
    claimed = await claim(world.a)
    if isinstance(world, World):
        for one in claimed:
            await world.a.begin_run(run_for(f"run of {one.id}", one, started_at=at(2)), node=A)
    return claimed


@pytest.mark.parametrize("change", [paused, paused_with_its_time, moved, deleted])
@pytest.mark.parametrize("give_back", [by_recovery, by_leaving, by_its_node])
async def test_a_change_ends_what_was_released_as_it_ends_what_is_released_later(
    world: World, give_back: GiveBack, change: Change
) -> None:
    """CRON-11: pause, deletion and another time win; nothing stays open for ever."""
    before, after = await begun(world, "a", "b")
    jobs = [await stored_job(world.b, one.job) for one in (before, after)]
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
    left = [await with_id(world.b, job.id) for job in jobs]
    told = [job and (job.running, job.last_run_at, job.last_status) for job in left]
    assert told[0] == told[1]
    assert await claim(world.b, node=B, now=at(60)) == []


async def test_what_could_not_begin_ends_when_it_was_claimed(world: JobWorld) -> None:
    (job,) = await added(world.a, a_job("tea"))
    claimed = await claim_one(world.a, now=at(3))
    await world.a.give_back([claimed.id], node=A, status=OccurrenceStatus.SKIPPED)
    await paused(world, job)
    row = await row_of(world.b, claimed)
    assert (row.status, row.started_at, row.finished_at) == (OccurrenceStatus.SKIPPED, None, at(3))
    now = await stored_job(world.b, job)
    assert (now.last_status, now.last_run_at) == ("skipped", None)


@pytest.mark.parametrize("resumed", [True, False])
async def test_a_job_that_is_resumed_at_the_same_time_begins_again(
    world: World, resumed: bool
) -> None:
    """CRON-5: one row of a time that has not ended; attempts of the other do not count.

    Another name leaves what was given back to whoever comes first.
    """
    (lost,) = await begun(world, "tea")
    await by_recovery(world, lost)
    if resumed:
        await paused(world, lost.job)
        job = replace(await stored_job(world.b, lost.job), state=JobState.ACTIVE, next_run_at=T0)
    else:
        job = renamed(lost.job, "coffee")
    assert await world.b.change_job(job)
    again = await claim_one(world.b, node=B, now=at(60))
    assert (again.id == lost.id, again.due_at) == (not resumed, T0)
    assert (again.claims, again.attempts) == ((1, 0) if resumed else (2, 1))


async def test_a_job_that_has_run_by_hand_since_tells_of_that(world: JobWorld) -> None:
    (cut,) = await begun(world, "tea")
    await by_its_node(world, cut)
    manual = await by_hand(world.a, cut.job, now=at(20))
    await world.a.end_occurrence(ended(manual), node=A)
    await paused(world, cut.job)
    assert (await row_of(world.b, cut)).finished_at is not None
    now = await stored_job(world.b, cut.job)
    assert (now.last_status, now.last_run_at) == ("ok", at(20))


async def test_a_change_ends_nothing_that_a_node_works_on(world: JobWorld) -> None:
    """CRON-11: a run uses the definition at its claim."""
    claimed = await claimed_job(world.a)
    await moved(world, a_job("tea"))
    await deleted(world, a_job("tea"))
    assert (await row_of(world.b, claimed)).finished_at is None


async def test_of_a_pause_and_a_giving_back_at_once_nothing_stays_open(world: JobWorld) -> None:
    claimed = await begun(world, *(f"j{n:02}" for n in range(20)))
    calls: list[Awaitable[object]] = []
    for n, one in enumerate(claimed):
        calls.append(world.a.give_back([one.id], node=A, status=OccurrenceStatus.INTERRUPTED))
        calls.append((paused, deleted)[n % 2](world, one.job))
    await asyncio.gather(*calls)
    assert [row.id for row in await world.b.log_of() if row.finished_at is None] == []


# ------------------------------------------------- how long jobs and their log are kept (SPEC DB-5)


KEPT = timedelta(days=90)


async def slugs(world: JobWorld) -> list[str]:
    return sorted(job.spec.slug for job in (await world.b.jobs(JobQuery())).jobs)


async def test_rows_of_the_log_are_kept_for_ninety_days(world: World) -> None:
    """From their end: a process may have been off for months."""
    await added(world.a, a_job("tea"))
    for hour in range(3):
        now = T0 + hour * HOUR
        end = ended(await claim_one(world.a, now=now), now=now)
        await world.a.end_occurrence(end, node=A)
    assert await world.a.sweep_jobs(now=T0 + KEPT) == 0
    assert await world.a.sweep_jobs(now=T0 + KEPT + HOUR + HOUR) == 2
    assert [row.scheduled_at for row in await world.b.log_of()] == [T0 + 2 * HOUR]
    assert await slugs(world) == ["tea"]
    late = T0 + 3 * KEPT
    await added(world.a, a_job("works"))
    one, _ = await claim(world.a, now=late)
    await world.a.end_occurrence(ended(one, now=late), node=A)
    assert await world.a.sweep_jobs(now=late) == 1
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


# ------------------------------------------------- claims whose answer was lost (SPEC CRON-5, DB-4)


BY_HAND = OccurrenceId("01234567-0000-7000-8000-00000000000f")


async def test_what_nobody_knows_of_can_be_claimed_again_as_the_same(world: JobWorld) -> None:
    await added(world.a, a_job("one"), a_job("two"))
    known, unknown = await claim(world.a)
    await world.a.release_unclaimed([known.id], node=A)
    (again,) = await claim(world.b, node=B, now=at(1))
    assert (again.id, again.due_at) == (unknown.id, unknown.due_at)
    assert (again.claims, again.attempts, again.interrupted) == (1, 0, False)
    row = await world.b.logged(known.id)
    assert row is not None
    assert (row.status, row.node) == (OccurrenceStatus.RUNNING, A)


async def test_only_what_a_node_itself_was_due_to_run_is_released(world: JobWorld) -> None:
    """Not what others have in hand, what somebody asked for, or what is over."""
    jobs = [a_job(name) for name in ("by-hand", "other", "over")]
    await added(world.a, jobs[0])
    await world.a.claim_now(A, jobs[0].id, now=T0, occurrence=BY_HAND)
    await added(world.a, jobs[1])
    others = await claim_one(world.b, node=B)
    await added(world.a, jobs[2])
    over = await claim_one(world.a)
    await world.a.end_occurrence(ended(over), node=A)
    await world.a.release_unclaimed([], node=A)
    stati = {row.id: row.status for row in await world.a.log_of()}
    assert stati == {
        BY_HAND: OccurrenceStatus.RUNNING,
        others.id: OccurrenceStatus.RUNNING,
        over.id: OccurrenceStatus.OK,
    }


async def test_a_claim_by_hand_can_be_repeated(world: JobWorld) -> None:
    """CRON-11: the same one; any other is refused while it runs."""
    (job,) = await added(world.a, a_job("one"))
    first = await world.a.claim_now(A, job.id, now=T0, occurrence=BY_HAND)
    assert await world.a.claim_now(A, job.id, now=T0, occurrence=BY_HAND) == first
    other = OccurrenceId(BY_HAND.replace("f", "e"))
    assert await world.b.claim_now(B, job.id, now=T0, occurrence=other) is None
    assert [row.id for row in await world.a.log_of()] == [BY_HAND]
    assert (await stored_job(world.a, job)).running == BY_HAND
