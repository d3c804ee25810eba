"""A stop that arrives where its session is not worked on (SPEC CMD-1, NODE-1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.outcomes import Outcome
from goclaw_py.testing.agents import Block, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, a_process, message, until
from tests.unit.cluster.processes import AT_ONCE
from tests.unit.cluster.processes import two as two_processes


@asynccontextmanager
async def two(*steps: Step) -> AsyncIterator[tuple[GatewayProcess, GatewayProcess]]:
    """One with these steps that owns the session and works on ``long``, if any, and another one."""
    async with two_processes(ScriptedAgent(*steps), ScriptedAgent()) as (owner, other):
        if steps:
            await owner.say("long")
            await owner.scripted.until_active(1)
        yield owner, other


def texts(*processes: GatewayProcess) -> list[str]:
    """All that the chat was told."""
    return [text for process in processes for text in process.channel.texts()]


async def unheard_of(process: GatewayProcess) -> asyncio.Task[None]:
    """A message is committed, and for some time this process does not hear of it."""
    process.store.slow_after_s["accept"] = 5.0
    accepting = asyncio.create_task(process.say("work"))
    await asyncio.sleep(1)
    process.store.slow_after_s["accept"] = 0.0
    return accepting


async def outcomes(process: GatewayProcess) -> dict[str, Outcome | None]:
    """What became of the messages, by their texts."""
    rows = process.database.inbox.values()
    return {row.message.text: row.outcome for row in rows}


async def test_a_stop_takes_the_run_and_not_the_message_that_came_with_it() -> None:
    """SPEC QUEUE-8: the owner decides, and it knows what runs."""
    async with two(Block()) as (owner, other):
        await other.gateway.accept([message("next"), message("/stop")])
        await until(lambda: len(texts(owner, other)) == 2)
        await asyncio.sleep(30)
        assert sorted(texts(owner, other)) == ["Stopped.", "re: next"]
        assert owner.scripted.prompts == ["long", "next"]


async def test_stopall_takes_the_run_and_what_came_with_it_in_one_answer() -> None:
    async with two(Block()) as (owner, other):
        await other.gateway.accept([message("next"), message("/stopall")])
        await asyncio.sleep(30)
        assert texts(owner, other) == ["Stopped 1 task and dropped 1 waiting message."]
        assert (owner.scripted.prompts, owner.pending) == (["long"], [])


async def test_a_message_whose_commit_is_not_heard_of_is_stopped_where_it_is_worked_on() -> None:
    """It is in hand elsewhere: its row ends as its run does, and not before."""
    async with two(Block(), Block()) as (owner, other):
        accepting = await unheard_of(other)
        await owner.say("/stop")
        await until(lambda: owner.scripted.prompts == ["long", "work"])
        await other.say("/stop")
        await until(lambda: len(owner.scripted.cancelled) == 2)
        await accepting
        await asyncio.sleep(30)
        assert (await outcomes(owner))["work"] is Outcome.CANCELLED
        assert texts(owner, other) == ["Stopped.", "Stopped."]


async def test_a_message_that_was_answered_meanwhile_stays_answered() -> None:
    async with two(Block()) as (owner, other):
        accepting = await unheard_of(other)
        await owner.say("/stop")
        await until(lambda: "re: work" in texts(owner, other))
        await other.say("/stop")
        await accepting
        await asyncio.sleep(30)
        assert (await outcomes(owner))["work"] is Outcome.COMPLETED
        assert texts(owner, other).count("re: work") == 1


async def test_a_stop_is_answered_once_although_its_commit_fails_and_is_repeated() -> None:
    async with two() as (_, other):
        batch = [message("work"), message("/stop")]
        other.store.away = True
        with pytest.raises(StoreUnavailable):
            await other.gateway.accept(batch)
        await until(lambda: bool(other.channel.texts()))
        other.store.away = False
        await other.gateway.accept(batch)
        await asyncio.sleep(30)
        assert other.channel.texts() == ["Dropped 1 waiting message."]
        assert (other.scripted.prompts, other.pending) == ([], [])


async def test_a_look_that_is_late_brings_nothing_back() -> None:
    """It has found a message before that was stopped, and is told of it after."""
    agent, work = ScriptedAgent(), message("work")
    async with a_process(agent, AT_ONCE) as gateway:
        gateway.store.lose_answer["accept"] = 1
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([work])
        gateway.store.slow_after_s["claim_pending"] = 5.0
        looking = asyncio.create_task(gateway.gateway.reload())
        await asyncio.sleep(0.1)
        await gateway.gateway.accept([work, message("/stop")])
        await looking
        await asyncio.sleep(30)
        assert (agent.prompts, gateway.pending) == ([], [])


async def test_a_burst_goes_without_those_of_it_that_have_ended() -> None:
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        await gateway.gateway.accept([message("one"), message("two")])
        (first, _) = gateway.database.pending
        await gateway.store.settle([first], Outcome.DROPPED, now=gateway.clock.now())
        await gateway.channel.until_sent(1)
        assert (agent.prompts, gateway.channel.texts()) == (["two"], ["re: two"])


async def test_a_turn_of_which_all_has_ended_does_not_run() -> None:
    agent = ScriptedAgent()
    async with a_process(agent) as gateway:
        await gateway.gateway.accept([message("one")])
        await gateway.store.settle(
            list(gateway.database.pending), Outcome.DROPPED, now=gateway.clock.now()
        )
        await gateway.say("two", apart_s=5)
        await gateway.channel.until_sent(1)
        assert agent.prompts == ["two"]


async def test_what_a_stop_covered_does_not_run_although_another_node_has_committed_both() -> None:
    """SPEC CMD-1: the stop of this node is not committed when it finds the message."""
    async with two(Block()) as (owner, other):
        work, stop = message("work"), message("/stopall")
        owner.store.broken.add("claim_pending")
        await other.gateway.accept([work])
        owner.store.broken.add("accept")
        with pytest.raises(StoreUnavailable):
            await owner.gateway.accept([work, stop])
        owner.store.broken.remove("accept")
        await owner.gateway.accept([work])
        await other.gateway.accept([stop])
        owner.store.broken.clear()
        await asyncio.sleep(60)
        assert texts(owner, other) == ["Stopped 1 task and dropped 1 waiting message."]
        assert (await outcomes(owner))["work"] is Outcome.CANCELLED
        assert (owner.scripted.prompts, owner.pending) == (["long"], [])


async def test_a_bare_word_that_another_node_takes_in_stops_where_the_run_is() -> None:
    """SPEC CMD-2, NODE-1."""
    async with two(Block()) as (owner, other):
        await other.say("stop")
        await until(lambda: len(texts(owner, other)) == 1)
        await asyncio.sleep(30)
        assert texts(owner, other) == ["Stopped."]
        assert owner.scripted.prompts == ["long"]
        assert other.scripted.prompts == []
        assert owner.pending == []
