"""What every store promises about the times at which jobs are due, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from goclaw_py.core.errors import Fenced, UnknownJob
from goclaw_py.core.ids import JobId, NodeId, OccurrenceId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import Usage
from goclaw_py.records import Notice
from goclaw_py.schedule.jobs.execution_models import (
    JobStats,
    JobUpdate,
    LoggedOccurrence,
    OccurrenceClaim,
    OccurrenceEnd,
    Why,
)
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus as Status
from goclaw_py.schedule.jobs.job_json import job_json
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.jobs.schedule import At, Cron
from tests.support.store_jobs import (
    OWNER,
    a_job,
    a_spec,
    added,
    by_hand,
    claim,
    claim_manual,
    claim_one,
    claimed_job,
    ended,
    fresh,
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
    a_node,
    at,
    listen,
    ran,
    recovered,
    say,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

HOUR = timedelta(hours=1)

End = Callable[[JobWorld, OccurrenceEnd], Awaitable[None]]


async def alone(world: JobWorld, end: OccurrenceEnd) -> None:
    await world.a.end_occurrence(end, node=A)


async def with_a_run(world: JobWorld, end: OccurrenceEnd) -> None:
    if not isinstance(world, World):
        return await alone(world, end)  # it stores no runs
    name = f"run of {end.id}"
    if not await world.a.find_run(name):
        claimed = OccurrenceClaim(end.id, a_job(end.job.removeprefix("job-")), T0, T0)
        await world.a.begin_run(run_for(name, claimed), node=A)
    return await world.a.finish_run(run_end(name, end), node=A)


@pytest.fixture(params=[alone, with_a_run])
def finish(request: pytest.FixtureRequest) -> End:
    """Both ways to end an occurrence."""
    chosen: End = request.param
    return chosen


# ---------------------------------------------------------------------------- what is due


async def test_the_next_time_is_that_of_the_first_active_idle_job(world: JobWorld) -> None:
    assert await world.a.next_job_due() is None
    await added(
        world.a,
        a_job("soon", due_at=at(5)),
        a_job("later", due_at=at(9)),
        a_job("never", due_at=None),
        replace(a_job("off", due_at=at(1)), state=JobState.PAUSED),
    )
    assert await world.b.next_job_due() == at(5)
    await claim_one(world.a, now=at(5))
    assert await world.b.next_job_due() == at(9)
    await world.a.delete_job(JobId("job-later"), forget=False)
    assert await world.b.next_job_due() is None


async def test_jobs_that_a_clock_which_was_ahead_may_have_planned(world: JobWorld) -> None:
    """CRON-4: idle repeating ones beyond their interval, or changed or run at a time ahead."""
    daily = replace(a_spec("ran"), schedule=Cron("0 9 * * *"))
    jobs = await added(
        world.a,
        a_job("within", due_at=at(3600)),
        a_job("beyond", due_at=at(3601)),
        a_job("due", due_at=T0),
        a_job("never", due_at=None),
        replace(a_job("edited", due_at=at(60)), updated_at=at(1)),
        replace(a_job("off", due_at=at(9999)), state=JobState.PAUSED),
        a_job("once", due_at=at(9999), spec=replace(a_spec("once"), schedule=At(at(9999)))),
        a_job("ran", due_at=at(-9), spec=daily),
    )
    (ran_last,) = await claim(world.a, now=at(-9))
    await world.a.end_occurrence(ended(ran_last, now=at(30), update=JobUpdate(at(86_400))), node=A)
    found = await world.b.jobs_ahead(now=T0)
    assert [job.spec.slug for job in found] == ["beyond", "edited", "ran"]
    assert await world.b.jobs_ahead(now=T0, after="job-beyond") == found[1:]
    assert [job.spec.slug for job in await world.b.jobs_ahead(now=at(1))] == ["ran"]
    assert await world.b.replan_job(found[0], at(7))
    assert await stored_job(world.a, jobs[1]) == replace(jobs[1], next_run_at=at(7))
    # It was changed since, or is claimed.
    assert not await world.b.replan_job(found[0], at(8))
    assert not await world.b.replan_job(replace(found[1], revision=9), at(8))


async def test_a_job_that_is_planned_again_leaves_no_released_occurrence_open(
    world: JobWorld,
) -> None:
    """CRON-11."""
    (job,) = await added(world.a, a_job("tea", due_at=at(60)))
    claimed = await claim_one(world.a, now=at(60))
    assert not await world.a.replan_job(job, at(30)), "it runs"
    await world.a.give_back([claimed.id], node=A, status=Status.INTERRUPTED)
    assert await world.a.replan_job(job, at(30))
    assert (await row_of(world.b, claimed)).finished_at is not None
    (again,) = await claim(world.a, now=at(30))
    assert again.due_at == at(30)
    assert again.id != claimed.id


async def test_what_is_due_is_claimed_the_longest_due_first(world: JobWorld) -> None:
    """CRON-4: due when its time is not after now."""
    await added(world.a, *(a_job(f"j{n}", due_at=at(n)) for n in (3, 1, 2, 4)))
    assert await world.a.claim_due(A, now=at(3), ids=[]) == []
    assert await claim(world.a, now=at(0.5)) == []
    claimed = await claim(world.a, now=at(3), limit=2)
    assert [one.job.spec.slug for one in claimed] == ["j1", "j2"]
    assert [one.job.spec.slug for one in await claim(world.b, node=B, now=at(3))] == ["j3"]
    assert await claim(world.a, now=at(3)) == []


async def test_a_claim_tells_what_the_run_has_to_know(world: JobWorld) -> None:
    """CRON-5, CRON-11."""
    (job,) = await added(world.a, a_job("tea", due_at=at(1)))
    (occurrence,) = ids = fresh(1)
    (claimed,) = await world.a.claim_due(A, now=at(2.5), ids=ids)
    running = replace(job, running=occurrence)
    assert claimed == OccurrenceClaim(occurrence, running, at(1), at(2.5))
    assert await stored_job(world.b, job) == running
    begun = LoggedOccurrence(
        occurrence, job.id, "tea", OWNER, at(1), at(2.5), None, None, Status.RUNNING
    )
    assert await row_of(world.b, claimed) == replace(begun, node=A, definition=job_json(running))


async def test_jobs_that_are_not_active_or_run_already_are_not_due(world: JobWorld) -> None:
    """CRON-10."""
    jobs = await added(world.a, *(replace(a_job(state), state=state) for state in JobState))
    assert [one.job.spec.slug for one in await claim(world.a)] == ["active"]
    active = next(job for job in jobs if job.state is JobState.ACTIVE)
    assert await world.a.change_job(replace(active, next_run_at=at(-5)))
    assert await claim(world.a) == []
    assert await world.a.next_job_due() is None


async def test_two_nodes_that_claim_at_once_never_get_the_same(world: JobWorld) -> None:
    """CRON-5."""
    await added(world.a, *(a_job(f"j{n}", due_at=at(-n)) for n in range(60)))
    nodes = ((world.a, A), (world.b, B)) * 5
    got = await asyncio.gather(*(claim(store, node=node, limit=9) for store, node in nodes))
    claimed = [one.job.id for batch in got for one in batch]
    assert len(set(claimed)) == len(claimed)
    assert len({*claimed, *(one.job.id for one in await claim(world.a))}) == 60


async def test_a_node_that_is_not_alive_claims_nothing(world: JobWorld) -> None:
    (job,) = await added(world.a, a_job("tea"))
    await recovered(world)
    for node in (NodeId("stranger"), A):
        with pytest.raises(Fenced):
            await claim(world.a, node=node)
        with pytest.raises(Fenced):
            await world.a.claim_now(node, job.id, now=T0, occurrence=OccurrenceId("x"))
    assert (await stored_job(world.b, job)).running is None
    assert await world.b.log_of() == []


# ---------------------------------------------------------------------------- by hand


@pytest.mark.parametrize("state", JobState)
async def test_a_run_by_hand_works_in_every_state_and_changes_nothing_of_the_job(
    world: JobWorld, finish: End, state: JobState
) -> None:
    """CRON-11: neither state, counters nor next run."""
    job = replace(a_job("tea", due_at=at(500)), state=state, failures=2, runs=3, coalesced=4)
    await added(world.a, job)
    claimed = await by_hand(world.a, job, now=at(2))
    running = replace(job, running=claimed.id)
    assert claimed == OccurrenceClaim(claimed.id, running, at(2), at(2), manual=True)
    await finish(world, replace(ended(claimed, Status.FAILED, now=at(3)), error="no tea"))
    assert await stored_job(world.b, job) == replace(
        job, last_run_at=at(2), last_status="failed", last_error="no tea"
    )
    row = await row_of(world.b, claimed)
    assert (row.manual, row.status, row.error) == (True, Status.FAILED, "no tea")


async def test_while_a_job_runs_by_hand_it_does_not_run_again(world: JobWorld) -> None:
    with pytest.raises(UnknownJob):
        await claim_manual(world.a, a_job("tea"))
    (job,) = await added(world.a, a_job("tea", due_at=at(1)))
    first = await by_hand(world.a, job, now=at(1))
    assert await claim_manual(world.b, job) is None
    assert await claim(world.a, now=at(2)) == []
    await alone(world, ended(first))
    await alone(world, ended(await by_hand(world.b, job)))
    claimed = await claim_one(world.a, now=at(2))
    assert (claimed.due_at, claimed.manual) == (at(1), False)


# ---------------------------------------------------------------------------- how they end


async def test_an_end_is_stored_with_what_it_makes_of_the_job(world: JobWorld, finish: End) -> None:
    """CRON-12."""
    (job,) = await added(world.a, replace(a_job("tea"), failures=2, runs=3, coalesced=4))
    claimed = await claim_one(world.a)
    update = JobUpdate(at(70), JobState.DISABLED, failed=True, coalesced=5, ran=True)
    told = {
        "why": Why.BUDGET,
        "output": "ö" * 20,
        "error": "too dear",
        "attempts": 2,
        "started_at": at(3),
        "usage": Usage(2, 30, 4, 1, Decimal("0.0125")),
    }
    end = ended(claimed, Status.SKIPPED, now=at(8), update=update)
    await finish(world, replace(end, **told))  # type: ignore[arg-type]
    last = {"last_status": "skipped", "last_error": "too dear"}
    off = replace(job, state=JobState.DISABLED, next_run_at=None, **last)  # type: ignore[arg-type]
    assert await stored_job(world.b, job) == replace(off, failures=3, runs=4, coalesced=9)
    row = await row_of(world.b, claimed)
    stored = LoggedOccurrence(
        claimed.id, job.id, "tea", OWNER, T0, T0, at(3), at(8), Status.SKIPPED
    )
    assert replace(row, runs=(), definition={}) == replace(stored, **told)  # type: ignore[arg-type]


async def test_ending_twice_changes_nothing(world: JobWorld, finish: End) -> None:
    """Nor does it while the next occurrence runs."""
    claimed = await claimed_job(world.a)
    await finish(world, ended(claimed))
    before = await stored_job(world.a, claimed.job), await world.a.log_of()
    await finish(world, ended(claimed, Status.FAILED, now=at(60)))
    assert (await stored_job(world.a, claimed.job), await world.a.log_of()) == before
    following = await claim_one(world.a, now=T0 + HOUR)
    assert following.due_at == T0 + HOUR
    await finish(world, ended(claimed))
    assert (await stored_job(world.a, claimed.job)).running == following.id


async def test_an_edit_during_a_run_wins_over_what_the_run_says_of_the_next_one(
    world: JobWorld, finish: End
) -> None:
    """CRON-11."""
    claimed = await claimed_job(world.a)
    paused = replace(a_job("tea"), state=JobState.PAUSED, next_run_at=None)
    assert await world.b.change_job(paused)
    update = JobUpdate(at(60), failed=True, coalesced=2, ran=True)
    await finish(world, ended(claimed, update=update))
    now = await stored_job(world.a, paused)
    assert (now.state, now.next_run_at, now.running) == (JobState.PAUSED, None, None)
    assert (now.failures, now.coalesced, now.runs, now.last_status) == (1, 2, 1, "ok")
    assert claimed.job.spec == paused.spec


@pytest.mark.parametrize("forget", [True, False])
@pytest.mark.parametrize("by_its_run", [True, False])
async def test_a_job_that_is_deleted_while_it_runs_or_when_it_ends_is_gone(
    world: World, finish: End, *, forget: bool, by_its_run: bool
) -> None:
    """CRON-9, CRON-11: it has done its work, or somebody has deleted it during its run."""
    claimed = await claimed_job(world.a)
    await world.a.begin_run(run_for(f"run of {claimed.id}", claimed), node=A)
    if by_its_run:
        await finish(world, ended(claimed, update=JobUpdate(None, delete=True, forget=forget)))
    else:
        await world.b.delete_job(claimed.job.id, forget=forget)
    for _ in range(2):
        await finish(world, ended(claimed))
        assert await with_id(world.b, claimed.job.id) is None
        left = [row.status for row in await world.b.log_of(claimed.job.id)]
        assert left == ([] if forget else [Status.OK])
    await added(world.a, a_job("tea"))


async def test_a_job_that_got_another_time_while_it_ran_is_not_deleted(
    world: JobWorld, finish: End
) -> None:
    claimed = await claimed_job(world.a)
    assert await world.b.change_job(replace(a_job("tea"), next_run_at=at(60)))
    await finish(world, ended(claimed, update=JobUpdate(None, delete=True, forget=True)))
    now = await stored_job(world.a, claimed.job)
    assert (now.next_run_at, now.running) == (at(60), None)
    assert (await row_of(world.b, claimed)).status is Status.OK


async def test_of_the_log_of_a_job_the_newest_are_kept(world: JobWorld, finish: End) -> None:
    """CRON-12."""
    (other,) = await added(world.a, a_job("other", due_at=at(99)))
    once = ended(await claim_one(world.a, now=at(99)), update=JobUpdate(None))
    await alone(world, replace(once, keep=1))
    await added(world.a, a_job("tea"))
    for n in range(5):
        now = T0 + n * HOUR
        claimed = await claim_one(world.a, now=now)
        await finish(world, replace(ended(claimed, now=now), keep=3))
    kept_rows = await world.a.log_of(JobId("job-tea"))
    assert [row.scheduled_at for row in kept_rows] == [T0 + n * HOUR for n in (4, 3, 2)]
    assert len(await world.a.log_of(other.id)) == 1


async def test_what_has_not_ended_stays_in_the_log(world: JobWorld) -> None:
    """CRON-12: however many are newer."""
    (job,) = await added(world.a, a_job("tea"))
    left = await claim_one(world.a)
    await world.a.give_back([left.id], node=A, status=Status.INTERRUPTED)
    for n in range(1, 4):
        await alone(world, replace(ended(await by_hand(world.a, job, now=at(n))), keep=2))
    assert [row.scheduled_at for row in await world.a.log_of(job.id)] == [at(3), at(2), T0]


async def test_ends_at_once_each_do_their_work(world: World) -> None:
    """As a lane that ends many runs in one moment does."""
    await added(world.a, *(a_job(f"j{n}") for n in range(40)))
    claimed = await claim(world.a)
    for n, one in enumerate(claimed[1::2]):
        await world.a.begin_run(run_for(f"r{n}", one), node=A)
    await asyncio.gather(
        *(alone(world, ended(one)) for one in claimed[::2]),
        *(
            world.a.finish_run(run_end(f"r{n}", ended(one)), node=A)
            for n, one in enumerate(claimed[1::2])
        ),
    )
    assert {row.status for row in await world.b.log_of(limit=99)} == {Status.OK}
    assert len(await claim(world.b, node=B, now=T0 + HOUR)) == 40


async def test_ends_of_others_end_where_one_is_refused(world: World) -> None:
    await added(world.a, *(a_job(f"j{n}") for n in range(4)))
    mine = await claim(world.a, limit=3)
    (theirs,) = await claim(world.b, node=B)
    got = await asyncio.gather(
        world.a.end_occurrence(ended(mine[0]), node=A),
        world.a.end_occurrence(ended(theirs), (say("x"),), node=A),
        world.a.end_occurrence(ended(mine[2]), node=A),
        return_exceptions=True,
    )
    assert [type(one) for one in got] == [type(None), Fenced, type(None)]
    statuses = [(await row_of(world.b, one)).status for one in (*mine, theirs)]
    assert statuses == [Status.OK, Status.RUNNING] * 2
    await world.a.begin_run(run_for("r", mine[1]), node=A)
    await world.a.give_back([mine[1].id], node=A, status=Status.INTERRUPTED)
    with pytest.raises(Fenced):
        await world.a.finish_run(replace(run_end("r", ended(mine[1])), say=(say("x"),)), node=A)
    assert [run.outcome for run in await world.a.runs()] == [None]
    assert await world.a.outbox() == []


# ---------------------------------------------------------------------------- what was said


async def test_what_is_said_goes_out_with_the_end_and_once(world: World) -> None:
    """CRON-13; the senders are told."""
    claimed = await claimed_job(world.a)
    heard = listen(world.b)
    for _ in range(2):
        words = say("one"), say("two")
        await world.a.end_occurrence(ended(claimed, now=at(4)), words, node=A)
    await until(heard.expect(Notice.OUTBOX))
    rows = (await world.b.outbox())[::-1]
    assert [row.message.text for row in rows] == ["one", "two"]
    assert {(row.message.occurrence, row.created_at) for row in rows} == {(claimed.id, at(4))}


@pytest.mark.parametrize("by_run", [True, False])
@pytest.mark.parametrize("last", ["sent", "failed"])
async def test_the_log_tells_whether_it_was_delivered(
    world: World, last: str, *, by_run: bool
) -> None:
    """CRON-12, IO-6: a dead part is no delivery, and what else a chat gets is not of the job."""
    await added(world.a, a_job("tea"), a_job("silent"))
    silent, claimed = sorted(await claim(world.a), key=lambda one: one.job.id)
    words = (say("one"), say("two"))
    if by_run:
        await ran(world, run_for("r", claimed), replace(run_end("r", ended(claimed)), say=words))
    else:
        await world.a.end_occurrence(ended(claimed), words, node=A)
    await alone(world, ended(silent))
    await world.put(say("from somebody else"))
    seen = [(await row_of(world.b, claimed)).delivery]
    await world.a.mark_sent(await world.claimed(now=at(10)), "m", now=at(10))
    seen.append((await row_of(world.b, claimed)).delivery)
    row = await world.claimed(now=at(10))
    if last == "sent":
        await world.a.mark_sent(row, "m2", now=at(10))
    else:
        await world.a.mark_dead(row, "blocked", now=at(10))
    assert [*seen, (await row_of(world.b, claimed)).delivery] == ["waiting", "waiting", last]
    assert {row.id: row.delivery for row in await world.a.log_of()} == {
        claimed.id: last,
        silent.id: "",
    }


async def test_it_is_known_in_which_chat_something_was_told(world: World) -> None:
    """CRON-13: whatever the thread, sent or not."""
    await added(world.a, a_job("tea"), a_job("coffee"))
    heard, silent = await claim(world.a)
    thread = replace(say("x"), target=replace(ANN, thread="7"))
    await world.a.end_occurrence(ended(heard), (thread,), node=A)
    await world.a.end_occurrence(ended(silent), node=A)
    for thread_id in (None, "7", "8"):
        assert await world.b.was_notified_in(heard.id, replace(ANN, thread=thread_id))
    for place in (BOB, replace(ANN, account="other"), replace(ANN, channel="other")):
        assert not await world.b.was_notified_in(heard.id, place)
    assert not await world.a.was_notified_in(silent.id, ANN)
    assert not await world.a.was_notified_in(OccurrenceId("nobody's"), ANN)


# ---------------------------------------------------------------------------- runs of them


async def test_a_run_names_the_occurrence_that_it_works_for(world: World) -> None:
    """CRON-7: each attempt has its own run id. A run of a chat works for none."""
    claimed = await claimed_job(world.a)
    await world.a.begin_run(replace(run_for("chat's", claimed), occurrence=None), node=A)
    assert (await row_of(world.b, claimed)).runs == ()
    for n, last in enumerate([None, None, replace(ended(claimed), started_at=None)]):
        outcome = Outcome.FAILED if last is None else Outcome.COMPLETED
        await ran(
            world,
            run_for(f"r{n}", claimed, started_at=at(n + 1)),
            run_end(f"r{n}", last, outcome),
        )
    row = await row_of(world.b, claimed)
    assert (row.runs, row.started_at) == (("r0", "r1", "r2"), at(1))
    named = {run.id: run.occurrence for run in await world.b.runs()}
    assert named == {"chat's": None} | dict.fromkeys(row.runs, claimed.id)


# ---------------------------------------------------------------------------- crashes


async def test_what_a_dead_process_left_is_lost_and_claimed_again(world: World) -> None:
    """CRON-5: all are told; another process's live runs are not touched."""
    (job,) = await added(world.a, a_job("tea"))
    first = await claim_one(world.a)
    await added(world.a, a_job("coffee"))
    lives = await claim_one(world.b, node=B)
    await world.a.begin_run(run_for("r", first, started_at=at(1)), node=A)
    heard = listen(world.b)
    now = await recovered(world)
    await until(heard.expect(Notice.CRON))
    assert (await row_of(world.b, lives)).status is Status.RUNNING
    row = await row_of(world.b, first)
    assert (row.status, row.node, row.finished_at) == (Status.LOST, None, None)
    job_now = await stored_job(world.b, job)
    assert (job_now.running, job_now.next_run_at) == (None, T0)
    again = await claim_one(world.b, node=B, now=now)
    assert again == replace(
        first, job=again.job, claimed_at=now, claims=2, attempts=1, interrupted=False
    )
    row = await row_of(world.b, again)
    assert (row.status, row.node, row.claimed_at) == (Status.RUNNING, B, now)
    assert (row.claims, row.attempts, len(await world.b.log_of())) == (2, 1, 2)


