"""What every store promises about summaries, pins, and what is kept of a run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from goclaw_py.core.errors import Fenced
from goclaw_py.core.ids import AgentName, RunId, SessionKey
from goclaw_py.core.messages import HistoryEntry, Role, Target
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import ToolStarted, Usage
from goclaw_py.core.session_keys import announcement_id
from goclaw_py.records import (
    InterruptedSubagent,
    NewInbox,
    NewRun,
    RunEnd,
    RunSoFar,
    RunStartResult,
    Session,
    StoredRun,
    SubagentTask,
    Summary,
    ToolCall,
)
from tests.support.stores import (
    AGENT,
    ANN,
    APOLOGY,
    BOB,
    T0,
    A,
    B,
    World,
    a_node,
    at,
    end,
    entry,
    inbox,
    key_of,
    message,
    new_run,
    session_of,
)

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="session")]

KEY = key_of(ANN)
OLD = Target("telegram", "default", "-5")
NEW = Target("telegram", "default", "-1005")
ENDS = [outcome for outcome in Outcome if outcome is not Outcome.LOST]
"""Those that a run is told; a recovery ends one as lost."""


async def begin(world: World, name: str, target: Target = ANN) -> RunStartResult:
    return await world.a.begin_run(new_run(name, target=target), node=A)


async def finish(world: World, ended: RunEnd) -> None:
    await world.a.finish_run(ended, node=A)


async def say(world: World, *texts: str, target: Target = ANN) -> None:
    """A run that leaves entries in the history."""
    name = f"that said {texts} in {target.chat}"
    await begin(world, name, target)
    await finish(world, replace(end(name), history=tuple(entry(text) for text in texts)))


async def summarize(world: World, text: str, first: int, target: Target = ANN) -> None:
    """A run that lets a text stand for the ``first`` entries of those that are read."""
    name = f"that wrote {text}"
    begun = await begin(world, name, target)
    await finish(world, replace(end(name), summary=Summary(text, begun.places[first - 1])))


def read(begun: RunStartResult) -> list[str]:
    return [one.text for one in begun.history]


async def told(world: World, target: Target = ANN) -> list[str]:
    """What operators see of a history."""
    return [stored.entry.text for stored in await world.b.history(key_of(target))]


async def session(world: World, target: Target = ANN) -> Session:
    return await session_of(world.b, key_of(target))


async def pinned(world: World, target: Target = ANN) -> tuple[str, ...]:
    return (await session(world, target)).pinned


async def the_run(world: World, name: str) -> StoredRun:
    (run,) = await world.b.find_run(name)
    return run


async def move(world: World, old: Target = OLD, new: Target = NEW) -> None:
    assert await world.a.move_chat("telegram", "default", old=old.chat, new=new.chat, now=at(100))


async def meet(world: World, target: Target, *, number: int | str = 1) -> None:
    """A message has come in, so that the session belongs to the chat."""
    await world.a.accept([inbox(number, target)], node=A, now=T0)


# ------------------------------------------------------------------------------- summaries


async def test_a_run_reads_a_summary_in_place_of_what_it_stands_for(world: World) -> None:
    """AGENT-4: operators see all. A later one takes the place of an earlier one."""
    await say(world, "one", "two", "three")
    begun = await begin(world, "without")
    assert (begun.summary, read(begun)) == ("", ["one", "two", "three"])
    assert len(begun.places) == 3
    assert sorted(set(begun.places)) == list(begun.places)
    await summarize(world, "the first one", 1)
    begun = await begin(world, "r")
    assert (begun.summary, read(begun)) == ("the first one", ["two", "three"])
    summary = Summary("the first two", begun.places[0])
    await finish(world, replace(end("r"), summary=summary, history=(entry("four"),)))
    begun = await begin(world, "next")
    assert (begun.summary, read(begun)) == ("the first two", ["three", "four"])
    assert await told(world) == ["one", "two", "three", "four"]
    now = await session(world)
    assert (now.entries, now.summaries) == (4, 2)


@pytest.mark.parametrize("first", [1, 2])
async def test_a_summary_that_stands_for_no_more_than_another_is_not_kept(
    world: World, first: int
) -> None:
    """Two runs of a group work on the same history."""
    await say(world, "one", "two", "three")
    begun = await begin(world, "slow")
    await summarize(world, "the first two", 2)
    late = Summary("too late", begun.places[first - 1])
    await finish(world, replace(end("slow"), summary=late))
    assert (await begin(world, "r")).summary == "the first two"
    assert (await session(world)).summaries == 1


async def test_of_summaries_at_once_the_one_that_stands_for_most_is_kept(world: World) -> None:
    await say(world, "one", "two", "three")
    places = [(await begin(world, f"r{n}")).places[n] for n in range(3)]
    ends = [replace(end(f"r{n}"), summary=Summary(f"up to {n}", places[n])) for n in (2, 0, 1)]
    await asyncio.gather(*(finish(world, one) for one in ends))
    begun = await begin(world, "next")
    assert (begun.summary, read(begun)) == ("up to 2", [])


TOOLS = (
    ToolCall("read_file", '{"path": "a.txt"}', at(1), False, 0.25, True, "three lines"),
    ToolCall("send_message", "{}", at(2), seconds=1, ok=False, result="no such chat"),
    ToolCall("wait", "not even JSON", at(3)),
)


@pytest.mark.parametrize("outcome", ENDS)
async def test_a_run_leaves_what_it_did_whatever_became_of_it(
    world: World, outcome: Outcome
) -> None:
    """And QUEUE-2: what an abandoned run still does counts no more."""
    await say(world, "one", "two")
    begun = await begin(world, "r")
    usage, summary = Usage(1, 2, 3, 4, Decimal("0.5")), Summary("one", begun.places[0])
    done = replace(end("r", outcome), usage=usage, tools=TOOLS, summary=summary)
    await finish(world, replace(done, first_text_at=at(3), model="best"))
    run = await the_run(world, "r")
    assert (run.usage, run.tools, run.first_text_at) == (usage, TOOLS, at(3))
    assert (run.outcome, run.model) == (outcome, "best")
    assert not await world.a.pin(KEY, ["likes tea"], run=RunId("r"))
    again = await begin(world, "next")
    assert (again.summary, read(again), again.pinned) == ("one", ["two"], ())


async def test_summaries_and_pins_go_with_the_reset_of_their_conversation(world: World) -> None:
    """CMD-5: a run that began before it leaves none in the next one."""
    await say(world, "one", "two")
    await summarize(world, "one", 1)
    (place,) = (await begin(world, "before")).places
    await begin(world, "another")
    await world.a.pin(KEY, ["likes tea"], run=RunId("before"))
    await world.a.reset_session(KEY, now=at(20))
    assert await begin(world, "r") == RunStartResult()
    assert not await world.a.pin(KEY, ["likes coffee"], run=RunId("before"))
    await finish(world, replace(end("r"), history=(entry("fresh"),)))
    fresh = await begin(world, "looks")
    assert read(fresh) == ["fresh"]
    await finish(world, replace(end("before"), summary=Summary("old", place)))
    await finish(world, replace(end("another"), summary=Summary("old", fresh.places[0])))
    again = await begin(world, "next")
    assert (again.summary, read(again)) == ("", ["fresh"])
    now = await session(world)
    assert (now.summaries, now.pinned) == (0, ())
    assert await world.a.pin(KEY, ["is new"], run=RunId("next"))


async def test_a_summary_that_ends_at_no_entry_of_its_history_is_not_kept(world: World) -> None:
    """It would hide what nobody has summed up."""
    await say(world, "one")
    await say(world, "of Bob", "and his", target=BOB)
    (_, of_bob) = (await begin(world, "bob's", BOB)).places
    for number, place in enumerate((of_bob, 2**62, 0, -1)):
        await begin(world, f"r{number}")
        await finish(world, replace(end(f"r{number}"), summary=Summary("wrong", place)))
    begun = await begin(world, "next")
    assert (begun.summary, read(begun)) == ("", ["one"])


async def test_an_end_that_is_fenced_or_comes_again_leaves_no_summary(world: World) -> None:
    """NODE-1."""
    await say(world, "one", "two")
    places = (await begin(world, "r")).places
    mine, first, second = (
        replace(end("r"), summary=Summary(text, place))
        for text, place in (("mine", places[1]), ("up to one", places[0]), ("again", places[1]))
    )
    with pytest.raises(Fenced):
        await world.b.finish_run(mine, node=B)
    await finish(world, first)
    await finish(world, second)
    assert (await begin(world, "next")).summary == "up to one"


async def test_a_run_that_begins_again_is_told_the_same(world: World) -> None:
    """The first answer was lost on its way."""
    await say(world, "one", "two", "three")
    await summarize(world, "one", 1)
    first = await begin(world, "r")
    assert await world.a.pin(KEY, ["a fact"], run=RunId("r"))
    again = await begin(world, "r")
    assert again == replace(first, pinned=("a fact",))
    assert read(again) == ["two", "three"]


async def test_runs_that_begin_at_once_are_told_each_of_its_own_session(world: World) -> None:
    for target, summary in ((ANN, "of Ann"), (BOB, "of Bob")):
        await say(world, "one", f"two {summary}", target=target)
        await summarize(world, summary, 1, target)
        await meet(world, target)
    runs = (("a", ANN), ("b", BOB), ("c", ANN))
    begun = await asyncio.gather(*(begin(world, name, target) for name, target in runs))
    assert [(one.summary, read(one)) for one in begun] == [
        (f"of {whose}", [f"two of {whose}"]) for whose in ("Ann", "Bob", "Ann")
    ]


# ------------------------------------------------------------------------------------ pins


async def test_what_was_pinned_last_is_told_to_every_later_run(world: World) -> None:
    """AGENT-4: on other nodes too."""
    await begin(world, "r")
    for facts in (["is 39"], [], ["likes tea", "is 40"]):
        assert await world.a.pin(KEY, facts, run=RunId("r"))
        assert await pinned(world) == tuple(facts)
    assert (await begin(world, "next")).pinned == ("likes tea", "is 40")
    await world.a.leave(A, now=at(5))
    begun = await world.b.begin_run(new_run("later", started_at=at(6)), node=B)
    assert begun.pinned == ("likes tea", "is 40")


async def test_only_a_run_of_the_session_pins(world: World) -> None:
    """NODE-1: nor one that was given up, whose node was only paused."""
    await begin(world, "r")
    await begin(world, "bob's", BOB)
    for key, run in ((KEY, "bob's"), (KEY, "ghost"), (SessionKey("nowhere"), "r")):
        assert not await world.a.pin(key, ["likes tea"], run=RunId(run))
    (row,) = await world.accept(ANN)
    await world.crash("lost", row)
    assert not await world.a.pin(KEY, ["likes tea"], run=RunId("lost"))
    assert (await pinned(world), await pinned(world, BOB)) == ((), ())


async def test_text_that_no_database_holds_is_made_storable(world: World) -> None:
    await say(world, "one")
    begun = await begin(world, "r")
    await world.a.pin(KEY, ["a\x00b", "c\ud800"], run=RunId("r"))
    call = ToolCall("x\x00", '{"a": "\\u0000\ud800"}', T0, result="\x00")
    ended = replace(
        end("r"), tools=(call,), summary=Summary("\x00", begun.places[0]), model="m\x00"
    )
    await finish(world, ended)
    assert (await begin(world, "next")).summary == "\ufffd"
    assert await pinned(world) == ("a\ufffdb", "c\ufffd")
    run = await the_run(world, "r")
    stored = ToolCall("x\ufffd", '{"a": "\\u0000\ufffd"}', T0, result="\ufffd")
    assert (run.model, run.tools) == ("m\ufffd", (stored,))


# ------------------------------------------------------------------------ what runs leave


async def test_a_run_keeps_who_pays_when_it_was_asked_for_and_its_target(world: World) -> None:
    """Unless it says otherwise it pays itself and was asked for when it began."""
    topic = replace(ANN, thread="4")
    asked = replace(new_run("r", started_at=at(5)), payer=key_of(BOB), submitted_at=at(2))
    await world.a.begin_run(replace(asked, target=topic), node=A)
    run = await the_run(world, "r")
    assert (run.payer, run.submitted_at, run.started_at) == (key_of(BOB), at(2), at(5))
    assert run.target == topic
    plain = replace(new_run("plain", started_at=at(5)), target=None, model="asked")
    await world.a.begin_run(plain, node=A)
    await finish(world, end("plain"))
    run = await the_run(world, "plain")
    assert (run.payer, run.submitted_at, run.target) == (KEY, at(5), None)
    assert (run.usage, run.tools, run.first_text_at, run.model) == (None, (), None, "asked")


async def test_a_prompt_stands_at_its_own_time_in_the_history(world: World) -> None:
    """Of a turn that is answered again it is older than its run."""
    for name, asked_at in (("again", at(1)), ("first", None)):
        run = replace(new_run(name, started_at=at(5)), submitted_at=at(4))
        await world.a.begin_run(run, node=A)
        told = HistoryEntry(Role.USER, name), HistoryEntry(Role.ASSISTANT, "yes")
        ended = replace(end(name), finished_at=at(6), history=told, asked_at=asked_at)
        await finish(world, ended)
    times = [(one.run_id, one.at) for one in await world.b.history(KEY)]
    assert times == [("again", at(1)), ("again", at(6)), ("first", at(4)), ("first", at(6))]


async def test_runs_that_end_at_once_keep_what_each_of_them_did(world: World) -> None:
    for number in range(3):
        await begin(world, f"r{number}")
    ends = [replace(end(f"r{n}"), tools=TOOLS[:n], first_text_at=at(n)) for n in range(3)]
    await asyncio.gather(*(finish(world, one) for one in ends))
    runs = [await the_run(world, f"r{n}") for n in range(3)]
    left = [(run.tools, run.first_text_at) for run in runs]
    assert left == [(TOOLS[:n], at(n)) for n in range(3)]


# ---------------------------------------------------------------------- what has been used


async def use(world: World, new: NewRun, usage: Usage | None) -> None:
    await world.a.begin_run(new, node=A)
    await finish(world, replace(end(new.id), usage=usage))


def child(name: str, payer: SessionKey = KEY) -> NewRun:
    """A run in a session of its own, for which another one pays."""
    own = SessionKey(f"agent:default:subagent:{name}")
    run = replace(new_run(name), session=own, payer=payer, trigger=Trigger.SUBAGENT)
    return replace(run, task=SubagentTask(f"do {name}", name, "7"))


async def test_what_runs_have_used_is_added_up_when_they_have_ended(world: World) -> None:
    """AGENT-5: the cost is unknown only if that of every run is."""
    await begin(world, "works")
    await use(world, new_run("said nothing"), None)
    for payer in (None, KEY, key_of(BOB)):
        assert await world.a.spent(since=T0, payer=payer) == Usage()
    await use(world, new_run("unpriced"), Usage(1, 1))
    assert (await world.a.spent(since=T0, payer=KEY)).cost_usd is None
    await use(world, new_run("a"), Usage(1, 2, 3, 4, Decimal("0.1")))
    await use(world, new_run("b", target=BOB), Usage(10, 20, 30, 40, Decimal("0.02")))
    assert await world.b.spent(since=T0) == Usage(12, 23, 33, 44, Decimal("0.12"))
    assert await world.b.spent(since=T0, payer=KEY) == Usage(2, 3, 3, 4, Decimal("0.1"))


async def test_what_was_used_can_be_asked_for_since_a_time_and_of_one_agent(world: World) -> None:
    """AGENT-5: of runs that started since then; what an interrupted one has used counts."""
    for second in range(4):
        await use(world, new_run(f"r{second}", started_at=at(second)), Usage(1))
    for payer in (None, KEY):
        assert (await world.a.spent(since=at(2), payer=payer)).requests == 2
    work = AgentName("work")
    await use(world, replace(new_run("b", target=BOB), agent=work), Usage(10))
    await use(world, replace(child("c"), agent=work), Usage(100))
    for agent, spent in ((AGENT, 4), (work, 110), (AgentName("nobody"), 0)):
        assert (await world.a.spent(since=T0, agent=agent)).requests == spent
    assert (await world.a.spent(since=T0, payer=KEY, agent=work)).requests == 100
    for name, outcome in (("cut", Outcome.INTERRUPTED), ("again", Outcome.COMPLETED)):
        await begin(world, name, OLD)
        await finish(world, replace(end(name, outcome), usage=Usage(1, 2**62)))
    assert await world.a.spent(since=T0, payer=key_of(OLD)) == Usage(2, 2**63)


async def test_a_session_pays_for_its_own_runs_and_its_children_only(world: World) -> None:
    """AGENT-5."""
    await use(world, new_run("own"), Usage(1))
    await use(world, child("child"), Usage(10))
    await use(world, replace(new_run("says so"), payer=KEY), Usage(100))
    await use(world, new_run("bob's", target=BOB), Usage(1000))
    await use(world, replace(new_run("paid by bob"), payer=key_of(BOB)), Usage(10_000))
    for key, spent in ((KEY, 111), (key_of(BOB), 11_000), (child("child").session, 0)):
        assert (await world.a.spent(since=T0, payer=key)).requests == spent


# ------------------------------------------------------------------- subagents that got lost


async def lose(world: World, *runs: NewRun, second: float = 0) -> None:
    """Node A dies while it works on these; the recovery ends them at that second after."""
    for run in runs:
        await world.a.begin_run(run, node=A)
    await world.kill(A)
    await world.b.recover(now=at(100 + second), max_attempts=3, apology=APOLOGY)
    await world.a.join(a_node(A))


async def lost(world: World, since: float = 0) -> list[str]:
    return [one.run.id for one in await world.a.interrupted_subagents(since=at(since))]


def announcement(run: str, target: Target = ANN) -> NewInbox:
    said = replace(message("x", target), external_id=announcement_id(RunId(run)))
    return NewInbox(said, key_of(target), AGENT)


async def test_a_lost_subagent_is_told_until_its_chat_has_heard_of_it(world: World) -> None:
    await lose(world, child("r"))
    (one,) = await world.a.interrupted_subagents(since=at(100))
    assert one == InterruptedSubagent(await the_run(world, "r"), SubagentTask("do r", "r", "7"), 1)
    assert (one.run.target, one.run.outcome, one.run.payer) == (ANN, Outcome.LOST, KEY)
    others = [announcement("r", replace(ANN, account="other")), announcement("other")]
    await world.a.accept(others, node=A, now=at(200))
    assert await lost(world) == ["r"]
    await world.a.accept([announcement("r")], node=A, now=at(200))
    assert await lost(world) == []


async def test_lost_subagents_with_a_chat_are_told_in_order_of_their_ends(world: World) -> None:
    for name, outcome in (("done", Outcome.COMPLETED), ("stopped", Outcome.CANCELLED)):
        await world.a.begin_run(child(name), node=A)
        await finish(world, end(name, outcome))
    awaited = replace(child("awaited"), trigger=Trigger.DELEGATE)
    waited_for = replace(child("waited for"), task=None)
    await lose(world, new_run("chat's"), waited_for, awaited)
    await world.a.begin_run(child("works", key_of(BOB)), node=A)
    assert await lost(world) == []
    await finish(world, end("works"))
    await lose(world, child("b"), second=3)
    await lose(world, child("c"), child("a"), second=4)
    assert await lost(world) == ["b", "a", "c"]
    assert await lost(world, since=104) == ["a", "c"]
    assert await lost(world, since=104.1) == []


def again(name: str, of: str) -> NewRun:
    """The next run of a subagent."""
    return replace(child(of), id=RunId(name), started_at=at(1))


async def test_a_subagent_continues_in_its_session_after_interruptions_only(world: World) -> None:
    """AGENT-10: of several nodes that find it, one continues it."""
    paid = ToolCall("pay", "{}", T0, ok=True, seconds=1.0)
    step = ToolStarted("c1", "pay", "{}")
    await world.a.begin_run(child("r1"), node=A)
    await world.a.note_run(RunId("r1"), RunSoFar((paid,), steps=(step,)), node=A)
    await lose(world)
    assert (await world.b.begin_run(again("r2", "r1"), node=B)).steps == (step,)
    assert await lost(world) == []
    with pytest.raises(Fenced):
        await world.a.begin_run(again("r3", "r1"), node=A)
    cut = replace(end("r2", Outcome.INTERRUPTED), finished_at=at(101), tools=(paid,))
    await world.b.finish_run(cut, node=B)
    (one,) = await world.a.interrupted_subagents(since=T0)
    assert (one.run.id, one.crashes, one.calls) == ("r2", 1, (paid, paid))
    await world.b.release_sessions(B, {one.run.session})
    await world.a.begin_run(again("r4", "r1"), node=A)
    await finish(world, end("r4"))
    await world.a.release_sessions(A, {one.run.session})
    assert await lost(world) == []
    with pytest.raises(Fenced):
        await world.b.begin_run(again("r5", "r1"), node=B)


async def test_the_result_of_a_continued_subagent_has_the_id_of_its_first_run(
    world: World,
) -> None:
    await lose(world, child("r1"))
    await lose(world, again("r2", "r1"), second=1)
    assert await lost(world) == ["r2"]
    await world.a.accept([announcement("r1")], node=A, now=at(200))
    assert await lost(world) == []


async def test_a_call_has_spawned_a_subagent_once_that_is_stored(world: World) -> None:
    await world.a.begin_run(replace(child("r1"), call_key="call"), node=A)
    waited_for = replace(child("waited for"), task=None, call_key="other")
    await world.a.begin_run(waited_for, node=A)
    keys = ("call", "other", "unknown")
    assert [await world.b.spawned(key) for key in keys] == ["r1", None, None]


async def test_a_hundred_lost_subagents_are_told_at_once(world: World) -> None:
    await lose(world, *(child(f"{number:03}") for number in range(101)))
    assert await lost(world) == [f"{number:03}" for number in range(100)]


# ----------------------------------------------------------------------- a chat that moves


async def test_a_conversation_that_moves_keeps_its_summary_and_its_pins(world: World) -> None:
    """CHAN-7: a run pins in the one that its own has become."""
    await meet(world, OLD)
    await say(world, "one", "two", target=OLD)
    await summarize(world, "of one", 1, OLD)
    await begin(world, "r", OLD)
    await world.a.pin(key_of(OLD), ["likes tea"], run=RunId("r"))
    await move(world)
    begun = await begin(world, "next", NEW)
    assert (begun.summary, read(begun), begun.pinned) == ("of one", ["two"], ("likes tea",))
    assert await told(world, NEW) == ["one", "two"]
    now = await session(world, NEW)
    assert (now.entries, now.summaries, now.pinned) == (2, 1, ("likes tea",))
    assert await world.a.pin(key_of(OLD), ["likes coffee"], run=RunId("r"))
    assert await pinned(world, NEW) == ("likes coffee",)
    await world.a.reset_session(key_of(NEW), now=at(200))
    assert not await world.a.pin(key_of(OLD), ["likes tea"], run=RunId("r"))


async def test_conversations_that_become_one_keep_what_both_remember(world: World) -> None:
    """CHAN-7."""
    for target, facts in ((OLD, ["likes tea", "is 40"]), (NEW, ["is 40", "is here"])):
        await meet(world, target)
        names = [f"{target.chat} {number}" for number in range(3)]
        await say(world, *names, target=target)
        await summarize(world, f"of {target.chat}", 2, target)
        await begin(world, f"in {target.chat}", target)
        await world.a.pin(key_of(target), facts, run=RunId(f"in {target.chat}"))
    await move(world)
    begun = await begin(world, "next", NEW)
    assert begun.summary == "of -5\n\nof -1005"
    assert read(begun) == ["-5 2", "-1005 2"]
    assert begun.pinned == ("likes tea", "is 40", "is here")
    now = await session(world, NEW)
    assert (now.entries, now.summaries) == (6, 2)


async def test_what_no_summary_stands_for_is_read_after_a_move(world: World) -> None:
    await meet(world, OLD)
    await meet(world, NEW)
    await world.a.note(key_of(OLD), entry("oldest, of the old"), rows=(), now=at(1))
    await world.a.note(key_of(NEW), entry("of the new"), rows=(), now=at(2))
    await world.a.note(key_of(NEW), entry("newest, of the new"), rows=(), now=at(3))
    await summarize(world, "of the new", 1, NEW)
    await move(world)
    begun = await begin(world, "next", NEW)
    assert begun.summary == "of the new"
    assert read(begun) == ["oldest, of the old", "newest, of the new"]


async def test_a_summary_of_what_has_moved_meanwhile_hides_nothing(world: World) -> None:
    """Its place is that of an entry of the old chat."""
    await meet(world, OLD)
    await say(world, "one", "two", target=OLD)
    begun = await begin(world, "r", OLD)
    await move(world)
    await finish(world, replace(end("r"), summary=Summary("late", begun.places[0])))
    again = await begin(world, "next", NEW)
    assert (again.summary, read(again)) == ("", ["one", "two"])


async def test_a_session_that_moves_has_paid_for_what_it_paid_for(world: World) -> None:
    """AGENT-5, CHAN-7: a lost subagent is told with the new chat."""
    await meet(world, OLD)
    await use(world, new_run("own", target=OLD), Usage(1))
    await use(world, replace(child("before", key_of(OLD)), target=OLD), Usage(10))
    await lose(world, replace(child("r", key_of(OLD)), target=OLD))
    await move(world)
    (one,) = await world.a.interrupted_subagents(since=T0)
    assert (one.run.target, one.run.payer) == (NEW, key_of(NEW))
    await use(world, replace(child("after", key_of(OLD)), target=NEW), Usage(100))
    for key in (key_of(NEW), key_of(OLD)):
        assert (await world.a.spent(since=T0, payer=key)).requests == 111
    assert {run.payer for run in await world.a.runs()} == {key_of(NEW)}
