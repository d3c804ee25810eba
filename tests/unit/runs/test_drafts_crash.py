"""Processes that die or are cut off while a reply grows: what people see (SPEC IO-2, IO-5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goclaw_py.chat.outbound import texts
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import TextDelta
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Emitting, Say, ScriptedAgent, Stream
from goclaw_py.testing.loop import VirtualLoop
from tests.support.again import unmarked
from tests.support.drafting import DraftingChannel, outbox, replying
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.support.memory_store import MemoryDatabase

AT_ONCE = Ways(QueuePolicy())
BLOCKED = Emitting((TextDelta("so far"),), Block())
SLOW = Stream(tuple(f"{number}," for number in range(10)), every_s=0.5)
REPLY = "".join(SLOW.pieces)
BURIED_S = 20.0


def slowly() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: SLOW)


def again(first: DraftingChannel) -> DraftingChannel:
    """The channel of the next process, in the same chat."""
    return DraftingChannel().beside(first)


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What people see in the end, and whether it is recorded that they may see it twice."""

    visible: list[str]
    marked: bool
    drafts: int
    """How many drafts the database still knows."""
    pending: list[str]


async def aftermath(database: MemoryDatabase, before: DraftingChannel) -> Aftermath:
    """Let the next process answer."""
    channel = again(before)
    async with a_process(slowly(), AT_ONCE, database=database, channels=(channel,)) as process:
        await until(lambda: not database.pending and not database.unsent)
        await asyncio.sleep(60)
        marked = any(row.possible_duplicate for row in await outbox(process))
        return Aftermath(channel.visible(), marked, len(database.drafts), process.pending)


async def after_a_crash(kill_at_s: float, **slow: float) -> Aftermath:
    """Let a process die that long after the question, and the next one answer it.

    ``slow`` are seconds that a call of the store, ``request`` or ``answer`` takes.
    """
    database, channel = MemoryDatabase(), DraftingChannel()
    channel.draft_slow_s = slow.pop("request", 0.0)
    channel.answer_slow_s = slow.pop("answer", 0.0)
    async with a_process(slowly(), AT_ONCE, database=database, channels=(channel,)) as first:
        first.store.slow_before_s.update(slow)
        await first.say("hello", apart_s=kill_at_s)
        first.kill()
    await asyncio.sleep(BURIED_S)
    return await aftermath(database, channel)


def assert_told_once(seen: Aftermath) -> None:
    """The reply is there, and twice only with a line that says so; nothing is left open."""
    assert {unmarked(text) for text in seen.visible} == {REPLY}
    assert seen.visible.count(REPLY) <= 1
    assert len(seen.visible) == 1 or seen.marked
    assert (seen.drafts, seen.pending) == (0, [])


@pytest.mark.parametrize(
    ("kill_at_s", "slow", "marked"),
    [
        pytest.param(0.5, {}, False, id="before the draft is noted"),
        pytest.param(1.0, {"request": 1.0}, True, id="before the post arrives"),
        pytest.param(1.0, {"answer": 1.0}, False, id="posted, the answer is under way"),
        pytest.param(1.0, {"draft_posted": 1.0}, False, id="posted, the id is not kept"),
        pytest.param(1.0, {}, False, id="the id is kept"),
        pytest.param(2.1, {"request": 0.4}, False, id="before an edit arrives"),
        pytest.param(2.1, {"answer": 0.4}, False, id="edited, the answer is under way"),
        pytest.param(6.0, {"finish_run": 5.0}, False, id="before the end is stored"),
        pytest.param(6.0, {"claim_next": 5.0}, False, id="before the reply is claimed"),
        pytest.param(6.0, {"mark_sent": 5.0}, True, id="the reply is sent, not marked"),
    ],
)
async def test_after_a_crash_one_reply_is_visible_or_a_second_one_is_recorded(
    kill_at_s: float, slow: dict[str, float], marked: bool
) -> None:
    """SPEC IO-5: a final edit that is repeated is marked too, though nobody sees it twice."""
    seen = await after_a_crash(kill_at_s, **slow)
    assert [unmarked(text) for text in seen.visible] == [REPLY]
    assert (seen.marked, seen.drafts, seen.pending) == (marked, 0, [])


CALLS = (
    *("request", "answer", "begin_run", "open_draft", "draft_posted", "finish_run"),
    *("claim_next", "mark_sent"),
)
SLOWNESS = st.sampled_from([0.0, 0.0, 0.3, 1.0, 3.0])


