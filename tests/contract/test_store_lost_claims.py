"""Claims whose answer was lost, on both stores (SPEC CRON-5, DB-4)."""

from __future__ import annotations

import pytest

from goclaw_py.jobs.execution_models import OccurrenceStatus
from goclaw_py.model.ids import OccurrenceId
from tests.support.store_jobs import a_job, added, claim, claim_one, ended, kept
from tests.support.stores import T0, A, B, World, at

pytestmark = pytest.mark.real_time

BY_HAND = OccurrenceId("01234567-0000-7000-8000-00000000000f")


async def test_what_nobody_knows_of_can_be_claimed_again_as_the_same(world: World) -> None:
    await added(world.a, a_job("one"), a_job("two"))
    known, unknown = await claim(world.a)
    await world.a.release_unclaimed([known.id], node=A)
    (again,) = await claim(world.b, node=B, now=at(1))
    assert (again.id, again.due_at) == (unknown.id, unknown.due_at)
    assert (again.claims, again.attempts, again.interrupted) == (1, 0, False)
    row = await world.b.logged(known.id)
    assert row is not None
    assert (row.status, row.node) == (OccurrenceStatus.RUNNING, A)


async def test_only_what_a_node_itself_was_due_to_run_is_given_back(world: World) -> None:
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


async def test_a_claim_by_hand_can_be_repeated(world: World) -> None:
    """CRON-11: the same one; any other is refused while it runs."""
    (job,) = await added(world.a, a_job("one"))
    first = await world.a.claim_now(A, job.id, now=T0, occurrence=BY_HAND)
    assert await world.a.claim_now(A, job.id, now=T0, occurrence=BY_HAND) == first
    other = OccurrenceId(BY_HAND.replace("f", "e"))
    assert await world.b.claim_now(B, job.id, now=T0, occurrence=other) is None
    assert [row.id for row in await world.a.log_of()] == [BY_HAND]
    assert (await kept(world.a, job)).running == BY_HAND
