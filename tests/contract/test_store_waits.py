"""What every store promises about times of jobs whose session another node holds (SPEC CRON-10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import OccurrenceId, SessionKey
from goclaw_py.core.outcomes import Outcome
from goclaw_py.records import Notice
from goclaw_py.schedule.jobs.execution_models import OccurrenceClaim, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Job, JobState
from tests.support.store_jobs import (
    a_job,
    added,
    by_hand,
    claim,
    claim_manual,
    claim_one,
    claimed_job,
    ended,
    renamed,
    row_of,
    run_end,
    run_for,
    stored_job,
)
from tests.support.stores import (
    ANN,
    APOLOGY,
    BOB,
    T0,
    A,
    B,
    World,
    at,
    end,
    key_of,
    listen,
    new_run,
    ran,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

HERS = key_of(ANN)
FREE = SessionKey("agent:default:nobody")


async def wait(
    world: World, *claimed: OccurrenceClaim, session: SessionKey = HERS
) -> set[OccurrenceId]:
    """What node A has no more, after it has asked for a session."""
    asked = {one.id: session for one in claimed}
    return await world.a.wait_for_sessions(asked, node=A, now=at(3))


async def waiting(world: World) -> OccurrenceClaim:
    """A time of a job that waits for the session of a run on node B."""
    claimed = await claimed_job(world.a)
    await world.b.begin_run(new_run("r"), node=B)
    assert await wait(world, claimed) == {claimed.id}
    return claimed


async def released(world: World) -> None:
    await world.b.finish_run(end("r"), node=B)
    await world.b.release_sessions(B, [HERS])


async def claimed_by(world: World, *, unheld: bool = True) -> dict[str, list[OccurrenceId]]:
    """What each node claims of what waits: first A, then B."""
    found = {
        node: await store.claim_waiting(node, now=at(5), unheld=unheld)
        for node, store in ((A, world.a), (B, world.b))
    }
    return {node: [one.id for one in claims] for node, claims in found.items() if claims}


async def test_what_waits_is_nobodys_and_its_job_stays_marked(world: World) -> None:
    claimed = await waiting(world)
    row = await row_of(world.b, claimed)
    assert (row.status, row.node, row.waits_for) == (OccurrenceStatus.WAITING, None, HERS)
    assert row.finished_at is None
    job = await stored_job(world.a, claimed.job)
    assert (job.running, job.next_run_at) == (claimed.id, T0)
    assert await world.a.next_job_due() is None
    assert await claim_manual(world.a, job) is None
    assert [one.id for one in await world.b.waiting_occurrences()] == [claimed.id]


async def test_only_those_wait_whose_session_is_held_by_another_node(world: World) -> None:
    await added(world.a, a_job("tea"), a_job("coffee"))
    one, other = await claim(world.a)
    await world.a.begin_run(new_run("own", target=BOB), node=A)
    assert await wait(world, other, session=key_of(BOB)) == set()
    assert await wait(world, other, session=FREE) == set()
    assert (await row_of(world.b, other)).node == A
    await world.b.begin_run(new_run("r"), node=B)
    asked = {one.id: HERS, other.id: key_of(BOB)}
    assert await world.a.wait_for_sessions(asked, node=A, now=at(3)) == {one.id}
    assert (await row_of(world.b, other)).status is OccurrenceStatus.RUNNING


@pytest.mark.parametrize("runs", [True, False])
async def test_an_owner_whose_lease_has_ended_holds_it_only_by_its_run(
    world: World, runs: bool
) -> None:
    """A session with another node's unfinished run waits for its recovery (NODE-1)."""
    claimed = await waiting(world)
    if not runs:
        await world.b.finish_run(end("r"), node=B)
    now = await world.kill(B)
    if runs:
        assert await world.a.claim_waiting(A, now=now) == []
        await world.a.recover(now=now, max_attempts=3, apology=APOLOGY)
    assert [one.id for one in await world.a.claim_waiting(A, now=now)] == [claimed.id]


async def test_asked_again_after_a_lost_answer_it_waits_once(world: World) -> None:
    """Nothing of another node is let wait."""
    claimed = await waiting(world)
    for session in (HERS, FREE):
        assert await wait(world, claimed, session=session) == {claimed.id}
        assert (await row_of(world.b, claimed)).waits_for == HERS
    await added(world.b, a_job("coffee"))
    others = await claim_one(world.b, node=B)
    assert await wait(world, others) == {others.id}
    assert (await row_of(world.b, others)).status is OccurrenceStatus.RUNNING