async def test_a_process_that_was_paused_beyond_its_lease_ends_nothing(
    world: World, finish: End
) -> None:
    """CRON-5: its late result is fenced."""
    late = await claimed_job(world.a)
    await world.a.begin_run(run_for(f"run of {late.id}", late), node=A)
    now = await recovered(world)
    with pytest.raises(Fenced):
        await finish(world, ended(late))
    await claim_one(world.b, node=B, now=now)
    with pytest.raises(Fenced):
        await finish(world, ended(late))
    assert (await row_of(world.b, late)).status is Status.RUNNING


async def died(world: JobWorld) -> None:
    """Node A dies, is recovered, and joins again."""
    await recovered(world)
    await world.a.join(a_node(A))
    await world.b.renew(B, until=at(15))


async def test_a_claim_counts_only_when_its_process_died_in_a_run(world: World) -> None:
    """CRON-5: three attempts at most, and a death before the run is none."""
    await added(world.a, a_job("tea"))
    for number in (1, 2, 3):
        for _ in range(5):
            claimed = await claim_one(world.a)
            assert (claimed.claims, claimed.attempts) == (number, number - 1)
            await died(world)
        claimed = await claim_one(world.a)
        await world.a.begin_run(run_for(f"r{number}", claimed), node=A)
        await died(world)
    assert (await claim_one(world.a)).claims == 4


