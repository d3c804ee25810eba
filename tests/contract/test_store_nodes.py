"""What every store promises about nodes and what dead ones leave."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.model.errors import Fenced
from goclaw_py.model.ids import NodeId, RunId
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.ports.store import (
    InterruptedRun,
    NodeState,
    Notice,
    OutboxState,
    RecoveryReport,
    Renewed,
)
from tests.support.stores import (
    ANN,
    APOLOGY,
    BOB,
    LEASE_S,
    T0,
    A,
    B,
    Heard,
    World,
    a_node,
    at,
    end,
    inbox,
    key_of,
    listen,
    new_run,
    recovered,
    say,
    session_of,
    todo,
    until,
)

pytestmark = pytest.mark.real_time


async def test_nodes_are_listed_oldest_first(world: World) -> None:
    await world.a.join(a_node(NodeId("first"), started_at=at(-5)))
    assert [node.id for node in await world.b.nodes()] == ["first", A, B]
    assert (await world.b.nodes())[1] == a_node(A)


async def test_joining_twice_is_harmless(world: World) -> None:
    await world.a.join(a_node(A))
    assert len(await world.a.nodes()) == 2


async def test_renewing_extends_the_lease(world: World) -> None:
    assert await world.a.renew(A, until=at(40))
    assert (await world.a.nodes())[0].lease_until == at(40)


async def test_a_renewal_that_comes_after_a_later_one_makes_the_lease_no_shorter(
    world: World,
) -> None:
    state = NodeState(running=1)
    assert await world.a.renew(A, until=at(40))
    assert await world.a.renew(A, until=at(25), state=state) == Renewed(among_others=True)
    assert (await world.a.nodes())[0].lease_until == at(40)
    assert (await world.a.nodes())[0].state == state


async def test_a_clock_that_was_put_back_makes_the_lease_shorter(world: World) -> None:
    """It would be taken over so much later."""
    assert await world.a.renew(A, until=at(3600))
    assert await world.a.renew(A, until=at(40), put_back=True)
    assert (await world.a.nodes())[0].lease_until == at(40)


async def test_a_lease_can_be_ended_for_a_process_that_is_known_to_be_gone(world: World) -> None:
    await world.b.end_lease(A, now=at(1))
    await world.b.end_lease(NodeId("unknown"), now=at(1))
    assert [node.id for node in await world.b.nodes()] == [A, B]
    recovery = await world.b.recover(now=at(1), max_attempts=3, apology=APOLOGY)
    assert recovery.nodes == (A,)


async def test_renewing_tells_whether_there_are_others(world: World) -> None:
    """SPEC NODE-1: also of one whose lease has ended and that nobody has taken over."""
    assert await world.a.renew(A, until=at(40)) == Renewed(among_others=True)
    await world.b.leave(B, now=T0)
    assert await world.a.renew(A, until=at(40)) == Renewed(among_others=False)


async def test_a_node_that_was_declared_dead_cannot_renew(world: World) -> None:
    await recovered(world)
    assert not await world.a.renew(A, until=at(100))


async def test_a_named_lease_has_one_owner(world: World) -> None:
    assert await world.a.take_lease("bot", A, now=T0)
    assert not await world.b.take_lease("bot", B, now=T0)
    assert await world.a.take_lease("bot", A, now=T0)
    assert await world.b.take_lease("other bot", B, now=T0)


async def test_a_dropped_lease_is_free(world: World) -> None:
    await world.a.take_lease("bot", A, now=T0)
    await world.b.drop_lease("bot", B)
    assert not await world.b.take_lease("bot", B, now=T0)
    await world.a.drop_lease("bot", A)
    assert await world.b.take_lease("bot", B, now=T0)


async def test_a_dead_owners_lease_can_be_taken_before_its_recovery(world: World) -> None:
    await world.a.take_lease("bot", A, now=T0)
    assert not await world.b.take_lease("bot", B, now=at(LEASE_S - 0.001))
    assert await world.b.take_lease("bot", B, now=at(LEASE_S))


async def test_a_node_that_has_not_joined_gets_no_lease(world: World) -> None:
    assert not await world.a.take_lease("bot", NodeId("stranger"), now=T0)


async def test_two_nodes_that_ask_at_once_get_one_lease(world: World) -> None:
    got = await asyncio.gather(
        world.a.take_lease("bot", A, now=T0), world.b.take_lease("bot", B, now=T0)
    )
    assert sorted(got) == [False, True]


async def test_leaving_frees_sessions_and_leases(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.take_lease("bot", A, now=T0)
    await world.a.leave(A, now=at(1))
    assert [node.id for node in await world.b.nodes()] == [B]
    assert await world.b.take_lease("bot", B, now=at(1))
    assert await todo(world, B, now=at(1)) == rows


async def test_leaving_twice_is_harmless(world: World) -> None:
    await world.a.leave(A, now=T0)
    await world.a.leave(A, now=T0)


async def test_leaving_interrupts_unfinished_runs_and_takes_their_attempt_back(
    world: World,
) -> None:
    """QUEUE-11."""
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    await world.a.leave(A, now=at(1))
    (run,) = await world.b.runs()
    assert (run.outcome, run.reason) == (Outcome.INTERRUPTED, Reason.SHUTDOWN)
    assert await todo(world, B, now=at(1)) == rows


async def test_leaving_puts_back_what_was_being_sent(world: World) -> None:
    await world.put(say("x"))
    row = await world.claimed()
    await world.a.leave(A, now=at(1))
    (left,) = await world.b.outbox()
    assert (left.state, left.possible_duplicate) == (OutboxState.PENDING, True)
    with pytest.raises(Fenced):
        await world.a.mark_sent(row, "m1", now=at(1))


async def test_live_nodes_are_never_recovered(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    assert await world.b.recover(now=at(14), max_attempts=3, apology=APOLOGY) == RecoveryReport()
    await world.a.finish_run(end("r"), node=A)


async def test_a_dead_nodes_work_is_taken_back(world: World) -> None:
    """IO-2: an attempt counts when its run started."""
    rows = await world.accept(ANN, ANN, BOB)
    await world.a.begin_run(new_run("r", rows[0]), node=A)
    now = await world.kill(A)
    recovery = await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    assert recovery == RecoveryReport((A,), (InterruptedRun(RunId("r"), key_of(ANN), ANN),), 0)
    (run,) = await world.b.runs()
    assert (run.outcome, run.reason, run.finished_at) == (Outcome.LOST, Reason.CRASHED, now)
    again = await todo(world, B, now=now)
    assert [(row.id, row.attempts) for row in again] == [
        (rows[0].id, 1),
        (rows[1].id, 0),
        (rows[2].id, 0),
    ]
    assert await world.b.outbox() == []


async def test_a_message_that_crashed_too_often_is_lost_and_its_sender_is_told(
    world: World,
) -> None:
    """IO-2."""
    (row,) = await world.accept(ANN)
    await world.crash("r1", row, max_attempts=2)
    (row,) = await todo(world)
    await world.a.begin_run(new_run("r2", row), node=A)
    now = await world.kill(A)
    recovery = await world.b.recover(now=now, max_attempts=2, apology=APOLOGY)
    assert recovery.gave_up == 1
    assert await todo(world, B, now=now) == []
    (told,) = await world.b.outbox()
    assert (told.message.target, told.message.text) == (ANN, APOLOGY)
    assert (told.message.reply_to, told.session) == ("1", key_of(ANN))


async def test_a_sender_is_told_once_for_all_messages_of_a_lost_run(world: World) -> None:
    rows = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    now = await world.kill(A)
    recovery = await world.b.recover(now=now, max_attempts=1, apology=APOLOGY)
    assert recovery.gave_up == 2
    assert [row.message.reply_to for row in await world.b.outbox()] == ["2"]


async def test_what_a_dead_node_was_sending_goes_back_marked(world: World) -> None:
    """IO-5."""
    await world.put(say("x"))
    row = await world.claimed()
    now = await recovered(world)
    again = await world.b.claim_next(ANN, node=B, now=now)
    assert again is not None
    assert again.possible_duplicate
    assert again.fence > row.fence
    with pytest.raises(Fenced):
        await world.a.mark_failed(row, "late", retry_at=now, maybe_sent=True)


async def test_a_dead_node_cannot_finish_its_run_after_the_recovery(world: World) -> None:
    """QUEUE-2."""
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    await recovered(world)
    with pytest.raises(Fenced):
        await world.a.finish_run(end("r", Outcome.COMPLETED, "late words"), node=A)
    assert await world.b.outbox() == []


async def test_several_nodes_may_recover_at_once(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    now = await world.kill(A)
    both = await asyncio.gather(
        world.a.recover(now=now, max_attempts=3, apology=APOLOGY),
        world.b.recover(now=now, max_attempts=3, apology=APOLOGY),
    )
    assert sorted(len(recovery.cut_runs) for recovery in both) == [0, 1]


async def test_recovery_of_some_nodes_leaves_the_other_dead_ones_alone(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    now = await world.kill(A)
    others = [B, NodeId("stranger")]
    nobody = await world.b.recover(now=now, max_attempts=3, apology=APOLOGY, only=others)
    assert nobody == RecoveryReport()
    assert (
        await world.b.recover(now=now, max_attempts=3, apology=APOLOGY, only=[]) == RecoveryReport()
    )
    assert A in [node.id for node in await world.b.nodes()]
    some = await world.b.recover(now=now, max_attempts=3, apology=APOLOGY, only=[A, *others])
    assert some.nodes == (A,)
    assert [cut.run_id for cut in some.cut_runs] == [RunId("r")]


async def test_recovery_of_some_nodes_leaves_those_of_them_alone_that_live(world: World) -> None:
    alive = await world.b.recover(now=T0, max_attempts=3, apology=APOLOGY, only=[A])
    assert alive == RecoveryReport()
    assert await world.a.renew(A, until=at(40))


async def test_recovery_leaves_a_session_with_whom_took_it_over(world: World) -> None:
    await world.accept(ANN)
    now = await world.kill(A)
    await todo(world, B, now=now)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    session = await session_of(world.b, key_of(ANN))
    assert session.owner == B


async def test_recovery_tells_the_others(world: World) -> None:
    heard = listen(world.a)
    await world.accept(ANN)
    await recovered(world)
    await until(heard.expect(Notice.INBOX))


async def test_leaving_with_messages_half_sent_tells_the_others(world: World) -> None:
    await world.put(say("x"))
    await world.claimed()
    heard = listen(world.b)
    await world.a.leave(A, now=at(1))
    await until(heard.expect(Notice.INBOX, Notice.OUTBOX))


async def test_a_dead_nodes_new_message_is_committed_for_others(world: World) -> None:
    now = await recovered(world)
    heard = listen(world.b)
    accepted = await world.a.accept([inbox(1)], node=A, now=now)
    assert accepted.rows == ()
    await until(heard.expect(Notice.INBOX))
    assert len(await todo(world, B, now=now)) == 1


async def test_a_node_tells_its_state_with_its_lease(world: World) -> None:
    state = NodeState(
        running=2,
        waiting=1,
        draining=True,
        skew_s=-3.5,
        places=("telegram/default", "web/\u2028"),
        settings={"lanes": "1f"},
    )
    assert await world.a.renew(A, until=at(20), state=state)
    assert (await world.b.nodes())[0].state == state
    assert await world.a.renew(A, until=at(30))
    assert (await world.b.nodes())[0].state == state
    assert (await world.b.nodes())[1].state == NodeState()
    assert not await world.a.renew(NodeId("unknown"), until=at(30), state=state)


async def test_a_node_may_enter_with_a_state(world: World) -> None:
    entered = replace(a_node(NodeId("c"), started_at=at(9)), state=NodeState(places=("x/y",)))
    await world.a.join(entered)
    assert (await world.b.nodes())[-1] == entered


async def test_the_owner_of_a_session_is_known_to_all(world: World) -> None:
    key = key_of(ANN)
    assert await world.a.owner(key) is None
    await world.a.accept([inbox(1)], node=A, now=T0)
    assert await world.b.owner(key) == A
    assert await world.b.owner(key_of(BOB)) is None


async def test_the_time_is_that_of_the_database_if_it_has_a_clock(world: World) -> None:
    there = await world.a.time()
    assert there is None or abs(there - datetime.now(UTC)) < timedelta(minutes=1)


async def test_others_are_told_that_a_node_has_joined(world: World) -> None:
    """SPEC QUEUE-2: whoever believes to be alone works on when it is cut off."""
    heard = listen(world.b)
    await world.a.join(a_node(NodeId("node-c")))
    await until(heard.expect(Notice.NODES))


async def test_those_who_wait_for_a_lease_are_told_that_it_is_free(world: World) -> None:
    heard = Heard()
    assert await world.a.take_lease("bot", A, now=T0)
    world.b.on_notice(heard.append)
    await world.b.drop_lease("bot", B)
    await world.a.drop_lease("bot", A)
    await until(heard.expect(Notice.NODES))
    heard.clear()
    await world.a.leave(A, now=T0)
    await until(heard.expect(Notice.NODES))