async def test_a_session_of_a_chat_that_has_moved_is_waited_for_by_its_new_id(world: World) -> None:
    claimed = await claimed_job(world.a)
    await world.b.begin_run(new_run("r"), node=B)
    await world.a.move_chat("telegram", "default", old="100", new="300", now=at(2))
    assert await wait(world, claimed) == {claimed.id}
    assert (await row_of(world.b, claimed)).waits_for == key_of(replace(ANN, chat="300"))
    await world.b.finish_run(end("r"), node=B)
    assert await claimed_by(world, unheld=False) == {B: [claimed.id]}


async def test_the_node_that_holds_the_session_claims_it_as_it_was(world: World) -> None:
    """Its row is the same, and it counts as claimed when it was claimed at first."""
    claimed = await waiting(world)
    (again,) = await world.b.claim_waiting(B, now=at(500), unheld=False)
    assert again == replace(claimed, waited=True)
    row = await row_of(world.b, claimed)
    assert (row.status, row.node, row.waits_for) == (OccurrenceStatus.RUNNING, B, None)
    assert (row.claimed_at, row.claims) == (T0, 1)
    assert await world.a.waiting_occurrences() == []


async def test_no_other_node_claims_it_before_the_session_is_free(world: World) -> None:
    """Then one of two at once."""
    claimed = await waiting(world)
    assert await world.a.claim_waiting(A, now=at(5)) == []
    await world.b.finish_run(end("r"), node=B)
    assert await world.a.claim_waiting(A, now=at(5)) == []
    await world.b.release_sessions(B, [HERS])
    assert await world.a.claim_waiting(A, now=at(5), unheld=False) == []
    found = await asyncio.gather(
        world.a.claim_waiting(A, now=at(5)), world.b.claim_waiting(B, now=at(5))
    )
    assert [one.id for claims in found for one in claims] == [claimed.id]


async def test_an_expired_node_claims_nothing(world: World) -> None:
    await waiting(world)
    await world.b.recover(now=await world.kill(A), max_attempts=3, apology=APOLOGY)
    await released(world)
    assert await world.a.claim_waiting(A, now=at(20)) == []


async def test_attempts_are_counted_on(world: World) -> None:
    """One that waits before its second attempt goes on with that."""
    claimed = await claimed_job(world.a)
    await ran(world, run_for("first", claimed), run_end("first", outcome=Outcome.FAILED))
    await world.b.begin_run(new_run("r"), node=B)
    await wait(world, claimed)
    (again,) = await world.b.claim_waiting(B, now=at(5))
    assert (again.attempts, again.interrupted) == (1, False)


async def test_a_node_that_dies_with_it_lets_others_claim_it_as_lost(world: World) -> None:
    claimed = await waiting(world)
    await world.b.claim_waiting(B, now=at(5))
    now = await world.kill(B)
    await world.a.recover(now=now, max_attempts=3, apology=APOLOGY)
    (again,) = await claim(world.a, now=now)
    assert (again.id, again.claims) == (claimed.id, 1), "no run of it was lost"


async def left(world: World) -> None:
    await world.b.leave(B, now=at(5))


async def recovered(world: World) -> None:
    await world.a.recover(now=await world.kill(B), max_attempts=3, apology=APOLOGY)


@pytest.mark.parametrize("free", [released, left, recovered])
async def test_all_are_told_when_a_session_that_is_waited_for_is_free(
    world: World, free: Callable[[World], Awaitable[None]]
) -> None:
    await waiting(world)
    heard = listen(world.a)
    await free(world)
    await until(heard.expect(Notice.CRON))
    assert len(await world.a.claim_waiting(A, now=at(20))) == 1


async def test_the_owner_is_told_that_something_waits(world: World) -> None:
    claimed = await claimed_job(world.a)
    await world.b.begin_run(new_run("r"), node=B)
    await asyncio.sleep(0.05)
    heard = listen(world.b)
    await wait(world, claimed)
    await until(heard.expect(Notice.CRON))


