"""Steps of runs, undo and forks (SPEC OPS-8, CMD-7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, Role, Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import ToolStarted, Usage
from goclaw_py.core.run_steps import ResponseStep
from goclaw_py.records import (
    InboxRow,
    LastTurn,
    NameKind,
    RunSoFar,
    SeenName,
    StoredStep,
    Summary,
    ToolCall,
)
from goclaw_py.records.rewind import CommandAnswer
from tests.support.stores import (
    ANN,
    BOB,
    T0,
    A,
    B,
    World,
    at,
    crash,
    end,
    entry,
    key_of,
    new_run,
    say,
    session_of,
    todo,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

KEY = key_of(ANN)
FORK = SessionKey("agent:default:console:direct:fork-1")
CONSOLE = Target("console", "default", "fork-1")
ASKED = ResponseStep(b"[]", Usage(1, 10, 5))
PAY = ToolStarted("c1", "pay", "{}")
PAID = ToolCall("pay", "{}", T0, seconds=1.0, ok=True, result="paid")


def said(name: str) -> tuple[HistoryEntry, ...]:
    return entry(f"ask {name}"), HistoryEntry(Role.ASSISTANT, f"say {name}", b"[]", "native")


async def turn(world: World, name: str, second: int, **more: object) -> None:
    """A run in Ann's chat that starts at this second and ends in the next one."""
    await world.a.begin_run(new_run(name, started_at=at(second)), node=A)
    ended = replace(end(name), finished_at=at(second + 1), history=said(name))
    await world.a.finish_run(replace(ended, **more), node=A)  # type: ignore[arg-type]


async def undo(
    world: World, run: str, row: InboxRow, now: datetime | None = None, *, node: NodeId = A
) -> bool:
    return await world.a.undo_turn(
        KEY,
        RunId(run),
        answer=CommandAnswer(row.id, (say(f"undone {run}"),)),
        now=now or at(60),
        node=node,
    )


async def texts(world: World, key: SessionKey = KEY) -> list[str]:
    return [one.entry.text for one in await world.a.history(key)]


async def test_the_steps_of_a_run_are_its_own(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED, PAY)), node=A)
    await crash(world)
    await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    await world.a.note_run(RunId("r2"), RunSoFar(steps=(ASKED,)), node=A)
    first = (StoredStep(RunId("r1"), 1, ASKED), StoredStep(RunId("r1"), 2, PAY))
    assert await world.b.run_steps(RunId("r1")) == first
    assert await world.b.run_steps(RunId("r2")) == (StoredStep(RunId("r2"), 1, ASKED),)
    await world.a.finish_run(end("r2", Outcome.FAILED), node=A)
    assert await world.b.run_steps(RunId("unknown")) == ()


@pytest.mark.parametrize(
    ("outcome", "reason", "call_key", "is_continued"),
    [
        (Outcome.INTERRUPTED, Reason.SHUTDOWN, "", True),
        (Outcome.INTERRUPTED, Reason.MERGED, "", False),
        (Outcome.LOST, Reason.NOT_CONTINUED, "", False),
        (Outcome.COMPLETED, None, "call", True),
    ],
)
async def test_the_steps_before_a_run_are_those_that_it_has_got(
    world: World, outcome: Outcome, reason: Reason | None, call_key: str, *, is_continued: bool
) -> None:
    rows: list[InboxRow] = [] if call_key else await world.accept(ANN)
    first = replace(new_run("r1", *rows), call_key=call_key)
    await world.a.begin_run(first, node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED,)), node=A)
    await world.a.finish_run(replace(end("r1", outcome), reason=reason), node=A)
    if outcome is Outcome.LOST:
        await world.a.retry_dead_letters([rows[0].id], now=at(1))
    again = replace(new_run("r2", *rows, started_at=at(2)), call_key=call_key)
    begun = await world.a.begin_run(again, node=A)
    await world.a.note_run(RunId("r2"), RunSoFar(steps=(PAY,)), node=A)
    assert begun.steps == ((ASKED,) if is_continued else ())
    assert await world.b.run_steps(RunId("r2")) == (StoredStep(RunId("r2"), 1, PAY),)


async def test_undo_removes_turn_after_turn_up_to_the_last_reset(world: World) -> None:
    await turn(world, "r0", 0)
    await world.a.reset_session(KEY, now=at(1))
    assert await world.a.last_turn(KEY) is None
    await turn(world, "r1", 2)
    await world.a.note(KEY, entry("from a job"), rows=(), now=at(3))
    await turn(world, "r2", 4, tools=(PAID,))
    one, two, three = await world.accept(ANN, ANN, ANN)
    assert await world.a.last_turn(KEY) == LastTurn(RunId("r2"), "ask r2", (PAID,))
    assert await undo(world, "r2", one, at(9))
    assert await texts(world) == ["ask r1", "say r1", "from a job"]
    assert await world.a.last_turn(KEY) == LastTurn(RunId("r1"), "ask r1")
    assert await undo(world, "r1", two, at(10))
    assert await texts(world) == ["from a job"]
    assert await world.a.last_turn(KEY) is None
    assert await todo(world) == [three]
    assert [row.message.text for row in await world.a.outbox()] == ["undone r1", "undone r2"]
    begun = await world.a.begin_run(new_run("r3", three, started_at=at(11)), node=A)
    assert [one.text for one in begun.history] == ["from a job"]
    # The record stays.
    assert [one.entry for one in await world.a.run_history(RunId("r2"))] == list(said("r2"))


