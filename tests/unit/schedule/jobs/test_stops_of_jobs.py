"""A stop of a job that was said holds, whatever happens to its node (SPEC CMD-1, CMD-2, CRON-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import CRON_LANE
from goclaw_py.core.outcomes import Outcome
from goclaw_py.schedule.jobs.models import JobState
from goclaw_py.testing.agents import Block, Ignore, ScriptedAgent
from tests.support.harness import GatewayProcess, a_process
from tests.support.jobs import Wanted, at, at_work, ends, every, stored, until_idle
from tests.support.memory_store import MemoryDatabase

_AWAY_S = 15.0
_LATER_S = 60.0


async def _stop(gateway: GatewayProcess) -> None:
    await gateway.say("/stop")


async def _stop_all(gateway: GatewayProcess) -> None:
    await gateway.say("/stopall")


async def _stop_as_operator(gateway: GatewayProcess) -> None:
    run = next(one for one in gateway.container.dispatcher.runs() if one.lane == CRON_LANE)
    await gateway.control.sessions.stop(run.session, everything=False)


Way = Callable[[GatewayProcess], Awaitable[object]]
_WAYS = pytest.mark.parametrize("way", [_stop, _stop_all, _stop_as_operator])


@_WAYS
async def test_a_crash_before_the_end_of_a_stopped_run_does_not_repeat_it(way: Way) -> None:
    database, agent = MemoryDatabase(), ScriptedAgent(Ignore(for_s=20))
    async with at_work(agent, Wanted(at(60)), database) as (first, job):
        await way(first)
        await asyncio.sleep(1)
        assert len(agent.active) == 1  # it has not ended
        first.kill()
        async with a_process(database=database) as second:
            await asyncio.sleep(_LATER_S)
            assert second.scripted.requests == []
            assert await ends(second, job) == ["cancelled:stopped"]
            assert (await stored(second, job)).state is JobState.COMPLETED
            assert await second.outcomes() == [Outcome.CANCELLED]


@pytest.mark.parametrize("way", [_stop_all, _stop_as_operator])
async def test_a_stop_holds_although_the_database_is_away_for_longer_than_a_lease(way: Way) -> None:
    database, agent = MemoryDatabase(), ScriptedAgent(Block(), Block())
    async with (
        at_work(agent, Wanted(every(600)), database) as (first, job),
        a_process(database=database) as second,
    ):
        await first.say("hello")  # so that the chat is this node's, which answers at once
        await asyncio.sleep(5)
        first.store.away = second.store.away = True
        with suppress(StoreUnavailable):
            await way(first)
        await asyncio.sleep(_AWAY_S)
        first.store.away = second.store.away = False
        await asyncio.sleep(_LATER_S)
        await until_idle(first)
        assert [*agent.prompts, *second.scripted.prompts].count("report") == 1
        assert await ends(first, job) == ["cancelled:stopped"]


@pytest.mark.parametrize("after_s", [1.0, 5.0])
async def test_a_stop_of_everything_reaches_the_job_of_a_node_that_has_just_died(
    after_s: float,
) -> None:
    """Nobody can ask that node, and its occurrence waits for the end of its lease."""
    database, agent = MemoryDatabase(), ScriptedAgent(Block())
    async with at_work(agent, Wanted(at(60)), database) as (first, job):
        first.kill()
        async with a_process(database=database) as second:
            await asyncio.sleep(after_s)
            await second.say("/stopall")
            await asyncio.sleep(_LATER_S)
            assert second.scripted.requests == []
            assert await ends(second, job) == ["cancelled:stopped"]
            assert second.channel.texts()[0] == "Stopped 1 job."
