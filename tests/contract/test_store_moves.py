"""What every store promises about a chat that was given another id (SPEC CHAN-7)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from goclaw_py.model.errors import Fenced
from goclaw_py.model.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.model.messages import OutboundMessage, PeerKind, Target
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.session_keys import chat_session
from goclaw_py.ports.store import (
    Chat,
    InboxKind,
    InboxRow,
    NewInbox,
    NewRun,
    Notice,
    OutboxState,
    RunStartResult,
    SeenChat,
    Session,
)
from goclaw_py.scheduler.models import Mode
from tests.support.stores import (
    AGENT,
    ANN,
    APOLOGY,
    PLACES,
    T0,
    A,
    B,
    Heard,
    World,
    a_node,
    at,
    end,
    entry,
    message,
    new_run,
    until,
)

pytestmark = pytest.mark.real_time

OLD = Target("telegram", "default", "-5")
NEW = Target("telegram", "default", "-1005")


def key_of(target: Target, agent: str = "default") -> SessionKey:
    return chat_session(AgentName(agent), target, PeerKind.GROUP)


def inbox(number: int | str, target: Target = OLD, *, agent: str = "default") -> NewInbox:
    said = replace(message(number, target), peer=PeerKind.GROUP, reply_to="3")
    return NewInbox(said, key_of(target, agent), AgentName(agent))


def run_in(target: Target, name: str, *rows: InboxRow) -> NewRun:
    return replace(new_run(name, *rows, target=target), session=key_of(target))


async def arrive(
    world: World, *batch: NewInbox, node: NodeId = A, now: datetime = T0
) -> list[InboxRow]:
    store = world.a if node == A else world.b
    return list((await store.accept(batch, node=node, now=now)).rows)


async def move(world: World, old: Target = OLD, new: Target = NEW) -> bool:
    return await world.a.move_chat("telegram", "default", old=old.chat, new=new.chat, now=at(100))


async def remember(world: World, target: Target, text: str, second: float) -> None:
    """One entry in a session's history."""
    await world.a.note(key_of(target), entry(text), rows=(), now=at(second))


async def history(world: World, target: Target = NEW) -> list[str]:
    return [stored.entry.text for stored in await world.a.history(key_of(target))]


async def session(world: World, target: Target = NEW) -> Session:
    found = await world.b.session(key_of(target))
    assert found is not None
    return found


def ids(rows: Sequence[InboxRow]) -> list[int]:
    return [row.id for row in rows]


# -------------------------------------------------------------------------------- sessions


async def test_a_session_is_found_under_its_new_id_with_all_that_it_had(world: World) -> None:
    (row,) = await arrive(world, inbox(1))
    await world.a.choose_mode(key_of(OLD), Mode.COLLECT)
    await remember(world, OLD, "before", 1)
    before = await session(world, OLD)
    assert await move(world)
    assert await world.a.session(key_of(OLD)) is None
    after = await session(world)
    assert after == replace(before, key=key_of(NEW), target=NEW, fence=after.fence)
    assert await history(world) == ["before"]
    (moved,) = await world.a.claim_pending(A, now=T0, places=PLACES)
    assert moved.mode is Mode.COLLECT
    assert (moved.id, moved.session, moved.message.target) == (row.id, key_of(NEW), NEW)


async def test_every_thread_and_agent_of_a_chat_moves(world: World) -> None:
    topic = replace(OLD, thread="4")
    await arrive(world, inbox(1), inbox(2, topic), inbox(3, agent="work"))
    await move(world)
    keys = {stored.key for stored in await world.a.sessions()}
    assert keys == {
        "agent:default:telegram:group:-1005",
        "agent:default:telegram:group:-1005:thread:4",
        "agent:work:telegram:group:-1005",
    }


