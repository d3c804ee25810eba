"""What every store promises about messages on their way to the agent."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.model.errors import Fenced
from goclaw_py.model.ids import NodeId, RunId
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.ports.store import (
    AcceptedMessages,
    InboxKind,
    NewInbox,
    Notice,
    RunEnd,
    Stops,
    Unanswered,
)
from tests.support.stores import (
    AGENT,
    ANN,
    APOLOGY,
    BOB,
    PLACES,
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
    message,
    new_run,
    pairing,
    say,
    until,
)

pytestmark = pytest.mark.real_time


async def test_an_empty_batch_is_accepted(world: World) -> None:
    assert await world.a.accept([], node=A, now=T0) == AcceptedMessages()


async def test_a_batch_comes_back_in_its_order_with_rising_ids(world: World) -> None:
    """IO-1."""
    batch = [inbox(n, ANN if n % 3 else BOB) for n in (5, 3, 9, 1, 6)]
    accepted = await world.a.accept(batch, node=A, now=T0)
    assert [row.message for row in accepted.rows] == [new.message for new in batch]
    ids = [row.id for row in accepted.rows]
    assert ids == sorted(set(ids))
    assert {row.received_at for row in accepted.rows} == {T0}


async def test_an_accepted_message_is_stored_whole(world: World) -> None:
    await world.a.accept([inbox(1)], node=A, now=T0)
    (row,) = await world.b.claim_pending(A, now=T0, places=PLACES)
    assert row.message == message(1)
    assert (row.session, row.agent, row.kind) == (key_of(ANN), "default", InboxKind.MESSAGE)


async def test_a_message_that_is_offered_again_falls_out(world: World) -> None:
    """IO-1."""
    await world.a.accept([inbox(1)], node=A, now=T0)
    accepted = await world.a.accept([inbox(1), inbox(2)], node=A, now=at(1))
    assert [row.message.message_id for row in accepted.rows] == ["2"]
    assert accepted.duplicates == {"100:1"}


async def test_a_finished_message_that_is_offered_again_falls_out(world: World) -> None:
    (row,) = (await world.a.accept([inbox(1)], node=A, now=T0)).rows
    await world.a.settle([row.id], Outcome.DROPPED, now=T0)
    assert (await world.a.accept([inbox(1)], node=A, now=T0)).rows == ()


async def test_of_one_id_twice_in_a_batch_the_first_counts(world: World) -> None:
    batch = [inbox(1, text="first"), inbox(1, text="second")]
    accepted = await world.a.accept(batch, node=A, now=T0)
    assert [row.message.text for row in accepted.rows] == ["first"]
    assert accepted.duplicates == frozenset()


async def test_two_nodes_that_accept_the_same_batch_store_it_once(world: World) -> None:
    batch = [inbox(n, target) for n in range(20) for target in (ANN, BOB)]
    both = await asyncio.gather(
        world.a.accept(batch, node=A, now=T0), world.b.accept(batch[::-1], node=B, now=T0)
    )
    pending = await world.a.claim_pending(A, now=T0, places=PLACES) + await world.b.claim_pending(
        B, now=T0, places=PLACES
    )
    assert len(pending) == len(batch)
    assert sum(len(accepted.duplicates) for accepted in both) == len(batch)


async def test_a_row_with_an_outcome_is_stored_as_done(world: World) -> None:
    """CMD-1: a message that a stop behind it in the same batch covers."""
    batch = [inbox(1, outcome=Outcome.CANCELLED), inbox(2)]
    accepted = await world.a.accept(batch, node=A, now=T0)
    assert [row.message.message_id for row in accepted.rows] == ["2"]
    assert len(await world.a.claim_pending(A, now=T0, places=PLACES)) == 1
    assert (await world.a.accept([inbox(1)], node=A, now=T0)).duplicates == {"100:1"}


async def test_a_command_is_listed_if_it_was_new_done_or_not(world: World) -> None:
    """CMD-1."""
    batch = [
        inbox(1, kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED),
        inbox(2, kind=InboxKind.COMMAND),
    ]
    accepted = await world.a.accept(batch, node=A, now=T0)
    assert [row.kind for row in accepted.rows] == [InboxKind.COMMAND] * 2
    assert [row.id for row in await world.a.claim_pending(A, now=T0, places=PLACES)] == [
        accepted.rows[1].id
    ]
    assert (await world.a.accept(batch, node=A, now=T0)).rows == ()


async def test_a_finished_command_alone_claims_no_session(world: World) -> None:
    done = inbox(9, kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
    await world.a.accept([done], node=A, now=T0)
    session = await world.a.session(key_of(ANN))
    assert session is not None
    assert session.owner is None


async def test_a_message_for_another_nodes_session_is_left_to_it_and_it_is_told(
    world: World,
) -> None:
    """NODE-1."""
    heard = Heard()
    world.a.on_notice(heard.append)
    await world.accept(ANN)
    assert Notice.INBOX not in heard
    accepted = await world.b.accept([inbox(9), inbox(9, BOB)], node=B, now=T0)
    assert [row.session for row in accepted.rows] == [key_of(BOB)]
    await until(heard.expect(Notice.INBOX))
    assert len(await world.a.claim_pending(A, now=T0, places=PLACES)) == 2


async def test_accepting_takes_a_dead_nodes_idle_session_with_a_new_fence(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.settle([rows[0].id], Outcome.COMPLETED, now=T0)
    before = await world.b.session(key_of(ANN))
    now = await world.kill(A)
    accepted = await world.b.accept([inbox(9)], node=B, now=now)
    after = await world.b.session(key_of(ANN))
    assert len(accepted.rows) == 1
    assert before is not None
    assert after is not None
    assert (after.owner, after.fence) == (B, before.fence + 1)


async def test_a_new_message_does_not_overtake_one_that_a_dead_node_left(world: World) -> None:
    """IO-2: in order."""
    await world.accept(ANN)
    now = await world.kill(A)
    heard = Heard()
    world.b.on_notice(heard.append)
    assert (await world.b.accept([inbox(9)], node=B, now=now)).rows == ()
    await until(heard.expect(Notice.INBOX))
    pending = await world.b.claim_pending(B, now=now, places=PLACES)
    assert [row.message.message_id for row in pending] == ["1", "9"]


async def test_what_waits_before_a_new_message_is_named(world: World) -> None:
    """NODE-1: its node may not know it, because another one has accepted it."""
    assert (await world.a.accept([inbox(1, BOB)], node=A, now=T0)).before == frozenset()
    (first,) = (await world.a.accept([inbox(2)], node=A, now=T0)).rows
    assert (await world.b.accept([inbox(3)], node=B, now=T0)).before == frozenset()
    accepted = await world.a.accept([inbox(4), inbox(5)], node=A, now=T0)
    waiting = {row.id for row in await world.a.claim_pending(A, now=T0, places=PLACES)}
    new = {row.id for row in accepted.rows}
    assert len(accepted.before) == 2
    assert first.id in accepted.before
    assert accepted.before < waiting - new


async def test_what_waits_is_named_to_each_of_those_who_share_a_transaction(world: World) -> None:
    """NODE-1: none of them may be the first to go on."""
    (first,) = (await world.a.accept([inbox(1)], node=A, now=T0)).rows
    batches = [[inbox(2), inbox(3)], [inbox(4, BOB)], [inbox(5), inbox(6, BOB)], [inbox(1)]]
    accepted = await asyncio.gather(*(world.a.accept(batch, node=A, now=T0) for batch in batches))
    assert [first.id in one.before for one in accepted] == [True, False, True, False]
    assert accepted[-1].duplicates == {"100:1"}


async def test_a_node_whose_lease_has_ended_takes_nothing(world: World) -> None:
    """NODE-1: after an outage all have ended; two would take sessions from each other."""
    await world.a.accept([inbox(1)], node=A, now=T0)
    late = at(3600)
    assert await world.b.claim_pending(B, now=late, places=PLACES) == []
    await world.b.renew(B, until=at(7200))
    assert len(await world.b.claim_pending(B, now=late, places=PLACES)) == 1


async def test_a_node_whose_lease_has_ended_is_given_no_new_session(world: World) -> None:
    """NODE-1: others would take it for a dead one's, with what it does there."""
    heard = Heard()
    world.b.on_notice(heard.append)
    late = at(3600)
    accepted = await world.a.accept([inbox(1), inbox(2, BOB)], node=A, now=late)
    assert (accepted.rows, accepted.duplicates) == ((), frozenset())
    session = await world.a.session(key_of(ANN))
    assert session is not None
    assert session.owner is None
    await until(heard.expect(Notice.INBOX))
    await world.b.renew(B, until=at(7200))
    assert len(await world.b.claim_pending(B, now=late, places=PLACES)) == 2


