"""What every store promises about drafts (SPEC IO-5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import RunNotStarted
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import LostDraft, OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import Draft, InboxKind, InboxRow, RunStartResult, Stops
from tests.support.stores import (
    ANN,
    APOLOGY,
    BOB,
    T0,
    A,
    B,
    World,
    at,
    end,
    inbox,
    new_run,
    ran,
    say,
    todo,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

R1, R2, R3 = RunId("r1"), RunId("r2"), RunId("r3")
LOST = LostDraft(R1, "1")


async def draft_of(world: World, run: RunId, external_id: str | None = None) -> None:
    await world.a.open_draft(run, ANN, now=at(1))
    if external_id is not None:
        assert await world.a.draft_posted(run, external_id)


async def cut_with(
    world: World, *rows: InboxRow, run: str = "r1", draft: str | None = "55", second: float = 0
) -> None:
    """A run was cut and has left its draft."""
    await world.a.begin_run(new_run(run, *rows, started_at=at(second)), node=A)
    await world.a.open_draft(RunId(run), ANN, now=at(second))
    if draft is not None:
        assert await world.a.draft_posted(RunId(run), draft)
    await world.a.finish_run(end(run, Outcome.INTERRUPTED), node=A)


async def recovered(world: World, *, max_attempts: int = 3) -> dict[RunId, Outcome]:
    """Node A dies and B takes back what it left: how the runs ended that it had cut."""
    now = await world.kill(A)
    recovery = await world.b.recover(now=now, max_attempts=max_attempts, apology=APOLOGY)
    return {cut.run_id: cut.outcome for cut in recovery.cut_runs}


async def closings(world: World) -> list[tuple[str, str | None, str | None, str]]:
    """What is to be sent that finishes a draft: its chat, run, draft and text, the oldest first."""
    said = [row.message for row in (await world.a.outbox())[::-1]]
    return [(one.target.chat, one.run_id, one.draft, one.text) for one in said if one.draft]


async def test_a_draft_is_known_before_it_is_posted_and_by_its_id_after_that(
    world: World,
) -> None:
    """Opening it again changes nothing."""
    target = Target("telegram", "default", "100", "4")
    await world.a.begin_run(new_run("r1"), node=A)
    await world.a.open_draft(R1, target, now=T0)
    assert await world.b.drafts() == [Draft(R1, target, None)]
    assert await world.a.draft_posted(R1, "55")
    await draft_of(world, R1)
    assert await world.b.drafts() == [Draft(R1, target, "55")]


async def test_drafts_are_listed_the_oldest_first(world: World) -> None:
    for name, second in (("r1", 2), ("r2", 1), ("r3", 1)):
        await world.a.begin_run(new_run(name), node=A)
        await world.a.open_draft(RunId(name), ANN, now=at(second))
    assert [draft.run_id for draft in await world.a.drafts()] == [R2, R3, R1]


async def test_only_a_run_that_works_opens_a_draft(world: World) -> None:
    with pytest.raises(RunNotStarted):
        await world.a.open_draft(R1, ANN, now=T0)
    assert not await world.a.draft_posted(R1, "55")
    await ran(world, new_run("r1"))
    with pytest.raises(RunNotStarted):
        await world.a.open_draft(R1, ANN, now=T0)
    assert await world.a.drafts() == []


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.INTERRUPTED}))
async def test_a_draft_ends_with_its_run(world: World, outcome: Outcome) -> None:
    rows = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", *rows), node=A)
    await draft_of(world, R1)
    await world.a.finish_run(end("r1", outcome), node=A)
    assert await world.a.drafts() == []
    assert not await world.a.draft_posted(R1, "55")


async def test_a_run_and_its_draft_never_end_apart(world: World) -> None:
    """A draft that is opened while its run ends is gone, or was never there."""
    for number in range(25):
        run = RunId(f"r{number}")
        await world.a.begin_run(new_run(run), node=A)
        calls = world.a.finish_run(end(run), node=A), world.b.open_draft(run, ANN, now=T0)
        await asyncio.gather(*calls, return_exceptions=True)
    assert await world.a.drafts() == []


@pytest.mark.parametrize("cut", ["crash", "shutdown", "leaving"])
async def test_after_an_interruption_the_next_run_goes_on_with_the_draft(
    world: World, cut: str
) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await draft_of(world, R1, "55")
    if cut == "crash":
        assert await recovered(world) == {R1: Outcome.LOST}
    else:
        if cut == "shutdown":
            await world.a.finish_run(end("r1", Outcome.INTERRUPTED), node=A)
        await world.a.leave(A, now=at(2))
    await todo(world, B, now=at(20))
    assert await world.b.begin_run(new_run("r2", row), node=B) == RunStartResult(
        draft="55", is_restarted=cut != "shutdown"
    )
    assert await world.b.drafts() == [Draft(R2, ANN, "55")]
    await world.b.finish_run(end("r2"), node=B)
    assert await world.b.drafts() == []


@pytest.mark.parametrize("known", ["55", None])
async def test_the_next_run_is_told_the_draft_or_how_it_is_found(
    world: World, known: str | None
) -> None:
    """Also again, when its answer was lost, and the run after one that is cut too."""
    (row,) = await world.accept(ANN)
    await cut_with(world, row, draft=known)
    told = RunStartResult(draft=known, lost=None if known else LOST)
    for _ in range(2):
        assert await world.a.begin_run(new_run("r2", row), node=A) == told
    await world.a.finish_run(end("r2", Outcome.INTERRUPTED), node=A)
    assert await world.a.begin_run(new_run("r3", row), node=A) == told


@pytest.mark.parametrize("known", ["55", None])
async def test_an_id_that_comes_late_or_again_is_kept_for_the_next_run(
    world: World, known: str | None
) -> None:
    """The answer to the first call may be lost; what goes on with the draft is not disturbed."""
    (row,) = await world.accept(ANN)
    await cut_with(world, row, draft=known)
    assert await world.a.draft_posted(R1, "55")
    begun = await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    assert begun == RunStartResult(draft="55")
    assert await world.a.draft_posted(R1, "55")
    answer = replace(end("r2"), say=(OutboundMessage(ANN, "hi", run_id=R2, draft="55"),))
    await world.a.finish_run(answer, node=A)
    assert await world.a.draft_posted(R1, "55")
    assert not await world.a.draft_posted(R1, "56")


async def test_a_draft_with_the_same_id_elsewhere_is_another_one(world: World) -> None:
    """Telegram counts the messages of each chat."""
    first, second = await world.accept(ANN, BOB)
    await ran(world, new_run("r1", first))
    other = new_run("r2", second, target=BOB)
    await world.a.begin_run(other, node=A)
    await world.a.open_draft(R2, BOB, now=T0)
    assert await world.a.draft_posted(R2, "55")
    assert not await world.a.draft_posted(R1, "55")
    answer = replace(end("r2"), say=(OutboundMessage(BOB, "hi", run_id=R2, draft="55"),))
    await world.a.finish_run(answer, node=A)
    assert not await world.a.draft_posted(R1, "55")


async def test_a_run_for_one_of_several_messages_gets_their_draft(world: World) -> None:
    """One for other messages gets none."""
    first, second, other = await world.accept(ANN, ANN, ANN)
    await cut_with(world, first, second)
    for run, rows in (("r2", [other]), ("r3", [])):
        assert await world.a.begin_run(new_run(run, *rows), node=A) == RunStartResult()
    assert [draft.run_id for draft in await world.a.drafts()] == [R1]
    assert (await world.a.begin_run(new_run("r4", second), node=A)).draft == "55"
    assert (await world.a.begin_run(new_run("r5", first), node=A)).draft is None


async def test_of_several_drafts_a_run_gets_the_newest_with_an_id(world: World) -> None:
    """SPEC CMD-3: the older one is closed, and the one without an id looked for."""
    rows = await world.accept(ANN, ANN, ANN)
    for number, (row, known) in enumerate(zip(rows, ("51", "52", None), strict=True)):
        await cut_with(world, row, run=f"r{number}", draft=known, second=number)
    begun = await world.a.begin_run(new_run("all", *rows), node=A)
    assert begun == RunStartResult(draft="52")
    assert await world.a.drafts() == [Draft(RunId("all"), ANN, "52")]
    said = [row.message for row in await world.a.outbox()]
    assert [(one.text, one.lost) for one in said if one.lost] == [("", LostDraft(R2, "3"))]
    assert await closings(world) == [
        ("100", "r0", "51", texts.interrupted_draft(Outcome.INTERRUPTED))
    ]


@pytest.mark.parametrize("by", ["its end", "leaving"])
async def test_a_draft_without_messages_that_wait_ends_with_an_interrupted_run(
    world: World, by: str
) -> None:
    """Nobody would ever finish it: a job's, or one whose messages were stopped meanwhile."""
    (row,) = await world.accept(ANN)
    for run, rows in ((R1, [row]), (R2, [])):
        await world.a.begin_run(new_run(run, *rows), node=A)
        await draft_of(world, run, f"of {run}")
    await world.a.settle([row.id], Outcome.CANCELLED, now=T0)
    assert len(await world.a.drafts()) == 2  # their runs still work
    if by == "leaving":
        await world.a.leave(A, now=at(1))
    else:
        for run in (R1, R2):
            await world.a.finish_run(end(run, Outcome.INTERRUPTED), node=A)
    assert await world.b.drafts() == []
    assert ("100", "r1", "of r1", texts.interrupted_draft(Outcome.CANCELLED)) in await closings(
        world
    )


