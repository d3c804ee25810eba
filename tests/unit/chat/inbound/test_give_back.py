"""What another node has had for a moment: all that waits there is taken up anew (SPEC NODE-1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import Fenced, StoreUnavailable
from goclaw_py.core.messages import InboundMessage, PeerKind
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.session_keys import GroupPolicy
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Ignore, Say, ScriptedAgent
from goclaw_py.testing.clock import LoopClock
from tests.support.flaky_store import FlakyStore
from tests.support.harness import GatewayProcess, Ways, a_process, message, until, working
from tests.support.jobs import OPERATOR, Wanted, at, ends, make, service, setup
from tests.support.memory_store import MemoryDatabase

AT_ONCE = Ways(QueuePolicy())
NARROW = Ways(QueuePolicy(), main_lane=1)
THREE = QueuePolicy(concurrency=3)
GROUP = Ways(QueuePolicy(), THREE, main_lane=5, mention=False, groups=GroupPolicy.OPEN)


UNKNOWN_EDIT = replace(message("three"), edits="ann:gone")


def in_group(text: str) -> InboundMessage:
    return message(text, chat="grp", sender="ann", peer=PeerKind.GROUP)


@asynccontextmanager
async def two_waiting() -> AsyncIterator[GatewayProcess]:
    """Two messages of ann wait while bob has the only place."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, NARROW) as gateway:
        await gateway.say("busy", chat="bob")
        await agent.until_active(1)
        await gateway.say("one", "two")
        yield gateway


@asynccontextmanager
async def one_behind_carl() -> AsyncIterator[GatewayProcess]:
    """A message of ann waits, as in ``two_waiting``; a look finds a command of carl before it."""
    agent = ScriptedAgent(Block())
    async with a_process(agent, NARROW) as gateway:
        await gateway.say("busy", chat="bob")
        await agent.until_active(1)
        gateway.store.lose_answer["accept"] = 1
        with suppress(StoreUnavailable):
            await gateway.say("/help", chat="carl")
        await gateway.gateway.accept([message("one")])
        yield gateway


async def fence(gateway: GatewayProcess) -> None:
    """Let the first message that waits behind bob's fail to begin."""
    gateway.store.errors["begin_run"] = Fenced("another node has it")
    await gateway.say("/stop", chat="bob")


async def meanwhile(
    gateway: GatewayProcess, work: Coroutine[Any, Any, None], then: str = ""
) -> None:
    """Begin something that takes a while; what waits is given back meanwhile, or words are said."""
    task = asyncio.create_task(work)
    await asyncio.sleep(0.1)
    await (gateway.say(then) if then else fence(gateway))
    await task


async def assert_dropped(gateway: GatewayProcess, dropped: int, *, running: int = 0) -> None:
    """A stop has taken these messages for good and was answered once; no answer followed it."""
    await asyncio.sleep(60)
    target = "grp" if running else "ann"
    said = [text for text in gateway.channel.texts(target) if not text.startswith("re: ")]
    assert said == [texts.stopped(running, dropped, already=False)]
    assert gateway.pending == []


@pytest.mark.parametrize("after_s", [0.0, 0.1, 5.0])
async def test_what_comes_behind_a_fenced_run_does_not_overtake_it(after_s: float) -> None:
    """SPEC QUEUE-1: its session may come back before the next message gets a place."""
    async with two_waiting() as gateway:
        await fence(gateway)
        await asyncio.sleep(after_s)
        await gateway.say("three")
        await gateway.channel.until_sent(4)
        assert gateway.scripted.prompts == ["busy", "one", "two", "three"]
        assert gateway.pending == []


@pytest.mark.parametrize(
    ("call", "batch"),
    [("settle", [message("/help"), message("three")]), ("is_known", [UNKNOWN_EDIT])],
    ids=["a command", "an edit of a message that nobody knows"],
)
async def test_nor_does_what_waits_meanwhile(call: str, batch: list[InboundMessage]) -> None:
    async with two_waiting() as gateway:
        gateway.store.slow_before_s[call] = 0.3
        await meanwhile(gateway, gateway.gateway.accept(batch))
        await gateway.channel.until_sent(3 + len(batch))
        assert gateway.scripted.prompts == ["busy", "one", "two", "three"]


async def test_nor_does_what_a_look_finds_that_has_begun_before() -> None:
    async with two_waiting() as gateway:
        gateway.store.lose_answer["accept"] = 1
        with suppress(StoreUnavailable):
            await gateway.say("three")
        gateway.store.slow_after_s["claim_pending"] = 0.3
        await meanwhile(gateway, gateway.gateway.reload())
        gateway.store.slow_after_s.clear()
        await gateway.channel.until_sent(4)
        assert gateway.scripted.prompts == ["busy", "one", "two", "three"]