async def test_a_run_takes_no_session_in_which_another_nodes_run_has_not_ended(
    world: World,
) -> None:
    """QUEUE-2: that one may still work; its recovery comes first."""
    (row,) = (await world.a.accept([inbox(1)], node=A, now=T0)).rows
    await world.a.begin_run(new_run("theirs", row), node=A)
    late = at(3600)
    await world.b.renew(B, until=at(7200))
    with pytest.raises(Fenced):
        await world.b.begin_run(new_run("ours", row, started_at=late), node=B)
    await world.b.recover(now=late, max_attempts=3, apology=APOLOGY)
    await world.b.begin_run(new_run("ours", row, started_at=late), node=B)


async def test_accepting_notes_the_activity_and_the_place(world: World) -> None:
    await world.a.accept([inbox(1)], node=A, now=at(1))
    await world.b.accept([inbox(2)], node=B, now=at(5))
    await world.b.accept([inbox(3)], node=B, now=at(4))
    session = await world.a.session(key_of(ANN))
    assert session is not None
    assert (session.created_at, session.last_active_at) == (at(1), at(5))
    assert (session.target, session.waiting) == (ANN, 3)


async def test_a_duplicate_is_no_activity(world: World) -> None:
    await world.a.accept([inbox(1)], node=A, now=at(1))
    await world.a.accept([inbox(1)], node=A, now=at(5))
    session = await world.a.session(key_of(ANN))
    assert session is not None
    assert session.last_active_at == at(1)