async def test_undo_changes_nothing_where_it_must_not(world: World) -> None:
    await turn(world, "r1", 0)
    await turn(world, "r2", 2)
    first, second, third = await world.accept(ANN, ANN, ANN)
    assert not await undo(world, "r1", first), "it is not the last one"
    await world.a.begin_run(new_run("r3", third, started_at=at(4)), node=A)
    assert not await undo(world, "r2", first), "a run is in progress"
    await world.a.finish_run(end("r3"), node=A)
    assert not await undo(world, "r2", first, node=B), "another node owns it"
    assert await undo(world, "r2", first)
    assert not await undo(world, "r1", first), "a command acts once"
    assert await texts(world) == ["ask r1", "say r1"]
    assert await undo(world, "r1", second)


async def test_undo_does_not_go_into_a_summary(world: World) -> None:
    await turn(world, "r1", 0)
    begun = await world.a.begin_run(new_run("r2", started_at=at(2)), node=A)
    summary = Summary("in short", begun.places[-1])
    await world.a.finish_run(replace(end("r2"), history=said("r2"), summary=summary), node=A)
    one, two = await world.accept(ANN, ANN)
    assert await undo(world, "r2", one)
    assert await world.a.last_turn(KEY) == LastTurn(RunId("r1"), "ask r1", is_summarized=True)
    assert not await undo(world, "r1", two)
    begun = await world.a.begin_run(new_run("r3", two, started_at=at(99)), node=A)
    assert (begun.summary, begun.history) == ("in short", ())


async def test_the_last_turn_has_the_calls_of_the_runs_that_it_continued(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar((PAID,)), node=A)
    await crash(world)
    await world.a.begin_run(new_run("r2", row, started_at=at(1)), node=A)
    booked = replace(PAID, name="book")
    await world.a.finish_run(replace(end("r2"), history=said("r2"), tools=(booked,)), node=A)
    assert await world.a.last_turn(KEY) == LastTurn(RunId("r2"), "ask r2", (PAID, booked))


async def test_a_fork_is_a_copy_that_changes_nothing_in_the_original(world: World) -> None:
    await turn(world, "r1", 0)
    begun = await world.a.begin_run(new_run("r2", started_at=at(2)), node=A)
    await world.a.pin(KEY, ["likes tea"], run=RunId("r2"))
    summary = Summary("in short", begun.places[-1])
    await world.a.finish_run(replace(end("r2"), history=said("r2"), summary=summary), node=A)
    before = await session_of(world.a, KEY), await world.a.history(KEY)
    other = SessionKey(f"{FORK}2")
    for key in (FORK, other):
        assert await world.a.fork_session(KEY, key, CONSOLE, now=at(12)) == 4
    assert (await session_of(world.a, KEY), await world.a.history(KEY)) == before
    assert await world.a.history(FORK) == await world.a.history(other) == before[1]
    fork = await session_of(world.a, FORK)
    assert (fork.target, fork.owner, fork.agent) == (CONSOLE, None, before[0].agent)
    assert (fork.entries, fork.summaries, fork.pinned) == (4, 1, ("likes tea",))
    assert [one.entry for one in await world.a.run_history(RunId("r2"))] == list(said("r2"))
    # It goes on by itself.
    run = replace(new_run("r3", started_at=at(13)), session=FORK, target=CONSOLE)
    begun = await world.a.begin_run(run, node=A)
    assert (begun.history, begun.summary, begun.pinned) == (said("r2"), "in short", ("likes tea",))
    await world.a.finish_run(replace(end("r3"), history=said("r3")), node=A)
    assert (await session_of(world.a, FORK)).entries == 6
    assert (await session_of(world.a, KEY)).entries == 4
    last = await world.a.last_turn(FORK)
    assert last is not None
    assert last.run == "r3"


