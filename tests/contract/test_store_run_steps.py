"""The steps of runs, with which later runs continue interrupted ones (SPEC AGENT-10)."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import NewMessagesStep, ResponseStep, RunStep
from goclaw_py.records import RunSoFar, ToolCall
from goclaw_py.store.postgres.runs import steps
from tests.support.store_jobs import claim_one, claimed_job, run_for
from tests.support.stores import (
    ANN,
    APOLOGY,
    PLACES,
    T0,
    A,
    B,
    World,
    at,
    crash,
    end,
    new_run,
    todo,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

PAID = ToolCall("pay", '{"to": "ann"}', T0, seconds=1.0, ok=True, result="paid")
ASKED = ResponseStep(b'{"parts": ["\\u0000"]}', Usage(1, 10, 5, 2, Decimal("0.1")))
PAY = ToolStarted("c1", "pay", '{"to": "ann"}')
RECEIPT = ToolEnded("c1", "pay", ok=True, result="paid\0")
STEERED = NewMessagesStep("and Bob")


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


async def test_what_a_run_has_taken_in_stays_with_its_message(world: World) -> None:
    """QUEUE-4: it follows it, also after the second crash, and ends with it when that is lost."""
    first, taken, other = await world.accept(ANN, ANN, ANN)

    async def begin(name: str, *steps: RunStep) -> None:
        await world.a.begin_run(new_run(name, first), node=A)
        await world.a.note_run(RunId(name), RunSoFar(steps=steps), node=A)

    async def joined() -> list[tuple[int, int | None, int]]:
        rows = await world.a.claim_pending(A, now=T0, places=PLACES)
        return [(row.id, row.joined, row.attempts) for row in rows]

    step = NewMessagesStep("and Bob", (taken.id,))
    await begin("r1", ASKED, step)
    # What is done, or has its own run, is not taken.
    assert await joined() == [(first.id, None, 1), (taken.id, first.id, 0), (other.id, None, 0)]
    await crash(world)
    begun = await world.a.begin_run(new_run("r2", first, started_at=at(1)), node=A)
    assert begun.steps == (ASKED, step)
    await world.a.finish_run(end("r2", Outcome.INTERRUPTED), node=A)
    await begin("r3")
    await crash(world)
    assert await joined() == [(other.id, None, 0), (first.id, None, 2), (taken.id, first.id, 0)]
    await begin("r4")
    now = await world.kill(A)
    recovery = await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    assert recovery.gave_up == 2
    assert [row.id for row in await todo(world, B, now=now)] == [other.id]
    (told,) = await world.b.outbox()
    assert told.message.reply_to == taken.message.message_id


async def test_taken_messages_that_another_release_stored_have_no_rows() -> None:
    assert steps.read([{"kind": "taken", "payload": b'{"text": "and Bob"}'}]) == (STEERED,)


async def test_another_nodes_run_gets_no_steps(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    with pytest.raises(Fenced):
        await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED,)), node=B)
    await crash(world)
    assert (await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)).steps == ()


async def test_a_retry_of_what_was_not_continued_begins_from_the_start(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(PAY,)), node=A)
    await crash(world)
    await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    lost = replace(end("r2", Outcome.LOST), reason=Reason.NOT_CONTINUED)
    for _ in range(2):  # the answer to the first call was lost
        await world.a.finish_run(lost, node=A)
    await world.a.retry_dead_letters([row.id], now=at(2))
    begun = await world.a.begin_run(new_run("r3", row, started_at=at(3)), node=A)
    assert begun.steps == ()


async def test_a_retry_after_a_failure_begins_from_the_start(world: World) -> None:
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
    for name, key, expected in (("c2", "r-0", (ASKED,)), ("c3", "r-1", ()), ("c4", "", ())):
        session = SessionKey(f"agent:main:subagent:{name}")
        run = replace(new_run(name, started_at=at(1)), session=session, call_key=key)
        assert (await world.a.begin_run(run, node=A)).steps == expected