async def test_without_runs_each_lost_claim_counts(world: JobWorld) -> None:
    """CRON-5: handlers of the library store no start."""
    await added(world.a, a_job("tea"))
    for number in (1, 2, 3, 4):
        (claimed,) = await world.a.claim_due(A, now=T0, ids=fresh(1), without_runs=True)
        assert claimed.claims == number
        await died(world)


async def test_a_job_by_hand_whose_process_died_is_lost_for_good(world: World) -> None:
    (job,) = await added(world.a, a_job("tea", due_at=at(500)))
    claimed = await by_hand(world.a, job)
    await world.a.begin_run(run_for("r", claimed, started_at=at(2)), node=A)
    now = await recovered(world)
    row = await row_of(world.b, claimed)
    assert (row.status, row.started_at, row.finished_at) == (Status.LOST, at(2), now)
    left = await stored_job(world.b, job)
    assert (left.running, left.last_status, left.next_run_at) == (None, "lost", at(500))
    assert await claim(world.b, node=B, now=now) == []


@pytest.mark.parametrize("deleted", [True, False])
async def test_what_a_dead_process_left_of_a_job_with_other_plans_is_lost_for_good(
    world: World, *, deleted: bool
) -> None:
    """CRON-11: pause or delete during a run wins."""
    (job,) = await added(world.a, a_job("tea"))
    claimed = await claim_one(world.a)
    if deleted:
        await world.b.delete_job(job.id, forget=False)
    else:
        await world.b.change_job(replace(job, next_run_at=at(500)))
    now = await recovered(world)
    assert (await row_of(world.b, claimed)).finished_at == now
    assert await claim(world.b, node=B, now=now) == []
    await world.b.end_occurrence(ended(claimed), (say("x"),), node=B)
    assert (await row_of(world.b, claimed)).status is Status.LOST
    assert await world.b.outbox() == []


