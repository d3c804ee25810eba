"""A message that the queue has dropped keeps its notice, whatever is stopped (SPEC QUEUE-5)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.outcomes import Reason
from goclaw_py.scheduler.models import Drop, QueuePolicy
from goclaw_py.testing.agents import Block, Say, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message
from tests.support.memory_store import MemoryDatabase

DROPS = {
    Drop.OLD: texts.dropped(["first"], Reason.QUEUE_DROPPED),
    Drop.NEW: texts.dropped(["second"], Reason.QUEUE_FULL),
}
STOPS = ["/stop", "/stopall", "/new"]


def ways(drop: Drop) -> Ways:
    return Ways(QueuePolicy(capacity=1, drop=drop))


def stuck() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Block())


async def in_one_batch(gateway: GatewayProcess, stop: str) -> None:
    """As after an outage, during which an earlier process may have received all of them."""
    said = ["works", "first", "second", stop]
    await gateway.gateway.accept([message(text, redelivered=True) for text in said])


async def in_batches_at_once(gateway: GatewayProcess, stop: str) -> None:
    """What the first batch drops is being recorded when the stop arrives."""
    await gateway.say("works", "first")
    await gateway.say("second", stop)


async def soon_after(gateway: GatewayProcess, stop: str) -> None:
    await gateway.say("works", "first", "second")
    await asyncio.sleep(0.5)
    await gateway.say(stop)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("arrive", [in_one_batch, in_batches_at_once, soon_after])
async def test_a_dropped_message_is_announced_beside_a_stop(
    arrive: object, drop: Drop, stop: str
) -> None:
    async with a_process(stuck(), ways(drop)) as gateway:
        assert callable(arrive)
        await arrive(gateway, stop)
        await asyncio.sleep(60)
        assert DROPS[drop] in gateway.channel.texts()


@pytest.mark.parametrize("stop", STOPS)
async def test_what_a_dead_process_has_dropped_is_announced_although_a_stop_comes_first(
    stop: str,
) -> None:
    database = MemoryDatabase()
    agent = ScriptedAgent(Say("done", after_s=0.2), otherwise=lambda _: Block())
    async with a_process(agent, ways(Drop.OLD), database=database) as first:
        await first.say("works", "first", "newer")
        await asyncio.sleep(0.5)
        assert agent.prompts == ["works", "newer"]
        first.kill()
        async with a_process(stuck(), ways(Drop.OLD), database=database) as second:
            await second.say(stop)
            await asyncio.sleep(60)
            assert second.channel.texts().count(DROPS[Drop.OLD]) == 1
