"""What people have stopped stays stopped, whatever dies meanwhile (SPEC CMD-3, CMD-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from goclaw_py.delivery import texts
from goclaw_py.model.errors import StoreUnavailable
from goclaw_py.model.outcomes import Outcome, Reason
from goclaw_py.model.run_events import TextDelta
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.store.memory import MemoryDatabase
from goclaw_py.testing.agents import Block, Emitting, Ignore, ScriptedAgent
from tests.support.drafting import DraftingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until

ONE_BY_ONE = Ways(direct=QueuePolicy(), cancel_grace_s=30.0)
BURIED_S = 20.0


def stubborn() -> ScriptedAgent:
    """An agent whose runs take long to end after they were cancelled."""
    return ScriptedAgent(otherwise=lambda _: Emitting((TextDelta("so far"),), Ignore(for_s=20)))


def blocked() -> ScriptedAgent:
    """An agent whose runs say something and go on for ever."""
    return ScriptedAgent(otherwise=lambda _: Emitting((TextDelta("so far"),), Block()))


async def _stop(process: GatewayProcess) -> None:
    await process.say("/stop")


async def _stop_all(process: GatewayProcess) -> None:
    await process.say("/stopall")


async def _stop_redelivered(process: GatewayProcess) -> None:
    await process.gateway.accept([message("/stop", redelivered=True)])


async def _stop_as_operator(process: GatewayProcess) -> None:
    await process.control.stop(session_of(), everything=False)


async def _begin_anew(process: GatewayProcess) -> None:
    await process.say("/new")


@pytest.mark.parametrize(
    ("way", "again"),
    [
        (_stop, ["second"]),
        (_stop_redelivered, ["second"]),
        (_stop_as_operator, ["second"]),
        (_stop_all, []),
        (_begin_anew, []),
    ],
)
async def test_a_crash_before_the_run_has_ended_brings_nothing_back(
    way: Callable[[GatewayProcess], Awaitable[None]], again: list[str]
) -> None:
    database, first_agent, second_agent = MemoryDatabase(), stubborn(), ScriptedAgent()
    channel = DraftingChannel()
    async with a_process(first_agent, ONE_BY_ONE, database=database, channels=(channel,)) as first:
        await first.say("first", "second", apart_s=2)
        await way(first)
        await asyncio.sleep(1)
        assert len(first_agent.active) == 1  # it has not ended
        first.kill()
    await asyncio.sleep(BURIED_S)
    after = DraftingChannel()
    after.drafted, after.sent = channel.drafted, channel.sent
    async with a_process(second_agent, ONE_BY_ONE, database=database, channels=(after,)) as second:
        await until(lambda: all(run.end for run in database.runs.values()))
        await until(lambda: not database.pending and not database.unsent)
        assert second_agent.prompts == again
        (stopped, *_) = [
            run for run in await second.store.runs() if run.outcome is Outcome.CANCELLED
        ]
        assert stopped.reason in (Reason.STOPPED, Reason.STOPPED_ALL)
        # What people have seen of the answer is closed.
        assert texts.cut_draft(Outcome.CANCELLED) in after.visible()
        assert "so far" not in after.visible()
        assert await second.store.drafts() == []


async def test_a_message_that_was_being_committed_stays_stopped_too() -> None:
    """The process dies when both are stored, and before anything has ended the message."""
    database, agent = MemoryDatabase(), ScriptedAgent()
    async with a_process(ScriptedAgent(), ONE_BY_ONE, database=database) as first:
        first.store.slow_before_s.update(accept=2.0, settle=30.0)
        both = [
            asyncio.create_task(first.gateway.accept([message("work")])),
            asyncio.create_task(_later(0.5, first.gateway.accept([message("/stop")]))),
        ]
        await asyncio.sleep(3)
        first.kill()
        for call in both:
            call.cancel()
    await asyncio.sleep(BURIED_S)
    async with a_process(agent, ONE_BY_ONE, database=database) as second:
        await until(lambda: not database.pending)
        assert (agent.prompts, await second.outcomes()) == ([], [])


async def _later(after_s: float, call: Awaitable[None]) -> None:
    await asyncio.sleep(after_s)
    await call


async def test_a_stop_whose_commit_failed_stores_what_it_stopped_when_it_comes_again() -> None:
    database, agent = MemoryDatabase(), stubborn()
    async with a_process(agent, ONE_BY_ONE, database=database) as gateway:
        await gateway.say("work", apart_s=1)
        stop = message("/stop")
        gateway.store.errors["accept"] = StoreUnavailable("away")
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([stop])
        assert gateway.pending == ["work"]
        await gateway.gateway.accept([replace(stop, redelivered=True)])
        assert gateway.pending == []
        assert len(agent.active) == 1


async def test_what_a_stop_has_met_ends_in_the_database_no_earlier_than_the_stop() -> None:
    """SPEC NODE-1: if this node dies in between, the stop meets the same again, nothing newer."""
    async with a_process(blocked(), ONE_BY_ONE) as process:
        await process.say("long")
        await process.scripted.until_active(1)
        process.store.slow_before_s["accept"] = 5.0
        stop = asyncio.create_task(process.gateway.accept([message("/stop")]))
        await asyncio.sleep(4)
        assert not process.scripted.active
        assert process.pending == ["long"]
        await stop
        await until(lambda: process.pending == [])


async def test_an_operator_hears_of_a_stop_although_the_database_is_away() -> None:
    database, agent = MemoryDatabase(), stubborn()
    async with a_process(agent, ONE_BY_ONE, database=database) as gateway:
        await gateway.say("work", apart_s=1)
        gateway.store.errors["settle"] = StoreUnavailable("away")
        report = await gateway.control.stop(session_of(), everything=False)
        assert len(report.stopped) == 1
        await until(lambda: not database.pending)
        assert len(agent.active) == 1  # the next look has stored it, long before the run's end


@pytest.mark.parametrize("way", [_stop_redelivered, _begin_anew])
async def test_what_a_stop_could_not_store_is_stored_when_the_command_is_tried_again(
    way: Callable[[GatewayProcess], Awaitable[None]],
) -> None:
    database, agent = MemoryDatabase(), stubborn()
    async with a_process(agent, ONE_BY_ONE, database=database) as gateway:
        await gateway.say("work", apart_s=1)
        gateway.store.errors["settle"] = StoreUnavailable("away")
        await way(gateway)
        await until(lambda: not database.pending)
        assert len(agent.active) == 1
        assert database.inbox[1].outcome is Outcome.CANCELLED


async def test_a_message_that_is_retried_is_not_stopped_by_the_same_stop_again() -> None:
    database = MemoryDatabase()
    agent = ScriptedAgent(Emitting((TextDelta("so far"),), Block()))
    async with a_process(agent, ONE_BY_ONE, database=database) as gateway:
        await gateway.say("work", apart_s=1)
        stop = message("/stop")
        await gateway.gateway.accept([stop])
        await asyncio.sleep(5)
        assert await gateway.store.retry_dead_letters([1], now=gateway.clock.now()) == 1
        await gateway.gateway.accept([replace(stop, redelivered=True)])
        await until(lambda: not database.pending)
        assert agent.prompts == ["work", "work"]
        assert database.inbox[1].outcome is Outcome.COMPLETED


async def test_a_message_that_was_stopped_in_its_own_batch_can_be_retried() -> None:
    database, agent = MemoryDatabase(), ScriptedAgent()
    async with a_process(agent, ONE_BY_ONE, database=database) as gateway:
        await gateway.gateway.accept([message("work"), message("/stop")])
        assert agent.prompts == []
        assert await gateway.store.retry_dead_letters([1], now=gateway.clock.now()) == 1
        await until(lambda: not database.pending)
        assert agent.prompts == ["work"]


@pytest.mark.parametrize("slow", ["slow_after_s", "slow_before_s"])
@pytest.mark.parametrize("way", [_stop, _stop_all, _stop_as_operator])
async def test_a_stop_while_the_next_run_takes_a_draft_over_closes_it(
    way: Callable[[GatewayProcess], Awaitable[None]], slow: str
) -> None:
    """SPEC CMD-3: the run never hears of the draft."""
    database, channel = MemoryDatabase(), DraftingChannel()
    async with a_process(blocked(), ONE_BY_ONE, database=database, channels=(channel,)) as first:
        await first.say("hello", apart_s=5)
        first.kill()
    await asyncio.sleep(BURIED_S)
    after = DraftingChannel()
    after.drafted, after.sent = channel.drafted, channel.sent
    async with a_process(blocked(), ONE_BY_ONE, database=database, channels=(after,)) as second:
        getattr(second.store, slow)["begin_run"] = 2.0
        await until(lambda: second.store.calls["begin_run"] == 1)
        await asyncio.sleep(0.5)
        await way(second)
        await asyncio.sleep(60)
        assert "so far" not in after.visible()
        assert database.drafts == {}