# ---------------------------------------------------------------------------- shutdowns


async def by_leaving(world: JobWorld, claimed: Sequence[OccurrenceClaim]) -> None:
    await world.a.leave(A, now=at(9))


async def by_giving_back(world: JobWorld, claimed: Sequence[OccurrenceClaim]) -> None:
    for one in claimed:
        await world.a.finish_run(run_end(f"of {one.id}", None, Outcome.INTERRUPTED), node=A)
        await world.a.give_back([one.id], node=A, status=Status.INTERRUPTED)


@pytest.mark.parametrize("stop", [by_leaving, by_giving_back])
async def test_what_a_shutdown_interrupted_is_claimed_again_and_no_attempt_counts(
    world: World, stop: Callable[[World, Sequence[OccurrenceClaim]], Awaitable[None]]
) -> None:
    """A run by hand ends; its job goes on at its time."""
    _, job = await added(world.a, a_job("tea"), a_job("coffee", due_at=at(10)))
    first, manual = await claim_one(world.a), await by_hand(world.a, job)
    for one in (first, manual):
        await world.a.begin_run(run_for(f"of {one.id}", one, started_at=at(1)), node=A)
    await stop(world, (first, manual))
    row = await row_of(world.b, manual)
    assert (row.status, row.finished_at) == (Status.INTERRUPTED, at(9))
    now = await stored_job(world.b, job)
    assert (now.running, now.last_status, now.last_run_at) == (None, "interrupted", at(1))
    row = await row_of(world.b, first)
    assert (row.status, row.node, row.finished_at) == (Status.INTERRUPTED, None, None)
    again = await claim_one(world.b, node=B, now=at(9))
    assert again == replace(first, job=again.job, claimed_at=at(9), interrupted=True)
    await world.b.give_back([again.id], node=B, status=Status.SKIPPED)
    assert not (await claim_one(world.b, node=B, now=at(9))).interrupted
    assert not (await claim_one(world.b, node=B, now=at(10))).manual


