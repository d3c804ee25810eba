"""The lease of a process: losing it, keeping it, burying those who left one (SPEC NODE-1, DB-4)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest

from goclaw_py.cluster.membership import LEASE, Membership, host_identity
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import NodeId
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.time.clocks import SharedClock
from goclaw_py.records import Node
from goclaw_py.runs.agent_loop import RunRequest
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Ignore, Say, ScriptedAgent, Step, Stream
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import LoopClock
from goclaw_py.testing.loop import VirtualLoop
from tests.support.flaky_store import FlakyStore
from tests.support.harness import GatewayProcess, Ways, a_process, message, until
from tests.support.memory_store import MemoryDatabase, MemoryStore
from tests.unit.cluster.processes import AT_ONCE, stuck, two

# ---------------------------------------------------------------------------- declared dead


async def declare_dead(database: MemoryDatabase) -> None:
    """All processes, as one would whose clock is years ahead."""
    later = LoopClock().now().replace(year=2030)
    await FlakyStore(database).recover(now=later, max_attempts=3, apology="sorry")


async def test_a_process_that_has_expired_writes_nothing_of_what_it_had_claimed() -> None:
    """SPEC NODE-1: its late finish is fenced."""
    late = ScriptedAgent(Ignore(for_s=3, reply="late"), otherwise=lambda _: Say("never"))
    agent = ScriptedAgent()
    async with two(late, agent) as (frozen, live):
        await frozen.say("one")
        await late.until_active(1)
        frozen.store.away = True
        await live.channel.until_sent(1)
        assert live.channel.texts() == ["re: one"]
        frozen.store.away = False
        await asyncio.sleep(60)
        assert frozen.channel.texts() == []
        assert await live.texts_in_history() == ["one", "re: one"]
        assert await live.outcomes() == [Outcome.LOST, Outcome.COMPLETED]
        assert len(frozen.database.nodes) == 2


async def test_a_process_that_has_expired_continues_as_a_new_node() -> None:
    """SPEC NODE-1."""
    database = MemoryDatabase()
    channel = RecordingChannel(lease="telegram:42")
    agent = ScriptedAgent(Block())
    async with a_process(agent, AT_ONCE, database=database, channels=(channel,)) as gateway:
        await gateway.say("one", "two")
        await agent.until_active(1)
        await asyncio.sleep(1)
        was = gateway.node()
        await declare_dead(database)
        await until(lambda: gateway.node() != was)
        await gateway.channel.until_sent(2)
        assert agent.prompts == ["one", "one", "two"]
        assert gateway.channel.texts() == ["re: one", "re: two"]
        await channel.deliver(message("three"))
        await gateway.channel.until_sent(3)
        assert await gateway.outcomes() == [Outcome.LOST, *[Outcome.COMPLETED] * 3]


async def test_a_process_that_has_expired_joins_once_however_slow_the_database_is() -> None:
    """SPEC NODE-1."""
    async with a_process() as gateway:
        gateway.store.slow_after_s["renew"] = 1.5
        gateway.store.slow_before_s["join"] = 2.5
        del gateway.database.nodes[gateway.node()]
        await asyncio.sleep(9)
        assert gateway.store.calls["join"] == 2
        assert list(gateway.database.nodes) == [gateway.node()]


async def test_dropped_messages_of_a_node_that_has_expired_run_once_without_a_notice() -> None:
    """SPEC NODE-1: what it had in hand belongs to whoever takes it up."""
    database = MemoryDatabase()
    agent = ScriptedAgent(Block(), Block())
    async with a_process(agent, Ways(QueuePolicy(capacity=1)), database=database) as gateway:
        await gateway.say("works", "dropped", "waits")
        gateway.store.broken = {"settle"}
        await declare_dead(database)
        await agent.until_started(2)
        gateway.store.broken = set()
        await asyncio.sleep(60)
        assert gateway.pending == ["works", "dropped", "waits"]
        agent.release()
        await gateway.channel.until_sent(3)
        assert agent.prompts == ["works", "works", "dropped", "waits"]
        assert gateway.channel.texts() == ["released", "re: dropped", "re: waits"]


# ---------------------------------------------------------------------------- the lease


async def test_a_gateway_that_is_cut_off_has_ended_its_work_before_another_begins_it() -> None:
    """SPEC QUEUE-2, NODE-1: two runs of a session never overlap, on no two machines either."""
    database = MemoryDatabase()
    still_active: list[int] = []

    def see(_: RunRequest) -> Step:
        still_active.append(len(cut_off.active))
        return Say("done")

    cut_off = stuck()
    channel = RecordingChannel(lease="telegram:42")
    async with (
        a_process(cut_off, AT_ONCE, database=database, channels=(channel,)) as first,
        a_process(ScriptedAgent(otherwise=see), AT_ONCE, database=database) as second,
    ):
        await first.say("one")
        await cut_off.until_active(1)
        await asyncio.sleep(3)
        was = first.node()
        first.store.away = True
        await second.channel.until_sent(1)
        assert still_active == [0]
        assert channel.receiving == 0
        first.store.away = False
        await until(lambda: channel.receiving == 1)
        assert first.node() != was
        assert await second.outcomes() == [Outcome.LOST, Outcome.COMPLETED]
        assert await second.texts_in_history() == ["one", "done"]


@pytest.mark.parametrize("stuck_too", ["recover", "end_lease", "nodes"])
async def test_a_gateway_that_has_just_come_back_renews_although_a_look_hangs(
    stuck_too: str,
) -> None:
    """SPEC NODE-1: what it had before is taken back beside that."""
    agent = stuck()
    async with two(agent) as (first, _):
        await asyncio.sleep(3)
        was = first.node()
        first.store.away = True
        await asyncio.sleep(9)
        first.store.slow_before_s[stuck_too] = 60.0
        first.store.away = False
        await until(lambda: first.node() != was and first.node() in first.database.nodes)
        await first.say("one")
        await agent.until_active(1)
        now = first.node()
        await asyncio.sleep(55)
        assert first.node() == now
        assert len(agent.active) == 1
        assert agent.prompts == ["one"]


async def test_a_gateway_that_has_just_come_back_is_guarded_although_its_looks_hang() -> None:
    """SPEC QUEUE-2: it reaches the database for a moment only."""
    still_active: list[int] = []

    def see(request: RunRequest) -> Step:
        if request.prompt == "two":
            still_active.append(len(back.active))
        return Say("done")

    back = stuck()
    async with two(back, ScriptedAgent(otherwise=see)) as (first, second):
        await first.say("one")
        await back.until_active(1)
        await asyncio.sleep(3)
        was = first.node()
        first.store.away = True
        await second.channel.until_sent(1)
        first.store.slow_before_s["nodes"] = first.store.slow_before_s["renew"] = 60.0
        first.store.away = False
        await until(lambda: first.node() != was and first.node() in first.database.nodes)
        await first.say("two", chat="bob")
        await back.until_active(1)
        await until(lambda: bool(still_active), within_s=60)
        assert still_active == [0]


async def let_a_renewal_hang(gateway: GatewayProcess) -> None:
    """The next one, and none after it."""
    begun = gateway.store.calls["renew"]
    gateway.store.slow_before_s["renew"] = 60.0
    await until(lambda: gateway.store.calls["renew"] > begun)
    gateway.store.slow_before_s["renew"] = 0.0


async def test_a_renewal_that_hangs_is_tried_again_over_another_connection() -> None:
    """SPEC NODE-1: one connection that is stuck is no reason to end anybody's work."""
    agent = stuck()
    async with two(agent) as (first, _):
        await first.say("one")
        await agent.until_active(1)
        was = first.node()
        for _ in range(3):
            await let_a_renewal_hang(first)
            await asyncio.sleep(20)
        assert first.node() == was
        assert agent.prompts == ["one"]
        assert len(agent.active) == 1


