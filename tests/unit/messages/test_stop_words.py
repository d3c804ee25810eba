"""A bare "stop" stops what runs; what is nearly a command is asked about (SPEC CMD-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message, until

AT_ONCE = Ways(direct=QueuePolicy())


@asynccontextmanager
async def working(ways: Ways = AT_ONCE) -> AsyncIterator[GatewayProcess]:
    """Something runs for ever."""
    async with a_process(ScriptedAgent(otherwise=lambda _: Block()), ways) as gateway:
        await gateway.say("work")
        await gateway.scripted.until_active(1)
        yield gateway


@pytest.mark.parametrize("word", ["stop", "Stop!", "отмена"])
async def test_a_bare_word_stops_what_runs(word: str) -> None:
    async with working() as gateway:
        assert await gateway.ask(word) == "Stopped."
        await until(lambda: not gateway.dispatcher.runs())
        (run,) = await gateway.store.runs()
        assert (run.outcome, run.reason) == (Outcome.CANCELLED, Reason.STOPPED)
        assert gateway.scripted.prompts == ["work"]
        assert gateway.pending == []


async def test_a_bare_word_belongs_to_the_agent_unless_something_came_before_it() -> None:
    """In the same batch."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("stop")
        await gateway.gateway.accept([message("work"), message("stop")])
        await asyncio.sleep(5)
        assert gateway.scripted.prompts == ["stop"]


async def test_the_setting_leaves_the_word_to_the_agent() -> None:
    async with working(Ways(direct=QueuePolicy(), stop_words=False)) as gateway:
        await gateway.say("stop", "/stop")
        await gateway.scripted.until_started(2)
        assert gateway.scripted.prompts == ["work", "stop"]


async def test_a_word_that_is_offered_again_after_a_failed_commit_acts_once() -> None:
    async with working() as gateway:
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
        assert gateway.scripted.prompts == ["work"]


async def test_what_is_nearly_a_command_is_asked_about() -> None:
    async with working() as gateway:
        assert await gateway.ask("/stpo") == "Did you mean /stop?"
        assert gateway.scripted.prompts == ["work"]
        assert not gateway.scripted.cancelled
