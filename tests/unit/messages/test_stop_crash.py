"""What people have stopped stays stopped, whatever dies meanwhile (SPEC CMD-3, CMD-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
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


Way = Callable[[GatewayProcess], Awaitable[object]]


async def _stop(process: GatewayProcess) -> None:
    await process.say("/stop")


@asynccontextmanager
async def working(agent: ScriptedAgent) -> AsyncIterator[GatewayProcess]:
    async with a_process(agent, ONE_BY_ONE) as gateway:
        await gateway.say("work", apart_s=1)
        yield gateway


@asynccontextmanager
async def after_crash(
    agent: ScriptedAgent, database: MemoryDatabase, channel: DraftingChannel
) -> AsyncIterator[tuple[GatewayProcess, DraftingChannel]]:
    """The process that comes after the one that has shown its runs in this channel."""
    await asyncio.sleep(BURIED_S)
    after = DraftingChannel()
    after.drafted, after.sent = channel.drafted, channel.sent
    async with a_process(agent, ONE_BY_ONE, database=database, channels=(after,)) as second:
        yield second, after


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
    way: Way, again: list[str]
) -> None:
    database, agent, channel = MemoryDatabase(), stubborn(), DraftingChannel()
    async with a_process(agent, ONE_BY_ONE, database=database, channels=(channel,)) as first:
        await first.say("first", "second", apart_s=2)
        await way(first)
        await asyncio.sleep(1)
        assert len(agent.active) == 1  # it has not ended
        first.kill()
    async with after_crash(ScriptedAgent(), database, channel) as (second, after):
        await until(lambda: all(run.end for run in database.runs.values()))
        await until(lambda: not database.pending and not database.unsent)
        assert second.scripted.prompts == again
        runs = [run for run in await second.store.runs() if run.outcome is Outcome.CANCELLED]
        assert runs[0].reason in (Reason.STOPPED, Reason.STOPPED_ALL)
        # What people have seen of the answer is closed.
        assert texts.cut_draft(Outcome.CANCELLED) in after.visible()
        assert "so far" not in after.visible()
        assert await second.store.drafts() == []


async def test_a_message_that_was_being_committed_stays_stopped_too() -> None:
    """The process dies when both are stored, and before anything has ended the message."""
    database = MemoryDatabase()
    async with a_process(ScriptedAgent(), ONE_BY_ONE, database=database) as first:
        first.store.slow_before_s.update(accept=2.0, settle=30.0)
        working = asyncio.create_task(first.say("work"))
        await asyncio.sleep(0.5)
        stopping = asyncio.create_task(first.say("/stop"))
        await asyncio.sleep(2.5)
        first.kill()
        for call in (working, stopping):
            call.cancel()
    await asyncio.sleep(BURIED_S)
    async with a_process(ways=ONE_BY_ONE, database=database) as second:
        await until(lambda: not database.pending)
        assert (second.scripted.prompts, await second.outcomes()) == ([], [])


async def test_a_stop_whose_commit_failed_stores_what_it_stopped_when_it_comes_again() -> None:
    async with working(stubborn()) as gateway:
        stop = message("/stop")
        gateway.store.errors["accept"] = StoreUnavailable("away")
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([stop])
        assert gateway.pending == ["work"]
        await gateway.gateway.accept([replace(stop, redelivered=True)])
        assert gateway.pending == []
        assert len(gateway.scripted.active) == 1


async def test_what_a_stop_has_met_ends_in_the_database_no_earlier_than_the_stop() -> None:
    """SPEC NODE-1: if this node dies in between, the stop meets the same again, nothing newer."""
    async with working(blocked()) as process:
        process.store.slow_before_s["accept"] = 5.0
        stop = asyncio.create_task(process.gateway.accept([message("/stop")]))
        await asyncio.sleep(4)
        assert not process.scripted.active
        assert process.pending == ["work"]
        await stop
        await until(lambda: process.pending == [])


async def test_an_operator_hears_of_a_stop_although_the_database_is_away() -> None:
    async with working(stubborn()) as gateway:
        gateway.store.errors["settle"] = StoreUnavailable("away")
        report = await gateway.control.stop(session_of(), everything=False)
        assert len(report.stopped) == 1
        await until(lambda: not gateway.pending)
        assert len(gateway.scripted.active) == 1  # a look has stored it, long before the run's end


@pytest.mark.parametrize("way", [_stop_redelivered, _begin_anew])
async def test_what_a_stop_could_not_store_is_stored_when_it_is_tried_again(way: Way) -> None:
    async with working(stubborn()) as gateway:
        gateway.store.errors["settle"] = StoreUnavailable("away")
        await way(gateway)
        await until(lambda: not gateway.pending)
        assert len(gateway.scripted.active) == 1
        assert gateway.database.inbox[1].outcome is Outcome.CANCELLED


async def test_a_message_that_is_retried_is_not_stopped_by_the_same_stop_again() -> None:
    agent = ScriptedAgent(Emitting((TextDelta("so far"),), Block()))
    async with working(agent) as gateway:
        stop = message("/stop")
        await gateway.gateway.accept([stop])
        await asyncio.sleep(5)
        assert await gateway.store.retry_dead_letters([1], now=gateway.clock.now()) == 1
        await gateway.gateway.accept([replace(stop, redelivered=True)])
        await until(lambda: not gateway.pending)
        assert agent.prompts == ["work", "work"]
        assert gateway.database.inbox[1].outcome is Outcome.COMPLETED


async def test_a_message_that_was_stopped_in_its_own_batch_can_be_retried() -> None:
    async with a_process(ways=ONE_BY_ONE) as gateway:
        await gateway.gateway.accept([message("work"), message("/stop")])
        assert gateway.scripted.prompts == []
        assert await gateway.store.retry_dead_letters([1], now=gateway.clock.now()) == 1
        await until(lambda: not gateway.pending)
        assert gateway.scripted.prompts == ["work"]


@pytest.mark.parametrize("slow", ["slow_after_s", "slow_before_s"])
@pytest.mark.parametrize("way", [_stop, _stop_all, _stop_as_operator])
async def test_a_stop_while_the_next_run_takes_a_draft_over_closes_it(way: Way, slow: str) -> None:
    """SPEC CMD-3: the run never hears of the draft."""
    database, channel = MemoryDatabase(), DraftingChannel()
    async with a_process(blocked(), ONE_BY_ONE, database=database, channels=(channel,)) as first:
        await first.say("hello", apart_s=5)
        first.kill()
    async with after_crash(blocked(), database, channel) as (second, after):
        getattr(second.store, slow)["begin_run"] = 2.0
        await until(lambda: second.store.calls["begin_run"] == 1)
        await asyncio.sleep(0.5)
        await way(second)
        await asyncio.sleep(60)
        assert "so far" not in after.visible()
        assert database.drafts == {}
