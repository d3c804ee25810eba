"""What every store promises about messages on their way to the agent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from goclaw_py.core.actors import AccessRole, Actor, ActorKind
from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import (
    AcceptedMessages,
    ActivityQuery,
    DeadLetterQuery,
    InboxKind,
    InboxRow,
    IncomingState,
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
    LEASE_S,
    PLACES,
    T0,
    A,
    B,
    World,
    a_node,
    at,
    end,
    inbox,
    key_of,
    listen,
    message,
    new_run,
    pairing,
    ran,
    recovered,
    say,
    session_of,
    todo,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]


async def test_a_batch_comes_back_in_its_order_with_rising_ids(world: World) -> None:
    """IO-1: and is stored whole."""
    assert await world.a.accept([], node=A, now=T0) == AcceptedMessages()
    batch = [inbox(n, ANN if n % 3 else BOB) for n in (5, 3, 9, 1, 6)]
    accepted = await world.a.accept(batch, node=A, now=T0)
    assert [row.message for row in accepted.rows] == [new.message for new in batch]
    ids = [row.id for row in accepted.rows]
    assert ids == sorted(set(ids))
    assert {row.received_at for row in accepted.rows} == {T0}
    row = (await world.b.claim_pending(A, now=T0, places=PLACES))[0]
    assert (row.message, row.session) == (message(5), key_of(ANN))
    assert (row.agent, row.kind) == ("default", InboxKind.MESSAGE)


async def test_who_has_sent_a_message_comes_back_with_it_and_is_not_shown(world: World) -> None:
    """SEC-9: another node, or the next process, executes a command as that of the same actor."""
    ben = Actor(ActorKind.TOKEN, "ben\x00", AccessRole.OPERATOR, reads_text=False, via="192.0.2.1")
    clean = replace(ben, name="ben\ufffd")
    typed = replace(inbox(1), message=replace(message(1), by=ben))
    plain = replace(inbox(2), message=replace(message(2), by=Actor(ActorKind.COMMAND_LINE, "")))
    stored = (await world.a.accept([typed, plain, inbox(3)], node=A, now=T0)).rows
    assert [row.message.by for row in stored] == [clean, plain.message.by, None]
    await world.a.leave(A, now=T0)
    claimed = await todo(world, B)
    assert [row.message for row in claimed] == [row.message for row in stored]
    shown = await world.a.dead_letters(DeadLetterQuery(IncomingState.WAITING, limit=5))
    assert [one.row.message.by for one in shown] == [None] * 3


async def test_a_message_that_is_offered_again_falls_out(world: World) -> None:
    """IO-1: also one that has ended. Of one id twice in a batch the first counts."""
    batch = [inbox(1, text="first"), inbox(1, text="second")]
    accepted = await world.a.accept(batch, node=A, now=T0)
    assert [row.message.text for row in accepted.rows] == ["first"]
    assert accepted.duplicates == frozenset()
    accepted = await world.a.accept([inbox(1), inbox(2)], node=A, now=at(1))
    assert [row.message.message_id for row in accepted.rows] == ["2"]
    assert accepted.duplicates == {"100:1"}
    await world.a.settle([row.id for row in accepted.rows], Outcome.DROPPED, now=T0)
    assert (await world.a.accept([inbox(2)], node=A, now=T0)).rows == ()


async def test_two_nodes_that_accept_the_same_batch_store_it_once(world: World) -> None:
    batch = [inbox(n, target) for n in range(20) for target in (ANN, BOB)]
    both = await asyncio.gather(
        world.a.accept(batch, node=A, now=T0), world.b.accept(batch[::-1], node=B, now=T0)
    )
    assert len(await todo(world) + await todo(world, B)) == len(batch)
    assert sum(len(accepted.duplicates) for accepted in both) == len(batch)


async def test_what_has_ended_already_is_stored_as_done(world: World) -> None:
    """CMD-1: a message that a stop behind it in the same batch covers. A command is listed."""
    done, waits = (
        inbox(number, kind=InboxKind.COMMAND, outcome=outcome)
        for number, outcome in ((1, Outcome.COMPLETED), (2, None))
    )
    assert len((await world.a.accept([done], node=A, now=T0)).rows) == 1
    assert (await session_of(world.a, key_of(ANN))).owner is None
    batch = [inbox(3, outcome=Outcome.CANCELLED), waits, inbox(4)]
    accepted = await world.a.accept(batch, node=A, now=T0)
    assert [row.message.message_id for row in accepted.rows] == ["2", "4"]
    assert [row.kind for row in accepted.rows] == [InboxKind.COMMAND, InboxKind.MESSAGE]
    assert [row.id for row in await todo(world)] == [row.id for row in accepted.rows]
    again = await world.a.accept([done, *batch], node=A, now=T0)
    assert again.rows == ()
    assert again.duplicates == {"100:1", "100:2", "100:3", "100:4"}


async def test_a_message_for_another_nodes_session_is_left_to_it(world: World) -> None:
    """NODE-1."""
    heard = listen(world.a)
    await world.accept(ANN)
    assert Notice.INBOX not in heard
    accepted = await world.b.accept([inbox(9), inbox(9, BOB)], node=B, now=T0)
    assert [row.session for row in accepted.rows] == [key_of(BOB)]
    await until(heard.expect(Notice.INBOX))
    assert len(await todo(world)) == 2


async def test_accepting_claims_an_expired_nodes_idle_session_with_a_new_fence(
    world: World,
) -> None:
    rows = await world.accept(ANN)
    await world.a.settle([rows[0].id], Outcome.COMPLETED, now=T0)
    before = await session_of(world.b, key_of(ANN))
    accepted = await world.b.accept([inbox(9)], node=B, now=await world.kill(A))
    assert len(accepted.rows) == 1
    after = await session_of(world.b, key_of(ANN))
    assert (after.owner, after.fence) == (B, before.fence + 1)


async def test_a_new_message_does_not_overtake_one_that_an_expired_node_left(world: World) -> None:
    """IO-2: in order."""
    await world.accept(ANN)
    now = await world.kill(A)
    heard = listen(world.b)
    assert (await world.b.accept([inbox(9)], node=B, now=now)).rows == ()
    await until(heard.expect(Notice.INBOX))
    assert await todo(world, B, now=now) == []  # its process may be back first, with stops to store
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    pending = await todo(world, B, now=now)
    assert [row.message.message_id for row in pending] == ["1", "9"]


async def test_what_waits_before_a_new_message_is_named(world: World) -> None:
    """NODE-1: its node may not know it, because another one has accepted it."""
    assert (await world.a.accept([inbox(1, BOB)], node=A, now=T0)).before == frozenset()
    (first,) = (await world.a.accept([inbox(2)], node=A, now=T0)).rows
    assert (await world.b.accept([inbox(3)], node=B, now=T0)).before == frozenset()
    accepted = await world.a.accept([inbox(4), inbox(5)], node=A, now=T0)
    waiting = {row.id for row in await todo(world)}
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


async def test_a_node_whose_lease_has_ended_gets_no_session(world: World) -> None:
    """NODE-1: after an outage all have ended; two would take sessions from each other."""
    await world.a.accept([inbox(1)], node=A, now=T0)
    heard, late = listen(world.b), at(3600)
    assert await todo(world, B, now=late) == []
    accepted = await world.a.accept([inbox(2, BOB)], node=A, now=late)
    assert (accepted.rows, accepted.duplicates) == ((), frozenset())
    assert (await session_of(world.a, key_of(BOB))).owner is None
    await until(heard.expect(Notice.INBOX))
    await world.b.renew(B, until=at(7200))
    assert len(await todo(world, B, now=late)) == 1
    await world.b.recover(now=late, max_attempts=3, apology=APOLOGY)
    assert len(await todo(world, B, now=late)) == 2


async def test_accepting_notes_the_activity_and_the_place(world: World) -> None:
    """A duplicate is no activity."""
    await world.a.accept([inbox(1)], node=A, now=at(1))
    for number, second in ((2, 5), (3, 4), (1, 9)):
        await world.b.accept([inbox(number)], node=B, now=at(second))
    session = await session_of(world.a, key_of(ANN))
    assert (session.created_at, session.last_active_at) == (at(1), at(5))
    assert (session.target, session.waiting) == (ANN, 3)


async def test_claiming_returns_what_is_free_or_ones_own(world: World) -> None:
    """What works already too. What a node cannot answer is left for those that can."""
    rows = await world.accept(ANN, ANN)
    assert await todo(world, B) == []
    assert await todo(world) == rows
    await world.a.begin_run(new_run("r", rows[0]), node=A)
    assert [row.attempts for row in await todo(world)] == [1, 0]
    await world.a.leave(A, now=T0)
    assert await todo(world) == []
    assert await world.b.claim_pending(B, now=T0, places=[("telegram", "work")]) == []
    assert len(await todo(world, B)) == 2


async def test_two_nodes_that_claim_at_once_share_the_sessions(world: World) -> None:
    rows = await world.accept(ANN, BOB, ANN)
    await world.a.leave(A, now=T0)
    c = NodeId("node-c")
    await world.a.join(a_node(c))
    calls = [world.a.claim_pending(c, now=T0, places=PLACES), todo(world, B)]
    both = await asyncio.gather(*calls)
    later = await world.a.claim_pending(c, now=T0, places=PLACES), await todo(world, B)
    claimed = [row.id for rows in later for row in rows]
    assert sorted(claimed) == [row.id for row in rows]
    assert {row.id for rows in both for row in rows} <= set(claimed)


async def test_a_row_that_crashed_twice_goes_last(world: World) -> None:
    """IO-2: after the second crash on one message the session's other messages go first."""
    first, second = await world.accept(ANN, ANN)
    await world.crash("r1", first)
    await todo(world)
    await world.crash("r2", first)
    claimed = await todo(world)
    assert [(row.id, row.attempts) for row in claimed] == [(second.id, 0), (first.id, 2)]