async def test_a_renewal_that_is_only_slow_is_waited_for_although_another_one_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SPEC QUEUE-2: the database is slow, and has no other connection to give."""
    agent = ScriptedAgent(Say("done", after_s=60))
    async with two(agent) as (first, _):
        await asyncio.sleep(3)
        renew, busy = first.store.renew, asyncio.Lock()

        async def slow(*args: Any, **options: Any) -> Any:
            if busy.locked():
                raise StoreUnavailable("too many connections")
            async with busy:
                await asyncio.sleep(3)
                return await renew(*args, **options)

        monkeypatch.setattr(first.store, "renew", slow)
        assert await first.ask("one") == "done"
        assert agent.prompts == ["one"]


@pytest.mark.parametrize("answer_s", [2.6, 3.0])
async def test_a_database_that_is_slow_for_all_ends_nobodys_work(answer_s: float) -> None:
    """SPEC QUEUE-2: a renewal that takes long is not given up for the next one."""
    agent = ScriptedAgent(Say("done", after_s=60))
    async with two(agent) as (first, second):
        await asyncio.sleep(3)
        for each in (first, second):
            each.store.slow_before_s["renew"] = answer_s
        assert await first.ask("one") == "done"
        assert agent.prompts == ["one"]


@pytest.mark.parametrize("hears", [True, False])
async def test_a_gateway_knows_of_another_although_its_looks_fail(hears: bool) -> None:
    """SPEC QUEUE-2: by what it hears, or by the answer to its last renewal."""
    database = MemoryDatabase()
    agent = stuck()
    async with a_process(agent, AT_ONCE, database=database) as first:
        await first.say("one")
        await asyncio.sleep(2.5)
        first.store.broken.add("nodes")
        if not hears:
            database.hearers.pop(first.store)
        async with a_process(database=database):
            await asyncio.sleep(0.1 if hears else 4)
            first.store.away = True
            await asyncio.sleep(12)
            assert agent.active == set()


def stand_still(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.virtual_now += seconds


async def test_a_process_that_stood_still_gives_others_the_time_to_renew() -> None:
    """SPEC DB-4: a machine that slept stood still with all its processes."""
    agent = ScriptedAgent(Say("done", after_s=60))
    async with two(agent) as (slower, faster):
        await slower.say("one")
        await asyncio.sleep(5)
        slower.store.slow_before_s["renew"] = 0.5
        stand_still(3600)
        await slower.channel.until_sent(1)
        assert faster.recoveries + slower.recoveries == []
        assert agent.prompts == ["one"]


async def test_a_process_that_wakes_just_before_its_lease_ends_has_ended_its_work_by_then() -> None:
    """SPEC QUEUE-2: others begin it at that very moment."""
    agent = stuck()
    async with two(agent) as (first, _):
        await first.say("one")
        await asyncio.sleep(5)
        first.store.away = True
        left = first.cluster.node.lease_until - first.clock.now()
        stand_still(left.total_seconds() - 0.5)
        await asyncio.sleep(0.4)
        assert agent.active == set()


class StoreWithClock(MemoryStore):
    """The clock of its database can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_s = 0.0

    async def time(self) -> datetime:
        """As it is set."""
        return LoopClock().now() + timedelta(seconds=self.ahead_s)


