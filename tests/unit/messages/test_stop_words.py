"""A bare "stop" stops what runs; what is nearly a command is asked about (SPEC CMD-2)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, ScriptedAgent
from tests.support.harness import Ways, a_process, message, until

AT_ONCE = Ways(direct=QueuePolicy())


def blocking() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Block())


@pytest.mark.parametrize("word", ["stop", "Stop!", "отмена"])
async def test_a_bare_word_stops_what_runs(word: str) -> None:
    agent = blocking()
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        assert await gateway.ask(word) == "Stopped."
        await until(lambda: not gateway.dispatcher.runs())
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.CANCELLED, Reason.STOPPED)
        assert agent.prompts == ["work"]
        assert gateway.pending == []


async def test_a_bare_word_belongs_to_the_agent_while_nothing_runs() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("stop")
        assert gateway.scripted.prompts == ["stop"]


async def test_it_stops_what_came_before_it_in_the_same_batch() -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.gateway.accept([message("work"), message("stop")])
        await asyncio.sleep(5)
        assert gateway.scripted.prompts == []


async def test_the_setting_leaves_the_word_to_the_agent() -> None:
    agent = blocking()
    async with a_process(agent, Ways(direct=QueuePolicy(), stop_words=False)) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        await gateway.say("stop", "/stop")
        await agent.until_started(2)
        assert agent.prompts == ["work", "stop"]


async def test_a_word_that_is_offered_again_after_a_failed_commit_acts_once() -> None:
    agent = blocking()
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        gateway.store.away = True
        stop = message("stop")
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await gateway.gateway.accept([stop])
            await asyncio.sleep(1)
        gateway.store.away = False
        await gateway.gateway.accept([stop])
        await asyncio.sleep(30)
        assert gateway.channel.texts() == ["Stopped."]
        assert agent.prompts == ["work"]


async def test_what_is_nearly_a_command_is_asked_about() -> None:
    agent = blocking()
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        assert await gateway.ask("/stpo") == "Did you mean /stop?"
        assert agent.prompts == ["work"]
        assert not agent.cancelled
