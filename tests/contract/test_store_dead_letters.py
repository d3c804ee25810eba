"""What every store promises about edits, and about messages that could not be worked on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import Attachment, FileKind, InboundMessage, PeerKind, Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import (
    DeadLetter,
    DeadLetterCounts,
    DeadLetterQuery,
    InboxKind,
    InboxRow,
    IncomingState,
    NewInbox,
    Notice,
    RunEnd,
    SeenChat,
    Unanswered,
)
from tests.support.stores import (
    AGENT,
    ANN,
    BOB,
    T0,
    A,
    B,
    World,
    at,
    end,
    inbox,
    key_of,
    letter_of,
    listen,
    message,
    new_run,
    ran,
    todo,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

FILE = Attachment(FileKind.PHOTO, "file-1", "cat.jpg", "image/jpeg", 1234)


def edit_of(original: InboundMessage, text: str, date: int = 1) -> NewInbox:
    edit = replace(
        original,
        external_id=f"{original.external_id}:{date}",
        text=text,
        attachments=(FILE,),
        quote="as you said",
        message_id="another",
        edits=original.external_id,
    )
    return NewInbox(edit, key_of(original.target), AGENT)


async def arrive(world: World, *batch: NewInbox) -> list[InboxRow]:
    return list((await world.a.accept(batch, node=A, now=at(1))).rows)


async def edited(world: World, text: str = "better") -> tuple[InboxRow, InboxRow]:
    """A message and an edit of it have come in."""
    original, edit = await arrive(world, inbox(1), edit_of(message(1), text))
    return original, edit


async def texts(world: World) -> list[str]:
    pending = await todo(world)
    return [row.message.text for row in pending]


async def test_a_message_is_found_by_the_id_under_which_it_came_in(world: World) -> None:
    """OPS-4: also when it has ended."""
    (row,) = await arrive(world, inbox(1))
    here = ("telegram", "default", "100:1")
    assert await world.b.is_known(*here)
    found = await world.b.letter_named(*here)
    assert found == await letter_of(world.b, row.id)
    await ran(world, new_run("r", row))
    assert await world.b.is_known(*here)
    for place, id_ in (("default", "100:2"), ("work", "100:1"), ("default", "x\0")):
        assert await world.b.letter_named("telegram", place, id_) is None
        assert not await world.b.is_known("telegram", place, id_)
    assert not await world.b.is_known("console", "default", "100:1")


async def test_the_last_version_of_a_message_is_found_by_its_id(world: World) -> None:
    """CHAN-6: the message itself, also amended, or the newest of its edits before a row."""
    name = ("telegram", "default", "100:1")
    assert await world.a.last_version(*name, before=1 << 40) is None
    rows = await arrive(
        world,
        inbox(1),
        inbox(10),
        edit_of(message(1), "one", 5),
        edit_of(message(1), "two", 6),
        inbox(2),
    )
    first, _, one, two, _ = rows
    for before, text in ((first.id, None), (one.id, "hello"), (two.id, "one"), (1 << 40, "two")):
        for store in (world.a, world.b):
            found = await store.last_version(*name, before=before)
            assert (found and found.text) == text
    await world.a.amend(one)
    amended = await world.b.last_version(*name, before=one.id)
    assert amended is not None
    assert amended.text == "one"
    assert await world.b.last_version("telegram", "work", "100:1", before=1 << 40) is None
    assert await world.b.last_version("telegram", "default", "x\0", before=1 << 40) is None


async def test_the_messages_of_a_run_are_found_also_after_its_end(world: World) -> None:
    """OPS-4."""
    rows = await arrive(world, inbox(1), inbox(2), inbox(3))
    run = new_run("r1", rows[1], rows[0])
    await world.a.begin_run(run, node=A)
    for _ in range(2):
        found = await world.b.letters_of(run.id)
        assert [one.row.id for one in found] == [rows[0].id, rows[1].id]
        await world.a.finish_run(end("r1"), node=A)
    assert await world.b.letters_of(RunId("r2")) == []


async def test_an_edit_replaces_what_a_waiting_message_says_and_nothing_else(world: World) -> None:
    """CHAN-6."""
    first = replace(message(1), cut=True, album="a", reply_to="9", quote="old", formatted="*a*")
    original, edit, _ = await arrive(
        world, NewInbox(first, key_of(ANN), AGENT), edit_of(first, "better"), inbox(2)
    )
    assert await world.b.amend(edit)
    changed, other = await todo(world)
    assert changed == replace(
        original, message=replace(first, text="better", attachments=(FILE,), quote="as you said")
    )
    assert other.message == message(2)
    letter = await letter_of(world.a, edit.id)
    assert (letter.row.outcome, letter.row.run_id) == (Outcome.COMPLETED, None)


async def test_an_edit_can_take_away_files_and_hold_anything(world: World) -> None:
    first = replace(message(1), attachments=(FILE,), quote="old")
    _, edit = await arrive(world, NewInbox(first, key_of(ANN), AGENT), edit_of(first, "x"))
    hostile = replace(edit.message, text="a\0b\ud800", attachments=(), quote="\\u0000")
    assert await world.a.amend(replace(edit, message=hostile))
    (changed,) = await todo(world)
    said = {"text": "a\ufffdb\ufffd", "attachments": (), "quote": "\\u0000"}
    assert changed.message == replace(first, **said)  # type: ignore[arg-type]


async def test_the_last_of_several_edits_counts(world: World) -> None:
    """Each can be repeated: its answer may have been lost."""
    _, first, second = await arrive(
        world, inbox(1), edit_of(message(1), "one", 1), edit_of(message(1), "two", 2)
    )
    for edit in (first, first, second, second):
        assert await world.a.amend(edit)
    assert await texts(world) == ["two"]


@pytest.mark.parametrize(
    ("what", "left"),
    [("begun", ["hello", "late"]), ("ended", ["late"]), ("stopped", ["hello"])],
)
async def test_an_edit_that_is_too_late_changes_nothing(
    world: World, what: str, left: list[str]
) -> None:
    """The message is worked on or has ended, or the edit was stopped."""
    original, edit = await edited(world, "late")
    if what == "begun":
        await world.a.begin_run(new_run("r", original), node=A)
    else:
        row = original if what == "ended" else edit
        await world.a.settle([row.id], Outcome.DROPPED, now=T0)
    assert not await world.a.amend(edit)
    assert (await letter_of(world.a, original.id)).row.message.text == "hello"
    assert await texts(world) == left


async def test_an_edit_of_a_command_changes_nothing(world: World) -> None:
    command = inbox(1, kind=InboxKind.COMMAND)
    _, edit = await arrive(world, command, edit_of(message(1), "not a command"))
    assert not await world.a.amend(edit)


async def test_an_edit_of_an_unknown_message_changes_nothing(world: World) -> None:
    elsewhere = replace(ANN, account="work")
    same_id = NewInbox(replace(message(1), target=elsewhere), key_of(ANN), AGENT)
    other, edit = await arrive(world, same_id, edit_of(message(1), "better"))
    of_nothing = replace(edit, message=replace(edit.message, edits=None))
    of_itself = replace(edit, message=replace(edit.message, edits=edit.message.external_id))
    for unknown in (edit, of_nothing, replace(edit, id=999), of_itself):
        assert not await world.a.amend(unknown)
    assert await texts(world) == [other.message.text, "better"]


async def test_an_edit_and_a_beginning_run_agree_who_was_first(world: World) -> None:
    for number in range(1, 9):
        original, edit = await arrive(world, inbox(number), edit_of(message(number), "better"))
        run = new_run(f"r{number}", original)
        amended, _ = await asyncio.gather(world.b.amend(edit), world.a.begin_run(run, node=A))
        letter = await letter_of(world.a, original.id)
        assert letter.row.message.text == ("better" if amended else "hello")


SHOWN = {
    Outcome(one) for one in ("failed", "timed_out", "dropped", "rejected", "abandoned", "lost")
}


async def test_dead_letters_are_messages_that_failed(world: World) -> None:
    """OPS-1: ``goclaw deliveries incoming list``."""
    outcomes = sorted(set(Outcome) - {Outcome.INTERRUPTED})
    rows = await world.accept(*[ANN] * len(outcomes), BOB)
    for row, outcome in zip(rows, outcomes, strict=False):
        await world.a.settle([row.id], outcome, now=at(2))
    await arrive(world, inbox("c", kind=InboxKind.COMMAND, outcome=Outcome.FAILED))
    wanted = [outcome for outcome in outcomes[::-1] if outcome in SHOWN]
    for limit in (2, 99):
        found = await world.b.dead_letters(DeadLetterQuery(limit=limit))
        assert [letter.row.outcome for letter in found] == wanted[:limit]


async def test_dismissed_messages_are_listed_until_they_are_retried(world: World) -> None:
    first, second, third, answered = await world.accept(ANN, BOB, ANN, BOB)
    for row in (first, second, third):
        await world.a.settle([row.id], Outcome.LOST, now=at(2))
    await world.a.settle([answered.id], Outcome.COMPLETED, now=at(2))
    everything = [first.id, second.id, answered.id]
    assert await world.a.dismiss_dead_letters(everything, now=at(1)) == 2
    dismissed = DeadLetterQuery(IncomingState.DISMISSED)
    found = await world.b.dead_letters(dismissed)
    assert [letter.row.id for letter in found] == [second.id, first.id]
    assert await world.b.dead_letters(replace(dismissed, limit=1)) == found[:1]
    assert await world.b.dead_letters(replace(dismissed, before=second.id)) == found[1:]
    assert await world.b.dead_letter_counts() == DeadLetterCounts(1, 0, 2)
    await world.a.retry_dead_letters([second.id], now=at(20))
    assert await world.b.dead_letters(dismissed) == found[1:]
    assert await world.b.dead_letter_counts() == DeadLetterCounts(1, 1, 1)


async def test_channels_are_those_of_messages_and_of_seen_chats(world: World) -> None:
    assert await world.b.message_channels() == frozenset()
    mail = replace(ANN, channel="mail")
    await world.accept(ANN, mail, BOB)
    post = Target("post", "default", "7")
    await world.a.note_chats([SeenChat(post, PeerKind.DIRECT, "Post")], now=T0)
    assert await world.b.message_channels() == {ANN.channel, "mail", "post"}


async def test_a_dead_letter_has_all_facts_of_its_message(world: World) -> None:
    (row,) = await world.accept(BOB)
    failed = RunEnd(RunId("r"), Outcome.TIMED_OUT, at(8), reason=Reason.RUN_TIMEOUT)
    await ran(world, new_run("r", row, target=BOB), failed)
    ended = Unanswered(
        row.id, row.message, RunId("r"), T0, at(8), Outcome.TIMED_OUT, Reason.RUN_TIMEOUT
    )
    letter = DeadLetter(ended, key_of(BOB), AGENT, 1)
    assert await world.b.dead_letters() == [letter]
    assert await world.b.dead_letter(row.id) == letter
    assert await world.b.dead_letter(999) is None


async def test_messages_that_are_not_done_are_listed_of_all_sessions(world: World) -> None:
    first, second, third = await world.accept(ANN, BOB, ANN)
    await arrive(world, inbox("c", kind=InboxKind.COMMAND))
    await world.a.begin_run(new_run("r", first), node=A)
    await world.a.settle([third.id], Outcome.DROPPED, now=T0)
    for state, found in (
        (
            IncomingState.WAITING,
            DeadLetter(Unanswered(second.id, second.message, None, T0), key_of(BOB), AGENT, 0),
        ),
        (
            IncomingState.RUNNING,
            DeadLetter(Unanswered(first.id, first.message, RunId("r"), T0), key_of(ANN), AGENT, 1),
        ),
    ):
        assert await world.b.dead_letters(DeadLetterQuery(state)) == [found]


async def test_a_dead_letter_can_be_tried_again_with_all_attempts_before_it(world: World) -> None:
    """It is worked on as any other."""
    first, second = await world.accept(ANN, ANN)
    await world.crash("r1", first, max_attempts=1)
    (lost,) = await world.a.dead_letters()
    assert (lost.row.outcome, lost.attempts) == (Outcome.LOST, 1)
    heard = listen(world.b)
    assert await world.a.retry_dead_letters([first.id, first.id, second.id, 999], now=at(20)) == 1
    await until(heard.expect(Notice.INBOX))
    assert await world.a.dead_letters() == []
    assert await world.a.renew(A, until=at(30))
    assert await todo(world, now=at(20)) == [replace(first, last_run=RunId("r1")), second]
    waiting = await world.a.unanswered(key_of(ANN), ended=False)
    assert [row.id for row in waiting] == [first.id, second.id]
    assert await world.a.retry_dead_letters([first.id], now=at(21)) == 0
    await world.crash("r2", first, max_attempts=2)
    assert await world.a.dead_letters() == []
    await ran(world, new_run("r3", first))
    letter = await letter_of(world.a, first.id)
    assert (letter.row.outcome, letter.row.run_id) == (Outcome.COMPLETED, "r3")
    assert letter.attempts == 2
    assert await world.a.unanswered(key_of(ANN), ended=True) == []


async def test_a_dead_letter_of_a_session_goes_to_the_node_that_owns_it(world: World) -> None:
    """Of a free session to whoever looks first."""
    (row,) = await world.accept(ANN)
    await world.a.settle([row.id], Outcome.FAILED, now=T0)
    await world.b.retry_dead_letters([row.id], now=at(1))
    assert await todo(world, B, now=at(1)) == []
    assert await todo(world, now=at(1)) == [row]
    await world.a.settle([row.id], Outcome.FAILED, now=T0)
    await world.a.release_sessions(A, [key_of(ANN)])
    await world.a.retry_dead_letters([row.id], now=at(1))
    assert await todo(world, B, now=at(1)) == [row]


async def test_what_was_answered_and_what_is_a_command_is_not_tried_again(world: World) -> None:
    """A message that was stopped is, though it is no letter."""
    row, stopped = await world.accept(ANN, ANN)
    await ran(world, new_run("r", row))
    (command,) = await arrive(world, inbox("c", kind=InboxKind.COMMAND, outcome=Outcome.FAILED))
    await world.a.settle([stopped.id], Outcome.CANCELLED, now=T0, reason=Reason.STOPPED)
    assert await world.a.dead_letters() == []
    heard = listen(world.a)
    assert await world.a.retry_dead_letters([row.id, command.id], now=at(1)) == 0
    assert await world.a.dismiss_dead_letters([row.id, command.id], now=at(1)) == 0
    assert await texts(world) == []
    assert heard == []
    assert await world.a.retry_dead_letters([stopped.id], now=at(1)) == 1
    assert await todo(world, now=at(1)) == [stopped]


async def test_a_dismissed_dead_letter_is_not_listed_until_it_fails_again(world: World) -> None:
    first, second = await world.accept(ANN, BOB)
    await world.a.settle([first.id, second.id], Outcome.FAILED, now=T0)
    assert await world.a.dismiss_dead_letters([first.id, first.id, 999], now=at(1)) == 1
    assert await world.a.dismiss_dead_letters([first.id], now=at(1)) == 0
    assert [letter.row.id for letter in await world.b.dead_letters()] == [second.id]
    assert len(await world.a.unanswered(key_of(ANN), ended=True)) == 1
    assert await world.a.retry_dead_letters([first.id], now=at(1)) == 1
    await world.a.settle([first.id], Outcome.FAILED, now=at(2))
    listed = {letter.row.id for letter in await world.a.dead_letters()}
    assert listed == {first.id, second.id}


async def test_a_waiting_message_is_cancelled_but_not_one_that_a_run_has(world: World) -> None:
    """SPEC IO-3: the run ends it; a request that has not begun finds nothing to do."""
    waits, begun = await world.accept(ANN, BOB)
    await world.a.begin_run(new_run("r", begun), node=A)
    assert await world.b.dismiss_dead_letters([waits.id, begun.id], now=at(5)) == 1
    row = (await letter_of(world.a, waits.id)).row
    assert (row.outcome, row.reason, row.finished_at) == (
        Outcome.CANCELLED, Reason.STOPPED, at(5),
    )  # fmt: skip
    assert await world.a.dead_letter_counts() == DeadLetterCounts(0, 0, 1)
    with pytest.raises(Fenced):
        await world.a.begin_run(new_run("late", waits), node=A)
    assert await world.a.retry_dead_letters([waits.id], now=at(6)) == 1
    assert await world.a.dead_letter_counts() == DeadLetterCounts(0, 1, 0)


async def test_a_dead_letter_is_tried_again_once_however_many_ask(world: World) -> None:
    rows = await world.accept(*[ANN] * 5, *[BOB] * 5)
    ids = [row.id for row in rows]
    await world.a.settle(ids, Outcome.FAILED, now=T0)
    asks = [(store, order) for store in (world.a, world.b) for order in (ids, ids[::-1])]
    counts = await asyncio.gather(*(one.retry_dead_letters(some, now=at(1)) for one, some in asks))
    assert sum(counts) == len(ids)