async def test_a_fork_at_a_run_has_what_was_remembered_when_it_ended(world: World) -> None:
    for number, name in enumerate(("r1", "r2", "r3")):
        await turn(world, name, 2 * number)
    (row,) = await world.accept(ANN)
    assert await undo(world, "r3", row, at(10))
    names = {"r1": ["r1"], "r2": ["r1", "r2"], "r3": ["r1", "r2", "r3"]}
    await world.a.reset_session(KEY, now=at(11))
    for run, turns in names.items():
        key = SessionKey(f"{FORK}-{run}")
        count = await world.a.fork_session(KEY, key, CONSOLE, run=RunId(run), now=at(12))
        assert count == 2 * len(turns)
        expected = [text for name in turns for text in (f"ask {name}", f"say {name}")]
        assert await texts(world, key) == expected
    assert await texts(world) == []
    nothing = SessionKey(f"{FORK}-unknown")
    assert await world.a.fork_session(key_of(BOB), nothing, CONSOLE, now=at(12)) == 0
    assert await world.a.session(nothing) is None


async def test_a_fork_before_a_summary_has_the_entries_instead(world: World) -> None:
    await turn(world, "r1", 0)
    await turn(world, "r2", 2)
    begun = await world.a.begin_run(new_run("r3", started_at=at(4)), node=A)
    summary = Summary("in short", begun.places[-1])
    ended = replace(end("r3"), history=said("r3"), summary=summary)
    await world.a.finish_run(ended, node=A)
    await world.a.fork_session(KEY, FORK, CONSOLE, run=RunId("r1"), now=at(12))
    run = replace(new_run("r4", started_at=at(13)), session=FORK, target=CONSOLE)
    begun = await world.a.begin_run(run, node=A)
    assert (begun.summary, begun.history) == ("", said("r1"))


async def test_a_conversation_is_deleted_once_nothing_runs_or_waits_in_it(world: World) -> None:
    """The usage of its runs stays, and so do other conversations."""
    (row,) = await world.accept(ANN)
    await world.accept(BOB)
    assert not await world.b.delete_session(KEY), "a message waits"
    await world.a.begin_run(new_run("r1", row), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar(steps=(ASKED, PAY)), node=A)
    assert not await world.b.delete_session(KEY), "a run is in progress"
    ended = replace(end("r1"), history=said("r1"), say=(say("answer"),), tools=(PAID,))
    await world.a.finish_run(replace(ended, usage=Usage(1, 10, 5)), node=A)
    title = SeenName(ANN, "Plans", kind=NameKind.GIVEN)
    await world.a.note_names([title, SeenName(BOB, "Bob")], now=T0)
    await world.stay_alive(at(60))
    sent = await world.claimed(now=at(60))
    await world.a.mark_sent(sent, "7", now=at(60))
    assert await world.b.delete_session(KEY)
    assert await world.a.session(KEY) is None
    assert await world.a.history(KEY) == []
    assert await world.a.run_steps(RunId("r1")) == ()
    assert await world.a.outbox() == []
    assert await world.a.names([ANN, BOB]) == KnownNames({BOB: "Bob"})
    (run,) = await world.a.runs()
    assert (run.tools, run.usage) == ((), Usage(1, 10, 5))
    assert await world.a.session(key_of(BOB)) is not None
    assert await world.a.delete_session(KEY), "there is none"
    (again,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r2", again), node=A)


async def test_a_message_whose_failed_turn_was_undone_is_not_unanswered(world: World) -> None:
    (row,) = await world.accept(ANN)
    await world.a.begin_run(new_run("r1", row), node=A)
    failed = replace(end("r1", Outcome.FAILED), history=said("r1"))
    await world.a.finish_run(failed, node=A)
    assert [one.run_id for one in await world.b.unanswered(KEY, ended=True)] == [RunId("r1")]
    (command,) = await world.accept(ANN)
    assert await undo(world, "r1", command)
    assert await world.b.unanswered(KEY, ended=True) == []


async def test_messages_of_an_undone_turn_wait_again_as_one_turn(world: World) -> None:
    """Also what has failed; one of another session, or that has not ended, is unchanged."""
    one, two, other, later = await world.accept(ANN, ANN, BOB, ANN)
    await world.a.begin_run(new_run("r1", one, two), node=A)
    failed = replace(end("r1", Outcome.FAILED), history=said("r1"))
    await world.a.finish_run(failed, node=A)
    await world.a.begin_run(new_run("r2", other, started_at=at(2)), node=A)
    await world.a.finish_run(end("r2"), node=A)
    (command,) = await world.accept(ANN)
    edited = replace(two.message, text="better")
    again = {row.id: row.message for row in (one, other, later)} | {two.id: edited}
    run = RunId("r1")
    assert await world.a.undo_turn(
        KEY, run, answer=CommandAnswer(command.id), again=again, now=at(60), node=A
    )
    assert await world.a.outbox() == []
    waiting = await todo(world)
    assert [(row.id, row.last_run, row.attempts) for row in waiting] == [
        (one.id, run, 0),
        (two.id, run, 0),
        (later.id, None, 0),
    ]
    assert [row.message for row in waiting] == [one.message, edited, later.message]
    assert await world.b.unanswered(KEY, ended=True) == []
