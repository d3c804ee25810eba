"""Processes that die, and processes beside each other (SPEC IO-2, NODE-1, DB-4, QUEUE-5)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.chat.commands.start import GREETING
from goclaw_py.chat.outbound import texts as wording
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import RunEnded
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.loop import VirtualLoop
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until
from tests.support.memory_store import MemoryDatabase

AT_ONCE = Ways(QueuePolicy())
ONE_WAITS = Ways(QueuePolicy(capacity=1))
TAKEN_OVER_WITHIN_S = 15.0


def stuck() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Block())


async def test_unfinished_messages_of_a_killed_process_run_again_in_order() -> None:
    """SPEC CMD-3: within 15 s; what it showed is cleared."""
    database, agent = MemoryDatabase(), stuck()
    async with (
        a_process(agent, AT_ONCE, database=database) as first,
        a_process(ways=AT_ONCE, database=database) as second,
    ):
        await first.say("one", "two", "three", apart_s=0.1)
        first.kill()
        await until(lambda: len(second.scripted.requests) == 3, within_s=TAKEN_OVER_WITHIN_S)
        await second.channel.until_sent(3)
        assert second.channel.texts() == ["re: one", "re: two", "re: three"]
        assert await second.outcomes() == [Outcome.LOST, *[Outcome.COMPLETED] * 3]
        texts = ["one", "re: one", "two", "re: two", "three", "re: three"]
        assert await second.texts_in_history() == texts
        lost = RunEnded(agent.requests[0].run_id, message("").target, Outcome.LOST)
        assert second.channel.signals[0] == lost


async def test_a_crash_drops_nothing_however_much_waited() -> None:
    """SPEC IO-2: bursts fall apart after a crash, but they do not overflow the queue."""
    database = MemoryDatabase()
    async with a_process(stuck(), database=database) as first:
        await first.say("works", apart_s=2)
        for number in range(8):
            await first.say(f"{number}a", f"{number}b", apart_s=0.1)
            await asyncio.sleep(2)
        first.kill()
    agent = ScriptedAgent()
    await asyncio.sleep(20)
    async with a_process(agent, database=database) as second:
        await second.channel.until_sent(17)
        assert len(agent.prompts) == 17
        assert agent.prompts[1:3] == ["0a", "0b"]


async def test_what_was_dropped_before_a_crash_is_told_and_not_answered_behind_newer_ones() -> None:
    database = MemoryDatabase()
    agent = ScriptedAgent(Say("done", after_s=0.2), otherwise=lambda _: Block())
    async with a_process(agent, ONE_WAITS, database=database) as first:
        await first.say("works", "dropped", "newer")
        await until(lambda: agent.prompts == ["works", "newer"], within_s=0.9)
        first.kill()
    after = ScriptedAgent()
    await asyncio.sleep(20)
    async with a_process(after, ONE_WAITS, database=database) as second:
        await second.channel.until_sent(2)
        await asyncio.sleep(60)
        told = wording.dropped(["dropped"], Reason.QUEUE_DROPPED)
        assert second.channel.texts() == ["re: newer", told]
        assert after.prompts == ["newer"]


async def poisoned(*texts: str, crashes: int) -> MemoryDatabase:
    """The first message has crashed so many processes."""
    database = MemoryDatabase()
    for attempt in range(crashes):
        agent = stuck()
        async with a_process(agent, AT_ONCE, database=database) as gateway:
            if not attempt:
                await gateway.say(*texts)
            await agent.until_active(1)
            assert agent.prompts == [texts[0]]
            gateway.kill()
        await asyncio.sleep(20)
    return database


async def test_a_message_that_crashes_three_processes_is_lost_and_its_sender_told() -> None:
    database = await poisoned("poison", crashes=3)
    async with a_process(ways=AT_ONCE, database=database) as gateway:
        await gateway.channel.until_sent(1)
        await asyncio.sleep(60)
        assert gateway.channel.texts() == [wording.LOST]
        assert gateway.scripted.prompts == []
        assert gateway.pending == []
        assert gateway.recoveries[0].gave_up == 1
        assert await gateway.outcomes() == [Outcome.LOST] * 3


async def test_after_two_crashes_on_one_message_the_others_of_its_session_go_first() -> None:
    database = await poisoned("poison", "two", "three", crashes=2)
    async with a_process(ways=AT_ONCE, database=database) as gateway:
        await gateway.channel.until_sent(3)
        assert gateway.scripted.prompts == ["two", "three", "poison"]


async def test_a_dropped_message_whose_notice_was_not_stored_runs_after_the_crash() -> None:
    database = MemoryDatabase()
    async with a_process(stuck(), Ways(QueuePolicy(capacity=1)), database=database) as first:
        await first.say("works", "dropped", "waits")
        await asyncio.sleep(0.5)
        first.kill()
    await asyncio.sleep(20)
    agent = ScriptedAgent()
    async with a_process(agent, database=database) as second:
        await second.channel.until_sent(3)
        assert agent.prompts == ["works", "dropped", "waits"]


async def test_a_command_that_was_committed_before_the_crash_is_carried_out() -> None:
    database = MemoryDatabase()
    async with a_process(database=database) as first:
        first.store.broken = {"settle"}
        await first.say("/start")
        first.kill()
    await asyncio.sleep(20)
    async with a_process(database=database) as second:
        await second.channel.until_sent(1)
        assert second.channel.texts() == [GREETING]


async def test_a_second_gateway_disturbs_nothing_and_waits_for_the_poller_lease() -> None:
    database = MemoryDatabase()
    mine, other = (RecordingChannel(lease="telegram:42") for _ in range(2))
    agent, idle = ScriptedAgent(Say("slow", after_s=60)), ScriptedAgent()
    async with (
        a_process(agent, AT_ONCE, database=database, channels=(mine,)) as first,
        a_process(idle, AT_ONCE, database=database, channels=(other,)) as second,
    ):
        await mine.deliver(message("hello"))
        await asyncio.sleep(59)
        assert (mine.receiving, other.receiving) == (1, 0)
        assert [view.state for view in first.supervisor.views()] == ["connected"]
        assert [view.state for view in second.supervisor.views()] == ["waiting"]
        await until(lambda: bool(mine.texts() + other.texts()))
        assert (agent.prompts, idle.prompts) == (["hello"], [])
        assert mine.texts() + other.texts() == ["slow"]
        assert await second.outcomes() == [Outcome.COMPLETED]


async def test_the_poller_lease_moves_when_its_holder_dies() -> None:
    database = MemoryDatabase()
    mine, other = (RecordingChannel(lease="telegram:42") for _ in range(2))
    async with (
        a_process(database=database, channels=(mine,)) as first,
        a_process(database=database, channels=(other,)),
    ):
        await asyncio.sleep(1)
        first.kill()
        await until(lambda: other.receiving == 1, within_s=TAKEN_OVER_WITHIN_S)


async def test_a_session_that_one_process_owns_is_left_to_it_by_the_other() -> None:
    """SPEC NODE-1: the unit of chat work is the session."""
    database = MemoryDatabase()
    agent, idle = ScriptedAgent(Say("first", after_s=20)), ScriptedAgent()
    async with (
        a_process(agent, AT_ONCE, database=database) as first,
        a_process(idle, AT_ONCE, database=database) as second,
    ):
        await first.say("one")
        await asyncio.sleep(1)
        await second.say("two")  # arrives over there, as with webhooks on all nodes
        await agent.until_started(2)
        assert agent.prompts == ["one", "two"]
        assert idle.prompts == []
        assert agent.overlaps == {session_of(): 1}


async def test_an_idle_session_is_given_to_whoever_gets_its_next_message() -> None:
    database = MemoryDatabase()
    agent = ScriptedAgent()
    async with a_process(database=database) as first, a_process(agent, database=database) as second:
        await first.ask("one")
        await asyncio.sleep(10)
        session = await first.store.session(session_of())
        assert session is not None
        assert session.owner is None
        await second.say("two")
        await agent.until_started(1)
        assert [entry.text for entry in agent.requests[0].history] == ["one", "re: one"]


@pytest.mark.parametrize("trouble", ["wakes", "away"])
async def test_an_idle_session_is_released_later_after_trouble(trouble: str) -> None:
    """It wakes meanwhile, or the database is away."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("one")
        if trouble == "wakes":
            gateway.store.slow_after_s["release_sessions"] = 1.0
            await until(lambda: gateway.store.calls["release_sessions"] == 1)
            await gateway.ask("two")
        else:
            gateway.store.broken = {"release_sessions"}
            await asyncio.sleep(10)
        gateway.store.broken = set()
        await asyncio.sleep(10)
        session = await gateway.store.session(session_of())
        assert session is not None
        assert session.owner is None