async def test_other_chats_and_places_stay(world: World) -> None:
    longer = replace(OLD, chat="-55")
    elsewhere = replace(OLD, account="work")
    await arrive(world, inbox(1), inbox(2, longer), inbox(3, elsewhere))
    await world.a.settle((), Outcome.COMPLETED, now=T0, say=[OutboundMessage(elsewhere, "x")])
    await world.a.note_chats([SeenChat(elsewhere, PeerKind.GROUP, "x")], now=T0)
    await move(world)
    assert await world.a.session(key_of(longer)) is not None
    assert (await session(world, elsewhere)).target == elsewhere
    (said,) = await world.a.outbox()
    assert said.message.target == elsewhere
    assert [chat.account for chat in await world.a.chats()] == ["work"]


async def test_moving_again_moves_nothing(world: World) -> None:
    await arrive(world, inbox(1))
    await world.a.note_chats([SeenChat(OLD, PeerKind.GROUP, "Crew")], now=T0)
    assert await move(world)
    before = await session(world)
    assert not await move(world)
    assert not await move(world, NEW, NEW)
    assert await session(world) == before


async def test_two_that_move_a_chat_at_once_move_it_once(world: World) -> None:
    await arrive(world, inbox(1), inbox(2, replace(OLD, thread="4")), inbox(3, NEW))
    moved = await asyncio.gather(
        *(
            store.move_chat("telegram", "default", old=OLD.chat, new=NEW.chat, now=T0)
            for store in (world.a, world.b) * 2
        )
    )
    assert sum(moved) == 1
    assert len(await world.a.sessions()) == 2


async def test_a_session_that_is_not_named_after_its_chat_keeps_its_name(world: World) -> None:
    """A job's session that delivers to the chat."""
    job = SessionKey("agent:default:cron:news")
    await world.a.begin_run(replace(run_in(OLD, "r"), session=job), node=A)
    assert await move(world)
    stored = await world.a.session(job)
    assert stored is not None
    assert stored.target == NEW
    await world.a.finish_run(end("r"), node=A)


async def test_who_spoke_last_spoke_in_the_new_chat(world: World) -> None:
    """HB-8: follows migration."""
    await arrive(world, inbox(1), now=at(1))
    await arrive(world, inbox(2, NEW), now=at(3))
    await arrive(world, inbox(3, ANN), now=at(2))
    await move(world)
    heard = await world.a.heard()
    assert [(there.target, there.at) for there in heard] == [(NEW, at(3)), (ANN, at(2))]
    await arrive(world, inbox(4), now=at(4))
    await move(world)
    assert [there.at for there in await world.a.heard()] == [at(4), at(2)]


async def test_those_who_listen_are_told(world: World) -> None:
    await arrive(world, inbox(1))
    heard = Heard()
    world.b.on_notice(heard.append)
    await move(world)
    await until(heard.expect(Notice.PEOPLE, Notice.OUTBOX, Notice.INBOX))


# -------------------------------------------------------------------------------- messages


async def test_messages_that_wait_are_answered_in_the_new_chat(world: World) -> None:
    """Ids of messages mean nothing there."""
    (row,) = await arrive(world, inbox(1))
    await move(world)
    (moved,) = await world.a.claim_pending(A, now=T0, places=PLACES)
    assert moved.message == replace(row.message, target=NEW, message_id=None, reply_to=None)
    assert (await world.a.accept([inbox(1)], node=A, now=T0)).duplicates == {"-5:1"}


async def test_messages_that_ended_without_an_answer_can_be_tried_again_there(
    world: World,
) -> None:
    dropped, stopped = await arrive(world, inbox(1), inbox(2))
    await world.a.settle([dropped.id], Outcome.DROPPED, now=T0)
    await world.a.settle([stopped.id], Outcome.CANCELLED, now=T0)
    await move(world)
    assert len(await world.a.unanswered(key_of(NEW), ended=True)) == 2
    assert await world.a.retry_dead_letters([dropped.id, stopped.id], now=T0) == 2
    again = await world.a.claim_pending(A, now=T0, places=PLACES)
    assert [(row.id, row.session, row.message.target) for row in again] == [
        (dropped.id, key_of(NEW), NEW),
        (stopped.id, key_of(NEW), NEW),
    ]