async def test_an_expired_nodes_session_waits_for_the_recovery_of_its_run(world: World) -> None:
    """IO-2: attempts are counted before the rows are handed out.

    QUEUE-2: a run takes no such session either; the other one may still work.
    """
    rows = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("theirs", rows[0]), node=A)
    now = await world.kill(A)
    assert await todo(world, B, now=now) == []
    with pytest.raises(Fenced):
        await world.b.begin_run(new_run("ours", rows[0], started_at=now), node=B)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    assert [row.id for row in await todo(world, B, now=now)] == [row.id for row in rows]
    await world.b.begin_run(new_run("ours", rows[0], started_at=now), node=B)


async def test_settled_rows_are_done_and_something_is_said(world: World) -> None:
    """If one of them waited; for their session, unless they are of several."""
    first, second, third, fourth = await world.accept(ANN, ANN, BOB, BOB)

    async def settle(text: str, *rows: InboxRow) -> tuple[str, SessionKey | None] | None:
        before = len(await world.a.outbox())
        ids = [row.id for row in rows]
        await world.a.settle(
            ids, Outcome.DROPPED, now=T0, reason=Reason.QUEUE_DROPPED, say=[say(text)]
        )
        told = await world.a.outbox()
        return (told[0].message.text, told[0].session) if len(told) > before else None

    assert await settle("one", first) == ("one", key_of(ANN))
    assert await settle("again", first) is None
    assert await settle("other", first, third) == ("other", key_of(BOB))
    assert await settle("both", second, fourth) == ("both", None)
    assert await todo(world) == []
    await world.a.settle([], Outcome.COMPLETED, now=T0, say=[say("1"), say("2", BOB)])
    told = (await world.a.outbox())[:2]
    assert [(row.message.text, row.session) for row in told] == [("2", None), ("1", None)]