async def joined_with_clock() -> tuple[StoreWithClock, Membership]:
    store = StoreWithClock()
    clock = SharedClock(LoopClock(), asyncio.get_running_loop().time)
    cluster = Membership(store, clock, "1.0", on_recovery=lambda _: None, on_lost=lambda _: None)
    await cluster.join()
    return store, cluster


async def test_a_clock_that_is_put_back_while_two_renewals_are_under_way_is_heeded_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SPEC NODE-1: the first one answers, which was asked before."""
    store, cluster = await joined_with_clock()
    renew, calls = store.renew, count(1)

    async def slow(node: NodeId, **options: Any) -> Any:
        number = next(calls)
        if number == 2:
            await asyncio.sleep(0.5)
        renewed = await renew(node, **options)
        if number == 1:
            await asyncio.sleep(2.6)
        return renewed

    monkeypatch.setattr(store, "renew", slow)
    keeping = asyncio.create_task(cluster.renew_regularly())
    await asyncio.sleep(4)
    store.ahead_s = -3600.0
    await asyncio.sleep(30)
    (node,) = await store.nodes()
    assert node.lease_until - await store.time() <= LEASE
    keeping.cancel()


async def test_a_database_whose_clock_is_put_back_does_not_keep_a_lease_for_longer() -> None:
    """SPEC NODE-1: it would be taken over so much later."""
    store, cluster = await joined_with_clock()
    keeping = asyncio.create_task(cluster.renew_regularly())
    for ahead_s in (0.0, -3600.0, -30.0, -300.0):
        store.ahead_s = ahead_s
        await asyncio.sleep(10)
        (node,) = await store.nodes()
        assert node == cluster.node
        left = node.lease_until - await store.time()
        assert timedelta(seconds=6) < left <= LEASE
    keeping.cancel()


def _node(name: str, pid: int, host: str) -> Node:
    now = LoopClock().now()
    return Node(NodeId(name), host, pid, "test", now, now.replace(year=2030))


async def test_expired_nodes_of_this_machine_are_recovered_at_once() -> None:
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


async def test_leaving_gives_everything_to_others_at_once() -> None:
    """SPEC NODE-3."""
    agent = ScriptedAgent()
    async with two(stuck(), agent) as (first, _):
        await first.say("one", "two")
        await asyncio.sleep(1)
        await first.shut_down(wait_s=0)
        await until(lambda: agent.prompts == ["one", "two"], within_s=3)


async def test_a_process_whose_lease_has_ended_shows_no_more_of_a_reply() -> None:
    """SPEC IO-5: who goes on with it may have finished it; a late edit would undo that."""
    pieces = tuple(f"{number} " for number in range(60))
    talker = ScriptedAgent(otherwise=lambda _: Stream(pieces, every_s=1))
    async with a_process(talker, AT_ONCE) as gateway:
        gateway.channel.drafting = True
        await gateway.say("one")
        await talker.until_active(1)
        await asyncio.sleep(5)
        gateway.store.away = True
        await asyncio.sleep(11)
        (shown,) = gateway.channel.drafted.values()
        before = len(shown)
        await asyncio.sleep(10)
        assert len(shown) == before > 3
        gateway.store.away = False
        await asyncio.sleep(10)
        # Nobody took it over: it goes on.
        assert len(shown) > before


async def test_a_run_that_may_not_begin_any_more_is_no_failure() -> None:
    """SPEC NODE-1: another node has its session; nobody is told that anything went wrong."""
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE) as gateway:
        database = gateway.database
        gateway.store.slow_before_s["begin_run"] = 2
        await gateway.say("one")
        await asyncio.sleep(1)
        (session,) = database.sessions.values()
        session.owner, session.fence = None, session.fence + 1
        (row,) = database.pending.values()
        database.end_row(row, Outcome.COMPLETED, Reason.STOPPED, LoopClock().now())
        await asyncio.sleep(60)
        assert (agent.prompts, gateway.channel.texts(), await gateway.outcomes()) == ([], [], [])


async def test_a_run_that_began_while_its_lease_ended_waits_until_that_is_renewed() -> None:
    """SPEC QUEUE-2: who takes its session over begins it anew, and must find nobody at work."""
    agent = ScriptedAgent()
    async with a_process(agent, AT_ONCE) as gateway:
        await asyncio.sleep(1)
        gateway.store.broken = {"renew"}
        gateway.store.slow_after_s["begin_run"] = 12
        await gateway.say("one")
        await asyncio.sleep(20)
        assert agent.prompts == []
        gateway.store.broken = set()
        await gateway.channel.until_sent(1)
        assert agent.prompts == ["one"]
        assert await gateway.outcomes() == [Outcome.COMPLETED]
