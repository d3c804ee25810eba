"""Questions about the gateway as a whole and its nodes, each provoked (SPEC OPS-4, NODE-1)."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

import goclaw_py
from goclaw_py.core.errors import AgentError, NotSent, Undeliverable
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.gateway.why.gateway import WARNING_CURES
from goclaw_py.operations.explanation import Cure, Explanation
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Fail, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import Ways, a_process, message
from tests.support.memory_store import MemoryDatabase
from tests.support.why import Case, Cases, ask, ask_database, check

AT_ONCE = Ways(QueuePolicy(), QueuePolicy())
CASES = Cases()


@CASES.question("Nothing comes back from any chat")
@CASES.answer("gateway.none", "No gateway is running here", "goclaw run")
async def no_gateway() -> Explanation:
    database = MemoryDatabase()
    async with a_process(ways=AT_ONCE, database=database) as gateway:
        await gateway.ask("hello")
        await gateway.shut_down()
        return await ask_database(database)


async def all_is_well() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("hello")
        return await ask(gateway)


@CASES.answer("gateway.dead_deliveries", "1 message could not be delivered",
              "goclaw deliveries list --state failed")  # fmt: skip
async def dead_deliveries() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.fail(Undeliverable("Bad Request: chat not found"), chat="ann")
        await gateway.say("hello")
        await asyncio.sleep(5)
        return await ask(gateway)


@CASES.answer("gateway.unserved", "2 messages (2 outgoing) wait for telegram/gone, which no",
              "goclaw deliveries list --state waiting")  # fmt: skip
async def account_of_no_node() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        waits = OutboundMessage(Target("telegram", "gone", "7"), "hi")
        await gateway.store.settle((), Outcome.COMPLETED, now=gateway.clock.now(), say=[waits] * 2)
        return await ask(gateway)


@CASES.answer(
    "gateway.unanswered",
    "1 message of Ann got no answer",
    "goclaw deliveries incoming list",
)
async def unanswered_messages() -> Explanation:
    agent = ScriptedAgent(Fail(AgentError("Sorry.", "401 invalid api key")))
    async with a_process(agent, AT_ONCE) as gateway:
        await gateway.ask("hello")
        return await ask(gateway)


@CASES.answer("gateway.lane_full", "Lane main is full (1 of 1) and 1 run waits", "goclaw lanes")
async def busy_lane() -> Explanation:
    async with a_process(ScriptedAgent(Block()), replace(AT_ONCE, main_lane=1)) as gateway:
        await gateway.say("long", chat="bob")
        await gateway.scripted.until_active(1)
        await gateway.say("next")
        await asyncio.sleep(30)
        # As after a restart: nobody has written in this process.
        gateway.container.names.clear()
        found = await ask(gateway)
        assert found.answer.endswith("the first for 30 s: Ann; in it: Bob.")
        return found


@CASES.answer("gateway.draining", "The gateway is shutting down", "goclaw run")
async def shutting_down() -> Explanation:
    async with a_process(ScriptedAgent(Block()), AT_ONCE) as gateway:
        await gateway.say("long")
        await gateway.scripted.until_active(1)
        ending = asyncio.create_task(gateway.shut_down(wait_s=60))
        await asyncio.sleep(5)
        found = await ask(gateway)
        await gateway.control.sessions.stop(gateway.scripted.requests[0].session, everything=True)
        await ending
        return found


@CASES.question("The gateway runs, and nothing is taken in")
@CASES.answer("gateway.database", "does not store messages", "goclaw doctor")
async def database_away() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.store.away = True
        await asyncio.sleep(5)
        return await ask(gateway)


@CASES.question("One of several gateways does not answer")
@CASES.answer("node.expired", "does not respond: its lease ended", "goclaw nodes list")
async def dead_node() -> Explanation:
    database = MemoryDatabase()
    async with (
        a_process(ways=AT_ONCE, database=database) as first,
        a_process(ways=AT_ONCE, database=database) as second,
    ):
        node = first.node()
        first.kill()
        # Its lease is over, and the other node has not looked yet.
        await asyncio.sleep(9.0)
        second.store.broken.add("recover")
        await asyncio.sleep(1)
        return await ask(second, f"node:{node}")


@CASES.answer("waits.node", "Its conversation belongs to node", "goclaw why node:")
async def another_node_has_it() -> Explanation:
    database = MemoryDatabase()
    async with (
        a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as owner,
        a_process(ways=AT_ONCE, database=database) as other,
    ):
        await owner.say("long")
        await owner.scripted.until_active(1)
        await owner.say("next")
        return await ask(other, "telegram:ann")


@CASES.answer(
    "delivery.behind", "waits behind delivery 1 to the same chat", "goclaw why delivery:1"
)
async def behind_a_message() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.fail(*[NotSent("no route to host")] * 5, chat="ann")
        await gateway.say("one", "two")
        await asyncio.sleep(5)
        return await ask(gateway, "delivery:2")


@pytest.mark.parametrize(
    ("channel", "cure"),
    [
        ("console", Cure("Open it", "goclaw chat --chat plans", "/chat?name=plans")),
        ("web", Cure("plans gets it as soon as they open their chat")),
    ],
)
async def test_what_is_shown_only_in_an_open_chat_waits_for_that(channel: str, cure: Cure) -> None:
    """Not for its turn, nor for the message before it, which waits for the same."""
    there = RecordingChannel(name=channel, unreachable={"plans"})
    async with a_process(ways=AT_ONCE, channels=(there,)) as gateway:
        for text in ("one", "two"):
            await gateway.gateway.accept([message(text, chat="plans", channel=channel)])
        await asyncio.sleep(5)
        for delivery in ("delivery:1", "delivery:2"):
            found = await ask(gateway, delivery)
            assert (found.code, cure in found.cures) == ("delivery.unopened", True)


@CASES.answer("waits.account", "waits for a gateway with the account telegram/default",
              "Set up telegram/default")  # fmt: skip
async def account_is_gone() -> Explanation:
    database = MemoryDatabase()
    async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as gateway:
        await gateway.say("hello")
        await gateway.shut_down(wait_s=0.1)
    web = RecordingChannel("web")
    async with a_process(ways=AT_ONCE, database=database, channels=(web,)) as other:
        return await ask(other, "message:1")


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_question_about_the_gateway_is_answered(case: Case) -> None:
    await check(case)


async def test_a_gateway_in_which_nothing_is_wrong_says_so() -> None:
    found = await all_is_well()
    assert found.code == "gateway.fine"
    assert found.cures == ()


def test_the_cure_of_every_warning_says_what_it_shows() -> None:
    """Found by use: two cures of one answer were both called "List them"."""
    root = Path(goclaw_py.__file__).parent
    codes = {
        code
        for file in root.rglob("*.py")
        for call in file.read_text("utf-8").split("OperatorWarning(")[1:]
        for code in re.findall(r'"(gateway\.[a-z_]+)"', call.split(")")[0])
    }
    assert codes == set(WARNING_CURES)
