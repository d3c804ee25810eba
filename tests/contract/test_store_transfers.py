"""What every store promises about a chat that was given another id (SPEC CHAN-7)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import AgentName, NodeId, RunId, SessionKey
from goclaw_py.core.messages import OutboundMessage, PeerKind, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.session_keys import chat_session
from goclaw_py.records import (
    Chat,
    InboxKind,
    InboxRow,
    NewInbox,
    NewRun,
    Notice,
    RunQuery,
    RunStartResult,
    SeenChat,
    Session,
    Store,
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
    World,
    a_node,
    at,
    end,
    entry,
    listen,
    message,
    new_run,
    recovered,
    session_of,
    todo,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

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


async def move(
    world: World, old: Target = OLD, new: Target = NEW, *, store: Store | None = None
) -> bool:
    place = {"old": old.chat, "new": new.chat}
    return await (store or world.a).move_chat("telegram", "default", **place, now=at(100))


async def remember(world: World, target: Target, text: str, second: float) -> None:
    """One entry in a session's history."""
    await world.a.note(key_of(target), entry(text), rows=(), now=at(second))


async def history(world: World, target: Target = NEW) -> list[str]:
    return [stored.entry.text for stored in await world.a.history(key_of(target))]


async def session(world: World, target: Target = NEW) -> Session:
    return await session_of(world.b, key_of(target))


def ids(rows: Sequence[InboxRow]) -> list[int]:
    return [row.id for row in rows]


# -------------------------------------------------------------------------------- sessions


async def test_a_session_is_found_under_its_new_id_with_all_that_it_had(world: World) -> None:
    """What waits is answered there, where ids of messages mean nothing. All are told."""
    (row,) = await arrive(world, inbox(1))
    await world.a.choose_mode(key_of(OLD), Mode.COLLECT)
    await remember(world, OLD, "before", 1)
    before, heard = await session(world, OLD), listen(world.b)
    assert await move(world)
    await until(heard.expect(Notice.PEOPLE, Notice.OUTBOX, Notice.INBOX))
    assert await world.a.session(key_of(OLD)) is None
    after = await session(world)
    assert after == replace(before, key=key_of(NEW), target=NEW, fence=after.fence)
    assert await history(world) == ["before"]
    (moved,) = await todo(world)
    assert (moved.id, moved.session, moved.mode) == (row.id, key_of(NEW), Mode.COLLECT)
    assert moved.message == replace(row.message, target=NEW, message_id=None, reply_to=None)
    assert (await world.a.accept([inbox(1)], node=A, now=T0)).duplicates == {"-5:1"}


async def test_every_thread_and_agent_of_a_chat_moves_and_they_keep_apart(world: World) -> None:
    topic = replace(OLD, thread="4")
    await arrive(world, inbox(1), inbox(2, topic), inbox(3, agent="work"))
    await remember(world, OLD, "default's", 1)
    await move(world)
    assert {stored.key for stored in await world.a.sessions()} == {
        "agent:default:telegram:group:-1005",
        "agent:default:telegram:group:-1005:thread:4",
        "agent:work:telegram:group:-1005",
    }
    assert await history(world) == ["default's"]
    assert await world.a.history(key_of(NEW, "work")) == []
    assert (await session(world)).agent == AGENT


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


async def test_of_several_that_move_a_chat_one_moves_it(world: World) -> None:
    await arrive(world, inbox(1), inbox(2, replace(OLD, thread="4")), inbox(3, NEW))
    await world.a.note_chats([SeenChat(OLD, PeerKind.GROUP, "Crew")], now=T0)
    assert (
        sum(await asyncio.gather(*(move(world, store=one) for one in (world.a, world.b) * 2))) == 1
    )
    assert len(await world.a.sessions()) == 2
    before = await session(world)
    assert not await move(world)
    assert not await move(world, NEW, NEW)
    assert await session(world) == before


async def test_a_session_that_is_not_named_after_its_chat_keeps_its_name(world: World) -> None:
    """A job's session that delivers to the chat."""
    job = SessionKey("agent:default:cron:news")
    await world.a.begin_run(replace(run_in(OLD, "r"), session=job), node=A)
    assert await move(world)
    stored = await session_of(world.a, job)
    assert stored.target == NEW
    await world.a.finish_run(end("r"), node=A)


async def test_who_spoke_last_spoke_in_the_new_chat(world: World) -> None:
    """HB-8: follows migration."""
    await arrive(world, inbox(1), now=at(1))
    await arrive(world, inbox(2, NEW), now=at(3))
    await arrive(world, inbox(3, ANN), now=at(2))
    await move(world)
    heard = await world.a.activity()
    assert [(there.target, there.at) for there in heard] == [(NEW, at(3)), (ANN, at(2))]
    await arrive(world, inbox(4), now=at(4))
    await move(world)
    assert [there.at for there in await world.a.activity()] == [at(4), at(2)]


# -------------------------------------------------------------------------------- messages