async def test_a_released_session_is_free_for_others(world: World) -> None:
    """Its owner can release it once nothing waits there; of many all are."""
    chats = [replace(ANN, chat=str(number)) for number in range(101)]
    keys = [key_of(chat) for chat in chats]
    rows = await world.accept(*chats)
    await world.a.release_sessions(A, keys)
    assert await todo(world, B) == []
    await world.a.settle([row.id for row in rows], Outcome.COMPLETED, now=T0)
    await world.b.release_sessions(B, keys)
    assert (await session_of(world.a, keys[0])).owner == A
    await world.a.release_sessions(A, [*keys, key_of(BOB)])
    accepted = await world.b.accept([inbox(999, chat) for chat in chats], node=B, now=T0)
    assert len(accepted.rows) == 101


async def test_a_process_that_ends_releases_what_waits_too(world: World) -> None:
    """SPEC NODE-3: the others are told, and begin at once. It keeps those in which a run works."""
    of_ann, _ = await world.accept(ANN, BOB)
    await world.a.begin_run(new_run("r", target=BOB), node=A)
    heard = listen(world.b)
    await world.a.release_sessions(A, [key_of(ANN), key_of(BOB)], waiting=True)
    await until(heard.expect(Notice.INBOX))
    assert [one.id for one in await todo(world, B)] == [of_ann.id]
    other = replace(ANN, chat="300")
    await world.a.begin_run(new_run("without messages", target=other), node=A)
    await world.a.release_sessions(A, [key_of(other)])
    for name in ("r", "without messages"):
        await world.a.finish_run(end(name), node=A)