@pytest.mark.parametrize("with_it", [[], ["three"]])
async def test_what_was_given_back_is_stopped_by_whoever_wants_that(with_it: list[str]) -> None:
    """SPEC CMD-2: a ``/stopall`` comes before the look that takes it up."""
    async with two_waiting() as gateway:
        await fence(gateway)
        await asyncio.sleep(0.1)
        await gateway.gateway.accept([message(text) for text in (*with_it, "/stopall")])
        await assert_dropped(gateway, 2 + len(with_it))
        assert gateway.scripted.prompts == ["busy"]


async def test_what_a_look_is_just_finding_is_stopped_too() -> None:
    async with two_waiting() as gateway:
        gateway.store.slow_after_s["claim_pending"] = 0.3
        await fence(gateway)
        await meanwhile(gateway, gateway.gateway.reload(), then="/stopall")
        await assert_dropped(gateway, 2)
        assert gateway.scripted.prompts == ["busy"]


@asynccontextmanager
async def one_given_back_beside_another() -> AsyncIterator[GatewayProcess]:
    """In a group: one message is worked on, the other could not begin."""
    async with a_process(ScriptedAgent(otherwise=lambda _: Block()), GROUP) as gateway:
        await gateway.gateway.accept([in_group("one")])
        await gateway.scripted.until_active(1)
        gateway.store.errors["begin_run"] = Fenced("another node has it")
        await gateway.gateway.accept([in_group("two")])
        await asyncio.sleep(0.01)
        yield gateway


@pytest.mark.parametrize("words", ["/stop", "/stopall"])
async def test_what_works_beside_it_is_stopped_without_the_database(words: str) -> None:
    """SPEC CMD-1."""
    async with one_given_back_beside_another() as gateway:
        gateway.store.away = True
        with suppress(StoreUnavailable):
            await gateway.gateway.accept([in_group(words)])
        await asyncio.sleep(0.1)
        assert gateway.scripted.active == set()


@pytest.mark.parametrize("words", ["/stop", "/stopall"])
async def test_a_stop_waits_for_no_look(words: str) -> None:
    """SPEC CMD-1: neither for the next one, nor for one that is under way."""
    async with two_waiting() as gateway:
        await fence(gateway)
        await asyncio.sleep(0.1)
        gateway.store.slow_after_s["claim_pending"] = 30
        look = asyncio.create_task(gateway.gateway.reload())
        await asyncio.sleep(0.1)
        stopping = asyncio.create_task(gateway.say(words))
        await until(lambda: gateway.channel.texts("ann") != [], within_s=0.2)
        gateway.store.slow_after_s.clear()
        await asyncio.gather(look, stopping)
        await asyncio.sleep(60)
        stays = [] if words == "/stopall" else ["two"]
        assert gateway.channel.texts("ann")[0] == texts.stopped(0, 2 - len(stays), already=False)
        assert gateway.scripted.prompts == ["busy", *stays]
        assert gateway.pending == []


async def test_what_was_given_back_beside_a_run_that_works_is_stopped_with_that() -> None:
    """SPEC CMD-2."""
    async with one_given_back_beside_another() as gateway:
        await gateway.gateway.accept([in_group("/stopall")])
        await assert_dropped(gateway, 1, running=1)
        assert gateway.scripted.texts == ["one"]
        assert gateway.scripted.active == set()


@pytest.mark.parametrize("words", ["/stop", "/stopall"])
async def test_an_unknown_edit_that_waits_for_the_database_is_stopped(words: str) -> None:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.slow_before_s["is_known"] = 0.3
        await meanwhile(gateway, gateway.gateway.accept([UNKNOWN_EDIT]), then=words)
        await assert_dropped(gateway, 1)
        assert gateway.scripted.prompts == []


@pytest.mark.parametrize(("words", "dropped"), [("/stop", 1), ("/stopall", 2)])
async def test_a_stop_whose_commit_is_not_heard_of_is_told_once(words: str, dropped: int) -> None:
    async with two_waiting() as gateway:
        await fence(gateway)
        await asyncio.sleep(0.05)
        stop = message(words)
        gateway.store.lose_answer["accept"] = 1
        for one in (stop, replace(stop, redelivered=True)):
            with suppress(StoreUnavailable):
                await gateway.gateway.accept([one])
        await assert_dropped(gateway, dropped)


