"""What was stopped on request is not continued by another node (SPEC CMD-1, CRON-5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goclaw_py.model.ids import SessionKey
from goclaw_py.model.outcomes import Outcome, Reason, Trigger
from goclaw_py.ports.store import SubagentTask
from tests.support.store_jobs import a_job, added, claim_one, ended, row_of, run_for
from tests.support.stores import ANN, T0, A, B, World, new_run, recovered

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("named", ["run", "occurrence", "both"])
async def test_a_stopped_occurrence_is_claimed_as_stopped_after_its_node_died(
    world: World, named: str
) -> None:
    await added(world.a, a_job("tea"))
    claimed = await claim_one(world.a)
    await world.a.begin_run(run_for("r", claimed), node=A)
    names = {"run": ["r"], "occurrence": [str(claimed.id)], "both": ["r", str(claimed.id)]}
    await world.a.mark_stopped(names[named])
    now = await recovered(world)
    again = await claim_one(world.b, node=B, now=now)
    assert (again.id, again.stopped) == (claimed.id, True)
    (run,) = await world.b.runs()
    if named != "occurrence":
        assert (run.outcome, run.reason) == (Outcome.CANCELLED, Reason.STOPPED)


async def test_one_that_has_not_begun_is_stopped_too(world: World) -> None:
    await added(world.a, a_job("tea"))
    claimed = await claim_one(world.a)
    assert not claimed.stopped
    await world.a.mark_stopped([claimed.id, "unknown"])
    again = await claim_one(world.b, node=B, now=await recovered(world))
    assert again.stopped


async def test_what_has_ended_keeps_its_end(world: World) -> None:
    await added(world.a, a_job("tea"))
    claimed = await claim_one(world.a)
    await world.a.end_occurrence(ended(claimed), node=A)
    await world.a.mark_stopped([claimed.id])
    assert (await row_of(world.a, claimed)).why is None


async def test_a_stopped_subagent_is_not_continued_after_its_node_died(world: World) -> None:
    run = replace(
        new_run("s", target=ANN),
        session=SessionKey("agent:default:subagent:s"),
        trigger=Trigger.SUBAGENT,
        task=SubagentTask("pay", "bills"),
    )
    await world.a.begin_run(run, node=A)
    await world.a.mark_stopped(["s"])
    await recovered(world)
    assert await world.b.interrupted_subagents(since=T0) == []
