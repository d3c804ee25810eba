"""What every store promises about runs that a crash or a shutdown cuts (SPEC AGENT-9)."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from goclaw_py.model.errors import Fenced
from goclaw_py.model.ids import RunId
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import NO_USAGE, Usage
from goclaw_py.ports.store import RunSoFar, StoredRun, ToolCall
from tests.support.store_jobs import claim_one, claimed_job, run_for
from tests.support.stores import AGENT, ANN, APOLOGY, T0, A, B, World, a_node, at, end, new_run

pytestmark = pytest.mark.real_time

PAID = ToolCall("pay", '{"to": "ann"}', T0, seconds=1.0, ok=True, result="paid")
SENT = ToolCall("send", "{}", T0)
READ = ToolCall("read", "{}", T0, side_effects=False, seconds=0.1, ok=True, result="text")
USED = Usage(2, 100, 10, 5, Decimal("0.25"))


async def crash(world: World) -> None:
    """Node A dies, is recovered by B and comes back."""
    now = await world.kill(A)
    await world.b.recover(now=now, max_attempts=9, apology=APOLOGY)
    await world.a.join(a_node(A))


async def the_run(world: World, run: str) -> StoredRun:
    (found,) = await world.b.find_run(run)
    return found


async def test_what_is_noted_of_a_run_is_seen_while_it_works(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.note_run(RunId("r"), RunSoFar((SENT,), USED, "m"), node=A)
    # Where nothing is given usage and model stay.
    await world.a.note_run(RunId("r"), RunSoFar((SENT, PAID)), node=A)
    run = await the_run(world, "r")
    assert (run.tools, run.usage, run.model) == ((SENT, PAID), USED, "m")
    assert run.outcome is None


async def test_what_was_noted_survives_a_crash_and_counts(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.note_run(RunId("r"), RunSoFar((SENT,), USED, "m"), node=A)
    # What a run uses that works is known to its own process.
    assert await world.b.spent(since=T0, agent=AGENT) == NO_USAGE
    await crash(world)
    run = await the_run(world, "r")
    assert (run.outcome, run.tools, run.usage, run.model) == (Outcome.LOST, (SENT,), USED, "m")
    assert await world.b.spent(since=T0, agent=AGENT) == USED
    assert await world.b.spent(since=T0, payer=run.session) == USED


async def test_the_end_of_a_run_takes_the_place_of_what_was_noted(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.note_run(RunId("r"), RunSoFar((SENT,), USED), node=A)
    await world.a.finish_run(end("r", Outcome.FAILED), node=A)
    run = await the_run(world, "r")
    # An end that knows nothing, since it could be stored only barely, takes nothing away.
    assert (run.tools, run.usage) == ((SENT,), USED)


async def test_nothing_is_noted_of_a_run_that_is_another_nodes_or_has_ended(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    refused = [("r", B), ("unknown", A)]
    for run, node in refused:
        with pytest.raises(Fenced):
            await world.a.note_run(RunId(run), RunSoFar((SENT,)), node=node)
    await world.a.finish_run(end("r"), node=A)
    with pytest.raises(Fenced):
        await world.a.note_run(RunId("r"), RunSoFar((SENT,)), node=A)
    assert (await the_run(world, "r")).tools == ()


async def test_the_next_run_for_a_message_is_told_what_the_cut_ones_had_called(
    world: World,
) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar((READ, PAID)), node=A)
    await crash(world)
    begun = await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    assert begun.cut_calls == (READ, PAID)
    # A lost answer can be asked for again.
    assert await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A) == begun
    await world.a.note_run(RunId("r2"), RunSoFar((SENT,)), node=A)
    await world.a.finish_run(end("r2", Outcome.INTERRUPTED), node=A)
    begun = await world.a.begin_run(new_run("r3", row, started_at=at(2)), node=A)
    assert begun.cut_calls == (READ, PAID, SENT)
    await world.a.finish_run(end("r3"), node=A)
    (other,) = await world.accept(ANN)
    assert (await world.a.begin_run(new_run("r4", other), node=A)).cut_calls == ()


async def test_a_claim_tells_which_tools_its_cut_runs_had_called(world: World) -> None:
    claimed = await claimed_job(world.a)
    assert claimed.called == ()
    await world.a.begin_run(run_for("r1", claimed), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar((SENT, READ, PAID)), node=A)
    await crash(world)
    again = await claim_one(world.a)
    assert again.called == ("pay", "send")
    begun = await world.a.begin_run(run_for("r2", again), node=A)
    assert begun.cut_calls == (SENT, READ, PAID)


async def test_the_end_wins_over_what_is_noted_at_the_same_time(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    noted = world.a.note_run(RunId("r"), RunSoFar((SENT,)), node=A)
    ended = world.a.finish_run(end("r"), node=A)
    await asyncio.gather(noted, ended, return_exceptions=True)
    assert (await the_run(world, "r")).outcome is Outcome.COMPLETED