async def test_messages_without_an_answer_can_be_tried_again_there(world: World) -> None:
    rows = await arrive(world, inbox(1), inbox(2))
    for row, outcome in zip(rows, (Outcome.DROPPED, Outcome.CANCELLED), strict=True):
        await world.a.settle([row.id], outcome, now=T0)
    await move(world)
    assert len(await world.a.unanswered(key_of(NEW), ended=True)) == 2
    assert await world.a.retry_dead_letters(ids(rows), now=T0) == 2
    again = await todo(world)
    assert ids(again) == ids(rows)
    assert {(row.session, row.message.target) for row in again} == {(key_of(NEW), NEW)}


async def test_what_was_not_sent_goes_to_the_new_chat_in_its_order(world: World) -> None:
    """What is being sent goes there at the next try."""
    topic = replace(OLD, thread="4")
    said = [
        OutboundMessage(OLD, "1", reply_to="7", run_id=RunId("r")),
        OutboundMessage(NEW, "2", reply_to="8"),
        OutboundMessage(topic, "3", draft="55", rich=True),
    ]
    await world.a.settle((), Outcome.COMPLETED, now=T0, say=said)
    sending = await world.claimed(target=OLD)
    assert await move(world)
    assert {row.message.text: row.message for row in await world.a.outbox()} == {
        "1": OutboundMessage(NEW, "1", run_id=RunId("r")),
        "2": OutboundMessage(NEW, "2", reply_to="8"),
        "3": OutboundMessage(replace(NEW, thread="4"), "3", rich=True),
    }
    await world.a.mark_failed(sending, "moved", retry_at=T0, maybe_sent=False)
    assert (await world.a.chats_due(PLACES, now=T0)).counts == {NEW: 1}
    for text in ("1", "2", "3"):
        row = await world.claimed(target=NEW)
        assert row.message.text == text
        await world.a.mark_sent(row, "m", now=T0)


async def test_what_was_sent_or_given_up_stays_as_it_was(world: World) -> None:
    said = [OutboundMessage(OLD, text) for text in ("sent", "failed", "dropped")]
    await world.a.settle((), Outcome.COMPLETED, now=T0, say=said)
    await world.a.mark_sent(await world.claimed(target=OLD), "m", now=T0)
    await world.a.mark_dead(await world.claimed(target=OLD), "x", now=T0)
    await world.a.drop_outbox([(await world.a.outbox())[0].id], now=T0)
    before = await world.a.outbox()
    assert [row.message.text for row in before] == [row.state for row in before]
    assert not await move(world)
    assert await world.a.outbox() == before


# -------------------------------------------------------------------------------- what is decided


@pytest.mark.parametrize(
    ("new", "allowed", "known"),
    [
        (None, None, ("Crew", True, "", at(5), at(5))),
        ("Super crew", False, ("Super crew", False, "", at(5), at(9))),
        ("", None, ("Crew", True, "", at(5), at(9))),
    ],
    ids=["unknown", "decided", "nameless"],
)
async def test_what_is_known_of_the_new_chat_goes_before_what_was_known_of_the_old_one(
    world: World, new: str | None, allowed: bool | None, known: tuple[Any, ...]
) -> None:
    await world.a.note_chats([SeenChat(OLD, PeerKind.GROUP, "Crew")], now=at(5))
    await world.a.allow_chat("telegram", "default", "-5", allowed=True, now=at(5))
    if new:
        await world.a.mark_chat(OLD, PeerKind.GROUP, gone="upgraded", now=at(5))
    if new is not None:
        await world.a.note_chats([SeenChat(NEW, PeerKind.GROUP, new)], now=at(9))
    if allowed is not None:
        await world.a.allow_chat("telegram", "default", "-1005", allowed=allowed, now=at(9))
    assert await move(world)
    assert await world.b.chats() == [Chat("telegram", "default", "-1005", PeerKind.GROUP, *known)]


# -------------------------------------------------------------------------------- two become one


async def test_two_sessions_become_one_in_the_order_of_what_they_had(world: World) -> None:
    """History and messages; with the first and last use of both, and the mode of the new one."""
    rows = await arrive(world, inbox(1), now=at(1))
    for number, target in ((2, NEW), (3, OLD), (4, NEW)):
        rows += await arrive(world, inbox(number, target), now=at(2))
    await world.a.choose_mode(key_of(OLD), Mode.COLLECT)
    await world.a.choose_mode(key_of(NEW), Mode.INTERRUPT)
    for text, second in (("old 1", 1), ("new 4", 4), ("old 2", 2), ("new 3", 3), ("old 3", 3)):
        await remember(world, OLD if text.startswith("old") else NEW, text, second)
    before = [await session(world, target) for target in (OLD, NEW)]
    await move(world)
    assert await history(world) == ["old 1", "old 2", "new 3", "old 3", "new 4"]
    now = await session(world)
    assert (now.entries, now.created_at) == (5, at(1))
    assert now.last_active_at == max(one.last_active_at for one in before)
    waiting = await todo(world)
    assert ids(waiting) == ids(rows)
    assert {row.mode for row in waiting} == {Mode.INTERRUPT}
    listed = await world.a.unanswered(key_of(NEW), ended=False)
    assert [row.id for row in listed] == ids(rows)


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