@pytest.mark.parametrize("status", [Status.INTERRUPTED, Status.LOST])
async def test_what_a_process_leaves_without_runs_is_claimed_again_except_by_hand(
    world: JobWorld, status: Status
) -> None:
    """CRON-5, CRON-21: as handlers in programs of others do."""
    _, job = await added(world.a, a_job("tea"), a_job("coffee"))
    # At its very time: neither is the other.
    manual, first = await by_hand(world.a, job), await claim_one(world.a)
    heard = listen(world.b)
    if status is Status.LOST:
        await recovered(world)
    else:
        await world.a.leave(A, now=at(16))
    await until(heard.expect(Notice.CRON, Notice.NODES))
    row = await row_of(world.b, manual)
    assert (row.status, row.finished_at) == (status, at(16))
    now = await stored_job(world.b, job)
    assert (now.running, now.last_status, now.last_run_at) == (None, status, T0)
    row = await row_of(world.b, first)
    assert (row.status, row.node, row.finished_at) == (status, None, None)
    claimed = await world.b.claim_due(B, now=at(16), ids=fresh(2), without_runs=True)
    coffee, again = sorted(claimed, key=lambda one: one.job.spec.slug)
    was_lost = status is Status.LOST
    cut = replace(first, job=again.job, claimed_at=at(16), interrupted=not was_lost)
    assert again == replace(cut, claims=1 + was_lost)
    assert (coffee.due_at, coffee.manual, coffee.id == manual.id) == (T0, False, False)


