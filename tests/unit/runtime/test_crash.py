"""Processes that die, and processes beside each other (SPEC IO-2, NODE-1, DB-4)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest

from goclaw_py.core import wording
from goclaw_py.core.events import RunEnded
from goclaw_py.core.ids import NodeId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.requests import QueuePolicy
from goclaw_py.ports.store import Node
from goclaw_py.runtime.cluster import Cluster, host_identity
from goclaw_py.store.memory import MemoryDatabase
from goclaw_py.testing.agents import Block, Ignore, Say, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.harness import Ways, a_process, message, session_of, until

AT_ONCE = Ways(QueuePolicy())
TAKEN_OVER_WITHIN_S = 15.0


def stuck() -> ScriptedAgent:
    return ScriptedAgent(otherwise=lambda _: Block())


# ---------------------------------------------------------------------------- one dies


async def test_unfinished_messages_of_a_killed_process_run_again_in_order() -> None:
    """SPEC IO-2, NODE-1: within 15 s."""
    database = MemoryDatabase()
    agent = ScriptedAgent()
    async with (
        a_process(stuck(), AT_ONCE, database=database) as first,
        a_process(agent, AT_ONCE, database=database) as second,
    ):
        await first.say("one", "two", "three", apart_s=0.1)
        first.kill()
        await until(lambda: len(agent.requests) == 3, within_s=TAKEN_OVER_WITHIN_S)
        await second.channel.until_sent(3)
        assert second.channel.texts() == ["re: one", "re: two", "re: three"]
        assert await second.outcomes() == [Outcome.LOST, *[Outcome.COMPLETED] * 3]
        texts = ["one", "re: one", "two", "re: two", "three", "re: three"]
        assert await second.said_in_history() == texts


async def test_a_process_that_starts_later_takes_over_too() -> None:
    """SPEC IO-2."""
    database = MemoryDatabase()
    async with a_process(stuck(), AT_ONCE, database=database) as first:
        await first.say("one")
        await asyncio.sleep(1)
        first.kill()
    await asyncio.sleep(60)
    async with a_process(database=database) as second:
        await until(lambda: second.channel.texts() == ["re: one"], within_s=1)


async def test_a_crash_drops_nothing_however_much_waited() -> None:
    """SPEC IO-2: bursts fall apart after a crash, but they do not overflow the queue."""
    database = MemoryDatabase()
    async with a_process(stuck(), database=database) as first:
        await first.say("works", apart_s=2)
        for number in range(8):
            await first.say(f"{number}a", f"{number}b", apart_s=0.1)
            await asyncio.sleep(2)
        first.kill()
    agent = ScriptedAgent()
    await asyncio.sleep(20)
    async with a_process(agent, database=database) as second:
        await second.channel.until_sent(17)
        assert len(agent.prompts) == 17
        assert agent.prompts[1:3] == ["0a", "0b"]


async def test_what_a_killed_process_shows_is_cleared_by_the_next() -> None:
    """SPEC CMD-3."""
    database = MemoryDatabase()
    agent = stuck()
    async with (
        a_process(agent, AT_ONCE, database=database) as first,
        a_process(database=database) as second,
    ):
        await first.say("one")
        await agent.until_active(1)
        first.kill()
        await second.channel.until_sent(1)
        lost = RunEnded(agent.requests[0].run_id, message("").target, Outcome.LOST)
        assert second.channel.signals[0] == lost


async def test_a_message_that_crashes_three_processes_is_lost_and_its_sender_told() -> None:
    """SPEC IO-2."""
    database = MemoryDatabase()
    for attempt in range(3):
        agent = stuck()
        async with a_process(agent, AT_ONCE, database=database) as gateway:
            if not attempt:
                await gateway.say("poison")
            await agent.until_active(1)
            gateway.kill()
        await asyncio.sleep(20)
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE, database=database) as gateway:
        await gateway.channel.until_sent(1)
        await asyncio.sleep(60)
        assert gateway.channel.texts() == [wording.LOST]
        assert agent.prompts == []
        assert gateway.pending == []
        assert gateway.recoveries[0].gave_up == 1
        assert await gateway.outcomes() == [Outcome.LOST] * 3


async def test_after_two_crashes_on_one_message_the_others_of_its_session_go_first() -> None:
    """SPEC IO-2."""
    database = MemoryDatabase()
    for attempt in range(2):
        agent = stuck()
        async with a_process(agent, AT_ONCE, database=database) as gateway:
            if not attempt:
                await gateway.say("poison", "two", "three")
            await agent.until_active(1)
            assert agent.prompts == ["poison"]
            gateway.kill()
        await asyncio.sleep(20)
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE, database=database) as gateway:
        await gateway.channel.until_sent(3)
        assert agent.prompts == ["two", "three", "poison"]


async def test_a_dropped_message_whose_notice_was_not_stored_runs_after_the_crash() -> None:
    """SPEC QUEUE-5, IO-2."""
    database = MemoryDatabase()
    async with a_process(stuck(), Ways(QueuePolicy(capacity=1)), database=database) as first:
        await first.say("works", "dropped", "waits")
        await asyncio.sleep(0.5)
        first.kill()
    await asyncio.sleep(20)
    agent = ScriptedAgent()
    async with a_process(agent, database=database) as second:
        await second.channel.until_sent(3)
        assert agent.prompts == ["works", "dropped", "waits"]


async def test_a_command_that_was_committed_before_the_crash_is_carried_out() -> None:
    """SPEC IO-2."""
    database = MemoryDatabase()
    async with a_process(database=database) as first:
        first.store.broken = {"settle"}
        await first.say("/start")
        first.kill()
    await asyncio.sleep(20)
    async with a_process(database=database) as second:
        await second.channel.until_sent(1)
        assert second.channel.texts() == [wording.GREETING]


# ---------------------------------------------------------------------------- two live


async def test_a_second_gateway_disturbs_nothing_and_waits_for_the_poller_lease() -> None:
    """SPEC NODE-1."""
    database = MemoryDatabase()
    mine, other = (RecordingChannel(lease="telegram:42") for _ in range(2))
    agent, idle = ScriptedAgent(Say("slow", after_s=60)), ScriptedAgent()
    async with (
        a_process(agent, AT_ONCE, database=database, channels=(mine,)) as first,
        a_process(idle, AT_ONCE, database=database, channels=(other,)) as second,
    ):
        await mine.deliver(message("hello"))
        await asyncio.sleep(59)
        assert (mine.receiving, other.receiving) == (1, 0)
        assert [view.state for view in first.supervisor.views()] == ["working"]
        assert [view.state for view in second.supervisor.views()] == ["waiting"]
        await until(lambda: bool(mine.texts() + other.texts()))
        assert (agent.prompts, idle.prompts) == (["hello"], [])
        assert mine.texts() + other.texts() == ["slow"]
        assert await second.outcomes() == [Outcome.COMPLETED]


async def test_the_poller_lease_moves_when_its_holder_dies() -> None:
    """SPEC NODE-1."""
    database = MemoryDatabase()
    mine, other = (RecordingChannel(lease="telegram:42") for _ in range(2))
    async with (
        a_process(database=database, channels=(mine,)) as first,
        a_process(database=database, channels=(other,)),
    ):
        await asyncio.sleep(1)
        first.kill()
        await until(lambda: other.receiving == 1, within_s=TAKEN_OVER_WITHIN_S)


async def test_a_session_that_one_process_works_on_is_left_to_it_by_the_other() -> None:
    """SPEC NODE-1: the unit of chat work is the session."""
    database = MemoryDatabase()
    agent, idle = ScriptedAgent(Say("first", after_s=20)), ScriptedAgent()
    async with (
        a_process(agent, AT_ONCE, database=database) as first,
        a_process(idle, AT_ONCE, database=database) as second,
    ):
        await first.say("one")
        await asyncio.sleep(1)
        await second.say("two")  # arrives over there, as with webhooks on all nodes
        await agent.until_started(2)
        assert agent.prompts == ["one", "two"]
        assert idle.prompts == []
        assert agent.overlaps == {session_of(): 1}


async def test_an_idle_session_is_given_to_whoever_gets_its_next_message() -> None:
    """SPEC NODE-1."""
    database = MemoryDatabase()
    agent = ScriptedAgent()
    async with a_process(database=database) as first, a_process(agent, database=database) as second:
        await first.ask("one")
        await asyncio.sleep(10)
        session = await first.store.session(session_of())
        assert session is not None
        assert session.owner is None
        await second.say("two")
        await agent.until_started(1)
        assert [entry.text for entry in agent.requests[0].history] == ["one", "re: one"]


async def test_a_session_that_wakes_while_it_is_given_back_is_given_back_later() -> None:
    """SPEC NODE-1."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("one")
        gateway.store.slow_after_s["release_sessions"] = 1.0
        await until(lambda: gateway.store.calls["release_sessions"] == 1)
        await gateway.ask("two")
        await asyncio.sleep(10)
        session = await gateway.store.session(session_of())
        assert session is not None
        assert session.owner is None