@settings(max_examples=150, deadline=None)
@given(
    kill_at_s=st.floats(0, 12),
    slow=st.fixed_dictionaries({}, optional=dict.fromkeys(CALLS, SLOWNESS)),
)
@example(10.0, {"request": 3.0, "answer": 3.0, "open_draft": 3.0, "finish_run": 1.0})
@pytest.mark.slow
def test_no_reply_is_visible_twice_without_a_line_that_says_so(
    kill_at_s: float, slow: dict[str, float]
) -> None:
    """SPEC IO-2, IO-5: and none is lost, and no beginning of one stays."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert_told_once(runner.run(after_a_crash(kill_at_s, **slow)))


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.floats(0, 12), SLOWNESS, SLOWNESS, st.sampled_from([0.0, 0.3, 3.0]))
def test_nor_after_a_shutdown(
    at_s: float, request_s: float, answer_s: float, store_s: float
) -> None:
    """SPEC QUEUE-11: and without any mark unless a request takes longer than the end may."""

    async def shut_down() -> Aftermath:
        database, channel = MemoryDatabase(), DraftingChannel()
        channel.draft_slow_s, channel.answer_slow_s = request_s, answer_s
        async with a_process(slowly(), AT_ONCE, database=database, channels=(channel,)) as first:
            first.store.slow_before_s["draft_posted"] = store_s
            await first.say("hello", apart_s=at_s)
            await first.shut_down(wait_s=0)
        return await aftermath(database, channel)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert_told_once(runner.run(shut_down()))


JOINED = Ways(QueuePolicy(debounce_s=0.8))


@pytest.mark.parametrize("end", ["kill", "shutdown", "lease"])
async def test_joined_messages_stay_one_turn_after_an_interruption(end: str) -> None:
    """SPEC IO-2: also if the draft was posted and its id is not stored."""
    database, channel = MemoryDatabase(), DraftingChannel()
    async with a_process(slowly(), JOINED, database=database, channels=(channel,)) as first:
        first.store.slow_before_s["draft_posted"] = 3.0
        await first.say("one", "two", apart_s=0.2)
        await until(lambda: bool(channel.drafted))
        if end == "shutdown":
            await first.shut_down(wait_s=0)
        elif end == "lease":
            first.store.away = True
            await asyncio.sleep(BURIED_S)
        first.kill()
    await asyncio.sleep(BURIED_S)
    seen = await aftermath(database, channel)
    assert seen == Aftermath([REPLY], False, 0, [])
    assert {run.new.inbox for run in database.runs.values()} == {(1, 2)}


async def test_a_run_that_is_given_up_closes_its_draft() -> None:
    """SPEC CMD-3, IO-2."""
    database, channel = MemoryDatabase(), DraftingChannel()
    blocked = ScriptedAgent(otherwise=lambda _: BLOCKED)
    for attempt in range(3):
        async with a_process(blocked, AT_ONCE, database=database, channels=(channel,)) as process:
            if not attempt:
                await process.say("poison")
            await blocked.until_started(attempt + 1)
            await asyncio.sleep(3)
            process.kill()
        await asyncio.sleep(BURIED_S)
        channel = again(channel)
    async with a_process(slowly(), AT_ONCE, database=database, channels=(channel,)) as process:
        await until(lambda: texts.LOST in channel.texts())
        closed = texts.interrupted_draft(Outcome.LOST)
        await until(lambda: channel.visible() == [closed, texts.LOST])
        assert await process.store.drafts() == []


async def test_a_draft_of_a_run_that_will_be_tried_again_stays_open() -> None:
    """SPEC CMD-3: the channel hears of the end of the run, not of the end of its draft."""
    async with replying(BLOCKED) as (first, shown):
        await asyncio.sleep(5)
        channel = again(shown)
        first.kill()
    await asyncio.sleep(BURIED_S)
    async with a_process(slowly(), AT_ONCE, database=first.database, channels=(channel,)):
        await until(lambda: bool(channel.ended()))
        assert [(end.outcome, end.draft) for end in channel.ended()] == [(Outcome.LOST, None)]
        await until(lambda: channel.visible() == [REPLY])


async def test_two_questions_of_which_one_was_being_answered_keep_their_replies_apart() -> None:
    async with replying(slowly()) as (first, channel):
        await asyncio.sleep(1.5)
        await first.say("two", apart_s=1.5)
        first.kill()
    await asyncio.sleep(BURIED_S)
    seen = await aftermath(first.database, channel)
    assert (seen.visible, seen.marked) == ([REPLY, REPLY], False)


async def test_a_kill_does_not_undo_a_stop_whose_draft_is_still_being_edited() -> None:
    """SPEC CMD-3: people have read "Stopped."; the message is not answered after a restart."""
    async with replying(slowly()) as (gateway, channel):
        await asyncio.sleep(2)
        channel.answer_slow_s = 4.0
        await until(lambda: len(channel.asked) == 3)  # an edit is under way now
        await gateway.say("/stop", apart_s=0.5)
        assert any("Stopped." in text for text in channel.texts())
        gateway.kill()
    async with a_process(ways=AT_ONCE, database=gateway.database) as gateway:
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == []
        assert await gateway.outcomes() == [Outcome.CANCELLED]


async def test_a_kill_does_not_leave_the_draft_of_a_stopped_run_open() -> None:
    """SPEC CMD-3: what closes it is stored with the end of the run."""
    after = DraftingChannel()
    async with replying(BLOCKED) as (gateway, channel):
        await asyncio.sleep(5)
        channel.block("ann")
        await gateway.say("/stop", apart_s=0.1)
        gateway.kill()
    async with a_process(ways=AT_ONCE, database=gateway.database, channels=(after,)):
        await until(lambda: bool(after.sent))
        assert (after.sent[0].draft, after.sent[0].text) == ("draft-1", "so far\n\n⏹ Stopped.")


NARROW = Ways(QueuePolicy(), main_lane=1)
MINUTE = Stream(tuple(f"{number} " for number in range(60)), every_s=1)


@dataclass(frozen=True, slots=True)
class Cut:
    """A gateway that is cut off, and the one that has its work now."""

    first: GatewayProcess
    second: GatewayProcess
    shows: DraftingChannel
    """The channel of the first."""

    def said(self, text: str) -> list[str | None]:
        """In which drafts that was said, or None; any gateway sends what is due."""
        return [one.draft for one in self.shows.sent if one.text == text]


@asynccontextmanager
async def cut_off(
    second: ScriptedAgent, *, answer_s: float = 0.0, keeps: bool = False
) -> AsyncIterator[Cut]:
    """A gateway is cut off while it posts a draft for ann, until its message is taken over.

    Another one, whose only place bob has, has it then. ``answer_s`` is how long the channel takes
    to tell the id of the draft; ``keeps``: the database keeps that, and its answer is lost.
    """
    database, shows = MemoryDatabase(), DraftingChannel()
    beside = DraftingChannel().beside(shows)
    shows.answer_slow_s = answer_s
    slow = ScriptedAgent(otherwise=lambda _: MINUTE)
    async with (
        a_process(slow, NARROW, database=database, channels=(shows,)) as first,
        a_process(second, NARROW, database=database, channels=(beside,)) as other,
    ):
        await other.say("busy", chat="bob")
        await second.until_active(1)
        if keeps:
            first.store.lose_answer["draft_posted"] = 1
        else:
            first.store.broken.add("draft_posted")
        await first.say("one")
        await until(lambda: bool(shows.asked))
        if keeps:
            await until(lambda: not first.store.lose_answer["draft_posted"])
        first.store.away = True
        await until(lambda: bool(other.recoveries), within_s=60)
        yield Cut(first, other, shows)


def admit(gateway: GatewayProcess) -> None:
    """The database can be reached again."""
    gateway.store.broken.clear()
    gateway.store.away = False


@pytest.mark.parametrize("answer_s", [0.0, 3.0])
async def test_the_draft_of_a_message_that_was_stopped_is_removed(answer_s: float) -> None:
    async with cut_off(ScriptedAgent(Block()), answer_s=answer_s) as cut:
        await asyncio.sleep(3)
        await cut.second.say("/stop")
        admit(cut.first)
        await until(lambda: cut.shows.deleted == {"draft-1"}, within_s=30)
        await asyncio.sleep(60)
        assert [row.message.text for row in await outbox(cut.second)] == ["", ""]


@pytest.mark.parametrize("keeps", [True, False])
async def test_the_run_of_another_gateway_finds_the_draft_of_its_message(*, keeps: bool) -> None:
    """SPEC IO-2, IO-5: the gateway that posted it has not heard so, and does not come between."""
    async with cut_off(ScriptedAgent(Block(), Say("done")), keeps=keeps) as cut:
        await cut.second.say("/stop", chat="bob")
        await until(lambda: cut.said("done") == ["draft-1"])
        admit(cut.first)
        await asyncio.sleep(60)
        assert cut.shows.deleted == set()


async def test_the_next_run_goes_on_in_the_draft_if_it_hears_of_it_in_time() -> None:
    async with cut_off(ScriptedAgent(Block(), Say("done"))) as cut:
        admit(cut.first)
        await asyncio.sleep(30)
        await cut.second.say("/stop", chat="bob")
        await until(lambda: bool(cut.said("done")))
        assert cut.said("done") == ["draft-1"]
        assert cut.shows.deleted == set()