async def test_what_was_not_sent_goes_to_the_new_chat_in_its_order(world: World) -> None:
    topic = replace(OLD, thread="4")
    said = [
        OutboundMessage(OLD, "1", reply_to="7", run_id=RunId("r")),
        OutboundMessage(NEW, "2", reply_to="8"),
        OutboundMessage(topic, "3", draft="55", rich=True),
    ]
    await world.a.settle((), Outcome.COMPLETED, now=T0, say=said)
    assert await move(world)
    assert {row.message.text: row.message for row in await world.a.outbox()} == {
        "1": OutboundMessage(NEW, "1", run_id=RunId("r")),
        "2": OutboundMessage(NEW, "2", reply_to="8"),
        "3": OutboundMessage(replace(NEW, thread="4"), "3", rich=True),
    }
    assert await world.a.chats_due(PLACES, now=T0) == {NEW: 1}
    for text in ("1", "2", "3"):
        row = await world.claimed(target=NEW)
        assert row.message.text == text
        await world.a.mark_sent(row, "m", now=T0)


async def test_what_is_being_sent_goes_to_the_new_chat_at_the_next_try(world: World) -> None:
    await world.a.settle((), Outcome.COMPLETED, now=T0, say=[OutboundMessage(OLD, "1")])
    row = await world.claimed(target=OLD)
    assert await move(world)
    await world.a.mark_failed(row, "moved", retry_at=T0, maybe_sent=False)
    assert (await world.claimed(target=NEW)).id == row.id


async def test_what_was_sent_or_given_up_stays_as_it_was(world: World) -> None:
    said = [OutboundMessage(OLD, text) for text in ("sent", "dead", "dropped")]
    await world.a.settle((), Outcome.COMPLETED, now=T0, say=said)
    await world.a.mark_sent(await world.claimed(target=OLD), "m", now=T0)
    await world.a.mark_dead(await world.claimed(target=OLD), "x", now=T0)
    await world.a.drop_outbox([(await world.a.outbox())[0].id], now=T0)
    before = await world.a.outbox()
    assert {row.state for row in before} == {
        OutboxState.SENT,
        OutboxState.DEAD,
        OutboxState.DROPPED,
    }
    assert not await move(world)
    assert await world.a.outbox() == before


# -------------------------------------------------------------------------------- what is decided


async def test_what_was_decided_about_a_chat_holds_for_its_new_id(world: World) -> None:
    await world.a.note_chats([SeenChat(OLD, PeerKind.GROUP, "Crew")], now=T0)
    await world.a.allow_chat("telegram", "default", "-5", allowed=True, now=T0)
    assert await move(world)
    assert await world.b.chats() == [
        Chat("telegram", "default", "-1005", PeerKind.GROUP, "Crew", True, "", T0, T0)
    ]


async def test_what_was_decided_about_the_new_chat_stays(world: World) -> None:
    await world.a.note_chats([SeenChat(OLD, PeerKind.GROUP, "Crew")], now=at(5))
    await world.a.allow_chat("telegram", "default", "-5", allowed=True, now=at(5))
    await world.a.mark_chat(OLD, PeerKind.GROUP, gone="upgraded", now=at(5))
    await world.a.note_chats([SeenChat(NEW, PeerKind.GROUP, "Super crew")], now=at(9))
    await world.a.allow_chat("telegram", "default", "-1005", allowed=False, now=at(9))
    assert await move(world)
    assert await world.b.chats() == [
        Chat("telegram", "default", "-1005", PeerKind.GROUP, "Super crew", False, "", at(5), at(9))
    ]


async def test_a_new_chat_without_name_and_decision_gets_those_of_the_old_one(
    world: World,
) -> None:
    await world.a.note_chats([SeenChat(OLD, PeerKind.GROUP, "Crew")], now=at(9))
    await world.a.allow_chat("telegram", "default", "-5", allowed=False, now=at(9))
    await world.a.note_chats([SeenChat(NEW, PeerKind.GROUP, "")], now=at(5))
    await move(world)
    assert await world.b.chats() == [
        Chat("telegram", "default", "-1005", PeerKind.GROUP, "Crew", False, "", at(5), at(9))
    ]


# -------------------------------------------------------------------------------- two become one


