"""Who does not own a session decides nothing in it, and what has ended does not begin (NODE-1)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import (
    DroppedMessage,
    InboxKind,
    InboxRow,
    NewInbox,
    NewRun,
    RunStartResult,
    Stops,
)
from tests.support.stores import (
    ANN,
    BOB,
    A,
    B,
    World,
    at,
    end,
    inbox,
    key_of,
    new_run,
    ran,
    recovered,
    say,
    todo,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

T5 = at(5)


def a_stop(*messages: str, target: Target = ANN) -> NewInbox:
    """A ``/stop`` that has acted."""
    command = inbox("stop", target, kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
    return replace(command, stops=Stops(messages, Reason.STOPPED))


def covered(number: int | str, target: Target = ANN) -> NewInbox:
    """A message that a ``/stop`` behind it has met."""
    return inbox(number, target, outcome=Outcome.CANCELLED)


async def waiting(world: World) -> list[str | None]:
    """What the first node finds, by the ids of the messages."""
    rows = await todo(world, now=T5)
    return [row.message.message_id for row in rows]


async def test_a_stop_ends_nothing_of_another_node(world: World) -> None:
    """It waits for whoever works on the session, with what it has covered, in their order."""
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r", row), node=A)
    batch = [covered(7), a_stop("100:1", "100:7"), inbox(8)]
    assert (await world.b.accept(batch, node=B, now=T5)).rows == ()
    assert await waiting(world) == ["1", "7", "stop", "8"]
    await world.a.finish_run(end("r"), node=A)
    assert await world.a.unanswered(key_of(ANN), ended=True) == []


@pytest.mark.parametrize("dead", [False, True])
async def test_a_stop_of_nobodys_session_holds(world: World, dead: bool) -> None:
    """Or of that of a dead node where nothing waits: it takes it."""
    (row,) = await world.accept(ANN)
    if dead:
        await world.a.settle([row.id], Outcome.DROPPED, now=T5)
    else:
        await world.a.release_sessions(A, [key_of(ANN)], waiting=True)
    now = await world.kill(A) if dead else T5
    accepted = await world.b.accept([covered(7), a_stop("100:1", "100:7")], node=B, now=now)
    assert [row.message.message_id for row in accepted.rows] == ["stop"]
    assert await todo(world, B, now=now) == []
    assert await waiting(world) == []


async def test_a_batch_for_several_owners_is_decided_by_each(world: World) -> None:
    await world.accept(ANN)
    batch = [covered(7), covered(8, BOB), a_stop("200:8", target=BOB)]
    accepted = await world.b.accept(batch, node=B, now=T5)
    assert [row.message.target.chat for row in accepted.rows] == [BOB.chat]
    assert await waiting(world) == ["1", "7"]


async def test_a_node_settles_nothing_of_another_one(world: World) -> None:
    """Of rows of several owners only its own."""
    of_ann, of_bob = await world.accept(ANN, BOB)
    await world.b.settle([of_ann.id], Outcome.DROPPED, now=T5, say=[say("dropped")], node=B)
    assert await waiting(world) == ["1", "2"]
    assert await world.a.outbox() == []
    await world.a.release_sessions(A, [key_of(BOB)], waiting=True)
    await todo(world, B, now=T5)
    await world.b.settle([of_ann.id, of_bob.id], Outcome.DROPPED, now=T5, node=B)
    assert await waiting(world) == ["1"]


@pytest.mark.parametrize("given_back", [False, True])
async def test_a_node_settles_what_is_its_own_or_nobodys(world: World, given_back: bool) -> None:
    (row,) = await world.accept(ANN)
    if given_back:
        await world.a.release_sessions(A, [key_of(ANN)], waiting=True)
    await world.a.settle([row.id], Outcome.DROPPED, now=T5, say=[say("dropped")], node=A)
    assert await waiting(world) == []
    assert [one.message.text for one in await world.a.outbox()] == ["dropped"]


async def test_no_run_begins_with_what_has_ended(world: World) -> None:
    """A look may have found it before, and be late."""
    settled, answered = await world.accept(ANN, ANN)
    await world.a.settle([settled.id], Outcome.CANCELLED, now=T5)
    await ran(world, new_run("answers", answered))
    for row in (settled, answered):
        with pytest.raises(Fenced):
            await world.a.begin_run(new_run("r", row), node=A)
    assert [run.id for run in await world.a.runs()] == ["answers"]


async def test_what_a_run_has_begun_with_belongs_to_it_even_if_stopped(world: World) -> None:
    """The answer of its begin was lost, and it asks again."""
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r", row), node=A)
    await world.a.accept([a_stop("100:1")], node=A, now=T5)
    assert (await world.a.begin_run(new_run("r", row), node=A)).ended == frozenset()


async def test_a_run_is_told_which_of_its_messages_have_ended(world: World) -> None:
    first, second = await world.accept(ANN, ANN)
    await world.a.settle([first.id], Outcome.CANCELLED, now=T5)
    for _ in range(2):  # the answer of the first call may be lost
        begun = await world.a.begin_run(new_run("r", first, second), node=A)
        assert begun.ended == {first.id}
    await world.a.finish_run(end("r"), node=A)
    (ended,) = await world.a.unanswered(key_of(ANN), ended=True)
    assert (ended.id, ended.run_id) == (first.id, None)


async def test_what_crashed_and_what_is_retried_begins_again(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.crash("r1", row)
    now = at(40)
    await world.a.renew(A, until=at(90))
    (found,) = await todo(world, now=now)
    begun = await world.a.begin_run(new_run("r2", found, started_at=now), node=A)
    assert begun.ended == frozenset()
    await world.a.finish_run(end("r2", Outcome.FAILED), node=A)
    assert await world.a.retry_dead_letters([row.id], now=now) == 1
    (found,) = await todo(world, now=now)
    assert not (await world.a.begin_run(new_run("r3", found, started_at=now), node=A)).ended


async def test_what_waits_keeps_no_run_without_messages_from_its_session(world: World) -> None:
    """Nor one in a session of its own node: what has crashed often waits behind all others."""
    _, second = await world.accept(ANN, ANN)
    await ran(world, new_run("own", second), end("own", Outcome.INTERRUPTED))
    await world.a.release_sessions(A, [key_of(ANN)], waiting=True)
    assert (await world.b.begin_run(new_run("r"), node=B)).ended == frozenset()


async def test_a_run_claims_no_session_in_which_something_older_waits(world: World) -> None:
    """SPEC QUEUE-1: whoever takes that up, takes up all that waits in its order."""
    first, second = await world.accept(ANN, ANN)
    await world.a.release_sessions(A, [key_of(ANN)], waiting=True)
    for store, node in ((world.a, A), (world.b, B)):
        with pytest.raises(Fenced):
            await store.begin_run(new_run("late", second), node=node)
    await world.b.begin_run(new_run("all", first, second), node=B)


async def test_nor_does_one_of_several_that_begin_at_once(world: World) -> None:
    _, early = await world.accept(ANN, BOB)
    of_ann, of_bob = await world.accept(ANN, BOB)
    await world.a.release_sessions(A, [key_of(ANN), key_of(BOB)], waiting=True)
    await world.a.settle([early.id], Outcome.CANCELLED, now=T5)
    begun = await asyncio.gather(
        world.b.begin_run(new_run("of ann", of_ann), node=B),
        world.b.begin_run(new_run("of bob", of_bob, target=BOB), node=B),
        return_exceptions=True,
    )
    assert isinstance(begun[0], Fenced)
    assert begun[1] == RunStartResult()


def dropping(run: NewRun, *rows: InboxRow) -> NewRun:
    dropped = (DroppedMessage(row.id, Outcome.DROPPED, Reason.QUEUE_DROPPED) for row in rows)
    return replace(run, dropped=tuple(dropped))


async def test_what_a_run_has_dropped_is_dropped_for_whoever_takes_it_up(world: World) -> None:
    """SPEC QUEUE-5, IO-2: it is told of, and not answered behind what came after it."""
    first, second = await world.accept(ANN, ANN)
    run = dropping(new_run("r", second), first)
    for _ in range(2):  # the answer of the first call may be lost
        await world.a.begin_run(run, node=A)
    found = await todo(world, B, now=await recovered(world))
    assert [row.id for row in found] == [first.id, second.id]
    assert [row.dropped for row in found] == [run.dropped[0], None]


async def test_what_was_dropped_keeps_nothing_behind_it_waiting(world: World) -> None:
    first, second, third = await world.accept(ANN, ANN, ANN)
    await ran(world, dropping(new_run("r", second), first))
    await world.a.release_sessions(A, [key_of(ANN)], waiting=True)
    await world.b.begin_run(new_run("next", third), node=B)


async def test_what_was_dropped_waits_until_its_sender_is_told(world: World) -> None:
    first, second = await world.accept(ANN, ANN)
    await world.a.begin_run(dropping(new_run("r", second), first), node=A)
    waits, _ = await world.a.unanswered(key_of(ANN), ended=False)
    assert (waits.id, waits.outcome, waits.reason) == (first.id, None, None)
    assert await world.a.dead_letters() == []
    await world.a.settle([first.id], Outcome.DROPPED, now=T5, reason=Reason.QUEUE_DROPPED)
    (letter,) = await world.a.dead_letters()
    assert letter.row.outcome is Outcome.DROPPED
    await world.a.retry_dead_letters([first.id], now=T5)
    again, _ = await todo(world, now=T5)
    assert (again.id, again.dropped) == (first.id, None)


async def test_what_has_ended_or_is_worked_on_is_not_dropped(world: World) -> None:
    ended, begun, third = await world.accept(ANN, ANN, ANN)
    await world.a.settle([ended.id], Outcome.CANCELLED, now=T5)
    await world.a.begin_run(new_run("works", begun), node=A)
    await world.a.begin_run(dropping(new_run("r", third), ended, begun), node=A)
    (cancelled,) = await world.a.unanswered(key_of(ANN), ended=True)
    assert cancelled.outcome is Outcome.CANCELLED
    assert [row.dropped for row in await todo(world, now=T5)] == [None, None]