async def test_what_waits_for_the_database_is_stopped_with_it() -> None:
    """SPEC CMD-2: nobody is told that nothing waits."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("hello")
        gateway.store.broken.add("is_known")
        await gateway.gateway.accept([UNKNOWN_EDIT])
        await gateway.say("four", "/stopall", "/stopall")
        gateway.store.broken.clear()
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == ["hello"]
        said = [texts.stopped(0, 2, already=False), texts.NOTHING_RUNNING]
        assert gateway.channel.texts("ann")[1:] == said
        assert gateway.pending == []


async def test_what_a_poll_has_found_and_not_claimed_is_stopped() -> None:
    async with one_behind_carl() as gateway:
        await fence(gateway)
        await asyncio.sleep(0.05)
        gateway.store.slow_before_s["settle"] = 0.3
        await meanwhile(gateway, gateway.gateway.reload(), then="/stopall")
        await assert_dropped(gateway, 1)
        assert gateway.scripted.prompts == ["busy"]


@pytest.mark.parametrize("more", [[], ["four"]])
async def test_nor_does_an_edit_overtake_what_a_look_has_found(more: list[str]) -> None:
    """A look is at carl's command when what ann said before is given back."""
    async with one_behind_carl() as gateway:
        gateway.store.slow_before_s["is_known"] = 0.3
        batch = [UNKNOWN_EDIT, *map(message, more)]
        accepting = asyncio.create_task(gateway.gateway.accept(batch))
        await asyncio.sleep(0.01)
        await fence(gateway)
        await asyncio.sleep(0.05)
        gateway.store.slow_before_s["settle"] = 0.5
        look = asyncio.create_task(gateway.gateway.reload())
        await asyncio.gather(accepting, look)
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == ["busy", "one", "three", *more]


async def test_what_a_process_has_claimed_again_is_not_released_by_its_previous_node_id() -> None:
    """SPEC IO-2: the former run ends late; its message is worked on again already."""
    agent = ScriptedAgent(Ignore(for_s=6), otherwise=lambda _: Say("done", after_s=40))
    async with a_process(agent, GROUP) as gateway:
        await gateway.gateway.accept([in_group("one")])
        await agent.until_active(1)
        later = LoopClock().now().replace(year=2030)
        await FlakyStore(gateway.database).recover(now=later, max_attempts=3, apology="sorry")
        await asyncio.sleep(300)
        assert agent.texts == ["one", "one"]
        assert gateway.channel.texts("grp") == ["done"]


async def test_an_outage_of_several_gateways_doubles_nothing_in_a_group() -> None:
    """SPEC IO-2, DB-4."""
    database = MemoryDatabase()
    agent, idle = ScriptedAgent(otherwise=lambda _: Say("done", after_s=40)), ScriptedAgent()
    async with (
        a_process(agent, GROUP, database=database) as first,
        a_process(idle, GROUP, database=database) as other,
    ):
        await first.gateway.accept([in_group("one")])
        await agent.until_active(1)
        await asyncio.sleep(3)
        first.store.away = other.store.away = True
        await asyncio.sleep(30)
        first.store.away = other.store.away = False
        await asyncio.sleep(300)
        assert len(agent.prompts + idle.prompts) == 2
        assert len(first.channel.texts("grp") + other.channel.texts("grp")) == 1


@pytest.mark.parametrize("manual", [True, False])
async def test_a_run_of_a_job_that_waits_in_the_session_of_a_chat_goes_on(manual: bool) -> None:
    """SPEC CRON-5: it is no message that another node takes up."""
    agent = ScriptedAgent(Say("hello"), Block())
    jobs = setup(session="main", on_busy="queue", misfire="skip")
    ways = Ways(QueuePolicy(), main_lane=1, jobs=jobs)
    async with a_process(agent, ways) as gateway:
        await gateway.ask("hi")
        await gateway.say("busy", chat="bob")
        await agent.until_active(1)
        await gateway.say("one")
        job = await make(gateway, Wanted(at(100 if manual else 5), policy=()))
        if manual:
            await service(gateway).run_now(job.id, OPERATOR)
        await asyncio.sleep(8)
        await fence(gateway)
        await asyncio.sleep(60)
        assert await ends(gateway, job) == ["ok"]


async def test_a_session_goes_on_when_it_is_stored_that_its_run_was_abandoned() -> None:
    """SPEC QUEUE-2: a crash in between would bring that run back."""
    agent = ScriptedAgent(Ignore(for_s=100), otherwise=lambda _: Say("done"))
    async with working("one", agent=agent) as gateway:
        gateway.store.broken.add("finish_run")
        await gateway.say("/stop", "two")
        await asyncio.sleep(20)
        assert agent.texts == ["one"]
        gateway.store.broken.clear()
        await until(lambda: agent.prompts == ["one", "two"])
        assert await gateway.outcomes() == [Outcome.ABANDONED, Outcome.COMPLETED]


async def test_a_run_that_never_began_is_not_begun_at_last_as_another_node() -> None:
    """SPEC QUEUE-2: others may have worked in its session since."""
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.broken.add("begin_run")
        await gateway.say("one", "/stop", apart_s=1)
        later = LoopClock().now().replace(year=2030)
        await FlakyStore(gateway.database).recover(now=later, max_attempts=3, apology="sorry")
        await asyncio.sleep(60)
        gateway.store.broken.clear()
        await gateway.ask("two")
        await asyncio.sleep(60)
        assert gateway.scripted.prompts == ["two"]
        assert await gateway.outcomes() == [Outcome.COMPLETED]
        assert gateway.pending == []
