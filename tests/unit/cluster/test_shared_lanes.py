"""A lane whose size is that of all nodes together (SPEC NODE-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from goclaw_py.core.ids import MAIN_LANE
from goclaw_py.records import RunQuery
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.scheduler.snapshots import slow_waits
from goclaw_py.testing.agents import Block, Say, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.support.memory_store import MemoryDatabase

SHARED = Ways(QueuePolicy(), main_lane=1, shared=frozenset({MAIN_LANE}))


@asynccontextmanager
async def two(ways: Ways = SHARED) -> AsyncIterator[tuple[GatewayProcess, GatewayProcess]]:
    database = MemoryDatabase()
    agents = [ScriptedAgent(otherwise=lambda r: Say(f"re: {r.prompt}", after_s=10)) for _ in "12"]
    async with (
        a_process(agents[0], ways, database=database) as first,
        a_process(agents[1], ways, database=database) as second,
    ):
        yield first, second


@asynccontextmanager
async def one_works_and_one_waits() -> AsyncIterator[tuple[GatewayProcess, GatewayProcess]]:
    """``one`` on the first node, ``two`` on the second."""
    async with two() as (first, second):
        await first.say("one", chat="c1")
        await until(lambda: active(first) == 1)
        await second.say("two", chat="c2")
        yield first, second


def active(*processes: GatewayProcess) -> int:
    return sum(len(one.scripted.active) for one in processes)


async def test_one_run_works_at_a_time_over_all_nodes_in_their_order() -> None:
    async with two() as (first, second):
        for number, process in enumerate((first, second, first, second)):
            await process.say(f"m{number}", chat=f"c{number}")
            await asyncio.sleep(0.1)
        seen: list[str] = []
        for _ in range(430):
            assert active(first, second) <= 1
            await asyncio.sleep(0.1)
        began = [
            (run.started_at, run.session) for run in await first.store.runs(RunQuery(limit=10))
        ]
        seen = [session.rpartition(":")[2] for _, session in sorted(began)]
        assert seen == ["c0", "c1", "c2", "c3"]


async def test_an_expired_nodes_slots_are_released() -> None:
    async with one_works_and_one_waits() as (first, second):
        first.kill()
        await until(lambda: active(second) == 1, within_s=25)


async def test_whoever_is_stopped_while_waiting_leaves_the_line() -> None:
    async with one_works_and_one_waits() as (first, second):
        await second.say("/stop", chat="c2")
        await first.say("three", chat="c3")
        await until(lambda: "three" in first.scripted.prompts, within_s=11)
        assert second.scripted.prompts == []


async def test_who_comes_back_after_an_outage_gets_a_place_one_after_the_other() -> None:
    """SPEC DB-4: whoever is first; without a database they have ended their runs."""
    async with one_works_and_one_waits() as (first, second):
        await asyncio.sleep(1)
        first.store.away = second.store.away = True
        await asyncio.sleep(30)
        assert active(first, second) == 0
        first.store.away = second.store.away = False
        most = 0
        for _ in range(60):
            await asyncio.sleep(0.5)
            most = max(most, active(first, second))
        assert most == 1
        assert first.channel.texts("c1") + second.channel.texts("c1") == ["re: one"]
        assert first.channel.texts("c2") + second.channel.texts("c2") == ["re: two"]


async def test_a_lane_of_one_node_asks_nobody() -> None:
    async with two(Ways(QueuePolicy(), main_lane=1)) as (first, second):
        await first.say("one", chat="c1")
        await second.say("two", chat="c2")
        await until(lambda: active(first, second) == 2, within_s=1)
        assert first.store.calls["share"] == 0


async def test_a_run_in_a_free_lane_requests_once_and_releases_once_and_then_nobody_requests() -> (
    None
):
    async with two() as (first, _):
        await first.say("one", chat="c1")
        for _ in range(2):
            await asyncio.sleep(60)
            assert first.scripted.prompts == ["one"]
            assert first.store.calls["share"] == 2


async def test_a_run_that_has_stood_in_a_long_line_asks_no_more_often() -> None:
    """The place that one gives back is the next one's in the same breath."""
    ways = Ways(QueuePolicy(), main_lane=2, shared=frozenset({MAIN_LANE}))
    agent = ScriptedAgent(otherwise=lambda _: Say("done", after_s=0.1))
    async with a_process(agent, ways) as process:
        for number in range(20):
            await process.say("hello", chat=f"c{number}", apart_s=0.03)
        await until(lambda: len(agent.prompts) == 20)
        # One at the end of each, one for each that finds fewer in the line than may work, and a
        # look or two.
        assert process.store.calls["share"] <= 26


async def test_while_a_run_waits_what_else_happens_asks_nobody() -> None:
    """Each question holds up all other nodes; that others give back is told by a notice."""
    async with one_works_and_one_waits() as (_, second):
        await asyncio.sleep(1)
        second.store.calls.clear()
        for number in range(40):
            await second.say(f"m{number}", chat="c2")
            await asyncio.sleep(0.05)
        assert second.store.calls["accept"] == 40
        # Two seconds are two looks, in case that a notice was lost.
        assert 2 <= second.store.calls["share"] <= 3


async def test_a_place_whose_notice_was_lost_is_found_however_much_happens() -> None:
    async with two() as (first, second):
        second.database.hearers.pop(second.store)
        await first.say("one", chat="c1")
        await until(lambda: active(first) == 1)
        for number in range(300):
            await second.say(f"m{number}", chat="c2")
            await asyncio.sleep(0.05)
        assert active(second) == 1


async def test_whoever_leaves_after_a_lost_answer_keeps_no_place() -> None:
    async with two() as (first, second):
        first.store.lose_answer["share"] = 1
        await first.say("one", chat="c1")
        await asyncio.sleep(0.1)
        assert (first.store.calls["share"], active(first)) == (1, 0)
        await first.say("/stop", chat="c1")
        await second.say("two", chat="c2")
        await until(lambda: active(second) == 1, within_s=3)


@pytest.mark.slow
async def test_runs_that_never_end_keep_their_places() -> None:
    database = MemoryDatabase()
    async with (
        a_process(ScriptedAgent(Block()), SHARED, database=database) as first,
        a_process(ScriptedAgent(), SHARED, database=database) as second,
    ):
        await first.say("one", chat="c1")
        await until(lambda: active(first) == 1)
        await second.say("two", chat="c2")
        await asyncio.sleep(3600)
        assert second.scripted.prompts == []


async def test_whoever_waits_sees_that_others_are_in_the_lane_and_gets_the_place_at_once() -> None:
    async with one_works_and_one_waits() as (first, second):
        await asyncio.sleep(4)
        (use,) = [use for use in (await second.control.lanes.list()).lanes if use.lane.shared]
        assert use.lane.name == MAIN_LANE
        assert (use.lane.active, use.lane.elsewhere, use.lane.waiting) == (0, 1, 1)
        (warning,) = slow_waits(second.dispatcher.lanes(), second.dispatcher.runs())
        assert "Lane main is full (1 of 1)" in str(warning)
        assert "in it: 1 run of other nodes" in warning.text
        await until(lambda: active(second) == 1, within_s=6.3)
        assert active(first) == 0
        (use,) = [use for use in (await second.control.lanes.list()).lanes if use.lane.shared]
        assert (use.lane.active, use.lane.elsewhere) == (1, 0)
