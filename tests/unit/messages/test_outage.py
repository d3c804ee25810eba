"""The database going away in the middle (SPEC DB-4)."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.model.outcomes import Outcome
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Say, ScriptedAgent
from goclaw_py.testing.loop import VirtualLoop
from tests.support.harness import GatewayProcess, Ways, a_process, message

AT_ONCE = Ways(QueuePolicy())
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
        assert await gateway.said_in_history() == ["one", "first", "two", "re: two"]
        assert gateway.channel.texts() == ["first", "re: two"]
        assert await gateway.outcomes() == [Outcome.COMPLETED] * 2


@pytest.mark.parametrize("method", ["begin_run", "finish_run", "mark_sent"])
async def test_an_answer_that_the_database_lost_after_the_commit_doubles_nothing(
    method: str,
) -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.lose_answer[method] = 2
        await gateway.ask("one")
        await gateway.ask("two")
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["re: one", "re: two"]
        assert await gateway.said_in_history() == ["one", "re: one", "two", "re: two"]
        assert await gateway.outcomes() == [Outcome.COMPLETED] * 2
        assert gateway.pending == []


async def test_people_stay_known_while_the_database_is_away() -> None:
    """SPEC CMD-1: a stop must not ask it."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.away = True
        await asyncio.sleep(120)
        gateway.store.away = False
        assert await gateway.ask("hello") == "re: hello"


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
        assert await gateway.said_in_history() == history
        assert gateway.pending == []


async def _be_away(gateway: GatewayProcess, outages: list[tuple[float, float]]) -> None:
    for after_s, for_s in outages:
        await asyncio.sleep(after_s)
        gateway.store.away = True
        await asyncio.sleep(for_s)
        gateway.store.away = False


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 40)), max_size=5))
def test_whenever_and_however_long_it_is_away_every_message_is_answered_once_in_order(
    outages: list[tuple[float, float]],
) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(_talk_through_outages(outages))