async def test_a_release_at_the_same_time_loses_no_notice(world: World) -> None:
    """Whichever is first, the other one sees it: a node is told after the session is free."""
    for number in range(20):
        await added(world.a, a_job(f"job{number}"))
        claimed = await claim_one(world.a)
        await world.b.begin_run(new_run(f"r{number}"), node=B)
        await world.b.finish_run(end(f"r{number}"), node=B)
        heard = listen(world.a)
        gone, _ = await asyncio.gather(wait(world, claimed), world.b.release_sessions(B, [HERS]))
        if gone:
            await until(heard.expect(Notice.CRON))
        assert await claimed_by(world) == ({A: [claimed.id]} if gone else {})
        await world.a.end_occurrence(ended(claimed), node=A)


async def paused(world: World, job: Job) -> bool:
    return await world.a.change_job(replace(job, state=JobState.PAUSED, next_run_at=None))


async def moved(world: World, job: Job) -> bool:
    return await world.a.change_job(replace(job, next_run_at=T0 + timedelta(hours=1)))


async def deleted(world: World, job: Job) -> bool:
    return await world.a.delete_job(job.id, forget=False)


@pytest.mark.parametrize("change", [paused, moved, deleted])
async def test_what_is_not_wanted_any_more_ends(
    world: World, change: Callable[[World, Job], Awaitable[bool]]
) -> None:
    """SPEC CRON-11."""
    claimed = await waiting(world)
    assert await change(world, claimed.job)
    row = await row_of(world.b, claimed)
    assert (row.status, row.why, row.waits_for) == (OccurrenceStatus.SKIPPED, Why.BUSY, None)
    assert row.finished_at is not None
    assert await claimed_by(world) == {}
    if change is not deleted:
        assert (await stored_job(world.a, claimed.job)).running is None


async def test_what_is_still_wanted_waits_and_what_is_forgotten_is_gone(world: World) -> None:
    claimed = await waiting(world)
    assert await world.a.change_job(renamed(claimed.job, "coffee"))
    assert (await row_of(world.b, claimed)).status is OccurrenceStatus.WAITING
    assert (await stored_job(world.a, claimed.job)).running == claimed.id
    await world.a.delete_job(claimed.job.id, forget=True)
    assert await world.a.waiting_occurrences() == []
    assert await claimed_by(world) == {}


async def test_one_that_waits_can_be_ended_by_any_node(world: World) -> None:
    """Until a node has claimed it."""
    claimed = await waiting(world)
    stop = ended(claimed, OccurrenceStatus.CANCELLED)
    with pytest.raises(Fenced):
        await world.a.end_occurrence(stop, node=A)
    await world.a.end_occurrence(stop, node=None)
    assert (await row_of(world.b, claimed)).status is OccurrenceStatus.CANCELLED
    assert (await stored_job(world.a, claimed.job)).running is None
    assert await claimed_by(world) == {}
    again = await claim_one(world.a, now=at(4000))
    assert await wait(world, again) == {again.id}
    assert len(await world.b.claim_waiting(B, now=at(5))) == 1
    with pytest.raises(Fenced):
        await world.a.end_occurrence(ended(again), node=None)


async def manual(world: World) -> OccurrenceClaim:
    """One by hand that waits for the session of a run on node B."""
    (job,) = await added(world.a, a_job("tea"))
    claimed = await by_hand(world.a, job)
    await world.b.begin_run(new_run("r"), node=B)
    await wait(world, claimed)
    return claimed


async def test_one_by_hand_waits_through_any_change_of_its_job(world: World) -> None:
    claimed = await manual(world)
    assert await paused(world, claimed.job)
    (again,) = await world.b.claim_waiting(B, now=at(5))
    assert again == replace(claimed, job=again.job, waited=True)
    assert again.manual
    await world.b.begin_run(replace(run_for("again", claimed), session=HERS), node=B)
    await world.b.finish_run(run_end("again", ended(claimed)), node=B)
    row = await row_of(world.b, claimed)
    assert (row.status, row.runs, row.waits_for) == (OccurrenceStatus.OK, ("again",), None)


async def test_one_by_hand_that_is_not_known_waits_again(world: World) -> None:
    """The answer to its claim was lost; given back it would end."""
    claimed = await manual(world)
    await world.b.claim_waiting(B, now=at(5))
    await world.b.release_unclaimed([claimed.id], node=B)
    assert (await row_of(world.b, claimed)).node == B
    await world.b.release_unclaimed([], node=B)
    row = await row_of(world.b, claimed)
    assert (row.status, row.waits_for) == (OccurrenceStatus.WAITING, HERS)
    assert await claimed_by(world) == {B: [claimed.id]}
