"""What every store promises about ends that come late, and about what a job takes of an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import NodeId, OccurrenceId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import Usage
from goclaw_py.schedule.jobs.execution_models import (
    JobUpdate,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
)
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
)
from tests.support.stores import T0, A, B, JobWorld, World, a_node, at, ran, recovered, say

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

HOUR = timedelta(hours=1)


async def end(world: JobWorld, last: OccurrenceEnd, *texts: str) -> None:
    await world.a.end_occurrence(last, tuple(map(say, texts)), node=A)


async def said(world: World) -> list[str]:
    return [row.message.text for row in await world.b.outbox()]


@pytest.mark.parametrize("before", ["ended", "forgotten", "finished"])
async def test_a_run_of_an_occurrence_that_is_over_ends_and_says_nothing(
    world: World, before: str
) -> None:
    """Also one that ends again, after a lost answer."""
    claimed = await claimed_job(world.a)
    await world.a.begin_run(run_for("r", claimed), node=A)
    if before == "ended":
        await end(world, ended(claimed), "first")
    elif before == "forgotten":
        await world.a.delete_job(claimed.job.id, forget=True)
    else:
        first = replace(run_end("r", ended(claimed)), say=(say("first"),))
        await world.a.finish_run(first, node=A)
    late = replace(run_end("r", ended(claimed, OccurrenceStatus.FAILED)), say=(say("late"),))
    await world.a.finish_run(late, node=A)
    assert await said(world) == ([] if before == "forgotten" else ["first"])
    assert [run.outcome for run in await world.a.runs()] == [Outcome.COMPLETED]
    assert {row.status for row in await world.a.log_of()} <= {OccurrenceStatus.OK}


async def test_of_two_runs_that_end_an_occurrence_at_once_one_speaks(world: World) -> None:
    claimed = await claimed_job(world.a)
    ends = []
    for name in ("r0", "r1"):
        await world.a.begin_run(run_for(name, claimed), node=A)
        last = replace(ended(claimed), output=name)
        ends.append(replace(run_end(name, last), say=(say(name),)))
    await asyncio.gather(*(world.a.finish_run(one, node=A) for one in ends))
    assert await said(world) == [(await row_of(world.b, claimed)).output]
    assert [run.outcome for run in await world.a.runs()] == [Outcome.COMPLETED] * 2


async def by_its_end(world: JobWorld, claimed: OccurrenceClaim) -> None:
    await end(world, ended(claimed))


async def by_giving_back(world: JobWorld, claimed: OccurrenceClaim) -> None:
    await world.a.give_back([claimed.id], node=A, status=OccurrenceStatus.INTERRUPTED)


async def by_another_claim(world: JobWorld, claimed: OccurrenceClaim) -> None:
    await by_giving_back(world, claimed)
    await claim_one(world.b, node=B)


async def by_being_forgotten(world: JobWorld, claimed: OccurrenceClaim) -> None:
    await world.a.delete_job(claimed.job.id, forget=True)


@pytest.mark.parametrize("lose", [by_its_end, by_giving_back, by_another_claim, by_being_forgotten])
async def test_no_run_begins_for_an_occurrence_that_is_not_its_nodes(
    world: World, lose: Callable[..., object]
) -> None:
    """CRON-5; nor does it make a session."""
    claimed = await claimed_job(world.a)
    await lose(world, claimed)  # type: ignore[misc]
    run = run_for("r", claimed)
    with pytest.raises(Fenced):
        await world.a.begin_run(run, node=A)
    assert await world.a.runs() == []
    assert await world.a.session(run.session) is None


async def test_a_process_that_has_expired_begins_nothing_of_what_it_had(world: World) -> None:
    """It joins as another node, and finds the sessions free."""
    claimed = await claimed_job(world.a)
    await world.a.begin_run(run_for("first", claimed), node=A)
    now = await recovered(world)
    reborn = NodeId("node-a-again")
    await world.a.join(replace(a_node(reborn), lease_until=now + HOUR))
    with pytest.raises(Fenced):
        await world.a.begin_run(run_for("second", claimed, started_at=now), node=reborn)
    again = (await world.a.claim_due(reborn, now=now, ids=[OccurrenceId("new")]))[0]
    assert (again.id, again.attempts) == (claimed.id, 1)
    await world.a.begin_run(run_for("third", again, started_at=now), node=reborn)


async def test_of_runs_that_begin_at_once_the_late_ones_are_refused(world: World) -> None:
    await added(world.a, *(a_job(f"j{n}") for n in range(9)))
    claimed = await claim(world.a)
    for one in claimed[::2]:
        await end(world, ended(one))
    calls = [world.a.begin_run(run_for(f"r{n}", one), node=A) for n, one in enumerate(claimed)]
    got = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(one, Fenced) for one in got] == [n % 2 == 0 for n in range(9)]
    assert len(await world.a.runs()) == 4
    assert len(await world.a.sessions()) == 4


@pytest.mark.parametrize(("failed", "failures"), [(None, 2), (False, 0), (True, 3)])
async def test_failures_in_a_row_are_kept_forgotten_or_counted(
    world: JobWorld, *, failed: bool | None, failures: int
) -> None:
    """CRON-8: cancelled and skipped ones keep them."""
    (job,) = await added(world.a, replace(a_job("tea"), failures=2))
    claimed = await claim_one(world.a)
    update = JobUpdate(at(60), failed=failed)
    await end(world, ended(claimed, OccurrenceStatus.CANCELLED, update=update))
    now = await stored_job(world.a, job)
    assert (now.failures, now.runs, now.last_run_at) == (failures, 0, T0)


async def test_a_failure_after_a_resume_is_the_first(world: JobWorld) -> None:
    """CRON-8: resume resets, also while a run goes on."""
    (job,) = await added(world.a, replace(a_job("tea"), failures=4))
    claimed = await claim_one(world.a)
    assert await world.b.change_job(replace(job, failures=0, next_run_at=at(99)))
    off = JobUpdate(None, JobState.DISABLED, failed=True, ran=True)
    await end(world, ended(claimed, OccurrenceStatus.FAILED, update=off))
    now = await stored_job(world.a, job)
    assert (now.failures, now.state, now.next_run_at) == (1, JobState.ACTIVE, at(99))


EDITED = renamed(replace(a_job("tea"), updated_at=at(1)), "coffee")


async def after_an_edit(world: JobWorld, update: JobUpdate, edited: Job = EDITED) -> Job:
    """The job when somebody has edited it during its run, and left its time."""
    claimed = await claimed_job(world.a)
    assert await world.b.change_job(edited)
    await end(world, ended(claimed, update=update))
    now = await stored_job(world.a, edited)
    assert (now.spec, now.running) == (edited.spec, None)
    return now


@pytest.mark.parametrize("state", [JobState.ACTIVE, JobState.COMPLETED, JobState.DISABLED])
async def test_an_edit_that_leaves_the_time_lets_the_job_go_on_at_its_next_one(
    world: JobWorld, state: JobState
) -> None:
    """CRON-5, CRON-11: what would have ended it, such as a number of runs, may have been edited."""
    job = await after_an_edit(world, JobUpdate(T0 + HOUR, state, ran=True))
    assert (job.state, job.next_run_at, job.runs) == (JobState.ACTIVE, T0 + HOUR, 1)
    assert await claim(world.a, now=at(60)) == []


@pytest.mark.parametrize("said", ["completed", "failed", "disabled", "active"])
@pytest.mark.parametrize("delete", [True, False])
async def test_an_edited_job_without_a_next_time_is_over(
    world: JobWorld, said: str, delete: bool
) -> None:
    """CRON-9: not deleted for what the old one did. It would wait for ever otherwise."""
    job = await after_an_edit(world, JobUpdate(None, JobState(said), delete=delete, forget=delete))
    over = "completed" if said == "active" else said
    assert (job.state, job.next_run_at) == (over, None)
    assert len(await world.a.log_of(job.id)) == 1


async def test_a_pause_that_leaves_the_time_is_a_pause(world: JobWorld) -> None:
    """CRON-11: pause during a run wins."""
    paused = replace(EDITED, state=JobState.PAUSED)
    job = await after_an_edit(world, JobUpdate(T0 + HOUR, JobState.COMPLETED), paused)
    assert (job.state, job.next_run_at) == (JobState.PAUSED, T0)


async def test_a_job_that_nobody_has_changed_is_over_when_its_end_says_so(world: JobWorld) -> None:
    """Whatever its schedule would say."""
    claimed = await claimed_job(world.a)
    await end(world, ended(claimed, update=JobUpdate(T0 + HOUR, JobState.COMPLETED)))
    now = await stored_job(world.a, claimed.job)
    assert (now.state, now.next_run_at) == (JobState.COMPLETED, None)


@pytest.mark.parametrize("known", [True, False])
async def test_an_occurrence_used_what_all_its_runs_used(world: World, known: bool) -> None:
    """CRON-12: retries are paid for too. Without known ones what its end says.

    As with handlers in programs of others.
    """
    claimed = await claimed_job(world.a)
    spent = [Usage(1, 10, 2, 1, Decimal("0.5")), None, Usage(2, 20, 3, 0, Decimal("0.25"))]
    for n, usage in enumerate(spent):
        last = replace(ended(claimed), usage=usage) if n == 2 else None
        done = replace(run_end(f"r{n}", last), usage=usage if known else None)
        await ran(world, run_for(f"r{n}", claimed), done)
    used = Usage(3, 30, 5, 1, Decimal("0.75")) if known else spent[-1]
    assert (await row_of(world.b, claimed)).usage == used
    stats = await world.a.job_stats(claimed.job.id, since=T0)
    assert stats.cost_usd == Decimal("0.75" if known else "0.25")


@pytest.mark.parametrize("manual", [True, False])
async def test_what_a_lost_occurrence_used_is_known(world: World, *, manual: bool) -> None:
    """CRON-5: for good, or until it is claimed again."""
    (job,) = await added(world.a, a_job("tea"))
    claimed = await by_hand(world.a, job) if manual else await claim_one(world.a)
    usage = Usage(1, 10, 2, 1, Decimal("0.5"))
    await ran(world, run_for("r0", claimed), replace(run_end("r0"), usage=usage))
    await world.a.begin_run(run_for("r1", claimed), node=A)
    await recovered(world)
    row = await row_of(world.b, claimed)
    assert (row.status, row.usage) == (OccurrenceStatus.LOST, usage)


async def test_what_ended_before_it_began_took_no_time(world: JobWorld) -> None:
    """The clock was put back."""
    (job,) = await added(world.a, a_job("tea"))
    for hour, lasted_s in enumerate([-3600, 4]):
        now = T0 + hour * HOUR
        claimed = await claim_one(world.a, now=now)
        last = ended(claimed, now=now + timedelta(seconds=lasted_s))
        await end(world, replace(last, started_at=now))
    unknown = ended(await claim_one(world.a, now=T0 + 2 * HOUR), OccurrenceStatus.CANCELLED)
    await end(world, replace(unknown, started_at=None))
    stats = await world.a.job_stats(job.id, since=T0)
    assert (stats.runs, stats.mean_s, stats.p95_s) == (3, 2.0, 4.0)
    assert (await world.a.job_stats(None, since=T0)).mean_s == 2.0