async def test_two_sessions_become_one_with_the_older_history_first(world: World) -> None:
    await arrive(world, inbox(1), inbox(2, NEW))
    for text, target, second in (
        ("old 1", OLD, 1),
        ("new 4", NEW, 4),
        ("old 2", OLD, 2),
        ("new 3", NEW, 3),
        ("old 3", OLD, 3),
    ):
        await remember(world, target, text, second)
    await move(world)
    assert await history(world) == ["old 1", "old 2", "new 3", "old 3", "new 4"]
    assert (await session(world)).entries == 5
    assert len(await world.a.claim_pending(A, now=T0, places=PLACES)) == 2


async def test_what_was_forgotten_before_the_move_stays_forgotten(world: World) -> None:
    await arrive(world, inbox(1), inbox(2, NEW))
    await remember(world, OLD, "old, forgotten", 1)
    await remember(world, NEW, "new, forgotten", 2)
    for target, times in ((OLD, 1), (NEW, 3)):
        for _ in range(times):
            await world.a.reset_session(key_of(target), now=at(3))
    await remember(world, OLD, "old", 4)
    await remember(world, NEW, "new", 5)
    await move(world)
    assert await history(world) == ["old", "new"]
    await world.a.reset_session(key_of(NEW), now=at(6))
    assert await history(world) == []


async def test_what_both_sessions_chose_and_when_they_were_used_is_joined(world: World) -> None:
    await arrive(world, inbox(1), now=at(1))
    await arrive(world, inbox(2, NEW), now=at(2))
    await world.a.choose_mode(key_of(OLD), Mode.COLLECT)
    await world.a.choose_mode(key_of(NEW), Mode.INTERRUPT)
    await move(world)
    stored = await session(world)
    assert (stored.created_at, stored.last_active_at) == (at(1), at(2))
    assert {row.mode for row in await world.a.claim_pending(A, now=T0, places=PLACES)} == {
        Mode.INTERRUPT
    }


async def test_old_messages_of_two_sessions_come_in_order_of_arrival(world: World) -> None:
    rows = await arrive(world, inbox(1), inbox(2, NEW), inbox(3), inbox(4, NEW))
    await move(world)
    assert ids(await world.a.claim_pending(A, now=T0, places=PLACES)) == ids(rows)
    waiting = await world.a.unanswered(key_of(NEW), ended=False)
    assert [row.id for row in waiting] == ids(rows)


# -------------------------------------------------------------------------------- runs at work


@pytest.mark.parametrize("beside", [False, True])
async def test_a_run_that_works_ends_in_the_new_chats_session(world: World, beside: bool) -> None:
    """Nothing it says or was asked is lost; ``beside``: there was a session of the new id."""
    (row,) = await arrive(world, inbox(1))
    if beside:
        await arrive(world, inbox(2, NEW))
    await world.a.begin_run(run_in(OLD, "r", row), node=A)
    await move(world)
    (active,) = await world.b.runs(active=True)
    assert active.session == key_of(NEW)
    said = replace(end("r", Outcome.COMPLETED), history=(entry("done"),))
    await world.a.finish_run(replace(said, say=(OutboundMessage(NEW, "done"),)), node=A)
    assert await history(world) == ["done"]
    assert [told.session for told in await world.a.outbox()] == [key_of(NEW)]
    assert row.id not in ids(await world.a.claim_pending(A, now=T0, places=PLACES))


async def test_a_run_of_the_new_chats_session_ends_as_if_nothing_had_happened(
    world: World,
) -> None:
    await arrive(world, inbox(1))
    (row,) = await arrive(world, inbox(2, NEW))
    await world.a.begin_run(run_in(NEW, "r", row), node=A)
    await move(world)
    await world.a.finish_run(replace(end("r"), history=(entry("done"),)), node=A)
    assert await history(world) == ["done"]


async def test_a_run_that_began_before_a_reset_writes_to_the_history_that_was_forgotten(
    world: World,
) -> None:
    (row,) = await arrive(world, inbox(1))
    await world.a.begin_run(run_in(OLD, "r", row), node=A)
    await world.a.reset_session(key_of(OLD), now=at(1))
    await move(world)
    await world.a.finish_run(replace(end("r"), history=(entry("done"),)), node=A)
    assert await history(world) == []