async def test_the_draft_of_messages_that_are_given_up_is_closed(world: World) -> None:
    """SPEC CMD-3: a second crash cannot leave it open."""
    lost, stopped, job = await world.accept(ANN, ANN, BOB)
    await ran(world, new_run("r1", lost), end("r1", Outcome.INTERRUPTED))
    for name, row, second in (("r2", lost, 2), ("r3", stopped, 3)):
        await world.a.begin_run(new_run(name, row, started_at=at(second)), node=A)
        await draft_of(world, RunId(name), f"draft of {name}")
    await world.a.settle([stopped.id], Outcome.CANCELLED, now=T0, reason=Reason.STOPPED)
    await world.a.begin_run(new_run("r4", job, target=BOB, started_at=at(4)), node=A)
    ended = await recovered(world, max_attempts=1)
    assert ended == {R2: Outcome.LOST, R3: Outcome.CANCELLED, RunId("r4"): Outcome.LOST}
    (of_stopped,) = await world.b.find_run("r3")
    assert (of_stopped.outcome, of_stopped.reason) == (Outcome.CANCELLED, Reason.STOPPED)
    assert sorted(await closings(world)) == [
        ("100", "r2", "draft of r2", texts.interrupted_draft(Outcome.LOST)),
        ("100", "r3", "draft of r3", texts.interrupted_draft(Outcome.CANCELLED)),
    ]
    assert await world.b.drafts() == []


