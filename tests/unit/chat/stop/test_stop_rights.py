"""Who may stop what in a group (SPEC CMD-6, CMD-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.core.chat_commands import stop_data
from goclaw_py.core.errors import AgentError, NotSent
from goclaw_py.core.messages import InboundMessage, PeerKind, Target, person_at
from goclaw_py.core.session_keys import GroupPolicy, StopPolicy
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.jobs.models import Prompt
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Do, Fail, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, here, message, until
from tests.support.memory_store import MemoryDatabase
from tests.unit.chat.access.test_pairing import code_in

TEAM = "-100"
ONE, THREE = QueuePolicy(), QueuePolicy(concurrency=3)
OPEN = Ways(ONE, THREE, groups=GroupPolicy.OPEN, main_lane=3, cron_lane=3)
IN_LINE = replace(OPEN, group=ONE)
ANNS = "That was started by Ann; only they, an owner or an admin of this group can stop it."


def said(text: str, sender: str, **fields: Any) -> InboundMessage:
    """What somebody says in the group."""
    return replace(message(text, chat=TEAM, sender=sender, peer=PeerKind.GROUP), **fields)


@asynccontextmanager
async def a_group(
    agent: ScriptedAgent | None = None, ways: Ways = OPEN, database: MemoryDatabase | None = None
) -> AsyncIterator[GatewayProcess]:
    """Admins of the group are Ada, and a user whose id is the name of a channel would be none."""
    agent = agent or ScriptedAgent(otherwise=lambda _: Block())
    channel = RecordingChannel(trusted=False, admins={TEAM: frozenset({"ada"})})
    async with a_process(agent, ways, channels=(channel,), database=database) as gateway:
        yield gateway


async def tell(gateway: GatewayProcess, *said: InboundMessage) -> None:
    """Each in a batch of its own, and let what it begins begin."""
    for one in said:
        await gateway.gateway.accept([one])
        await asyncio.sleep(0.01)


def stopped(gateway: GatewayProcess) -> list[str]:
    """The prompts of the runs that were stopped."""
    agent = gateway.scripted
    return [request.own_texts for request in agent.requests if request.run_id in agent.cancelled]


def answers(gateway: GatewayProcess) -> list[str]:
    return gateway.channel.texts(TEAM)


@pytest.mark.parametrize("words", ["/stop", "/stopall", "stop", "/new"])
async def test_a_member_stops_no_run_of_somebody_else(words: str) -> None:
    async with a_group() as gateway:
        await tell(gateway, said("anns", "ann"), said(words, "bob"))
        await until(lambda: answers(gateway) == [ANNS])
        assert stopped(gateway) == []
        assert gateway.pending == ["anns"]


@pytest.mark.parametrize(
    ("words", "met", "left"), [("/stop", ["b1"], ["a2", "b2"]), ("/stopall", ["b1", "b2"], [])]
)
async def test_a_member_stops_and_drops_their_own(
    words: str, met: list[str], left: list[str]
) -> None:
    async with a_group() as gateway:
        await tell(gateway, said("a1", "ann"), said("b1", "bob"), said("b2", "bob"))
        await tell(gateway, said(words, "bob"))
        assert stopped(gateway) == met
        assert answers(gateway) == [texts.stopped(len(met), 0, already=False)]
    async with a_group(ways=IN_LINE) as gateway:
        await tell(gateway, said("a1", "ann"), said("a2", "ann"))
        await tell(gateway, said("b1", "bob"), said("b2", "bob"), said(words, "bob"))
        assert stopped(gateway) == []
        assert gateway.pending == ["a1", "a2", *left[1:]]


async def test_each_sender_of_a_turn_may_stop_it() -> None:
    """SPEC QUEUE-4."""
    ways = replace(OPEN, group=replace(ONE, mode=Mode.COLLECT))
    agent = ScriptedAgent(Say("done", after_s=1), otherwise=lambda _: Block())
    async with a_group(agent, ways) as gateway:
        await tell(gateway, said("first", "cat"), said("anns", "ann"), said("bobs", "bob"))
        await agent.until_started(2)
        await tell(gateway, said("/stop", "cat"))
        assert stopped(gateway) == []
        await tell(gateway, said("/stop", "bob"))
        assert stopped(gateway) == ["anns\nbobs"]
        await asyncio.sleep(2)
        names = "That was started by Ann and Bob;"
        assert [text for text in answers(gateway) if text.startswith(names)]


@pytest.mark.parametrize("by", ["reply", "button"])
async def test_neither_a_reply_nor_a_button_stops_a_run_of_somebody_else(by: str) -> None:
    async with a_group() as gateway:
        anns = said("anns", "ann")
        await tell(gateway, anns, said("bobs", "bob"))
        run_id = gateway.scripted.requests[0].run_id
        how = {"reply_to": anns.message_id} if by == "reply" else {"press": stop_data(run_id)}
        await tell(gateway, said("/stop", "bob", **how))
        await until(lambda: answers(gateway) == [ANNS])
        assert stopped(gateway) == []
        await tell(gateway, said("/stop", "ann", **how))
        assert stopped(gateway) == ["anns"]


@pytest.mark.parametrize(
    ("words", "sender", "left"),
    [
        ("/stop", "bob", ["anns"]),
        ("/stopall", "bob", ["anns"]),
        ("/stopall", "cat", ["anns", "bobs"]),
        ("/stopall", TEAM, []),
    ],
)
async def test_what_arrives_with_a_stop_is_somebodys(
    words: str, sender: str, left: list[str]
) -> None:
    """SPEC CMD-1: also what nothing but the arrival knows of yet."""
    async with a_group() as gateway:
        batch = [said("anns", "ann"), said("bobs", "bob"), said(words, sender)]
        await gateway.gateway.accept(batch)
        await asyncio.sleep(30)
        assert gateway.pending == left
        assert gateway.scripted.texts == left


async def test_what_waits_for_a_provider_is_somebodys_too() -> None:
    down = Fail(AgentError("No answer.", "503", retryable=True))
    async with a_group(ScriptedAgent(down, otherwise=lambda _: Block())) as gateway:
        await tell(gateway, said("anns", "ann"), said("bobs", "bob"))
        assert answers(gateway) == [texts.KEPT]
        await tell(gateway, said("/stopall", "bob"), said("/stop", "bob"))
        await asyncio.sleep(1)
        assert gateway.pending == ["anns"]
        assert answers(gateway)[1:] == ["Dropped 1 waiting message: “bobs”.", ANNS]


async def test_what_is_not_sent_yet_of_an_answer_is_its_askers() -> None:
    agent = ScriptedAgent(Say("\n\n".join(f"paragraph {n}" for n in range(10))))
    async with a_group(agent) as gateway:
        gateway.channel.part_limit, gateway.channel.slow_s = 20, {TEAM: 1.0}
        await tell(gateway, said("tell me", "ann"))
        await gateway.channel.until_sent(2)
        await tell(gateway, said("/stopall", "bob"))
        await asyncio.sleep(2)
        assert texts.NOTHING_RUNNING in answers(gateway)
        await tell(gateway, said("/stopall", "ann"))
        await asyncio.sleep(30)
        assert "parts of my answer will not be sent." in answers(gateway)[-1]


async def test_the_result_of_a_subagent_is_answered_for_who_has_asked() -> None:
    async with a_group() as gateway:
        result = said("found it", "subagent", source="subagent", asker="ann")
        await tell(gateway, result, said("/stop", "bob"))
        assert stopped(gateway) == []
        await tell(gateway, said("/stop", "ann"))
        assert stopped(gateway) == ["found it"]


@pytest.mark.parametrize(
    ("sender", "may"),
    [("ada", True), (TEAM, True), ("-1001234", False), ("bob", False)],
    ids=["admin", "anonymous admin", "a channel", "member"],
)
async def test_an_admin_stops_everything_at_once(sender: str, *, may: bool) -> None:
    async with a_group() as gateway:
        await tell(gateway, said("a1", "ann"), said("b1", "bill"))
        gateway.channel.admins[TEAM] = NotSent("nobody is asked again")
        await tell(gateway, said("/stopall", sender))
        assert stopped(gateway) == (["a1", "b1"] if may else [])


@pytest.mark.parametrize("words", ["/stop", "/new"])
async def test_an_owner_stops_everything_and_anyone_where_anyone_may(words: str) -> None:
    async with a_group() as gateway:
        code = code_in(await gateway.ask("hello", chat="olga"))
        await gateway.control.people.approve(code, guest=False)
        await tell(gateway, said("a1", "ann"), said(words, "olga"))
        assert stopped(gateway) == ["a1"]
    async with a_group(ways=replace(OPEN, stop=StopPolicy.ANYONE)) as gateway:
        await tell(gateway, said("a1", "ann"), said(words, "bob"))
        assert stopped(gateway) == ["a1"]


@pytest.mark.parametrize("words", ["/stop", "/stopall"])
async def test_until_the_admins_are_known_a_stop_takes_what_is_its_senders_own(words: str) -> None:
    """SPEC CMD-1: within 200 ms; the rest as soon as it is known that they are an admin."""
    async with a_group() as gateway:
        gateway.channel.slow_admins_s = 2.0
        await tell(gateway, said("a1", "ann"), said("adas", "ada"), said("a2", "ann"))
        await tell(gateway, said(words, "ada"))
        assert stopped(gateway) == ["adas"]
        await asyncio.sleep(0.5)
        await tell(gateway, said("later", "ann"))
        await asyncio.sleep(3)
        everything = ["a1", "adas", "a2"] if words == "/stopall" else ["adas"]
        assert stopped(gateway) == everything
        assert answers(gateway) == [texts.stopped(len(everything), 0, already=False)]
        assert gateway.scripted.texts == ["a1", "adas", "a2", "later"]


async def test_an_admin_with_nothing_of_their_own_stops_the_oldest_once_that_is_known() -> None:
    async with a_group() as gateway:
        gateway.channel.slow_admins_s = 2.0
        await tell(gateway, said("a1", "ann"), said("a2", "ann"), said("/stop", "ada"))
        assert stopped(gateway) == []
        await asyncio.sleep(3)
        assert (stopped(gateway), answers(gateway)) == (["a1"], ["Stopped."])


@pytest.mark.parametrize("trouble", ["refused", "hangs"])
async def test_who_cannot_be_looked_up_is_no_admin(trouble: str) -> None:
    async with a_group() as gateway:
        if trouble == "refused":
            gateway.channel.admins[TEAM] = NotSent("no route")
        gateway.channel.slow_admins_s = 600.0 if trouble == "hangs" else 0.0
        await tell(gateway, said("a1", "ann"), said("/stop", "ada"))
        await asyncio.sleep(6)
        assert (stopped(gateway), answers(gateway)) == ([], [ANNS])


async def test_who_is_an_admin_no_more_stops_their_own_again_after_a_while() -> None:
    async with a_group() as gateway:
        await tell(gateway, said("a1", "ann"))
        gateway.channel.admins[TEAM] = frozenset({"bob"})
        await asyncio.sleep(301)
        await tell(gateway, said("/stop", "ada"))
        await until(lambda: answers(gateway) == [ANNS])
        await tell(gateway, said("/stop", "bob"))
        assert stopped(gateway) == ["a1"]


@pytest.mark.parametrize(("sender", "met"), [("bob", []), ("ann", ["a1"]), ("ada", ["a1"])])
async def test_a_stop_that_another_node_takes_in_is_its_senders(
    sender: str, met: list[str]
) -> None:
    """SPEC NODE-1."""
    database = MemoryDatabase()
    async with a_group(database=database) as owner, a_group(database=database) as other:
        await tell(owner, said("a1", "ann"))
        await tell(other, said("/stop", sender))
        await asyncio.sleep(5)
        assert stopped(owner) == met
        assert answers(owner) + answers(other) == (["Stopped."] if met else [ANNS])


@pytest.mark.parametrize(("sender", "met"), [("bob", False), ("ann", True), ("ada", True)])
@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_a_job_is_stopped_by_who_asked_for_it(sender: str, where: str, *, met: bool) -> None:
    database, team = MemoryDatabase(), Target("telegram", "default", TEAM)
    async with a_group(database=database) as gateway, a_group(database=database) as other:
        owner = owner_of(team, PeerKind.GROUP)
        by = Requester(owner, Maker.MODEL, None, team, PeerKind.GROUP, person_at(team, "ann"))
        service = gateway.container.job_module.service
        at = At(service.clock.now() + timedelta(seconds=5))
        await service.create(JobDraft(at, Prompt("report"), target=team), by)
        await until(lambda: bool(gateway.scripted.active or other.scripted.active))
        running = gateway if gateway.scripted.active else other
        asked = running if where == "here" else other if running is gateway else gateway
        await tell(asked, said("hello", sender), said("/stop", sender), said("/stop", sender))
        await asyncio.sleep(5)
        assert ("report" in stopped(running)) == met


def agent_that_spawns() -> ScriptedAgent:
    """An agent whose subagents never end."""

    async def spawn(request: RunRequest, emit: Emit) -> str:
        assert await here(request).children.spawn("work", "work") is not None
        return "started"

    def choose(request: RunRequest) -> Step:
        return Block() if request.prompt == "work" else Do(spawn)

    return ScriptedAgent(otherwise=choose)


async def test_a_member_stops_only_their_own_continued_subagent() -> None:
    database = MemoryDatabase()
    async with a_group(agent_that_spawns(), database=database) as first:
        await tell(first, said("anns", "ann"))
        await until(lambda: answers(first) == ["started"])
        first.kill()
        await first.bury()
    async with a_group(agent_that_spawns(), database=database) as gateway:
        await gateway.scripted.until_active(1)
        await tell(gateway, said("/stop", "bob"))
        await until(lambda: answers(gateway) == [texts.not_yours([])])
        assert stopped(gateway) == []
        await tell(gateway, said("/stop", "ann"))
        await until(lambda: answers(gateway)[1:] == ["Stopped."])
        assert stopped(gateway) == ["work"]
