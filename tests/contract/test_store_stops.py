"""What was stopped on request is not continued by another node (SPEC CMD-1, CRON-5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.run_steps import NewMessagesStep
from goclaw_py.records import DroppedMessage, InboxKind, NewInbox, RunSoFar, Stops, SubagentTask
from tests.support.store_jobs import a_job, added, claim_one, ended, row_of, run_for
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
    inbox,
    key_of,
    new_run,
    recovered,
    todo,
)

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


async def test_occurrences_elsewhere_are_those_that_may_be_claimed_again(world: World) -> None:
    await added(world.a, a_job("tea"))
    claimed = await claim_one(world.a)
    assert await world.b.occurrences_elsewhere([B, A]) == []
    (there,) = await world.b.occurrences_elsewhere([B])
    assert (there.id, there.job.id) == (claimed.id, claimed.job.id)
    now = await recovered(world)
    assert [one.id for one in await world.b.occurrences_elsewhere([B])] == [claimed.id]
    again = await claim_one(world.b, node=B, now=now)
    assert await world.b.occurrences_elsewhere([B]) == []
    await world.b.end_occurrence(ended(again), node=B)
    assert await world.b.occurrences_elsewhere([A]) == []


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
        payer=key_of(ANN),
    )
    await world.a.begin_run(run, node=A)
    assert await world.b.subagents_elsewhere(key_of(ANN), [B, A]) == []
    assert await world.b.subagents_elsewhere(key_of(BOB), [B]) == []
    assert await world.b.subagents_elsewhere(key_of(ANN), [B], sender="eve") == []
    assert await world.b.subagents_elsewhere(key_of(ANN), [B]) == ["s"]
    await world.a.mark_stopped(["s"])
    await recovered(world)
    assert await world.b.subagents_elsewhere(key_of(ANN), [B]) == []
    assert await world.b.interrupted_subagents(since=T0) == []


# ---------------------------------------------------------------- everything of a session


Stopping = Callable[[World, str | None], Awaitable[object]]


def stop_row(by: str | None = None) -> NewInbox:
    row = inbox("stop", kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
    return replace(row, stops=Stops((), Reason.STOPPED_ALL, everything=True, by=by))


async def _in_its_own_commit(world: World, by: str | None = None) -> None:
    await world.a.accept([stop_row(by)], node=A, now=at(5))


async def _after_its_commit(world: World, by: str | None = None) -> None:
    row = replace(stop_row(), outcome=None, stops=None)
    (stored,) = (await world.a.accept([row], node=A, now=at(5))).rows
    stops = Stops((), Reason.STOPPED_ALL, everything=True, by=by)
    await world.a.stop_session(stored.session, stops, node=A, now=at(5), before=stored)
    await world.a.settle([stored.id], Outcome.COMPLETED, now=at(5))


async def _from_outside(world: World, by: str | None = None) -> None:
    stops = Stops((), Reason.STOPPED_ALL, everything=True, by=by)
    await world.a.stop_session(key_of(ANN), stops, node=A, now=at(5))


each_way = pytest.mark.parametrize("stop", [_in_its_own_commit, _after_its_commit, _from_outside])


@each_way
@pytest.mark.parametrize("is_lost", [True, False])
async def test_after_a_stop_of_everything_no_run_begins_with_what_a_run_releases(
    world: World, stop: Stopping, *, is_lost: bool
) -> None:
    """SPEC CMD-1: its end was decided at the stop, and could not be stored."""
    head, taken, waiting, of_bob = await world.accept(ANN, ANN, ANN, BOB)
    await world.a.begin_run(new_run("r", head), node=A)
    step = NewMessagesStep("and Bob", (taken.id,))
    await world.a.note_run(RunId("r"), RunSoFar(steps=(step,)), node=A)
    await stop(world, None)
    assert {row.id for row in await world.a.unanswered(key_of(ANN), ended=True)} == {waiting.id}
    store, node, now = (world.b, B, T0) if is_lost else (world.a, A, T0)
    if is_lost:
        now = await recovered(world)
    else:
        await world.a.finish_run(end("r", Outcome.INTERRUPTED), node=A)
    rows = {row.id: row for row in await todo(world, node, now=now)}
    assert {row.id: row.dropped for row in rows.values()} == {
        head.id: DroppedMessage(head.id, Outcome.CANCELLED, Reason.STOPPED_ALL),
        taken.id: DroppedMessage(taken.id, Outcome.CANCELLED, Reason.STOPPED_ALL),
        of_bob.id: None,
    }
    with pytest.raises(Fenced):
        await store.begin_run(new_run("again", rows[head.id], rows[taken.id]), node=node)
    again = new_run("both", rows[head.id], rows[of_bob.id], target=BOB)
    begun = await store.begin_run(again, node=node)
    assert begun.ended == {head.id}


@each_way
async def test_an_answer_that_was_finished_before_the_stop_is_stored(
    world: World, stop: Stopping
) -> None:
    head, taken = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", head), node=A)
    step = NewMessagesStep("and Bob", (taken.id,))
    await world.a.note_run(RunId("r"), RunSoFar(steps=(step,)), node=A)
    await stop(world, None)
    answer = replace(end("r", Outcome.COMPLETED, "to both"), taken_in=(taken.id,))
    await world.a.finish_run(answer, node=A)
    assert await world.a.unanswered(key_of(ANN), ended=True) == []
    assert await todo(world, now=at(10)) == []
    (run,) = await world.a.runs()
    assert run.outcome is Outcome.COMPLETED


@each_way
async def test_one_sender_stops_only_messages_of_their_own(world: World, stop: Stopping) -> None:
    """SPEC CMD-6."""
    mine, of_eve = (await world.a.accept([inbox(1), inbox(2, sender="eve")], node=A, now=T0)).rows
    await stop(world, "7")
    assert {row.id for row in await world.a.unanswered(key_of(ANN), ended=True)} == {mine.id}
    assert [row.id for row in await todo(world)] == [of_eve.id]


@each_way
async def test_a_crash_that_uses_up_the_attempts_of_a_stopped_message_sends_no_apology(
    world: World, stop: Stopping
) -> None:
    (head,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r", head), node=A)
    await stop(world, None)
    now = await world.kill(A)
    report = await world.b.recover(now=now, max_attempts=1, apology=APOLOGY)
    assert report.gave_up == 0
    assert [row.dropped is not None for row in await todo(world, B, now=now)] == [True]


@each_way
async def test_a_dropped_message_ends_with_its_notice_also_behind_a_stop(
    world: World, stop: Stopping
) -> None:
    """SPEC QUEUE-5."""
    head, dropped = await world.accept(ANN, ANN)
    mark = DroppedMessage(dropped.id, Outcome.DROPPED, Reason.NEWER_MESSAGE)
    await world.a.begin_run(replace(new_run("r", head), dropped=(mark,)), node=A)
    await stop(world, None)
    assert [row.dropped for row in await todo(world) if row.id == dropped.id] == [mark]


async def test_a_stop_leaves_what_came_behind_it_and_what_others_own(world: World) -> None:
    (head,) = await world.accept(ANN)
    (later,) = (await world.a.accept([inbox("later")], node=A, now=T0)).rows
    stops = Stops((), Reason.STOPPED_ALL, everything=True)
    await world.b.stop_session(key_of(ANN), stops, node=B, now=T0)
    await world.a.stop_session(key_of(ANN), stops, node=A, now=T0, before=later)
    assert [row.id for row in await todo(world)] == [later.id]
    assert {row.id for row in await world.a.unanswered(key_of(ANN), ended=True)} == {head.id}


async def test_what_a_process_has_dropped_keeps_its_notice(world: World) -> None:
    head, dropped = await world.accept(ANN, ANN)
    mark = DroppedMessage(dropped.id, Outcome.DROPPED, Reason.NEWER_MESSAGE)
    stops = Stops((), Reason.STOPPED_ALL, everything=True, dropped=(mark,))
    await world.a.accept([replace(stop_row(), stops=stops)], node=A, now=at(5))
    assert [row.dropped for row in await todo(world)] == [mark]
    assert {row.id for row in await world.a.unanswered(key_of(ANN), ended=True)} == {head.id}