async def test_an_abandoned_draft_whose_id_nobody_knows_is_looked_for(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await draft_of(world, R1)
    await world.a.settle([row.id], Outcome.CANCELLED, now=T0)
    await recovered(world)
    assert await world.b.drafts() == []
    (out,) = await world.b.outbox()
    assert out.message == OutboundMessage(ANN, "", run_id=R1, lost=LOST)


async def test_the_own_messages_of_a_chat_are_those_that_were_sent_and_drafts(world: World) -> None:
    (asked,) = await world.accept(ANN)
    heard = asked.message.message_id
    await world.put(say("to ann", replace(ANN, thread="4")), say("to bob", BOB))
    for number, target in enumerate((ANN, BOB), start=11):
        row = await world.claimed(target=target)
        await world.a.mark_sent(row, str(number), now=T0)
    await world.put(say("not sent"))
    await world.a.begin_run(new_run("r1"), node=A)
    await draft_of(world, R1, "55")
    await world.a.begin_run(new_run("r2"), node=A)
    await draft_of(world, R2)
    assert await world.b.own_messages(ANN) == {"11", "55"}
    assert await world.b.own_messages(BOB) == {"12"}
    assert await world.b.own_messages(BOB, everywhere=True) == {"11", "12", "55", heard}


async def test_the_newest_messages_of_a_time_are_those_that_were_there_then(world: World) -> None:
    (asked,) = await world.accept(ANN)
    heard = asked.message.message_id
    await world.put(say("to ann", replace(ANN, thread="4")), say("to bob", BOB), say("later"))
    for number, target in enumerate((ANN, BOB, ANN), start=11):
        row = await world.claimed(target=target)
        await world.a.mark_sent(row, str(number), now=at(number))
    for chat, then, everywhere, found in [
        (ANN, 11, False, {heard, "11"}),
        (ANN, 13, False, {heard, "11", "13"}),
        (ANN, 12, True, {heard, "11", "12"}),
        (BOB, 11, False, set()),
        (ANN, -1, True, set()),
    ]:
        assert await world.b.newest_before(chat, at(then), everywhere=everywhere) == found


@pytest.mark.parametrize("by", ["settle", "stop"])
async def test_a_draft_is_closed_when_what_waits_for_its_next_run_is_stopped(
    world: World, by: str
) -> None:
    """It is known to whoever tells its id again."""
    (row,) = await world.accept(ANN)
    await cut_with(world, row)
    if by == "settle":
        await world.a.settle([row.id], Outcome.CANCELLED, now=at(1))
    else:
        stop = inbox("stop", kind=InboxKind.COMMAND, outcome=Outcome.COMPLETED)
        stops = Stops((row.message.external_id,), Reason.STOPPED)
        await world.a.accept([replace(stop, stops=stops)], node=A, now=at(1))
    assert await closings(world) == [
        ("100", "r1", "55", texts.interrupted_draft(Outcome.CANCELLED))
    ]
    assert await world.a.drafts() == []
    assert await world.a.draft_posted(R1, "55")


async def test_the_draft_of_a_message_that_another_run_takes_in_is_removed(world: World) -> None:
    taken, other = await world.accept(ANN, ANN)
    await cut_with(world, taken)
    answer = replace(end("r2", Outcome.COMPLETED, "to both"), taken_in=(taken.id,))
    await ran(world, new_run("r2", other), answer)
    assert await closings(world) == [("100", "r1", "55", "")]
    assert await world.a.drafts() == []


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.COMPLETED, Outcome.FAILED])
@pytest.mark.parametrize("said", [True, False])
async def test_a_draft_that_no_message_of_its_run_finishes_is_closed(
    world: World, outcome: Outcome, said: bool
) -> None:
    """SPEC CMD-3: who ends the run may not know of its draft."""
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await draft_of(world, R1, "55")
    ended = end("r1", outcome)
    if said:
        ended = replace(ended, say=(OutboundMessage(ANN, "hi", run_id=R1, draft="55"),))
    await world.a.finish_run(ended, node=A)
    text = "" if outcome is Outcome.COMPLETED else texts.interrupted_draft(outcome)
    assert await closings(world) == [("100", "r1", "55", "hi" if said else text)]
    assert await world.a.drafts() == []


async def test_the_draft_of_a_run_that_works_survives_a_recovery(world: World) -> None:
    """A job's, that answers no message."""
    await world.b.begin_run(new_run("r1"), node=B)
    await draft_of(world, R1, "55")
    assert await recovered(world) == {}
    assert [draft.external_id for draft in await world.b.drafts()] == ["55"]
