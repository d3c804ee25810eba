"""The steps of runs, with which later runs continue interrupted ones (SPEC AGENT-10)."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from goclaw_py.model.errors import Fenced
from goclaw_py.model.ids import RunId, SessionKey
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.model.run_steps import ResponseStep, TakenStep
from goclaw_py.ports.store import RunSoFar, ToolCall
from tests.support.store_jobs import claim_one, claimed_job, run_for
from tests.support.stores import ANN, T0, A, B, World, at, crash, end, new_run

pytestmark = pytest.mark.real_time

PAID = ToolCall("pay", '{"to": "ann"}', T0, seconds=1.0, ok=True, result="paid")
ASKED = ResponseStep(b'{"parts": ["\\u0000"]}', Usage(1, 10, 5, 2, Decimal("0.1")))
PAY = ToolStarted("c1", "pay", '{"to": "ann"}')
RECEIPT = ToolEnded("c1", "pay", ok=True, result="paid\0")
STEERED = TakenStep("and Bob")


async def test_a_claim_does_not_tell_of_runs_that_can_be_continued(world: World) -> None:
    claimed = await claimed_job(world.a)
    await world.a.begin_run(run_for("r1", claimed), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar((PAID,), steps=(ASKED, PAY, RECEIPT)), node=A)
    await crash(world)
    assert (await claim_one(world.a)).called == ()


async def test_the_next_run_continues_with_the_steps_of_the_interrupted_ones(world: World) -> None:
    (row,) = await world.accept(ANN)
    assert (await world.a.begin_run(new_run("r1", row), node=A)).steps == ()
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED, PAY)), node=A)
    # The answer to the first write was lost: it is repeated, together with what came since.
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED, PAY, STEERED)), node=A)
    await crash(world)
    begun = await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    assert begun.steps == (ASKED, PAY, STEERED)
    await world.a.note_run(RunId("r2"), RunSoFar(steps=(RECEIPT,)), node=A)
    await world.a.finish_run(end("r2", Outcome.INTERRUPTED), node=A)
    begun = await world.a.begin_run(new_run("r3", row, started_at=at(2)), node=A)
    assert begun.steps == (ASKED, PAY, STEERED, replace(RECEIPT, result="paid\ufffd"))
    await world.a.finish_run(end("r3"), node=A)
    (other,) = await world.accept(ANN)
    assert (await world.a.begin_run(new_run("r4", other), node=A)).steps == ()


async def test_a_run_that_was_cancelled_for_a_further_message_is_not_continued(
    world: World,
) -> None:
    """SPEC QUEUE-6: the next run has another prompt, also when that one is interrupted."""
    (first, more) = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r1", first), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED,)), node=A)
    merged = replace(end("r1", Outcome.INTERRUPTED), reason=Reason.MERGED)
    await world.a.finish_run(merged, node=A)
    begun = await world.a.begin_run(new_run("r2", first, more, started_at=at(1)), node=A)
    assert begun.steps == ()
    await world.a.note_run(RunId("r2"), RunSoFar(steps=(STEERED,)), node=A)
    await crash(world)
    begun = await world.a.begin_run(new_run("r3", first, more, started_at=at(2)), node=A)
    assert begun.steps == (STEERED,)


async def test_another_nodes_run_gets_no_steps(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    with pytest.raises(Fenced):
        await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED,)), node=B)
    await crash(world)
    assert (await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)).steps == ()


async def test_a_retry_after_a_failure_begins_anew(world: World) -> None:
    claimed = await claimed_job(world.a)
    await world.a.begin_run(run_for("r1", claimed), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED, PAY)), node=A)
    await crash(world)
    again = await claim_one(world.a)
    assert (await world.a.begin_run(run_for("r2", again), node=A)).steps == (ASKED, PAY)
    await world.a.finish_run(end("r2", Outcome.FAILED), node=A)
    assert (await world.a.begin_run(run_for("r3", again), node=A)).steps == ()


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.COMPLETED, Outcome.FAILED])
async def test_a_run_for_the_same_call_continues_however_the_one_before_ended(
    world: World, outcome: Outcome
) -> None:
    """The caller was interrupted before it had the result."""
    child = replace(new_run("c1"), session=SessionKey("agent:main:subagent:c1"), call_key="r-0")
    await world.a.begin_run(child, node=A)
    await world.a.note_run(RunId("c1"), RunSoFar(steps=(ASKED,)), node=A)
    if outcome is Outcome.LOST:
        await crash(world)
    else:
        await world.a.finish_run(end("c1", outcome), node=A)
    for name, key, steps in (("c2", "r-0", (ASKED,)), ("c3", "r-1", ()), ("c4", "", ())):
        session = SessionKey(f"agent:main:subagent:{name}")
        run = replace(new_run(name, started_at=at(1)), session=session, call_key=key)
        assert (await world.a.begin_run(run, node=A)).steps == steps