async def test_claiming_leaves_live_nodes_sessions_alone(world: World) -> None:
    mine = await world.accept(ANN)
    assert await world.b.claim_pending(B, now=T0, places=PLACES) == []
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == mine


async def test_claiming_returns_what_runs_already_too(world: World) -> None:
    rows = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", rows[0]), node=A)
    assert [row.attempts for row in await world.a.claim_pending(A, now=T0, places=PLACES)] == [1, 0]


async def test_two_nodes_that_claim_at_once_share_the_sessions_without_overlap(
    world: World,
) -> None:
    rows = await world.accept(ANN, BOB, ANN)
    await world.a.leave(A, now=T0)
    c = NodeId("node-c")
    await world.a.join(a_node(c))
    both = await asyncio.gather(
        world.a.claim_pending(c, now=T0, places=PLACES),
        world.b.claim_pending(B, now=T0, places=PLACES),
    )
    later = [
        await world.a.claim_pending(c, now=T0, places=PLACES),
        await world.b.claim_pending(B, now=T0, places=PLACES),
    ]
    claimed = [row.id for rows in later for row in rows]
    assert sorted(claimed) == [row.id for row in rows]
    assert {row.id for rows in both for row in rows} <= set(claimed)


async def test_a_row_that_crashed_twice_goes_last(world: World) -> None:
    """IO-2: after the second crash on one message the session's other messages go first."""
    first, second = await world.accept(ANN, ANN)
    await world.crash("r1", first)
    await world.a.claim_pending(A, now=T0, places=PLACES)
    await world.crash("r2", first)
    claimed = await world.a.claim_pending(A, now=T0, places=PLACES)
    assert [(row.id, row.attempts) for row in claimed] == [(second.id, 0), (first.id, 2)]