WRITES = ("begin_run", "finish_run", "claim_next", "mark_sent")


async def test_a_run_whose_recording_meets_an_outage_is_stored_once_it_is_over() -> None:
    """Nothing is lost or doubled, and the next run sees its history."""
    agent = ScriptedAgent(Say("first", after_s=5))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("one", "two")
        await asyncio.sleep(4)
        gateway.store.away = True
        await asyncio.sleep(60)
        assert len(agent.finished) == 1
        assert agent.prompts == ["one"]
        gateway.store.away = False
        await gateway.channel.until_sent(2)
        await asyncio.sleep(60)
        assert agent.prompts == ["one", "two"]
        assert await gateway.texts_in_history() == ["one", "first", "two", "re: two"]
        assert gateway.channel.texts() == ["first", "re: two"]
        assert await gateway.outcomes() == [Outcome.COMPLETED] * 2


@pytest.mark.parametrize("method", ["begin_run", "finish_run", "mark_sent"])
async def test_an_answer_that_the_database_lost_doubles_nothing(method: str) -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.lose_answer[method] = 2
        await gateway.ask("one")
        await gateway.ask("two")
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["re: one", "re: two"]
        assert await gateway.texts_in_history() == ["one", "re: one", "two", "re: two"]
        assert await gateway.outcomes() == [Outcome.COMPLETED] * 2
        assert gateway.pending == []


async def _talk_through_outages(outages: list[tuple[float, float]]) -> None:
    agent = ScriptedAgent(otherwise=lambda request: Say(f"re: {request.prompt}", after_s=1.5))
    async with a_process(agent, AT_ONCE) as gateway:
        trouble = asyncio.create_task(_be_away(gateway, outages))
        texts = [str(number) for number in range(8)]
        for text in texts:
            await gateway.channel.deliver(message(text))
            await asyncio.sleep(1)
        await gateway.channel.until_sent(len(texts))
        await trouble
        await asyncio.sleep(60)
        assert agent.prompts == texts
        assert gateway.channel.texts() == [f"re: {text}" for text in texts]
        history = [part for text in texts for part in (text, f"re: {text}")]
        assert await gateway.texts_in_history() == history
        assert gateway.pending == []


async def _be_away(gateway: GatewayProcess, outages: list[tuple[float, float]]) -> None:
    for after_s, for_s in outages:
        await asyncio.sleep(after_s)
        gateway.store.away = True
        await asyncio.sleep(for_s)
        gateway.store.away = False


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 40)), max_size=5))
def test_whenever_and_however_long_it_is_away_every_message_is_answered_once_in_order(
    outages: list[tuple[float, float]],
) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(_talk_through_outages(outages))
