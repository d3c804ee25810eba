"""Processes that cannot reach their database for a while (SPEC DB-4, NODE-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from goclaw_py.cluster.membership import Membership
from goclaw_py.core.outcomes import Outcome
from goclaw_py.testing.agents import Block, Say, ScriptedAgent
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.harness import GatewayProcess, a_process, until
from tests.support.memory_store import MemoryDatabase
from tests.unit.cluster.processes import AT_ONCE, stuck, two


def cut(database: MemoryDatabase, gateway: GatewayProcess) -> Callable[[], None]:
    """Cut a gateway off from the database and its notices; the returned function ends that."""
    gateway.store.away = True
    hearers = database.hearers[gateway.store]
    # Who hears first of a reply sends it, so the order stays.
    database.hearers[gateway.store] = []

    def mend() -> None:
        gateway.store.away = False
        database.hearers[gateway.store] = hearers

    return mend


async def away(*gateways: GatewayProcess, for_s: float) -> None:
    """Their database is out of reach for a while."""
    for gateway in gateways:
        gateway.store.away = True
    await asyncio.sleep(for_s)
    for gateway in gateways:
        gateway.store.away = False


@pytest.mark.parametrize("away_s", [12.0, 60.0, 601.0])
async def test_a_database_that_is_away_stops_no_work_of_a_gateway_that_is_alone(
    away_s: float,
) -> None:
    """SPEC DB-4: nobody else could take it up."""
    agent = ScriptedAgent(Say("done", after_s=away_s + 30))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("one")
        await asyncio.sleep(1)
        await away(gateway, for_s=away_s)
        await gateway.channel.until_sent(1)
        assert agent.prompts == ["one"]
        assert await gateway.outcomes() == [Outcome.COMPLETED]
        assert gateway.recoveries == []


async def test_a_short_outage_stops_no_work_of_several_gateways() -> None:
    """SPEC DB-4."""
    agent = ScriptedAgent(Say("done", after_s=30))
    async with two(agent) as (first, second):
        await first.say("one")
        await asyncio.sleep(3.5)
        await away(first, second, for_s=4)
        await first.channel.until_sent(1)
        assert agent.prompts == ["one"]
        assert first.recoveries + second.recoveries == []


async def test_what_gateways_gave_up_goes_on_when_the_database_is_back_and_is_answered_once() -> (
    None
):
    """SPEC DB-4, IO-2: each takes its own work up again; nobody waits for a lease to end."""
    agents = [ScriptedAgent(Say("done", after_s=20), Say("done")) for _ in range(2)]
    async with two(agents[0], agents[1]) as (first, second):
        await first.say("one", chat="ann")
        await second.say("two", chat="bob")
        await asyncio.sleep(3)
        await away(first, second, for_s=60)
        await until(lambda: len(first.channel.texts() + second.channel.texts()) == 2, within_s=9)
        assert sorted(agents[0].prompts + agents[1].prompts) == ["one", "one", "two", "two"]
        await asyncio.sleep(60)
        assert len(first.channel.texts() + second.channel.texts()) == 2
        assert len(first.database.nodes) == 2


async def test_what_was_given_up_is_taken_back_although_that_fails_at_first() -> None:
    """SPEC NODE-1: nothing of the old node is left, and nobody waits for a lease to end."""
    agent = ScriptedAgent(Block(), Say("done"))
    async with two(agent, ScriptedAgent(Say("done"))) as (first, second):
        await first.say("one")
        await asyncio.sleep(3)
        was = first.node()
        first.store.away = second.store.away = True
        await asyncio.sleep(20)
        first.store.broken = second.store.broken = {"recover"}
        first.store.away = second.store.away = False
        await until(lambda: len(first.database.nodes) == 4)
        first.store.broken = second.store.broken = set()
        await until(lambda: len(first.database.nodes) == 2, within_s=4)
        assert was not in first.database.nodes
        # The end of the run that was given up is still to be stored: that is tried every 5 s.
        await until(lambda: "done" in first.channel.texts() + second.channel.texts(), within_s=6)


async def test_a_process_that_starts_as_the_database_returns_buries_nobody_alive() -> None:
    """SPEC DB-4, QUEUE-2: the leases of the living have ended, and they renew them in a moment."""
    database = MemoryDatabase()
    agents = [ScriptedAgent(Say("done", after_s=60)), ScriptedAgent()]
    async with a_process(agents[0], AT_ONCE, database=database) as old:
        await old.say("one")
        await asyncio.sleep(5)
        mend = cut(database, old)
        await asyncio.sleep(15)
        async with a_process(agents[1], AT_ONCE, database=database) as new:
            await asyncio.sleep(3)
            mend()
            await old.channel.until_sent(1)
            assert new.recoveries == []
            assert [agent.prompts for agent in agents] == [["one"], []]
            assert await old.outcomes() == [Outcome.COMPLETED]


async def test_a_process_that_joins_again_as_the_database_returns_buries_nobody_alive() -> None:
    """SPEC DB-4."""
    database = MemoryDatabase()
    agent = ScriptedAgent(Say("done", after_s=60))
    async with a_process(agent, AT_ONCE, database=database) as living:
        await living.say("one")
        await asyncio.sleep(5)
        mend = cut(database, living)
        async with a_process(database=database) as again:
            was = again.node()
            await asyncio.sleep(1)
            await away(again, for_s=15)
            await asyncio.sleep(6)
            assert again.node() != was
            mend()
            await living.channel.until_sent(1)
            assert [found.nodes for found in again.recoveries] == [(was,)]
            assert agent.prompts == ["one"]


async def test_a_process_that_cannot_renew_its_lease_does_not_recover_itself() -> None:
    """SPEC DB-4."""
    agent = ScriptedAgent(Say("done", after_s=40))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.say("one")
        await asyncio.sleep(1)
        gateway.store.broken = {"renew"}
        await asyncio.sleep(20)
        gateway.store.broken = set()
        await gateway.channel.until_sent(1)
        assert gateway.recoveries == []
        assert await gateway.outcomes() == [Outcome.COMPLETED]


async def test_an_expired_node_is_found_after_the_database_was_away() -> None:
    """SPEC NODE-1."""
    async with two(stuck()) as (first, second):
        await first.say("one")
        await asyncio.sleep(1)
        first.kill()
        await away(second, for_s=30)
        await until(lambda: second.channel.texts() == ["re: one"], within_s=30)


async def test_joining_waits_for_the_database() -> None:
    """SPEC DB-4."""
    store = FlakyStore()
    store.away = True
    cluster = Membership(
        store, LoopClock(), "test", on_recovery=lambda _: None, on_lost=lambda _: None
    )
    joining = asyncio.create_task(cluster.join())
    await asyncio.sleep(60)
    assert not joining.done()
    store.away = False
    await joining
    assert [node.id for node in await store.nodes()] == [cluster.node.id]
