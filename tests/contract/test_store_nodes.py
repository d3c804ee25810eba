"""What every store promises about nodes and what dead ones leave."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import LaneName, NodeId, RunId
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_steps import NewMessagesStep
from goclaw_py.records import (
    InterruptedRun,
    LaneShare,
    NodeCall,
    NodeState,
    Notice,
    OutboxState,
    RecoveryReport,
    Renewed,
    RunSoFar,
    Store,
    ToolCall,
)
from tests.support.stores import (
    ANN,
    APOLOGY,
    BOB,
    LEASE_S,
    T0,
    A,
    B,
    CollectedNotices,
    JobWorld,
    World,
    a_node,
    at,
    crash,
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

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

PAID = ToolCall("pay", "{}", T0, seconds=1.0, ok=True, result="paid")
SENT = ToolCall("send", "{}", T0)


async def test_nodes_are_listed_oldest_first(world: JobWorld) -> None:
    """Joining twice is harmless. Others are told: whoever believes to be alone works on when it
    is cut off (SPEC QUEUE-2)."""
    heard = listen(world.b)
    entered = replace(a_node(NodeId("first"), started_at=at(-5)), state=NodeState(places=("x/y",)))
    await world.a.join(entered)
    await until(heard.expect(Notice.NODES))
    await world.a.join(a_node(A))
    assert await world.b.nodes() == [entered, a_node(A), a_node(B, started_at=at(1))]


async def test_renewing_extends_the_lease(world: JobWorld) -> None:
    """One that comes late makes it no shorter, unless the clock was put back."""
    state = NodeState(running=1)

    async def lease() -> datetime:
        return (await world.a.nodes())[0].lease_until

    assert await world.a.renew(A, until=at(3600))
    assert await lease() == at(3600)
    assert await world.a.renew(A, until=at(25), state=state) == Renewed(among_others=True)
    assert await lease() == at(3600)
    assert (await world.a.nodes())[0].state == state
    assert await world.a.renew(A, until=at(40), clock_set_back=True)
    assert await lease() == at(40)
    await world.b.leave(B, now=T0)
    assert await world.a.renew(A, until=at(40)) == Renewed(among_others=False)


async def test_a_node_that_has_expired_cannot_renew(world: JobWorld) -> None:
    """SPEC NODE-1: one whose lease has ended counts among the others until then."""
    assert await world.b.renew(B, until=at(1000)) == Renewed(among_others=True)
    await recovered(world)
    assert not await world.a.renew(A, until=at(100))


async def test_only_expired_nodes_that_were_named_are_recovered(world: JobWorld) -> None:
    now = at(LEASE_S + 1)
    alive = await world.b.recover(now=T0, max_attempts=3, apology=APOLOGY, only=[A])
    assert alive.nodes == ()
    report = await world.b.recover(now=now, max_attempts=3, apology=APOLOGY, only=[A])
    assert report.nodes == (A,)
    assert [node.id for node in await world.b.nodes()] == [B]


async def test_a_lease_can_be_ended_for_a_process_that_is_known_to_be_gone(world: JobWorld) -> None:
    await world.b.end_lease(A, now=at(1))
    await world.b.end_lease(NodeId("unknown"), now=at(1))
    assert [node.id for node in await world.b.nodes()] == [A, B]
    recovery = await world.b.recover(now=at(1), max_attempts=3, apology=APOLOGY)
    assert recovery.nodes == (A,)


async def test_a_named_lease_has_one_owner_until_it_is_dropped(world: World) -> None:
    """Those who wait for it are told."""
    assert not await world.a.claim_lease("bot", NodeId("stranger"), now=T0)
    for _ in range(2):
        assert await world.a.claim_lease("bot", A, now=T0)
        assert not await world.b.claim_lease("bot", B, now=T0)
    assert await world.b.claim_lease("other bot", B, now=T0)
    heard = listen(world.b)
    await world.b.drop_lease("bot", B)
    assert not await world.b.claim_lease("bot", B, now=T0)
    await world.a.drop_lease("bot", A)
    await until(heard.expect(Notice.NODES))
    got = await asyncio.gather(
        world.a.claim_lease("bot", A, now=T0), world.b.claim_lease("bot", B, now=T0)
    )
    assert sorted(got) == [False, True]


async def test_an_expired_owners_lease_can_be_claimed_before_its_recovery(world: World) -> None:
    await world.a.claim_lease("bot", A, now=T0)
    assert not await world.b.claim_lease("bot", B, now=at(LEASE_S - 0.001))
    assert await world.b.claim_lease("bot", B, now=at(LEASE_S))


async def test_leaving_frees_sessions_and_leases_and_tells_the_others(world: World) -> None:
    """QUEUE-11: unfinished runs are interrupted, and their attempts taken back."""
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    await world.a.claim_lease("bot", A, now=T0)
    heard = listen(world.b)
    for _ in range(2):
        await world.a.leave(A, now=at(1))
    await until(heard.expect(Notice.INBOX, Notice.NODES))
    assert [node.id for node in await world.b.nodes()] == [B]
    assert await world.b.claim_lease("bot", B, now=at(1))
    (run,) = await world.b.runs()
    assert (run.outcome, run.reason) == (Outcome.INTERRUPTED, Reason.SHUTDOWN)
    assert await todo(world, B, now=at(1)) == [replace(row, last_run=RunId("r")) for row in rows]


async def test_leaving_puts_back_what_was_being_sent(world: World) -> None:
    await world.put(say("x"))
    row = await world.claimed()
    heard = listen(world.b)
    await world.a.leave(A, now=at(1))
    await until(heard.expect(Notice.INBOX, Notice.OUTBOX))
    (left,) = await world.b.outbox()
    assert (left.state, left.possible_duplicate) == (OutboxState.WAITING, True)
    with pytest.raises(Fenced):
        await world.a.mark_sent(row, "m1", now=at(1))


async def test_an_expired_nodes_work_is_recovered(world: World) -> None:
    """IO-2: an attempt counts when its run started. Others are told, and its end is fenced."""
    rows = await world.accept(ANN, ANN, BOB)
    await world.a.begin_run(new_run("r", rows[0]), node=A)
    assert await world.b.recover(now=at(14), max_attempts=3, apology=APOLOGY) == RecoveryReport()
    now, heard = await world.kill(A), listen(world.a)
    recovery = await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    assert recovery == RecoveryReport((A,), (InterruptedRun(RunId("r"), key_of(ANN), ANN),), 0)
    await until(heard.expect(Notice.INBOX))
    with pytest.raises(Fenced):
        await world.a.finish_run(end("r", Outcome.COMPLETED, "late words"), node=A)
    (run,) = await world.b.runs()
    assert (run.outcome, run.reason, run.finished_at) == (Outcome.LOST, Reason.CRASHED, now)
    again = [(row.id, row.attempts) for row in await todo(world, B, now=now)]
    assert again == [(rows[0].id, 1), (rows[1].id, 0), (rows[2].id, 0)]
    assert await world.b.outbox() == []


async def test_the_sender_of_a_message_that_crashed_too_often_is_told(world: World) -> None:
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


async def test_what_a_lost_run_had_taken_in_is_found_among_its_messages(world: World) -> None:
    """OPS-4."""
    first, taken = await world.accept(ANN, ANN)
    await world.a.begin_run(new_run("r", first), node=A)
    step = NewMessagesStep("and Bob", (taken.id,))
    await world.a.note_run(RunId("r"), RunSoFar(steps=(step,)), node=A)
    now = await world.kill(A)
    await world.b.recover(now=now, max_attempts=1, apology=APOLOGY)
    found = await world.b.letters_of(RunId("r"))
    assert [one.row.id for one in found] == [first.id, taken.id]


async def test_who_is_told_of_a_lost_message_reads_once_what_was_done(world: World) -> None:
    """IO-2: the tool calls of all interrupted runs; two nodes recover at once."""
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar((PAID, SENT)), node=A)
    await crash(world)
    await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    await world.a.note_run(RunId("r2"), RunSoFar((replace(PAID, name="book"),)), node=A)
    now = await world.kill(A)
    both = await asyncio.gather(
        *(one.recover(now=now, max_attempts=2, apology=APOLOGY) for one in (world.a, world.b))
    )
    assert sum(recovery.gave_up for recovery in both) == 1
    (told,) = await world.b.outbox()
    done = "Before that I had called tools (completed: pay, book; outcome unknown: send)."
    assert told.message.text == f"{APOLOGY}\n{done}"


async def test_what_an_expired_node_was_sending_is_requeued_with_a_mark(world: World) -> None:
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


async def test_several_nodes_may_recover_at_once(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    now = await world.kill(A)
    both = await asyncio.gather(
        world.a.recover(now=now, max_attempts=3, apology=APOLOGY),
        world.b.recover(now=now, max_attempts=3, apology=APOLOGY),
    )
    assert sorted(len(recovery.cut_runs) for recovery in both) == [0, 1]


async def test_recovery_of_some_nodes_leaves_all_others_alone(world: World) -> None:
    """And those of them that live."""
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r", *rows), node=A)
    others = [B, NodeId("stranger")]

    async def recover(only: list[NodeId], now: datetime) -> RecoveryReport:
        return await world.b.recover(now=now, max_attempts=3, apology=APOLOGY, only=only)

    assert await recover([A], T0) == RecoveryReport()
    assert await world.a.renew(A, until=at(LEASE_S))
    now = await world.kill(A)
    for only in (others, []):
        assert await recover(only, now) == RecoveryReport()
    assert A in [node.id for node in await world.b.nodes()]
    some = await recover([A, *others], now)
    assert some.nodes == (A,)
    assert [cut.run_id for cut in some.cut_runs] == [RunId("r")]


async def test_recovery_leaves_a_session_with_whom_took_it_over(world: World) -> None:
    rows = await world.accept(ANN)
    await world.a.settle([row.id for row in rows], Outcome.DROPPED, now=T0)
    now = await world.kill(A)
    await world.b.accept([inbox(9)], node=B, now=now)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    session = await session_of(world.b, key_of(ANN))
    assert session.owner == B


async def test_an_expired_nodes_new_message_is_committed_for_others(world: World) -> None:
    now = await recovered(world)
    heard = listen(world.b)
    accepted = await world.a.accept([inbox(1)], node=A, now=now)
    assert accepted.rows == ()
    await until(heard.expect(Notice.INBOX))
    assert len(await todo(world, B, now=now)) == 1


async def test_a_node_tells_its_state_with_its_lease(world: JobWorld) -> None:
    state = NodeState(running=2, waiting=1, draining=True, skew_s=-3.5, settings={"lanes": "1f"})
    state = replace(state, places=("telegram/default", "web/\u2028"))
    assert await world.a.renew(A, until=at(20), state=state)
    for _ in range(2):
        assert [node.state for node in await world.b.nodes()] == [state, NodeState()]
        assert await world.a.renew(A, until=at(30))
    assert not await world.a.renew(NodeId("unknown"), until=at(30), state=state)


async def test_the_owner_of_a_session_is_known_to_all(world: World) -> None:
    key = key_of(ANN)
    assert await world.a.owner(key) is None
    await world.a.accept([inbox(1)], node=A, now=T0)
    assert await world.b.owner(key) == A
    assert await world.b.owner(key_of(BOB)) is None


async def test_the_time_is_that_of_the_database_if_it_has_a_clock(world: JobWorld) -> None:
    there = await world.a.time()
    assert there is None or abs(there - datetime.now(UTC)) < timedelta(minutes=1)


# --------------------------------------------------------- lanes that all nodes share (SPEC NODE-2)


CRON = LaneName("cron")
C = NodeId("c")


@dataclass
class Holder:
    """A node with what it knows to have of a lane."""

    store: Store
    node: NodeId
    lane: LaneName = CRON
    held: list[int] = field(default_factory=list)
    elsewhere: int = 0

    async def wants(self, wanted: int, *, size: int = 1, ended: int = 0, now: datetime = T0) -> int:
        """Tell that so many runs have ended and so many wait; how many places came."""
        gone, self.held = self.held[:ended], self.held[ended:]
        share = LaneShare(self.lane, size, tuple(self.held), tuple(gone), wanted)
        grant = await self.store.share(self.node, share, now=now)
        self.held += grant.places
        self.elsewhere = grant.elsewhere
        return len(grant.places)


async def test_a_free_place_is_given_at_once(world: World) -> None:
    """Again when its answer was lost. Lanes know nothing of each other."""
    one, other = Holder(world.a, A), Holder(world.b, B)
    assert sorted(await asyncio.gather(one.wants(1), other.wants(1))) == [0, 1]
    first, second = sorted((one, other), key=lambda holder: not holder.held)
    first.held.clear()
    assert await first.wants(1) == 1
    assert await second.wants(1) == 0
    assert await Holder(second.store, second.node, LaneName("other")).wants(1) == 1


async def test_whoever_came_first_is_next_when_a_place_is_given_back(world: World) -> None:
    """Also before one of the node that gives it back."""
    await world.b.join(a_node(C))
    holders = {name: Holder(*one) for name, one in _three(world).items()}
    await holders["a"].wants(1)
    await holders["b"].wants(2)
    await holders["c"].wants(1)
    await holders["a"].wants(1)
    left, order = {"a": 1, "b": 2, "c": 1}, ["a"]
    for _ in range(4):
        last = order[-1]
        for name in (last, *holders):
            if await holders[name].wants(left[name], ended=1 if name is last else 0):
                left[name] -= 1
                order.append(name)
                break
            last = ""
    assert order == ["a", "b", "b", "c", "a"]


def _three(world: World) -> dict[str, tuple[Store, NodeId]]:
    return {"a": (world.a, A), "b": (world.b, B), "c": (world.b, C)}


async def test_no_more_places_are_given_than_there_are(world: World) -> None:
    """A node hears how many places others have."""
    one, other = Holder(world.a, A), Holder(world.b, B)
    assert await one.wants(5, size=3) == 3
    assert one.elsewhere == 0
    assert await other.wants(5, size=3) == 0
    assert other.elsewhere == 3
    assert await one.wants(0, size=3, ended=1) == 0
    assert await other.wants(5, size=3) == 1
    assert (one.elsewhere, other.elsewhere) == (1, 2)


async def test_a_place_that_nobody_wants_any_more_is_others(world: World) -> None:
    """Whoever wants no more leaves the line."""
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    await other.wants(1)
    await one.wants(0, ended=1)
    assert await other.wants(0) == 0
    assert await one.wants(1) == 1
    await other.wants(3)
    await other.wants(0)
    assert await one.wants(1, ended=1) == 1


async def test_a_larger_size_holds_from_the_next_word_on(world: World) -> None:
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    assert await other.wants(1, size=2) == 1
    # And a smaller one takes nothing away.
    assert await one.wants(1, size=1) == 0
    assert len(one.held) == 1


async def test_what_a_node_had_goes_with_it(world: World) -> None:
    one = Holder(world.a, A)
    await one.wants(1)
    await world.a.leave(A, now=T0)
    assert await Holder(world.b, B).wants(1) == 1
    assert await one.wants(1) == 0


async def test_a_node_whose_lease_has_ended_is_passed_over_and_keeps_its_turn(world: World) -> None:
    """NODE-1: what it got would be idle until its recovery."""
    await world.b.join(a_node(C))
    first, ended, last = (Holder(*one) for one in _three(world).values())
    await first.wants(1)
    await ended.wants(1)
    await last.wants(1)
    now = at(LEASE_S)
    for node in (A, C):
        await world.a.renew(node, until=at(1000))
    assert await ended.wants(1, now=now) == 0
    await first.wants(0, ended=1, now=now)
    assert await last.wants(1, now=now) == 1
    # Back again, it is next, and before those who have come meanwhile.
    await world.b.renew(B, until=at(1000))
    await first.wants(1, now=now)
    await last.wants(0, ended=1, now=now)
    assert await first.wants(1, now=now) == 0
    assert await ended.wants(1, now=now) == 1


async def test_a_node_whose_lease_has_ended_keeps_what_it_has(world: World) -> None:
    """Its runs may still work."""
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    now = await world.kill(A)
    assert await other.wants(1, now=now) == 0
    await one.wants(0, ended=1, now=now)
    assert await other.wants(1, now=now) == 1


async def test_nobody_releases_what_is_anothers(world: World) -> None:
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    other.held = list(one.held)
    assert await other.wants(1, ended=1) == 0


async def test_others_are_told_that_a_place_is_theirs(world: World) -> None:
    heard = CollectedNotices()
    one, other = Holder(world.a, A), Holder(world.b, B)
    await one.wants(1)
    await other.wants(1)
    world.b.on_notice(heard.append)
    await one.wants(0)
    await one.wants(0, ended=1)
    await until(heard.expect(Notice.LANES))
    assert heard.count(Notice.LANES) == 1


# ------------------------------------------------------------ questions between nodes (SPEC NODE-1)


QUESTION = '{"what": "stop", "session": "agent:main:telegram:direct:1"}'


async def test_questions_come_in_their_order_until_they_are_answered(world: World) -> None:
    """To the node that is asked and nobody else; with that they go."""
    for node, now in ((NodeId("nobody"), T0), (B, at(LEASE_S + 1))):
        assert await world.a.ask(node, QUESTION, now=now) is None
    first, second = [await world.a.ask(B, text, now=T0) for text in (QUESTION, "2")]
    assert first
    assert second
    assert await world.b.open_calls(B) == [NodeCall(first, QUESTION, T0), NodeCall(second, "2", T0)]
    assert await world.a.open_calls(A) == []
    assert await world.a.answer_to(first) is None
    for _ in range(2):
        await world.b.answer(first, "stopped")
    assert await world.a.answer_to(first) == "stopped"
    assert [call.id for call in await world.b.open_calls(B)] == [second]
    await world.b.leave(B, now=T0)
    assert await world.a.answer_to(second) is None
    await world.a.answer(second, "")
    assert await world.a.answer_to(second) is None


async def test_old_questions_are_forgotten(world: World) -> None:
    """What cannot be stored harms nothing."""
    await world.a.renew(B, until=at(1000))
    old, young = [await world.a.ask(B, "a\0b\ud800", now=at(second)) for second in (0, 50)]
    assert await world.b.ask(A, QUESTION, now=at(61)) is None
    assert [(call.id, call.question) for call in await world.b.open_calls(B)] == [
        (young, "a\ufffdb\ufffd")
    ]
    assert old != young


async def test_questions_and_answers_are_told(world: World) -> None:
    heard = listen(world.a)
    world.b.on_notice(heard.append)
    call = await world.a.ask(B, QUESTION, now=T0)
    assert call is not None
    await until(lambda: heard.count(Notice.NODES) == 2)
    await world.a.answer(call, "")
    await until(lambda: heard.count(Notice.NODES) == 4)
