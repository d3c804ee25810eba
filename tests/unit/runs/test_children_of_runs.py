"""Subagents and delegates in a whole gateway (SPEC AGENT-6, LANE-8)."""

from __future__ import annotations

import asyncio

import pytest

from goclaw_py.core.errors import AgentError, ToolFailed
from goclaw_py.core.ids import AgentName
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import ActivityQuery
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.testing.agents import Block, Do, Fail, Ignore, Say, ScriptedAgent, Step
from tests.support.harness import a_process, here, session_of, until

RESEARCHER = AgentName("researcher")


def by_prompt(**steps: Step) -> ScriptedAgent:
    """An agent that does this for a prompt that begins with that word, and else echoes."""

    def choose(request: RunRequest) -> Step:
        word = request.prompt.split()[0].strip("[").lower()
        return steps.get(word, Say(f"re: {request.prompt}"))

    return ScriptedAgent(otherwise=choose)


async def ask(request: RunRequest, emit: Emit) -> str:
    return f"it says {await here(request).children.subagent('work hard')}"


async def spawn(request: RunRequest, emit: Emit) -> str:
    assert await here(request).children.spawn("work hard", "hard work") is not None
    return "started"


async def delegate(request: RunRequest, emit: Emit) -> str:
    return f"it says {await here(request).children.delegate(RESEARCHER, 'look it up')}"


async def refused(request: RunRequest, emit: Emit) -> str:
    try:
        return await here(request).children.subagent("work hard")
    except ToolFailed as error:
        return f"failed: {error}"


async def test_a_run_can_wait_for_a_subagent_that_works_in_a_lane_of_its_own() -> None:
    agent = by_prompt(ask=Do(ask), work=Say("done"))
    async with a_process(agent) as gateway:
        assert await gateway.ask("ask") == "it says done"
        child, parent = await gateway.store.runs()
        assert (child.trigger, child.lane) == (Trigger.SUBAGENT, "subagent")
        assert child.parent == parent.id
        assert child.payer == parent.session == session_of()
        assert child.session == f"agent:main:subagent:{child.id}"
        history = await gateway.store.history(child.session)
        assert [stored.entry.text for stored in history] == ["work hard", "done"]


async def test_what_nobody_waits_for_comes_into_the_chat_as_a_message() -> None:
    """SPEC HB-8: that does not count as somebody speaking."""
    agent = by_prompt(spawn=Do(spawn), work=Say("done", after_s=50))
    async with a_process(agent) as gateway:
        assert await gateway.ask("spawn") == "started"
        (before,) = await gateway.store.activity(ActivityQuery(limit=9))
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts()[1] == "re: [Subagent “hard work” finished]\ndone"
        assert await gateway.outcomes() == [Outcome.COMPLETED] * 3
        assert gateway.pending == []
        assert await gateway.store.activity(ActivityQuery(limit=9)) == [before]


@pytest.mark.parametrize(
    ("work", "outcome"), [(Block(), Outcome.CANCELLED), (Ignore(60), Outcome.ABANDONED)]
)
async def test_a_stop_takes_the_subagents_along_and_tells_nothing_of_them(
    work: Step, outcome: Outcome
) -> None:
    agent = by_prompt(spawn=Do(spawn), work=work)
    async with a_process(agent) as gateway:
        await gateway.ask("spawn")
        await agent.until_active(1)
        await gateway.say("/stopall")
        await asyncio.sleep(100)
        assert agent.active == set()
        assert gateway.channel.texts() == ["started", "Stopped."]
        assert outcome in await gateway.outcomes()


async def test_a_stop_of_a_run_stops_the_subagent_that_it_waits_for() -> None:
    agent = by_prompt(ask=Do(ask), work=Block())
    async with a_process(agent) as gateway:
        await gateway.say("ask")
        await agent.until_active(2)
        await gateway.say("/stop")
        await agent.until_active(0)
        await asyncio.sleep(20)
        assert await gateway.outcomes() == [Outcome.CANCELLED] * 2


async def test_a_subagent_that_fails_is_told_with_its_sentence() -> None:
    failing = Fail(AgentError("I have no key.", "secret cause"))
    agent = by_prompt(ask=Do(refused), spawn=Do(spawn), work=failing)
    async with a_process(agent) as gateway:
        assert await gateway.ask("ask") == "failed: I have no key."
        await gateway.ask("spawn")
        await gateway.channel.until_sent(3)
        told = "re: [Subagent “hard work” did not finish]\nI have no key."
        assert gateway.channel.texts()[2] == told


async def test_subagents_work_in_parallel() -> None:
    async def ask_four(request: RunRequest, emit: Emit) -> str:
        children = here(request).children
        return " ".join(await asyncio.gather(*(children.subagent("work") for _ in range(4))))

    agent = by_prompt(ask=Do(ask_four), work=Say("done", after_s=10))
    async with a_process(agent) as gateway:
        began = asyncio.get_running_loop().time()
        assert await gateway.ask("ask") == "done done done done"
        assert asyncio.get_running_loop().time() - began < 15


async def test_a_delegate_is_another_agent_in_the_lane_delegate() -> None:
    agent, other = by_prompt(ask=Do(delegate)), by_prompt(look=Say("found"))
    async with a_process(agent, others={RESEARCHER: other}) as gateway:
        assert await gateway.ask("ask") == "it says found"
        child, _ = await gateway.store.runs()
        assert (child.agent, child.trigger, child.lane) == (RESEARCHER, "delegate", "delegate")
        assert "“main”" in other.requests[0].system[-1]


async def test_subagents_that_spawn_without_end_are_refused_at_a_depth() -> None:
    """SPEC LANE-8: depth 3."""
    agent = ScriptedAgent(otherwise=lambda _: Do(refused))
    async with a_process(agent) as gateway:
        assert await gateway.ask("go") == (
            "failed: Not started: the nesting limit of subagents and delegates is reached. "
            "Do this yourself."
        )
        assert len(agent.requests) == 4


async def test_a_ninth_child_at_once_is_refused() -> None:
    async def ask_nine(request: RunRequest, emit: Emit) -> str:
        assert all([await here(request).children.spawn("work", f"{n}") for n in range(8)])
        return await refused(request, emit)

    agent = by_prompt(ask=Do(ask_nine), work=Say("done", after_s=10))
    async with a_process(agent) as gateway:
        told = "failed: Not started: too many of your subagents"
        assert (await gateway.ask("ask")).startswith(told)


async def test_a_subagent_cannot_announce_into_its_own_conversation() -> None:
    told: list[object] = []

    async def look(request: RunRequest, emit: Emit) -> str:
        told.append(await here(request).children.spawn("more", "more"))
        return "done"

    agent = by_prompt(ask=Do(ask), work=Do(look))
    async with a_process(agent) as gateway:
        await gateway.ask("ask")
        assert told == [None]


async def test_a_run_that_fails_while_its_subagent_works_takes_it_along() -> None:
    async def fail_meanwhile(request: RunRequest, emit: Emit) -> str:
        async with asyncio.timeout(5):
            return await here(request).children.subagent("work")

    agent = by_prompt(ask=Do(fail_meanwhile), work=Block())
    async with a_process(agent) as gateway:
        await gateway.say("ask")
        await agent.until_active(2)
        await agent.until_active(0)
        await until(lambda: len(gateway.channel.texts()) == 1)
        assert await gateway.outcomes() == [Outcome.FAILED, Outcome.CANCELLED]