async def test_what_could_not_begin_is_released_for_any_node(world: JobWorld) -> None:
    """By its own node, and before it ends."""
    await added(world.a, a_job("tea"), a_job("over"))
    claimed, over = await claim(world.a)
    await alone(world, ended(over))
    ids = [claimed.id, over.id, OccurrenceId("no such thing")]
    await world.b.give_back(ids, node=B, status=Status.INTERRUPTED)
    await world.a.give_back([over.id], node=A, status=Status.INTERRUPTED)
    await world.a.give_back([], node=A, status=Status.INTERRUPTED)
    assert (await row_of(world.b, claimed)).node == A
    assert (await row_of(world.b, over)).status is Status.OK
    heard = listen(world.b)
    await world.a.give_back([claimed.id], node=A, status=Status.SKIPPED)
    await until(heard.expect(Notice.CRON))
    assert await stored_job(world.b, claimed.job) == replace(claimed.job, running=None)
    again = await claim_one(world.b, node=B)
    assert (again.id, again.claims, again.attempts) == (claimed.id, 1, 0)


# ---------------------------------------------------------------------------- the log


async def history_of(world: JobWorld, job: Job, *statuses: Status) -> list[OccurrenceClaim]:
    """Ends of a job, one an hour; the n-th lasts n + 1 seconds and costs n/8."""
    done = []
    for n, status in enumerate(statuses):
        now = T0 + n * HOUR
        claimed = await claim_one(world.a, now=now)
        end = ended(claimed, status, now=now + timedelta(seconds=n + 1))
        cost = Decimal(n) / 8 if n else None
        await alone(world, replace(end, usage=Usage(1, cost_usd=cost)))
        done.append(claimed)
    return done