async def test_an_idle_session_is_given_back_after_the_database_was_away() -> None:
    """SPEC NODE-1, DB-4."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("one")
        gateway.store.broken = {"release_sessions"}
        await asyncio.sleep(10)
        gateway.store.broken = set()
        await asyncio.sleep(5)
        session = await gateway.store.session(session_of())
        assert session is not None
        assert session.owner is None


# ---------------------------------------------------------------------------- declared dead


async def test_a_process_that_was_declared_dead_writes_nothing_of_what_it_had_in_hand() -> None:
    """SPEC NODE-1: its late finish is fenced."""
    database = MemoryDatabase()
    late = ScriptedAgent(Ignore(for_s=3, reply="late"), otherwise=lambda _: Say("never"))
    agent = ScriptedAgent()
    async with (
        a_process(late, AT_ONCE, database=database) as frozen,
        a_process(agent, AT_ONCE, database=database) as live,
    ):
        await frozen.say("one")
        await late.until_active(1)
        frozen.store.away = True
        await live.channel.until_sent(1)
        assert live.channel.texts() == ["re: one"]
        frozen.store.away = False
        await asyncio.sleep(60)
        assert frozen.channel.texts() == []
        assert await live.said_in_history() == ["one", "re: one"]
        assert await live.outcomes() == [Outcome.LOST, Outcome.COMPLETED]
        assert len(database.nodes) == 2


async def test_a_process_that_was_declared_dead_works_on_as_a_new_node() -> None:
    """SPEC NODE-1."""
    database = MemoryDatabase()
    channel = RecordingChannel(lease="telegram:42")
    agent = ScriptedAgent(Block())
    async with a_process(agent, AT_ONCE, database=database, channels=(channel,)) as gateway:
        await gateway.say("one", "two")
        await agent.until_active(1)
        was = gateway.node()
        watcher = FlakyStore(database)
        later = LoopClock().now().replace(year=2030)
        await watcher.recover(now=later, max_attempts=3, apology="sorry")
        await until(lambda: gateway.node() != was)
        await gateway.channel.until_sent(2)
        assert agent.prompts == ["one", "one", "two"]
        assert gateway.channel.texts() == ["re: one", "re: two"]
        await channel.deliver(message("three"))
        await gateway.channel.until_sent(3)
        assert await gateway.outcomes() == [Outcome.LOST, *[Outcome.COMPLETED] * 3]


async def test_dropped_messages_of_a_node_that_was_declared_dead_run_once_and_are_not_told() -> (
    None
):
    """SPEC NODE-1: what it had in hand belongs to whoever takes it up."""
    database = MemoryDatabase()
    agent = ScriptedAgent(Block())
    async with a_process(agent, Ways(QueuePolicy(capacity=1)), database=database) as gateway:
        await gateway.say("works", "dropped", "waits")
        gateway.store.broken = {"settle"}
        later = LoopClock().now().replace(year=2030)
        await FlakyStore(database).recover(now=later, max_attempts=3, apology="sorry")
        await agent.until_started(2)
        gateway.store.broken = set()
        await asyncio.sleep(60)
        assert agent.prompts == ["works", "works", "dropped", "waits"]
        assert gateway.channel.texts() == ["re: works", "re: dropped", "re: waits"]


# ---------------------------------------------------------------------------- the lease


@pytest.mark.parametrize("away_s", [12.0, 60.0, 601.0])
async def test_a_database_that_was_away_longer_than_a_lease_kills_nobody(away_s: float) -> None:
    """SPEC DB-4: work goes on where it was, on every node; nothing is doubled."""
    database = MemoryDatabase()
    agents = [ScriptedAgent(Say("done", after_s=away_s + 30)) for _ in range(2)]
    async with (
        a_process(agents[0], AT_ONCE, database=database) as first,
        a_process(agents[1], AT_ONCE, database=database) as second,
    ):
        await first.say("one", chat="ann")
        await second.say("two", chat="bob")
        await asyncio.sleep(1)
        first.store.away = second.store.away = True
        await asyncio.sleep(away_s)
        first.store.away = second.store.away = False
        await until(lambda: len(first.channel.texts() + second.channel.texts()) == 2)
        assert [agents[0].prompts, agents[1].prompts] == [["one"], ["two"]]
        assert await first.outcomes() == [Outcome.COMPLETED] * 2
        assert first.recoveries + second.recoveries == []


async def test_a_dead_node_is_found_after_the_database_was_away() -> None:
    """SPEC NODE-1."""
    database = MemoryDatabase()
    async with (
        a_process(stuck(), AT_ONCE, database=database) as first,
        a_process(database=database) as second,
    ):
        await first.say("one")
        await asyncio.sleep(1)
        first.kill()
        second.store.away = True
        await asyncio.sleep(30)
        second.store.away = False
        await until(lambda: second.channel.texts() == ["re: one"], within_s=30)


def _node(name: str, pid: int, host: str) -> Node:
    now = LoopClock().now()
    return Node(NodeId(name), host, pid, "test", now, now.replace(year=2030))


async def test_the_dead_of_this_machine_are_buried_at_once() -> None:
    """SPEC IO-2: after a crash the next start does not wait for the lease to end."""
    database = MemoryDatabase()
    store = FlakyStore(database)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    await store.join(_node("gone", gone.pid, host_identity()))
    await store.join(_node("living", 1, host_identity()))
    await store.join(_node("elsewhere", gone.pid, "another machine"))
    async with a_process(database=database) as gateway:
        names = {node.id for node in await gateway.store.nodes()}
        assert names == {"living", "elsewhere", gateway.node()}
        assert gateway.recoveries[0].nodes == (NodeId("gone"),)


async def test_joining_waits_for_the_database() -> None:
    """SPEC DB-4."""
    store = FlakyStore()
    store.away = True
    cluster = Cluster(
        store, LoopClock(), "test", on_recovery=lambda _: None, on_lost=lambda: None
    )
    joining = asyncio.create_task(cluster.join())
    await asyncio.sleep(60)
    assert not joining.done()
    store.away = False
    await joining
    assert [node.id for node in await store.nodes()] == [cluster.node.id]


async def test_leaving_gives_everything_to_others_at_once() -> None:
    """SPEC NODE-3."""
    database = MemoryDatabase()
    agent = ScriptedAgent()
    async with (
        a_process(stuck(), AT_ONCE, database=database) as first,
        a_process(agent, AT_ONCE, database=database),
    ):
        await first.say("one", "two")
        await asyncio.sleep(1)
        await first.shut_down(wait_s=0)
        await until(lambda: agent.prompts == ["one", "two"], within_s=3)


async def test_host_identity_is_the_same_twice() -> None:
    assert host_identity() == host_identity()
    assert replace(_node("a", 1, host_identity())).host == host_identity()