async def test_a_run_whose_session_falls_to_another_node_is_fenced_and_its_messages_wait(
    world: World,
) -> None:
    (row,) = await arrive(world, inbox(1))
    await world.a.begin_run(run_in(OLD, "r", row), node=A)
    (other,) = await arrive(world, inbox(2, NEW), node=B)
    await world.b.begin_run(run_in(NEW, "r2", other), node=B)
    await move(world)
    with pytest.raises(Fenced):
        await world.a.finish_run(end("r", Outcome.COMPLETED, "late words"), node=A)
    await world.b.finish_run(end("r2"), node=B)
    assert await world.a.claim_pending(A, now=T0, places=PLACES) == []
    (again,) = await world.b.claim_pending(B, now=T0, places=PLACES)
    assert (again.id, again.attempts) == (row.id, 0)
    assert await world.a.outbox() == []
    lost = (await world.a.find_run("r"))[0]
    assert (lost.outcome, lost.finished_at) == (Outcome.LOST, at(100))
    assert "moved" in (lost.error or "")


async def test_a_session_that_only_one_node_owned_stays_with_it(world: World) -> None:
    (row,) = await arrive(world, inbox(1, NEW))
    await world.a.settle([row.id], Outcome.DROPPED, now=T0)
    await world.a.release_sessions(A, [key_of(NEW)])
    await arrive(world, inbox(2), node=B)
    await move(world)
    assert (await session(world)).owner == B


async def test_whoever_lost_a_session_before_the_move_stays_out(world: World) -> None:
    """Fences of the two sessions must not be mistaken for each other."""
    (row,) = await arrive(world, inbox(1))
    await world.a.begin_run(run_in(OLD, "r", row), node=A)
    now = await world.kill(A)
    await arrive(world, inbox(2, NEW), node=B)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    await world.b.begin_run(replace(run_in(OLD, "r2"), started_at=now), node=B)
    await move(world)
    with pytest.raises(Fenced):
        await world.a.finish_run(end("r", Outcome.COMPLETED, "late words"), node=A)
    await world.b.finish_run(end("r2"), node=B)
    assert row.id in ids(await world.b.claim_pending(B, now=now, places=PLACES))