async def test_the_log_shows_the_newest_first(world: JobWorld) -> None:
    (job,) = await added(world.a, a_job("tea"))
    done = await history_of(world, job, Status.OK, Status.FAILED, Status.OK)
    first, second, third = (one.id for one in done)

    async def log(*job: JobId, **query: Any) -> list[str]:
        return [row.id for row in await world.b.log_of(*job, **query)]

    assert await log(job.id) == [third, second, first]
    assert await log(limit=2) == [third, second]
    assert await log(status=Status.FAILED) == [second]
    assert await log(job.id, status=Status.OK, limit=1) == [third]
    assert await log(JobId("other")) == []
    assert await world.b.logged(OccurrenceId("no such thing")) is None


async def test_the_statistics_of_a_job_count_what_ran(world: JobWorld) -> None:
    """CRON-12."""
    (job,) = await added(world.a, a_job("tea"))
    failures = (Status.FAILED, Status.TIMED_OUT, Status.LOST)
    statuses = (Status.OK, Status.OK, *failures, Status.CANCELLED, Status.SKIPPED)
    await history_of(world, job, *statuses)
    await claim_one(world.a, now=T0 + 99 * HOUR)
    stats = await world.b.job_stats(job.id, since=T0)
    assert (stats.runs, stats.ok, stats.failed, stats.skipped) == (6, 2, 3, 1)
    assert stats.mean_s == pytest.approx((1 + 2 + 3 + 4 + 6) / 5)
    assert (stats.p95_s, stats.cost_usd) == (6.0, Decimal(21) / 8)
    assert stats.success_rate == pytest.approx(0.4)
    late = await world.b.job_stats(None, since=T0 + 5 * HOUR)
    assert (late.runs, late.skipped, late.mean_s) == (1, 1, 6.0)
    assert await world.b.job_stats(JobId("other"), since=T0) == JobStats()


