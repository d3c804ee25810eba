"""What other nodes work on is stopped from here (SPEC NODE-1, CMD-1 to CMD-3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from goclaw_py.chat.outbound import texts as wording
from goclaw_py.cluster.membership import RENEW_S
from goclaw_py.cluster.rpc import ANSWER_S, DRAIN, Facts, NodeRpc
from goclaw_py.core.errors import GoclawError, NodeSilent, NotFound, StoreUnavailable
from goclaw_py.core.ids import NodeId, RunId
from goclaw_py.core.outcomes import Outcome
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.records.bound import bind
from goclaw_py.scheduler.views import StopReport
from goclaw_py.testing.agents import Block, Ignore, Say, ScriptedAgent, Step
from goclaw_py.testing.clock import LoopClock
from tests.support.harness import GatewayProcess, Ways, a_process, session_of, until
from tests.support.jobs import Wanted, ends, every, make
from tests.support.memory_store import MemoryDatabase
from tests.support.stores import a_node


@dataclass
class Two:
    """Two processes on one database; both have the channel, as with webhooks."""

    first: GatewayProcess
    second: GatewayProcess

    async def works_on(self, *texts: str) -> None:
        """Let the first one work on these messages."""
        await self.first.say(*texts)
        await until(lambda: bool(self.first.scripted.active))

    def texts(self) -> list[str]:
        """All that the chat was told, by whomever."""
        return self.first.channel.texts() + self.second.channel.texts()


@asynccontextmanager
async def two(
    *steps: Step, others: tuple[Step, ...] = (), ways: Ways | None = None
) -> AsyncIterator[Two]:
    database = MemoryDatabase()
    async with (
        a_process(ScriptedAgent(*steps), ways, database=database) as first,
        a_process(ScriptedAgent(*others), ways, database=database) as second,
    ):
        yield Two(first, second)


async def test_a_stop_reaches_the_node_that_works() -> None:
    async with two(Block()) as both:
        await both.works_on("long")
        await both.second.say("/stop")
        await until(lambda: bool(both.texts()), within_s=0.3)
        assert both.texts() == ["Stopped."]
        assert len(both.first.scripted.cancelled) == 1
        await asyncio.sleep(5)
        assert await both.first.outcomes() == [Outcome.CANCELLED]
        assert (both.texts(), both.first.pending) == (["Stopped."], [])


async def test_stopall_takes_what_waits_there_too() -> None:
    async with two(Block()) as both:
        await both.works_on("one")
        await both.first.say("two", apart_s=2)
        await both.second.say("/stopall")
        await until(lambda: bool(both.texts()), within_s=0.3)
        assert both.texts() == ["Stopped 1 task and dropped 1 waiting message."]
        await asyncio.sleep(5)
        assert both.first.scripted.prompts == ["one"]
        assert both.second.scripted.prompts == []


async def test_whoever_asks_what_runs_is_told_so_by_the_node_that_knows() -> None:
    async with two(Block()) as both:
        await both.second.say("/stop")
        await asyncio.sleep(5)
        assert both.texts() == [wording.NOTHING_RUNNING]
        await both.works_on("long")
        await both.second.say("/status")
        await until(lambda: len(both.texts()) == 2)
        assert any("Running:\n- “long”" in text for text in both.texts())


@pytest.mark.parametrize("command", ["/stop", "/stopall"])
async def test_a_stop_takes_jobs_of_another_node_whose_results_come_here(command: str) -> None:
    async with two(Block(), others=(Block(),)) as both:
        job = await make(both.first, Wanted(every(600)))
        nodes = both.first, both.second
        await until(lambda: any(one.scripted.active for one in nodes), within_s=700)
        worker, other = nodes if nodes[0].scripted.active else reversed(nodes)
        await other.say(command)
        await until(lambda: bool(both.texts()), within_s=0.3)
        assert both.texts() == ["Stopped 1 job."]
        await until(lambda: not worker.container.job_module.occurrences.load)
        assert await ends(worker, job) == ["cancelled:stopped"]


async def test_an_operator_stops_a_session_of_another_node() -> None:
    async with two(Ignore(5)) as both:
        assert (
            await both.second.control.sessions.stop(session_of(), everything=True) == StopReport()
        )
        await both.works_on("stubborn")
        (run,) = both.first.scripted.active
        stop = both.second.control.sessions.stop
        ended = RunId("ended")
        assert await stop(session_of(), everything=False, run=ended) == StopReport()
        report = await stop(session_of(), everything=False, run=run)
        assert report == StopReport(stopped=(run,))
        again = await both.second.control.sessions.stop(session_of(), everything=False)
        assert again == StopReport(already_stopping=True)


async def test_an_operator_resets_a_session_of_another_node() -> None:
    async with two(Say("one"), Block()) as both:
        await both.first.ask("one")
        await both.works_on("long")
        await both.second.control.sessions.reset(session_of())
        assert len(both.first.scripted.cancelled) == 1
        assert await both.second.history() == []


async def test_a_node_that_does_not_answer_is_named() -> None:
    async with two(Block()) as both:
        await both.works_on("long")
        both.first.store.slow_before_s["open_calls"] = 60
        both.first.container.calls.poll()
        await asyncio.sleep(0.1)
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        with pytest.raises(NodeSilent, match=both.first.node()):
            await both.second.control.sessions.stop(session_of(), everything=False)
        assert ANSWER_S <= loop.time() - asked_at <= ANSWER_S + RENEW_S, "it still renews its lease"
        # Whoever asked has given up: what comes so late is not done.
        await asyncio.sleep(120)
        assert both.first.scripted.active


@pytest.mark.parametrize("dead_s", [0.5, 9.9, 10.5, 12.0])
@pytest.mark.parametrize("everything", [False, True])
async def test_a_stop_reaches_what_a_node_has_left_that_has_just_died(
    *, everything: bool, dead_s: float
) -> None:
    """SPEC CMD-1: with its lease, without, and while it is taken over."""
    async with two(Block(), others=(Block(), Block())) as both:
        await both.works_on("long")
        await both.first.say("waits", apart_s=2)
        both.first.kill()
        await asyncio.sleep(dead_s)
        report = await both.second.control.sessions.stop(session_of(), everything=everything)
        assert (len(report.stopped), len(report.dropped)) == (1, int(everything))
        await asyncio.sleep(60)
        assert both.second.scripted.prompts == ["long", *([] if everything else ["waits"])]
        assert both.second.pending == ([] if everything else ["waits"])


async def test_an_operator_resets_a_session_whose_node_has_just_died() -> None:
    async with two(Block(), others=(Block(),)) as both:
        await both.works_on("long")
        both.first.kill()
        await asyncio.sleep(10.5)
        await both.second.control.sessions.reset(session_of())
        await asyncio.sleep(60)
        assert not both.second.scripted.active
        assert both.second.pending == []


async def test_an_expired_node_that_nobody_recovers_is_named() -> None:
    async with two(Block()) as both:
        await both.works_on("long")
        both.second.store.broken.add("recover")
        both.first.kill()
        await asyncio.sleep(12)
        with pytest.raises(NodeSilent, match="has expired, and no node has taken"):
            await both.second.control.sessions.stop(session_of(), everything=False)


@asynccontextmanager
async def asking(*, hears: bool = True) -> AsyncIterator[tuple[NodeRpc, NodeRpc, GatewayProcess]]:
    """One who asks and one who answers, who is called ``b``."""
    async with two() as both:
        node = NodeId("b")
        clock = LoopClock()
        await both.second.store.join(a_node(node, started_at=clock.now()))
        await both.second.store.renew(node, until=clock.now().replace(year=2999))
        answering = NodeRpc(bind(both.second.store, lambda: node), clock)
        asker = NodeRpc(bind(both.first.store, both.first.node), clock)
        if hears:
            both.second.store.on_notice(lambda _: answering.poll())
            both.first.store.on_notice(lambda _: asker.poll())
        task = asyncio.create_task(answering.run())
        yield asker, answering, both.second
        task.cancel()


async def double(facts: Facts) -> Facts:
    return {"twice": 2 * facts["number"]}


@pytest.mark.parametrize("hears", [True, False])
async def test_an_answer_comes_at_once(*, hears: bool) -> None:
    """SPEC DB-3: a lost notice costs a moment."""
    async with asking(hears=hears) as (asker, answering, _):
        answering.serve("double", double)
        began = asyncio.get_running_loop().time()
        assert await asker.ask(NodeId("b"), "double", number=4) == {"twice": 8}
        assert not hears or asyncio.get_running_loop().time() - began < 0.1


async def test_a_refusal_has_its_words() -> None:
    async def refuse(_: Facts) -> Facts:
        raise NotFound("no such thing")

    async def break_down(_: Facts) -> Facts:
        raise ZeroDivisionError

    async with asking() as (asker, answering, _):
        answering.serve("refuse", refuse)
        answering.serve("break", break_down)
        with pytest.raises(GoclawError, match=r"^no such thing$"):
            await asker.ask(NodeId("b"), "refuse")
        with pytest.raises(GoclawError, match="ZeroDivisionError"):
            await asker.ask(NodeId("b"), "break")
        with pytest.raises(GoclawError, match="does not know how"):
            await asker.ask(NodeId("b"), "fly")
        with pytest.raises(NotFound, match="nobody"):
            await asker.ask(NodeId("nobody"), "fly")


async def test_what_was_done_is_not_done_again_when_its_answer_is_lost() -> None:
    done: list[Facts] = []

    async def note(facts: Facts) -> Facts:
        done.append(facts)
        return {}

    async with asking() as (asker, answering, process):
        answering.serve("note", note)
        process.store.errors["answer"] = StoreUnavailable("away for a moment")
        assert await asker.ask(NodeId("b"), "note", number=1) == {}
        assert done == [{"number": 1}]


async def test_a_slow_answer_keeps_no_other_waiting() -> None:
    async def sleep(facts: Facts) -> Facts:
        await asyncio.sleep(facts["s"])
        return {}

    async with asking() as (asker, answering, _):
        answering.serve("sleep", sleep)
        slow = asyncio.create_task(asker.ask(NodeId("b"), "sleep", s=2))
        await asyncio.sleep(0.1)
        await asker.ask(NodeId("b"), "sleep", s=0)
        assert not slow.done()
        assert await slow == {}


async def test_all_nodes_are_seen_from_each_of_them() -> None:
    async with two() as both:
        found = await both.second.control.nodes.list()
        # Both began in the same instant, so neither comes first.
        assert {node.id for node in found.nodes} == {both.first.node(), both.second.node()}
        assert found.here == both.second.node()
        assert all(map(found.is_live, found.nodes))


async def test_a_node_is_drained_from_another_one_or_by_the_database_alone() -> None:
    drained: list[NodeId] = []
    async with two() as both:
        for process in (both.first, both.second):

            async def drain(_: Facts, process: GatewayProcess = process) -> Facts:
                drained.append(process.node())
                return {}

            process.container.calls.serve(DRAIN, drain)
        first = both.first.node()
        assert (await both.second.control.nodes.drain(first)).id == first
        await StoreControl(both.second.store, LoopClock()).nodes.drain(first)
        assert drained == [first, first]
        with pytest.raises(NotFound, match="no live node 'nobody'"):
            await both.second.control.nodes.drain("nobody")
        with pytest.raises(NotFound, match="not unique"):
            await both.second.control.nodes.drain("-")