# -------------------------------------------------------------------------------- runs at work


@pytest.mark.parametrize("beside", [False, True])
async def test_a_run_that_works_ends_in_the_new_chats_session(world: World, beside: bool) -> None:
    """Nothing it says or was asked is lost; ``beside``: there was a session of the new id."""
    (row,) = await arrive(world, inbox(1))
    if beside:
        await arrive(world, inbox(2, NEW))
    await world.a.begin_run(run_in(OLD, "r", row), node=A)
    await move(world)
    (active,) = await world.b.runs(RunQuery(active=True))
    assert active.session == key_of(NEW)
    said = replace(end("r", Outcome.COMPLETED), history=(entry("done"),))
    await world.a.finish_run(replace(said, say=(OutboundMessage(NEW, "done"),)), node=A)
    assert await history(world) == ["done"]
    assert [told.session for told in await world.a.outbox()] == [key_of(NEW)]
    assert row.id not in ids(await todo(world))


@pytest.mark.parametrize("reset", [False, True])
async def test_a_run_ends_in_the_history_that_is_its_own_by_then(world: World, reset: bool) -> None:
    """One of the new chat as if nothing had happened; of a forgotten one in what was forgotten."""
    await arrive(world, inbox(1))
    target = OLD if reset else NEW
    (row,) = await arrive(world, inbox(2, target))
    await world.a.begin_run(run_in(target, "r", row), node=A)
    if reset:
        await world.a.reset_session(key_of(OLD), now=at(1))
    await move(world)
    await world.a.finish_run(replace(end("r"), history=(entry("done"),)), node=A)
    assert await history(world) == ([] if reset else ["done"])


async def test_a_run_whose_session_falls_to_another_node_is_fenced(world: World) -> None:
    (row,) = await arrive(world, inbox(1))
    await world.a.begin_run(run_in(OLD, "r", row), node=A)
    (other,) = await arrive(world, inbox(2, NEW), node=B)
    await world.b.begin_run(run_in(NEW, "r2", other), node=B)
    await move(world)
    with pytest.raises(Fenced):
        await world.a.finish_run(end("r", Outcome.COMPLETED, "late words"), node=A)
    await world.b.finish_run(end("r2"), node=B)
    assert await todo(world) == []
    (again,) = await todo(world, B)
    assert (again.id, again.attempts) == (row.id, 0)
    assert await world.a.outbox() == []
    lost = (await world.a.find_run("r"))[0]
    assert (lost.outcome, lost.finished_at) == (Outcome.LOST, at(100))
    assert "moved" in (lost.error or "")


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
    assert row.id in ids(await todo(world, B, now=now))


async def test_a_session_lost_before_the_move_is_not_won_back_by_a_new_claim(world: World) -> None:
    """The fence goes on from the higher one of the two sessions, not from that of the new one."""
    await world.a.begin_run(run_in(OLD, "r"), node=A)
    now = await recovered(world)
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
    assert ids(await todo(world, B, now=now)) == [row.id]


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
    assert ids(await todo(world)) == [second.id]


async def test_a_session_that_only_one_node_owned_stays_with_it(world: World) -> None:
    """A run under the old key is fenced where another node has the new session."""
    (row,) = await arrive(world, inbox(1))
    (other,) = await arrive(world, inbox(2, NEW), node=B)
    await world.b.settle([other.id], Outcome.DROPPED, now=T0)
    await world.a.release_sessions(A, [key_of(OLD)], waiting=True)
    await move(world)
    assert (await session(world)).owner == B
    with pytest.raises(Fenced):
        await world.a.begin_run(run_in(OLD, "r", row), node=A)
    assert ids(await todo(world, B)) == [row.id]


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


async def test_what_comes_in_late_under_the_old_id_goes_with_the_next_move(world: World) -> None:
    await arrive(world, inbox(1))
    await remember(world, OLD, "before", 1)
    await move(world)
    (late,) = await arrive(world, inbox(2))
    assert late.session == key_of(OLD)
    assert await move(world)
    assert len(await todo(world)) == 2
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
        old, new = replace(OLD, chat=f"-{number}"), replace(NEW, chat=f"-100{number}")
        (row,) = await arrive(world, inbox(number, old))
        _, late, begun = await asyncio.gather(
            move(world, old, new, store=world.b),
            world.a.accept([inbox("a", new), inbox("b", old)], node=A, now=T0),
            world.a.begin_run(run_in(old, f"r{number}", row), node=A),
        )
        assert begun == RunStartResult()
        await world.a.finish_run(end(f"r{number}"), node=A)
        await move(world, old, new, store=world.b)
        pending = [one.session for one in await todo(world) if one.message.target == new]
        assert pending == [key_of(new)] * 2
        assert len(late.rows) == 2