async def test_the_slowest_twentieth_is_above_the_95th_percentile(world: JobWorld) -> None:
    (job,) = await added(world.a, a_job("tea"))
    await history_of(world, job, *[Status.OK] * 21)
    assert (await world.a.job_stats(job.id, since=T0)).p95_s == 20.0
    assert (await world.a.job_stats(None, since=T0 + HOUR)).p95_s == 20.0


# ---------------------------------------------------------------------------- before their time


async def test_what_is_due_soon_can_be_counted_and_claimed_before_its_time(world: JobWorld) -> None:
    """A crowd is counted no further than asked."""
    await added(world.a, *(a_job(f"j{n}", due_at=T0 + n * HOUR) for n in range(5)))
    await world.a.change_job(replace(await stored_job(world.a, a_job("j1")), next_run_at=None))
    for most, crowd in ((10, 3), (2, 2)):
        assert await world.a.crowd(until=T0 + 3 * HOUR, most=most) == crowd
    await claim(world.a, now=T0)
    assert await world.a.crowd(until=T0 + 3 * HOUR, most=10) == 2
    claimed = await world.a.claim_due(A, now=T0, ids=fresh(9), until=T0 + 2 * HOUR)
    early = [(one.job.spec.slug, one.due_at, one.claimed_at) for one in claimed]
    assert early == [("j2", T0 + 2 * HOUR, T0)]


async def test_what_people_change_before_its_time_is_withdrawn(world: JobWorld) -> None:
    """SPEC CRON-11: a pause, a deletion and another time win; a new name changes nothing."""
    slugs = ("deleted", "forgotten", "kept", "moved", "paused", "renamed")
    await added(world.a, *(a_job(slug, due_at=T0 + HOUR) for slug in slugs))
    claimed = await world.a.claim_due(A, now=T0, ids=fresh(9), until=T0 + HOUR)
    ids = {one.job.spec.slug: one.id for one in claimed}
    jobs = {slug: await stored_job(world.a, a_job(slug)) for slug in slugs}
    await world.a.delete_job(jobs["deleted"].id, forget=False)
    await world.a.delete_job(jobs["forgotten"].id, forget=True)
    await world.a.change_job(replace(jobs["moved"], next_run_at=T0 + 2 * HOUR))
    await world.a.change_job(replace(jobs["paused"], state=JobState.PAUSED, next_run_at=None))
    await world.a.change_job(renamed(jobs["renamed"], "another"))
    gone = await world.a.withdrawn(ids.values())
    assert gone == {ids["deleted"], ids["forgotten"], ids["moved"], ids["paused"]}
    assert await world.a.withdrawn([]) == set()