async def test_a_stranger_is_greeted_with_one_code_until_it_expires(world: World) -> None:
    """CHAN-5."""
    first, same = pairing("50", "first"), pairing("50", "same batch")
    heard = listen(world.b)
    await world.a.accept([], node=A, now=T0, pairings=[first, same])
    await until(heard.expect(Notice.PEOPLE, Notice.OUTBOX))
    assert await world.b.pairing_requests(now=T0) == [first.request]
    await world.a.accept([], node=A, now=at(3599), pairings=[pairing("50", "early")])
    assert await world.a.pairing_requests(now=T0) == [first.request]
    late = pairing("50", "late", now=at(3600))
    await world.a.accept([], node=A, now=at(3600), pairings=[late])
    assert await world.a.pairing_requests(now=at(3600)) == [late.request]
    texts = [row.message.text for row in await world.a.outbox()]
    assert texts == ["your code: late", "your code: first"]


async def test_strangers_do_not_take_each_others_place(world: World) -> None:
    """CHAN-5: limits that strangers cannot exhaust for others."""
    many = [pairing(str(n), "same hash") for n in range(30)]
    await world.a.accept([inbox(1)], node=A, now=T0, pairings=many)
    assert len(await world.a.pairing_requests(now=T0)) == 30
    texts = [row.message.target.chat for row in await world.a.outbox()]
    assert texts == [str(n) for n in reversed(range(30))]


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


async def test_what_ended_without_an_answer_is_listed_with_its_reason(world: World) -> None:
    """OPS-4: which messages were dropped, and why."""
    lost, dropped, answered, stopped = await world.accept(*[ANN] * 4)
    await world.crash("r1", lost, max_attempts=1)
    await todo(world)
    await ran(world, new_run("ok", answered))
    cut = RunEnd(RunId("r"), Outcome.CANCELLED, at(8), reason=Reason.STOPPED)
    await ran(world, new_run("r", stopped), cut)
    await world.a.settle([dropped.id], Outcome.DROPPED, now=at(9), reason=Reason.QUEUE_DROPPED)
    covered = inbox(9, outcome=Outcome.CANCELLED)
    done = inbox(10, kind=InboxKind.COMMAND, outcome=Outcome.CANCELLED)
    await world.a.accept([covered, done], node=A, now=at(3))
    found = await world.b.unanswered(key_of(ANN), ended=True)
    ends = [(one.message.message_id, one.outcome, one.reason, one.finished_at) for one in found]
    assert ends == [
        ("9", Outcome.CANCELLED, Reason.STOPPED, at(3)),
        ("4", Outcome.CANCELLED, Reason.STOPPED, at(8)),
        ("2", Outcome.DROPPED, Reason.QUEUE_DROPPED, at(9)),
        ("1", Outcome.LOST, Reason.CRASHED, at(LEASE_S + 1)),
    ]
    assert found[1] == Unanswered(
        stopped.id, stopped.message, RunId("r"), T0, at(8), Outcome.CANCELLED, Reason.STOPPED
    )
    assert len(await world.b.unanswered(key_of(ANN), ended=True, limit=1)) == 1
    assert await world.b.unanswered(key_of(BOB), ended=True) == []


async def test_rows_that_have_ended_are_told_from_those_that_wait(world: World) -> None:
    """What is known already is claimed and not returned."""
    ended, working, waits = await world.accept(ANN, ANN, BOB)
    await world.a.release_sessions(A, [key_of(ANN), key_of(BOB)])
    first = {ended.id, working.id}
    for known, new in ((first | {4711}, [waits.id]), (first | {waits.id}, [])):
        left = await world.a.claim_pending(A, now=T0, places=PLACES, known=known)
        assert [row.id for row in left] == new
    assert await todo(world, B) == []
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
    """SPEC CMD-3: a crash right after it brings nothing back. The run ends as it ends."""
    first, working, waiting, later = await world.accept(*[ANN] * 4)
    await world.a.begin_run(new_run("ends", first), node=A)
    await world.a.begin_run(new_run("r", working), node=A)
    stop = a_stop("100:1", "100:2", "100:3", reason=Reason.STOPPED_ALL)
    (listed,) = (await world.a.accept([stop], node=A, now=at(5))).rows
    assert listed.kind is InboxKind.COMMAND
    assert [run.outcome for run in await world.a.runs()] == [None, None]
    await world.a.finish_run(end("ends", Outcome.CANCELLED), node=A)
    assert [run.outcome for run in await world.a.find_run("ends")] == [Outcome.CANCELLED]
    ended = await world.a.unanswered(key_of(ANN), ended=True)
    assert {row.id for row in ended} == {first.id, working.id, waiting.id}
    assert {(row.outcome, row.reason, row.finished_at) for row in ended} == {
        (Outcome.CANCELLED, Reason.STOPPED_ALL, at(5))
    }
    now = await recovered(world)
    assert [row.id for row in await todo(world, B, now=now)] == [later.id]


