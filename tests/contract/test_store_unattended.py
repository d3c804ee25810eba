"""What a node has forgotten is found, and released as after a crash (SPEC QUEUE-10)."""

from __future__ import annotations

import pytest

from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from tests.support import store_heartbeats as heartbeats
from tests.support import store_jobs as jobs
from tests.support.stores import ANN, BOB, A, B, World, at, new_run, todo

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

NOW = at(100)


async def recover(world: World, *ids: str, max_attempts: int = 3) -> tuple[str, ...]:
    """Recover this work of the first node; returns the runs that were ended."""
    report = await world.a.recover_work(A, ids, now=NOW, max_attempts=max_attempts, apology="sorry")
    return tuple(run.run_id for run in report.cut_runs)


async def test_what_a_node_works_on_is_found_but_for_what_it_knows(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r", row), node=A)
    claimed = await jobs.claimed_job(world.a)
    await heartbeats.planned(world.a)
    beat = await heartbeats.claim_one(world.a, now=NOW)
    assert set(await world.a.unattended(A, ())) == {"r", claimed.id, beat.id}
    assert await world.a.unattended(A, {"r", claimed.id, beat.id}) == []
    assert await world.a.unattended(B, ()) == []


async def test_messages_of_a_forgotten_run_run_again(world: World) -> None:
    first, second = await world.accept(ANN), await world.accept(BOB)
    await world.a.begin_run(new_run("r", *first), node=A)
    await world.a.begin_run(new_run("s", *second, target=BOB), node=A)
    assert await recover(world, "r") == ("r",)
    (run,) = [run for run in await world.a.runs() if run.id == "r"]
    assert (run.outcome, run.reason) == (Outcome.LOST, Reason.CRASHED)
    assert "forgotten" in (run.error or "")
    assert await world.a.unattended(A, ()) == ["s"]
    await world.a.begin_run(new_run("again", *first), node=A)
    assert await recover(world, "r") == ()
    assert set(await world.a.unattended(A, ())) == {"s", "again"}


async def test_a_message_without_attempts_left_is_lost_with_an_apology(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r", row), node=A)
    await recover(world, "r", max_attempts=1)
    assert await todo(world, now=NOW) == []
    (told,) = await world.a.outbox()
    assert told.message.text.startswith("sorry")


async def test_a_forgotten_occurrence_is_lost_and_can_be_claimed_again(world: World) -> None:
    claimed = await jobs.claimed_job(world.a)
    await world.a.begin_run(jobs.run_for("r", claimed), node=A)
    assert await recover(world, "r", claimed.id) == ("r",)
    assert (await jobs.row_of(world.a, claimed)).status is OccurrenceStatus.LOST
    again = await jobs.claim_one(world.a, now=NOW)
    assert (again.id, again.claims) == (claimed.id, 2)


async def test_a_forgotten_heartbeat_run_is_lost(world: World) -> None:
    await heartbeats.planned(world.a)
    claimed = await heartbeats.claim_one(world.a, now=NOW)
    await world.a.begin_run(heartbeats.run_for("r", claimed), node=A)
    assert await recover(world, "r", claimed.id) == ("r",)
    assert (await heartbeats.row_of(world.a, claimed.id)).status is HeartbeatRunStatus.LOST
