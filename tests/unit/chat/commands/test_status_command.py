"""``/status`` in a whole gateway: subagents, jobs, and what other chats do (SPEC CMD-5)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from goclaw_py.core.ids import MAIN_AGENT, Owner
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.jobs.models import Prompt
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.testing.agents import Block, Do, Say, ScriptedAgent, Step
from tests.support.harness import a_process, here

ANN = Target("telegram", "default", "ann")


async def spawn(request: RunRequest, emit: Emit) -> str:
    assert await here(request).children.spawn("work hard", "hard work") is not None
    return "started"


async def ask_subagent(request: RunRequest, emit: Emit) -> str:
    return await here(request).children.subagent("work hard")


def chosen(request: RunRequest) -> Step:
    match request.prompt.split()[0]:
        case "spawn":
            return Do(spawn)
        case "ask":
            return Do(ask_subagent)
        case "work" | "news":
            return Block()
        case _:
            return Say("hi")


async def test_subagents_of_the_chat_are_listed_also_without_their_run() -> None:
    agent = ScriptedAgent(otherwise=chosen)
    async with a_process(agent) as gateway:
        assert await gateway.ask("spawn") == "started"
        await agent.until_active(1)
        await asyncio.sleep(60)
        running, *_ = (await gateway.ask("/status")).split("\nThis conv")
        assert running == "Running:\n- subagent: “hard work”, for 1 min"
        await gateway.say("ask somebody")
        await agent.until_active(3)
        assert (await gateway.ask("/status")).splitlines()[1:4] == [
            "- subagent: “hard work”, for 1 min",
            "- “ask somebody”, just started",
            "- subagent: “work hard”, just started",
        ]
        assert (await gateway.ask("/status", chat="bob")).splitlines()[:2] == [
            "Nothing is running or waiting in this chat.",
            "Elsewhere: 3 tasks (Ann)",
        ]


async def test_a_job_that_sends_its_result_here_is_listed_by_its_title() -> None:
    agent = ScriptedAgent(otherwise=chosen)
    async with a_process(agent) as gateway:
        service = gateway.container.job_module.service
        soon = At(service.clock.now() + timedelta(seconds=5))
        by = Requester(Owner("telegram:direct:ann"), Maker.MODEL, MAIN_AGENT, ANN)
        await service.create(JobDraft(soon, Prompt("news"), name="Morning news"), by)
        await agent.until_active(1)
        running, *_ = (await gateway.ask("/status")).split("\nThis conv")
        assert running == "Running:\n- job “Morning news”, just started"
        there = await gateway.ask("/status", chat="bob")
        assert "Elsewhere: 1 task (job Morning news)" in there


async def test_only_owners_read_what_runs_elsewhere_and_not_in_a_group() -> None:
    agent = ScriptedAgent(otherwise=chosen)
    async with a_process(agent) as gateway:
        await gateway.say("work")
        await agent.until_active(1)
        assert "Elsewhere: 1 task (Ann)" in await gateway.ask("/status", chat="bob")
        assert "Elsewhere" not in await gateway.ask("/status", "builders", PeerKind.GROUP)
        assert "Elsewhere" not in await gateway.ask("/status")