async def test_a_stop_of_everything_ends_what_waits_before_it(world: World) -> None:
    """SPEC CMD-1: another node may have stored it. A run ends as it ends."""
    working, waiting, of_bob = await world.accept(ANN, ANN, BOB)
    await world.a.begin_run(new_run("r", working), node=A)
    of_eve = inbox("eve", ANN)
    eve = replace(of_eve.message, sender=replace(of_eve.message.sender, id="eve"))
    late = inbox("late", ANN)
    stop = a_stop(reason=Reason.STOPPED_ALL)
    later = replace(late.message, sent_at=stop.message.sent_at + timedelta(seconds=1))
    await world.a.accept(
        [replace(of_eve, message=eve), replace(late, message=later)], node=A, now=T0
    )
    whose = waiting.message.sender.id
    everything = Stops((), Reason.STOPPED_ALL, everything=True, by=whose)
    await world.a.accept([replace(stop, stops=everything)], node=A, now=at(5))
    ended = await world.a.unanswered(key_of(ANN), ended=True)
    assert [(row.id, row.reason) for row in ended] == [(waiting.id, Reason.STOPPED_ALL)]
    another = inbox("again", ANN, kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
    of_all = Stops((), Reason.STOPPED_ALL, everything=True)
    await world.a.accept([replace(another, stops=of_all)], node=A, now=at(6))
    ended = await world.a.unanswered(key_of(ANN), ended=True)
    assert {row.message.external_id for row in ended} == {
        waiting.message.external_id,
        of_eve.message.external_id,
    }
    assert [row.id for row in await todo(world) if row.session == of_bob.session] == [of_bob.id]


async def test_a_stop_ends_what_came_in_the_same_batch(world: World) -> None:
    """Another caller's message shares the transaction, or comes in the one before."""
    both = await asyncio.gather(
        world.a.accept([inbox(1)], node=A, now=T0),
        world.a.accept([a_stop("100:1")], node=A, now=T0),
    )
    assert [len(accepted.rows) for accepted in both] == [1, 1]
    assert await todo(world) == []


async def test_a_stop_ends_nothing_of_others_and_nothing_that_has_ended(world: World) -> None:
    """One that comes again, its answer was lost, stops once more what it has stopped."""
    answered, of_bob, stopped = await world.accept(ANN, BOB, ANN)
    await ran(world, new_run("r", answered))
    elsewhere = replace(ANN, account="other")
    stop = a_stop("100:1", "200:2", "never seen", "\udcff\0", target=elsewhere)
    await world.a.accept([stop], node=A, now=at(5))
    assert [row.id for row in await todo(world)] == [of_bob.id, stopped.id]
    for _ in range(2):
        await world.a.accept([a_stop("100:1", "100:3")], node=A, now=at(5))
    ended = await world.a.unanswered(key_of(ANN), ended=True)
    assert [row.id for row in ended] == [stopped.id]
    assert [row.id for row in await todo(world)] == [of_bob.id]


async def test_what_nobody_has_said_does_not_count_as_heard(world: World) -> None:
    """SPEC HB-8: the last chat is one in which a person spoke."""
    await world.a.accept([inbox(1)], node=A, now=T0)
    before = await world.a.activity(ActivityQuery(limit=9))
    assert len(before) == 1
    for number, target in enumerate((ANN, BOB)):
        told = replace(message("x", target, sender="subagent"), source="subagent")
        new = NewInbox(told, key_of(target), AGENT)
        accepted = await world.a.accept([new], node=A, now=at(10 + number))
        assert [row.message.source for row in accepted.rows] == ["subagent"]
        assert await world.a.activity(ActivityQuery(limit=9)) == before