async def test_a_dead_nodes_session_waits_for_the_recovery_of_its_run(world: World) -> None:
    """IO-2: attempts are counted before the rows are handed out."""
    rows = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", rows[0]), node=A)
    now = await world.kill(A)
    assert await world.b.claim_pending(B, now=now, places=PLACES) == []
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    assert [row.id for row in await world.b.claim_pending(B, now=now, places=PLACES)] == [
        r.id for r in rows
    ]


async def test_a_node_that_has_not_joined_claims_nothing(world: World) -> None:
    await world.accept(ANN)
    await world.a.leave(A, now=T0)
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == []


async def test_settled_rows_are_done_and_something_is_said(world: World) -> None:
    rows = await world.accept(ANN, ANN)
    ids = [row.id for row in rows]
    await world.a.settle(
        ids, Outcome.DROPPED, now=T0, reason=Reason.QUEUE_DROPPED, say=[say("dropped 2")]
    )
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == []
    (told,) = await world.a.outbox()
    assert (told.message.text, told.session) == ("dropped 2", key_of(ANN))


async def test_settling_what_is_done_says_nothing(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.settle([row.id], Outcome.DROPPED, now=T0)
    await world.a.settle([row.id], Outcome.CANCELLED, now=T0, say=[say("again")])
    assert await world.a.outbox() == []


async def test_settling_several_rows_speaks_if_one_was_pending(world: World) -> None:
    first, second = await world.accept(ANN, BOB)
    await world.a.settle([first.id], Outcome.DROPPED, now=T0)
    await world.a.settle([first.id, second.id], Outcome.CANCELLED, now=T0, say=[say("told")])
    assert [row.session for row in await world.a.outbox()] == [key_of(BOB)]


async def test_settling_no_rows_only_speaks(world: World) -> None:
    await world.a.settle([], Outcome.COMPLETED, now=T0, say=[say("one"), say("two", BOB)])
    assert [row.message.text for row in await world.a.outbox()] == ["two", "one"]
    assert {row.session for row in await world.a.outbox()} == {None}


async def test_rows_of_several_sessions_speak_for_none(world: World) -> None:
    rows = await world.accept(ANN, BOB)
    await world.a.settle([row.id for row in rows], Outcome.DROPPED, now=T0, say=[say("x")])
    assert [row.session for row in await world.a.outbox()] == [None]


async def test_a_released_session_is_free_for_others(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.settle([row.id], Outcome.COMPLETED, now=T0)
    await world.a.release_sessions(A, [key_of(ANN), key_of(BOB)])
    accepted = await world.b.accept([inbox(9)], node=B, now=T0)
    assert len(accepted.rows) == 1


async def test_of_many_sessions_all_are_released(world: World) -> None:
    chats = [replace(ANN, chat=str(number)) for number in range(101)]
    rows = await world.accept(*chats)
    await world.a.settle([row.id for row in rows], Outcome.COMPLETED, now=T0)
    await world.a.release_sessions(A, [key_of(chat) for chat in chats])
    assert len(await world.accept(*chats, node=B)) == 101


async def test_a_session_with_pending_rows_is_not_released(world: World) -> None:
    await world.accept(ANN)
    await world.a.release_sessions(A, [key_of(ANN)])
    assert await world.b.claim_pending(B, now=T0, places=PLACES) == []


async def test_a_process_that_ends_gives_back_what_waits_too(world: World) -> None:
    """SPEC NODE-3: the others are told, and begin at once."""
    heard = Heard()
    (row,) = await world.accept(ANN)
    world.b.on_notice(heard.append)
    await world.a.release_sessions(A, [key_of(ANN), key_of(BOB)], waiting=True)
    await until(heard.expect(Notice.INBOX))
    found = await world.b.claim_pending(B, now=T0, places=PLACES)
    assert [one.id for one in found] == [row.id]


async def test_it_keeps_the_sessions_in_which_a_run_works(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    await world.a.release_sessions(A, [key_of(ANN)], waiting=True)
    assert await world.b.claim_pending(B, now=T0, places=PLACES) == []
    await world.a.finish_run(end("r"), node=A)


async def test_a_session_with_a_run_is_not_released(world: World) -> None:
    await world.a.begin_run(new_run("r"), node=A)
    await world.a.release_sessions(A, [key_of(ANN)])
    await world.a.finish_run(end("r"), node=A)


async def test_only_the_owner_can_release_a_session(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.settle([row.id], Outcome.COMPLETED, now=T0)
    await world.b.release_sessions(B, [key_of(ANN)])
    session = await world.a.session(key_of(ANN))
    assert session is not None
    assert session.owner == A


async def test_a_stranger_is_greeted_with_a_code(world: World) -> None:
    """CHAN-5."""
    heard = Heard()
    world.b.on_notice(heard.append)
    await world.a.accept([], node=A, now=T0, pairings=[pairing("50", "hash")])
    assert await world.b.pairing_requests(now=T0) == [pairing("50", "hash").request]
    assert [row.message.text for row in await world.a.outbox()] == ["your code: hash"]
    await until(heard.expect(Notice.PEOPLE, Notice.OUTBOX))


async def test_a_stranger_who_writes_again_keeps_the_first_code(world: World) -> None:
    """CHAN-5: one pairing code."""
    first, second = pairing("50", "first"), pairing("50", "second")
    await world.a.accept([], node=A, now=T0, pairings=[first, pairing("50", "same batch")])
    await world.a.accept([], node=A, now=at(3599), pairings=[second])
    assert [request.code_hash for request in await world.a.pairing_requests(now=T0)] == ["first"]
    assert len(await world.a.outbox()) == 1


async def test_an_expired_code_is_replaced(world: World) -> None:
    await world.a.accept([], node=A, now=T0, pairings=[pairing("50", "first")])
    second = pairing("50", "second", now=at(3600))
    await world.a.accept([], node=A, now=at(3600), pairings=[second])
    assert await world.a.pairing_requests(now=at(3600)) == [second.request]
    assert len(await world.a.outbox()) == 2


async def test_strangers_do_not_take_each_others_place(world: World) -> None:
    """CHAN-5: limits that strangers cannot exhaust for others."""
    many = [pairing(str(n), "same hash") for n in range(30)]
    await world.a.accept([inbox(1)], node=A, now=T0, pairings=many)
    assert len(await world.a.pairing_requests(now=T0)) == 30
    texts = [row.message.target.chat for row in await world.a.outbox()]
    assert texts == [str(n) for n in reversed(range(30))]


async def test_only_sessions_of_the_named_places_are_claimed(world: World) -> None:
    """What a node cannot answer is left for those that can."""
    await world.accept(ANN)
    await world.a.leave(A, now=T0)
    assert await world.b.claim_pending(B, now=T0, places=[("telegram", "work")]) == []
    assert len(await world.b.claim_pending(B, now=T0, places=PLACES)) == 1


async def test_what_is_not_done_is_listed_in_order_of_arrival(world: World) -> None:
    """OPS-4."""
    first, second, third = await world.accept(ANN, ANN, ANN)
    await world.accept(BOB)
    await world.a.accept([inbox(9, kind=InboxKind.COMMAND)], node=A, now=T0)
    await world.a.begin_run(new_run("r", first), node=A)
    await world.a.settle([second.id], Outcome.DROPPED, now=T0)
    found = await world.b.unanswered(key_of(ANN), ended=False)
    assert found == [
        Unanswered(first.id, first.message, RunId("r"), T0),
        Unanswered(third.id, third.message, None, T0),
    ]
    assert await world.b.unanswered(key_of(ANN), ended=False, limit=1) == found[:1]


async def test_what_ended_without_an_answer_is_listed_with_its_reason_the_newest_first(
    world: World,
) -> None:
    """OPS-4: which messages were dropped, and why."""
    dropped, answered, stopped = await world.accept(ANN, ANN, ANN)
    await world.a.begin_run(new_run("ok", answered), node=A)
    await world.a.finish_run(end("ok"), node=A)
    await world.a.begin_run(new_run("r", stopped), node=A)
    cut = RunEnd(RunId("r"), Outcome.CANCELLED, at(8), reason=Reason.STOPPED)
    await world.a.finish_run(cut, node=A)
    await world.a.settle([dropped.id], Outcome.DROPPED, now=at(9), reason=Reason.QUEUE_DROPPED)
    assert await world.b.unanswered(key_of(ANN), ended=True) == [
        Unanswered(
            stopped.id, stopped.message, RunId("r"), T0, at(8), Outcome.CANCELLED, Reason.STOPPED
        ),
        Unanswered(
            dropped.id, dropped.message, None, T0, at(9), Outcome.DROPPED, Reason.QUEUE_DROPPED
        ),
    ]
    assert len(await world.b.unanswered(key_of(ANN), ended=True, limit=1)) == 1
    assert await world.b.unanswered(key_of(BOB), ended=True) == []


async def test_what_a_stop_covered_or_crashes_ended_is_without_an_answer_too(
    world: World,
) -> None:
    """OPS-4."""
    (row,) = await world.accept(ANN)
    await world.crash("r1", row, max_attempts=1)
    await world.a.accept([inbox(9, outcome=Outcome.CANCELLED)], node=A, now=at(3))
    done = inbox(10, kind=InboxKind.COMMAND, outcome=Outcome.CANCELLED)
    await world.a.accept([done], node=A, now=at(3))
    covered, lost = await world.a.unanswered(key_of(ANN), ended=True)
    assert (covered.outcome, covered.reason, covered.finished_at) == (
        Outcome.CANCELLED,
        Reason.STOPPED,
        at(3),
    )
    assert (lost.id, lost.outcome, lost.reason) == (row.id, Outcome.LOST, Reason.CRASHED)


async def test_what_is_known_is_claimed_and_not_returned(world: World) -> None:
    known, new = await world.accept(ANN, BOB)
    await world.a.release_sessions(A, [key_of(ANN), key_of(BOB)])
    left = await world.a.claim_pending(A, now=T0, places=PLACES, known={known.id, 4711})
    assert [row.id for row in left] == [new.id]
    assert await world.a.claim_pending(A, now=T0, places=PLACES, known={known.id, new.id}) == []
    assert await world.b.claim_pending(B, now=T0, places=PLACES) == []


async def test_rows_that_have_ended_are_told_from_those_that_wait(world: World) -> None:
    ended, working, waits = await world.accept(ANN, ANN, BOB)
    await world.a.settle([ended.id], Outcome.CANCELLED, now=T0)
    await world.a.begin_run(new_run("r", working), node=A)
    assert await world.b.ended([ended.id, working.id, waits.id, 4711]) == {ended.id}
    await world.a.finish_run(end("r"), node=A)
    assert await world.b.ended([ended.id, working.id]) == {ended.id, working.id}
    assert await world.b.ended([]) == set()


# -------------------------------------------------------------------------------- what is stopped


def a_stop(*messages: str, target: Target = ANN, reason: Reason = Reason.STOPPED) -> NewInbox:
    """A ``/stop`` that has acted."""
    command = inbox("stop", target, kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
    return replace(command, stops=Stops(messages, reason))


async def test_what_a_stop_has_stopped_ends_with_its_commit(world: World) -> None:
    """SPEC CMD-3: a crash right after it brings nothing back."""
    working, waiting, later = await world.accept(ANN, ANN, ANN)
    await world.a.begin_run(new_run("r", working), node=A)
    stop = a_stop("100:1", "100:2", reason=Reason.STOPPED_ALL)
    (listed,) = (await world.a.accept([stop], node=A, now=at(5))).rows
    assert listed.kind is InboxKind.COMMAND
    ended = {row.id: row for row in await world.a.unanswered(key_of(ANN), ended=True)}
    assert ended.keys() == {working.id, waiting.id}
    assert {row.outcome for row in ended.values()} == {Outcome.CANCELLED}
    assert {row.reason for row in ended.values()} == {Reason.STOPPED_ALL}
    assert {row.finished_at for row in ended.values()} == {at(5)}
    now = await world.kill(A)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    left = await world.b.claim_pending(B, now=now, places=PLACES)
    assert [row.id for row in left] == [later.id]


async def test_the_run_that_is_being_stopped_ends_as_it_ends(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r", row), node=A)
    await world.a.accept([a_stop("100:1")], node=A, now=at(5))
    assert [run.outcome for run in await world.a.runs()] == [None]
    await world.a.finish_run(end("r", Outcome.CANCELLED), node=A)
    assert [run.outcome for run in await world.a.runs()] == [Outcome.CANCELLED]
    (ended,) = await world.a.unanswered(key_of(ANN), ended=True)
    assert ended.finished_at == at(5)


async def test_a_stop_ends_what_came_in_the_same_batch(world: World) -> None:
    """Another caller's message shares the transaction, or comes in the one before."""
    both = await asyncio.gather(
        world.a.accept([inbox(1)], node=A, now=T0),
        world.a.accept([a_stop("100:1")], node=A, now=T0),
    )
    assert [len(accepted.rows) for accepted in both] == [1, 1]
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == []


async def test_a_stop_ends_nothing_of_others_and_nothing_that_has_ended(world: World) -> None:
    answered, of_bob = await world.accept(ANN, BOB)
    await world.a.begin_run(new_run("r", answered), node=A)
    await world.a.finish_run(end("r"), node=A)
    elsewhere = replace(ANN, account="other")
    stop = a_stop("100:1", "200:2", "never seen", "\udcff\0", target=elsewhere)
    await world.a.accept([stop], node=A, now=at(5))
    await world.a.accept([a_stop("100:1")], node=A, now=at(5))
    assert await world.a.unanswered(key_of(ANN), ended=True) == []
    assert [row.id for row in await world.a.claim_pending(A, now=T0, places=PLACES)] == [of_bob.id]


async def test_a_stop_that_comes_again_stops_what_it_has_stopped_once_more(world: World) -> None:
    """The answer of the database to the first commit was lost."""
    await world.accept(ANN)
    for _ in range(2):
        await world.a.accept([a_stop("100:1")], node=A, now=T0)
    assert len(await world.a.unanswered(key_of(ANN), ended=True)) == 1


async def test_what_nobody_has_said_does_not_count_as_heard(world: World) -> None:
    """SPEC HB-8: the last chat is one in which a person spoke."""
    await world.a.accept([inbox(1)], node=A, now=T0)
    (before,) = await world.a.heard(limit=9)
    told = replace(message("x", sender="subagent"), source="subagent")
    brought = NewInbox(told, key_of(ANN), AGENT)
    accepted = await world.a.accept([brought], node=A, now=at(60))
    assert [row.message.source for row in accepted.rows] == ["subagent"]
    assert await world.a.heard(limit=9) == [before]
    stranger = replace(message("y", BOB, sender="subagent"), source="subagent")
    await world.a.accept([NewInbox(stranger, key_of(BOB), AGENT)], node=A, now=at(61))
    assert await world.a.heard(limit=9) == [before]