async def test_a_session_that_was_lost_before_the_move_is_not_won_back_by_claiming_it_anew(
    world: World,
) -> None:
    """The fence goes on from the higher one of the two sessions, not from that of the new one."""
    await world.a.begin_run(run_in(OLD, "r"), node=A)
    now = await world.kill(A)
    await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    await world.b.begin_run(replace(run_in(OLD, "r2"), started_at=now), node=B)
    await world.b.finish_run(end("r2"), node=B)
    await world.b.release_sessions(B, [key_of(OLD)])
    await world.a.join(a_node(A))
    acted = replace(inbox(1, NEW), kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
    await arrive(world, acted)
    await move(world)
    assert await world.a.renew(A, until=at(1000))
    await world.a.begin_run(replace(run_in(NEW, "r3"), started_at=now), node=A)
    with pytest.raises(Fenced):
        await world.a.finish_run(end("r", Outcome.COMPLETED, "late words"), node=A)
    await world.a.finish_run(end("r3"), node=A)


async def test_after_a_crash_a_moved_session_is_recovered(world: World) -> None:
    (row,) = await arrive(world, inbox(1))
    await world.a.begin_run(run_in(OLD, "r", row), node=A)
    await move(world)
    now = await world.kill(A)
    recovery = await world.b.recover(now=now, max_attempts=3, apology=APOLOGY)
    assert [(cut.session, cut.target) for cut in recovery.cut_runs] == [(key_of(NEW), NEW)]
    assert ids(await world.b.claim_pending(B, now=now, places=PLACES)) == [row.id]


async def test_a_run_that_begins_under_the_old_key_begins_in_the_new_session(
    world: World,
) -> None:
    """Its node has the message in memory as it came in."""
    first, second = await arrive(world, inbox(1), inbox(2))
    await remember(world, OLD, "before", 1)
    await move(world)
    begun = await world.a.begin_run(run_in(OLD, "r", first), node=A)
    assert begun.history == (entry("before"),)
    assert await world.a.session(key_of(OLD)) is None
    await world.a.finish_run(replace(end("r"), history=(entry("after"),)), node=A)
    assert await history(world) == ["before", "after"]
    assert ids(await world.a.claim_pending(A, now=T0, places=PLACES)) == [second.id]


async def test_a_run_under_the_old_key_is_fenced_where_another_node_has_the_new_session(
    world: World,
) -> None:
    (row,) = await arrive(world, inbox(1))
    await arrive(world, inbox(2, NEW), node=B)
    await move(world)
    with pytest.raises(Fenced):
        await world.a.begin_run(run_in(OLD, "r", row), node=A)
    assert ids(await world.b.claim_pending(B, now=T0, places=PLACES))[0] == row.id


async def test_a_chat_that_moves_several_times_is_found_in_the_end(world: World) -> None:
    third = replace(NEW, chat="-77")
    await arrive(world, inbox(1))
    await remember(world, OLD, "before", 1)
    await move(world)
    await move(world, NEW, third)
    assert (await world.a.begin_run(run_in(OLD, "r"), node=A)).history == (entry("before"),)
    await world.a.finish_run(end("r"), node=A)
    await move(world, third, OLD)
    assert (await world.a.begin_run(run_in(NEW, "r2"), node=A)).history == (entry("before"),)
    assert await world.a.session(key_of(OLD)) is not None


async def test_what_came_in_under_the_old_id_after_the_move_goes_with_the_next_one(
    world: World,
) -> None:
    await arrive(world, inbox(1))
    await remember(world, OLD, "before", 1)
    await move(world)
    (late,) = await arrive(world, inbox(2))
    assert late.session == key_of(OLD)
    assert await move(world)
    assert len(await world.a.claim_pending(A, now=T0, places=PLACES)) == 2
    assert [stored.key for stored in await world.a.sessions()] == [key_of(NEW)]
    assert await history(world) == ["before"]


async def test_a_draft_stays_behind_and_its_run_learns_that(world: World) -> None:
    """An id of the old chat may be that of another message in the new one."""
    (row,) = await arrive(world, inbox(1))
    await world.a.begin_run(run_in(OLD, "r", row), node=A)
    await world.a.open_draft(RunId("r"), OLD, now=T0)
    await world.a.draft_posted(RunId("r"), "55")
    await move(world)
    assert await world.a.drafts() == []
    assert not await world.a.draft_posted(RunId("r"), "56")
    await world.a.finish_run(end("r", Outcome.INTERRUPTED), node=A)
    assert await world.a.begin_run(run_in(NEW, "r2", row), node=A) == RunStartResult()


async def test_messages_and_runs_that_come_during_a_move_are_not_lost(world: World) -> None:
    """Whatever order the database takes them in."""
    for number in range(8):
        old = replace(OLD, chat=f"-{number}")
        new = replace(NEW, chat=f"-100{number}")
        (row,) = await arrive(world, inbox(number, old))
        _, late, begun = await asyncio.gather(
            world.b.move_chat("telegram", "default", old=old.chat, new=new.chat, now=T0),
            world.a.accept([inbox("a", new), inbox("b", old)], node=A, now=T0),
            world.a.begin_run(run_in(old, f"r{number}", row), node=A),
        )
        assert begun == RunStartResult()
        await world.a.finish_run(end(f"r{number}"), node=A)
        await world.b.move_chat("telegram", "default", old=old.chat, new=new.chat, now=T0)
        pending = [
            waiting
            for waiting in await world.a.claim_pending(A, now=T0, places=PLACES)
            if waiting.message.target == new
        ]
        assert [waiting.session for waiting in pending] == [key_of(new)] * 2
        assert len(late.rows) == 2


async def test_the_agents_of_a_chat_keep_apart(world: World) -> None:
    await arrive(world, inbox(1), inbox(2, agent="work"))
    await remember(world, OLD, "default's", 1)
    await move(world)
    assert await history(world) == ["default's"]
    assert await world.a.history(key_of(NEW, "work")) == []
    assert (await session(world)).agent == AGENT
