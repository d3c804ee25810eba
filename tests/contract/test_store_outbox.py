"""What every store promises about messages on their way to the channel."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import NodeId, OccurrenceId, RunId
from goclaw_py.core.messages import FileKind, OutboundMessage, OutFile, Target, person_at
from goclaw_py.records import InboxRow, Notice, OutboxQuery, OutboxRow, OutboxState, Place
from tests.support.stores import (
    ANN,
    BOB,
    PLACES,
    T0,
    A,
    B,
    World,
    at,
    end,
    inbox,
    key_of,
    listen,
    new_run,
    ran,
    say,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

TOPIC = Target("telegram", "default", "100", "5")


async def test_a_message_is_stored_whole_and_due_at_once(world: World) -> None:
    """DB-3: every process notices."""
    mine, theirs = listen(world.a), listen(world.b)
    message = OutboundMessage(TOPIC, "text", reply_to="3", run_id=RunId("r"))
    (row,) = await world.put(message)
    await until(mine.expect(Notice.OUTBOX))
    await until(theirs.expect(Notice.OUTBOX))
    assert row.message == message
    assert (row.state, row.attempts, row.possible_duplicate) == (OutboxState.WAITING, 0, False)
    assert (row.created_at, row.next_attempt_at) == (T0, T0)
    assert (row.sent_at, row.external_id, row.error) == (None, None, None)
    assert await world.b.outbox_row(row.id) == row
    assert await world.b.outbox_row(row.id + 1) is None


async def test_chats_that_are_due_are_named_once_and_without_thread(world: World) -> None:
    """Of the places asked for, the longest due first."""
    console, other_bot = Target("console", "default", "1"), Target("telegram", "second", "100")
    await world.put(say("old", BOB), say("1", console), say("2", other_bot), now=at(2))
    await world.put(say("young", TOPIC), say("younger", ANN), now=at(5))
    assert list((await world.b.chats_due(PLACES, now=at(9))).counts) == [BOB, ANN]
    assert list((await world.a.chats_due(PLACES, now=at(3))).counts) == [BOB]
    both = [("telegram", "second"), ("console", "default"), ("console", "default")]
    assert set((await world.a.chats_due(both, now=at(9))).counts) == {console, other_bot}
    assert list((await world.a.chats_due([], now=at(9))).counts) == []


async def test_a_chats_messages_are_claimed_in_order_one_by_one(world: World) -> None:
    """IO-4."""
    await world.put(say("1"), say("2", TOPIC), say("3"))
    sent = []
    for _ in range(3):
        row = await world.claimed()
        assert row.state is OutboxState.SENDING
        assert await world.b.claim_next(ANN, node=B, now=T0) is None
        await world.a.mark_sent(row, f"m{row.id}", now=at(1))
        sent.append(row.message.text)
    assert sent == ["1", "2", "3"]
    assert await world.a.claim_next(ANN, node=A, now=T0) is None


def photos(*names: str, album: str = "r/1") -> list[OutboundMessage]:
    files = [OutFile(FileKind.PHOTO, f"/{name}", name) for name in names]
    return [OutboundMessage(TOPIC, "", file=file, album=album) for file in files]


def named(rows: list[OutboxRow]) -> list[str]:
    return [row.message.file.name for row in rows if row.message.file]


async def test_the_files_of_an_album_are_claimed_together(world: World) -> None:
    """CHAN-6: in their order, and no row of anything else; it can be taken apart."""
    await world.put(*photos("a", "b", "c"), say("words"), *photos("d", "e", album="r/2"))
    assert (await world.a.chats_due(PLACES, now=T0)).counts == {ANN: 3}
    head = await world.claimed()
    others = await world.a.claim_album(head, node=A)
    assert named([head, *others]) == ["a", "b", "c"]
    assert {(row.state, row.attempts) for row in others} == {(OutboxState.SENDING, 1)}
    for row in (head, *others):
        await world.a.mark_failed(row, "x", retry_at=T0, maybe_sent=False, alone=True)
    for name in ("a", "b", "c"):
        row = await world.claimed()
        assert (named([row]), row.message.album) == ([name], "")
        assert await world.a.claim_album(row, node=A) == []
        await world.a.mark_sent(row, "m", now=T0)
    assert (await world.a.chats_due(PLACES, now=T0)).counts == {ANN: 1}
    words = await world.claimed()
    assert await world.a.claim_album(words, node=A) == []


async def test_an_album_is_claimed_whole_whenever_its_files_are_due(world: World) -> None:
    """And again if the answer to the claim was lost; not by a node that is dead."""
    await world.put(*photos("a", "b"))
    head = await world.claimed()
    (other,) = await world.a.claim_album(head, node=A)
    await world.a.mark_failed(other, "x", retry_at=at(99), maybe_sent=False)
    lost = await world.a.claim_album(head, node=A)
    (again,) = await world.a.claim_album(head, node=A)
    assert named(lost) == ["b"]
    assert (again.attempts, again.fence) == (2, lost[0].fence + 1)
    with pytest.raises(Fenced):
        await world.a.mark_sent(lost[0], "m", now=T0)
    assert await world.b.claim_album(head, node=B) == []
    assert await world.a.claim_album(head, node=NodeId("unknown")) == []


async def test_one_chat_does_not_block_another(world: World) -> None:
    """IO-4: whatever the thread. A node that has not joined claims nothing."""
    await world.put(say("1"), say("2", BOB))
    assert await world.a.claim_next(ANN, node=NodeId("stranger"), now=T0) is None
    assert (await world.claimed(target=TOPIC)).message.text == "1"
    assert (await world.claimed(target=BOB)).message.text == "2"


async def test_a_message_that_is_not_due_blocks_those_behind_it(world: World) -> None:
    await world.put(say("1"), say("2"))
    row = await world.claimed()
    await world.a.mark_failed(row, "flood", retry_at=at(30), maybe_sent=False)
    assert await world.a.claim_next(ANN, node=A, now=at(29)) is None
    assert list((await world.a.chats_due(PLACES, now=at(29))).counts) == []
    assert (await world.claimed(now=at(30))).message.text == "1"


async def test_a_claim_whose_answer_was_lost_can_be_repeated(world: World) -> None:
    """Else the chat would be blocked for as long as this node lives."""
    await world.put(say("1"), say("2"))
    nodes = ((world.a, A), (world.b, B))
    got = await asyncio.gather(*(one.claim_next(ANN, node=node, now=T0) for one, node in nodes))
    assert [row.message.text for row in got if row is not None] == ["1"]
    await world.b.leave(B, now=T0)
    lost, again = await world.claimed(), await world.claimed()
    assert again.message.text == "1"
    assert again.possible_duplicate == (got[1] is not None)
    with pytest.raises(Fenced):
        await world.a.mark_sent(lost, "m1", now=T0)
    await world.a.mark_sent(again, "m1", now=T0)
    assert (await world.claimed()).message.text == "2"


async def test_a_failed_message_counts_its_attempts(world: World) -> None:
    """IO-3, IO-5: one that may have been sent stays marked."""
    await world.put(say("1"))
    for attempt, maybe_sent in ((1, False), (2, True), (3, False)):
        row = await world.claimed(now=at(attempt))
        await world.a.mark_failed(
            row, f"error {attempt}", retry_at=at(attempt), maybe_sent=maybe_sent
        )
        (left,) = await world.a.outbox()
        assert (left.state, left.attempts) == (OutboxState.WAITING, attempt)
        assert (left.error, left.next_attempt_at) == (f"error {attempt}", at(attempt))
        assert left.possible_duplicate == (attempt > 1)


async def test_sent_means_that_the_channel_confirmed_it(world: World) -> None:
    """IO-6."""
    await world.put(say("1"))
    await world.a.mark_failed(await world.claimed(), "error", retry_at=T0, maybe_sent=False)
    await world.a.mark_sent(await world.claimed(), "m1", now=at(2))
    (sent,) = await world.b.outbox()
    assert (sent.state, sent.external_id, sent.sent_at) == (OutboxState.SENT, "m1", at(2))
    assert (sent.attempts, sent.error) == (2, None)


async def test_a_dead_message_can_be_tried_again_ahead_of_younger_ones(world: World) -> None:
    """IO-3: retryable by hand. Those behind it go on."""
    await world.put(say("1"), say("2"), say("3"))
    row = await world.claimed()
    await world.a.mark_failed(row, "x", retry_at=T0, maybe_sent=False)
    await world.a.mark_dead(await world.claimed(), "bot was blocked", now=T0)
    (dead,) = await world.a.outbox(OutboxQuery(OutboxState.FAILED))
    assert (dead.error, dead.sent_at, dead.attempts) == ("bot was blocked", None, 2)
    heard, last = listen(world.b), (await world.a.outbox())[0]
    assert await world.b.retry_outbox([row.id, row.id, last.id, 999], now=at(7)) == 1
    await until(heard.expect(Notice.OUTBOX))
    assert await world.a.claim_next(ANN, node=A, now=at(6)) is None
    again = await world.claimed(now=at(7))
    assert (again.message.text, again.attempts, again.next_attempt_at) == ("1", 1, at(7))
    assert await world.b.retry_outbox([], now=T0) == 0
    await world.a.mark_dead(again, "x", now=at(7))
    assert (await world.claimed(now=at(7))).message.text == "2"


async def test_a_mark_can_be_repeated_but_not_contradicted(world: World) -> None:
    """DB-4: the answer to the first try may have been lost. A later claim makes it invalid."""
    await world.put(say("1"), say("2", BOB))
    old, other = await world.claimed(), await world.claimed(target=BOB)
    for _ in range(2):
        await world.a.mark_failed(old, "x", retry_at=T0, maybe_sent=False)
    assert (await world.a.outbox(OutboxQuery(OutboxState.WAITING)))[0].attempts == 1
    for _ in range(2):
        await world.a.mark_sent(other, "m", now=T0)
    row = await world.claimed()
    for late in (
        world.a.mark_dead(other, "x", now=T0),
        world.a.mark_sent(old, "m", now=T0),
        world.a.mark_failed(old, "y", retry_at=T0, maybe_sent=False),
        world.a.mark_dead(old, "z", now=T0),
    ):
        with pytest.raises(Fenced):
            await late
    for _ in range(2):
        await world.a.mark_dead(row, "x", now=T0)
    with pytest.raises(Fenced):
        await world.a.mark_sent(row, "m", now=T0)


async def test_rows_are_listed_newest_first_and_by_state(world: World) -> None:
    for text in ("sent", "failed", "dropped", "sending", "waiting"):
        await world.put(say(text))
    await world.a.mark_sent(await world.claimed(), "m", now=T0)
    await world.a.mark_dead(await world.claimed(), "x", now=T0)
    dropped = next(row for row in await world.a.outbox() if row.message.text == "dropped")
    await world.a.drop_outbox([dropped.id], now=T0)
    await world.claimed()
    assert [r.message.text for r in await world.a.outbox(OutboxQuery(limit=2))] == [
        "waiting",
        "sending",
    ]
    for state in OutboxState:
        assert [r.message.text for r in await world.a.outbox(OutboxQuery(state))] == [state.value]
        assert await world.a.outbox(OutboxQuery(state, limit=0)) == []


async def test_the_next_due_time_is_that_of_the_first_head_that_waits(world: World) -> None:
    """Not of one that is due, nor of one that a node is sending."""

    async def next_at(*places: Place) -> datetime | None:
        return (await world.a.chats_due(places or PLACES, now=T0)).next_at

    assert await next_at() is None
    await world.put(say("1"), say("2"), say("3", BOB))
    assert await next_at() is None
    await world.a.mark_failed(await world.claimed(), "x", retry_at=at(40), maybe_sent=False)
    row = await world.claimed(target=BOB)
    assert await next_at() == at(40)
    await world.a.mark_failed(row, "x", retry_at=at(30), maybe_sent=False)
    assert await next_at() == at(30)
    assert await next_at(("console", "default")) is None


async def test_rows_that_are_dead_or_wait_can_be_dropped(world: World) -> None:
    dead, sending, waiting = await world.put(say("1"), say("2"), say("3"))
    await world.a.mark_dead(await world.claimed(), "blocked", now=T0)
    await world.claimed()
    ids = [dead.id, dead.id, sending.id, waiting.id, 999]
    assert await world.b.drop_outbox(ids, now=at(5)) == {"telegram": 2}
    assert await world.b.drop_outbox(ids, now=at(6)) == {}
    states = [row.state for row in (await world.a.outbox())[::-1]]
    assert states == [OutboxState.DROPPED, OutboxState.SENDING, OutboxState.DROPPED]
    assert (await world.a.outbox(OutboxQuery(OutboxState.DROPPED)))[-1].error == "blocked"
    backlog = await world.a.backlog()
    assert (backlog.outbox, backlog.failed) == (1, 0)


async def test_what_is_behind_a_dropped_row_may_go_on_and_is_told(world: World) -> None:
    """The dropped one can be tried again."""
    first, _ = await world.put(say("1"), say("2"))
    await world.a.mark_failed(await world.claimed(), "x", retry_at=at(500), maybe_sent=False)
    heard = listen(world.b)
    await world.a.drop_outbox([first.id], now=at(1))
    await until(heard.expect(Notice.OUTBOX))
    second = await world.claimed(now=at(1))
    assert second.message.text == "2"
    await world.a.mark_sent(second, "m", now=at(1))
    assert await world.a.retry_outbox([first.id], now=at(1)) == 1
    assert (await world.claimed(now=at(1))).message.text == "1"


async def test_a_message_beside_a_lost_draft_is_a_possible_duplicate(world: World) -> None:
    """IO-5."""
    await world.put(say("one"), say("two"))
    for beside in (False, True):
        row = await world.claimed()
        for _ in range(2):
            await world.a.mark_sent(row, "m", now=T0, beside_draft=beside)
    two, one = await world.b.outbox()
    assert [one.possible_duplicate, two.possible_duplicate] == [False, True]


async def test_a_message_that_came_once_after_all_is_no_possible_duplicate(world: World) -> None:
    """IO-5; but one that was claimed again since is what its last claim says."""
    await world.put(say("one"))
    row = await world.claimed()
    await world.a.mark_failed(row, "reset", retry_at=T0, maybe_sent=True)
    row = await world.claimed()
    await world.a.clear_duplicate(row)
    assert (await world.b.outbox())[0].possible_duplicate
    await world.a.mark_sent(row, "m", now=T0)
    await world.a.clear_duplicate(replace(row, fence=row.fence - 1))
    assert (await world.b.outbox())[0].possible_duplicate
    for _ in range(2):
        await world.a.clear_duplicate(row)
    assert not (await world.b.outbox())[0].possible_duplicate


async def answered(world: World, run: str, texts: str, *rows: InboxRow) -> None:
    """A run that has said this, in parts."""
    parts = tuple(replace(say(text), run_id=RunId(run)) for text in texts)
    await ran(world, new_run(run, *rows), replace(end(run), say=parts))


async def cut(world: World, of: Target = ANN, **how: object) -> int:
    given = {"everything": False, "run": None, "sender": None, "now": at(3)} | how
    return await world.b.drop_answers(key_of(of), ANN, **given)  # type: ignore[arg-type]


async def test_what_waits_of_an_answer_can_be_given_up(world: World) -> None:
    """CMD-2: what is being sent goes on; what others say, and other sessions, is left alone."""
    await answered(world, "r1", "abc")
    await answered(world, "r2", "de")
    job = replace(say("job"), run_id=RunId("r3"), occurrence=OccurrenceId("o"))
    await world.put(job, say("notice"))
    sending = await world.claimed(now=at(20))
    assert await cut(world, BOB, everything=True) == 0
    assert await cut(world) == 2  # b and c; a is on its way
    assert await cut(world, run=RunId("r1")) == 0
    assert await cut(world, run=RunId("r2")) == 2
    assert await cut(world, everything=True) == 0
    states = {row.message.text: (row.state, row.error) for row in await world.b.outbox()}
    dropped = (OutboxState.DROPPED, "stopped")
    assert {text for text, state in states.items() if state == dropped} == {*"bcde"}
    assert states["job"] == states["notice"] == (OutboxState.WAITING, None)
    await world.a.mark_sent(sending, "m", now=at(4))


async def test_of_what_waits_only_what_answers_one_sender_can_be_given_up(world: World) -> None:
    """CMD-6."""
    for number, sender in enumerate("78"):
        accepted = await world.a.accept([inbox(number, sender=sender)], node=A, now=T0)
        await answered(world, f"r{sender}", sender * 2, *accepted.rows)
    for sender, dropped in (("9", 0), ("8", 2), ("8", 0)):
        assert await cut(world, everything=True, sender=person_at(ANN, sender)) == dropped
    pending = [row.message.text for row in await world.b.outbox(OutboxQuery(OutboxState.WAITING))]
    assert pending == ["7", "7"]


async def test_what_waits_for_a_time_of_a_clock_that_was_ahead_can_be_advanced(
    world: World,
) -> None:
    """SPEC IO-4: other messages of its chat wait behind it."""
    await world.put(say("one"), say("two"), now=at(3600))
    for after, by in ((3600, 3600), (900, 3599)):
        await world.a.advance_outbox(after=at(after), by=timedelta(seconds=by))
        assert list((await world.a.chats_due(PLACES, now=T0)).counts) == []
    await world.a.advance_outbox(after=T0, by=timedelta(seconds=1))
    assert list((await world.a.chats_due(PLACES, now=T0)).counts) == [ANN]
    assert (await world.claimed()).message.text == "one"
