"""What every store promises about group messages without a mention (SPEC CHAN-12)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from goclaw_py.model.ids import RunId, SessionKey
from goclaw_py.model.messages import Attachment, FileKind, PeerKind, Sender, Target
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.session_keys import chat_session
from goclaw_py.ports.store import Store, Unmentioned
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
    message,
    new_run,
    todo,
)

pytestmark = pytest.mark.real_time

GROUP = chat_session(AGENT, ANN, PeerKind.GROUP)
LATER = at(1000)


def said(number: int, target: Target = ANN, *, keep: int = 50, sent: float = 0) -> Unmentioned:
    text = f"text {number}"
    spoken = replace(
        message(number, target, text=text), peer=PeerKind.GROUP, sent_at=at(sent), addressed=False
    )
    return Unmentioned(spoken, chat_session(AGENT, target, PeerKind.GROUP), keep)


async def begun(world: World, name: str) -> RunId:
    """A run of the group that node A works on."""
    asked = inbox(name)
    (row,) = (await world.a.accept([replace(asked, session=GROUP)], node=A, now=T0)).rows
    await world.a.begin_run(replace(new_run(name, row), session=GROUP), node=A)
    return RunId(name)


async def taken(
    store: Store, run: str, *, until: datetime = LATER, now: datetime = T0
) -> list[str]:
    found = await store.take_unmentioned(GROUP, RunId(run), until=until, now=now)
    return [one.text for one in found]


async def kept(store: Store, session: SessionKey = GROUP) -> list[str]:
    """The oldest first."""
    return [row.message.text for row in await store.unmentioned(session)][::-1]


async def test_what_was_said_is_given_once_in_its_order_with_all_that_is_known(
    world: World,
) -> None:
    full = replace(
        said(1).message,
        attachments=(Attachment(FileKind.PHOTO, "ref", "a\x00"),),
        quote="q",
        quoted_from=Sender("8", "Bob", "bob"),
        forwarded_from=Sender("", "Hidden"),
    )
    await world.a.note_unmentioned([replace(said(1), message=full), said(2)], now=T0)
    await world.b.note_unmentioned([said(3), said(4, BOB)], now=at(1))
    run = await begun(world, "r1")
    found = await world.a.take_unmentioned(GROUP, run, until=LATER, now=at(2))
    clean = replace(full, attachments=(replace(full.attachments[0], name="a\ufffd"),))
    assert found == [clean, said(2).message, said(3).message]
    assert await taken(world.b, "r1") == ["text 1", "text 2", "text 3"], "the same run, again"
    await begun(world, "r2")
    assert await taken(world.b, "r2") == []


async def test_only_the_newest_of_each_session_are_kept_once_each(world: World) -> None:
    for store in (world.a, world.b):
        await store.note_unmentioned([said(1), said(1), said(2)], now=T0)
    assert await kept(world.a) == ["text 1", "text 2"]
    batch = [said(number, keep=3) for number in range(-2, 4)]
    await world.a.note_unmentioned([*batch, said(9, BOB, keep=1)], now=T0)
    assert await kept(world.a) == ["text 1", "text 2", "text 3"]
    await world.a.note_unmentioned([said(2, keep=3), said(3, keep=3), said(4, keep=3)], now=T0)
    assert await kept(world.a) == ["text 2", "text 3", "text 4"]
    assert await kept(world.a, said(1, BOB).session) == ["text 9"]


async def test_what_was_sent_later_or_came_a_day_before_is_not_given(world: World) -> None:
    """It is forgotten (SPEC DB-5)."""
    await world.a.note_unmentioned([said(1)], now=at(-1))
    await world.a.note_unmentioned([said(2, sent=5), said(3, sent=6)], now=T0)
    await begun(world, "r1")
    day = T0 + timedelta(days=1)
    assert await taken(world.a, "r1", until=at(5), now=day) == ["text 2"]
    assert await taken(world.a, "r1", until=at(5), now=day + timedelta(seconds=1)) == []
    for swept in (1, 0):
        assert await world.b.sweep_unmentioned(now=day) == swept
    assert await kept(world.a) == ["text 2", "text 3"]


@pytest.mark.parametrize("outcome", [*Outcome, None])
async def test_a_run_that_was_cut_leaves_what_it_was_given_to_the_next(
    world: World, outcome: Outcome | None
) -> None:
    """SPEC IO-2: nothing is lost to a crash, and no two runs are given the same."""
    await world.a.note_unmentioned([said(1)], now=T0)
    await begun(world, "r1")
    assert await taken(world.a, "r1") == ["text 1"]
    if outcome is Outcome.LOST:
        await world.b.recover(now=await world.kill(A), max_attempts=3, apology="")
    elif outcome is not None:
        await world.a.finish_run(end("r1", outcome), node=A)
    was_cut = outcome in (Outcome.LOST, Outcome.INTERRUPTED)
    assert await taken(world.b, "r2") == (["text 1"] if was_cut else [])


async def test_an_edit_changes_what_was_said_and_is_kept_nowhere_else(world: World) -> None:
    await world.a.note_unmentioned([said(1)], now=T0)

    def edit(number: int, text: str) -> Unmentioned:
        original = said(number).message
        name = f"{original.external_id}:{len(text)}"
        changed = replace(original, external_id=name, text=text, edits=original.external_id)
        return replace(said(number), message=changed)

    batch = [said(2), edit(2, "new"), edit(1, "first"), edit(1, "second\x00"), edit(3, "unknown")]
    await world.b.note_unmentioned(batch, now=T0)
    assert await kept(world.a) == ["second\ufffd", "new"]


async def test_one_is_found_by_its_external_id_with_the_run_that_has_it(world: World) -> None:
    await world.a.note_unmentioned([said(1)], now=T0)
    await begun(world, "r1")
    place = ("telegram", "default")
    for run in (None, "r1"):
        found = await world.b.find_unmentioned(*place, "100:1")
        assert found is not None
        assert (found.session, found.received_at, found.run_id) == (GROUP, T0, run)
        await taken(world.a, "r1")
    assert await world.b.find_unmentioned(*place, "100:2") is None


async def test_what_was_said_moves_with_its_chat_and_goes_with_its_conversation(
    world: World,
) -> None:
    """SPEC CHAN-7, CMD-5. None of it is work or makes a conversation."""
    await world.a.note_unmentioned([said(1), said(2, BOB)], now=T0)
    assert await todo(world, B) == []
    assert (await world.a.sessions(), await world.a.heard()) == ([], [])
    await begun(world, "r1")
    await world.a.move_chat("telegram", "default", old=ANN.chat, new="-1", now=T0)
    moved = chat_session(AGENT, replace(ANN, chat="-1"), PeerKind.GROUP)
    assert (await kept(world.a), await kept(world.a, moved)) == ([], ["text 1"])
    await world.a.reset_session(moved, now=T0)
    assert await kept(world.a, moved) == []
    assert await kept(world.a, said(2, BOB).session) == ["text 2"]
