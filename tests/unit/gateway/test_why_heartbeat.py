"""Questions about the heartbeat, each provoked (SPEC OPS-4, HB-9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from goclaw_py.core.budget import Budget
from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.run_events import Usage
from goclaw_py.operations.explanation import Explanation
from goclaw_py.runs.agent_loop import AgentResult
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.testing.agents import Block, Fail, Return, Say, ScriptedAgent
from tests.support.harness import GatewayProcess, a_process
from tests.support.heartbeat_gateway import (
    CHECKLIST,
    EVERY,
    heartbeat_gateway,
    saying,
    until_ended,
    write,
)
from tests.support.why import Case, Cases, ask, check

CASES = Cases()


async def after_heartbeat_runs(
    agent: ScriptedAgent,
    number: int,
    *,
    policy: HeartbeatPolicy | None = None,
    checklist: str = CHECKLIST,
    first: Callable[[GatewayProcess], Awaitable[object]] | None = None,
) -> Explanation:
    """Ask after so many heartbeats."""
    async with a_process(agent, heartbeat_gateway(policy)) as gateway:
        write(gateway, checklist)
        if first is not None:
            await first(gateway)
        await until_ended(gateway, number)
        return await ask(gateway, "main")


async def hello(gateway: GatewayProcess) -> object:
    return await gateway.ask("hello")


@CASES.question("The heartbeat is silent: somebody turned it off")
@CASES.answer("heartbeat.off", "the heartbeat was turned off", "goclaw heartbeat on main")
async def switched_off() -> Explanation:
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        await gateway.container.heartbeats.service.switch(MAIN_AGENT, on=False)
        return await ask(gateway, "main")


@CASES.answer("heartbeat.off_by_settings", "The heartbeat is turned off in the settings",
              "[heartbeat] in goclaw.toml")  # fmt: skip
async def off_by_settings() -> Explanation:
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway(interval=None)) as gateway:
        return await ask(gateway, "main")


@CASES.answer("heartbeat.muted", "it is muted until", "goclaw heartbeat mute off main")
async def muted() -> Explanation:
    async with a_process(saying("HEARTBEAT_OK"), heartbeat_gateway()) as gateway:
        until = gateway.clock.now() + timedelta(hours=2)
        await gateway.container.heartbeats.service.mute(MAIN_AGENT, until)
        return await ask(gateway, "main")


@CASES.question("The heartbeat is silent at night")
@CASES.answer("heartbeat.quiet_hours", "It was skipped: the time was outside the active hours",
              "active_hours")  # fmt: skip
async def at_night() -> Explanation:
    policy = HeartbeatPolicy(interval=EVERY, hours=ActiveHours(8 * 60, 22 * 60, "UTC"))
    return await after_heartbeat_runs(saying("HEARTBEAT_OK"), 1, policy=policy)


@CASES.question("The heartbeat does nothing")
@CASES.answer("heartbeat.empty", "HEARTBEAT.md had nothing to check",
              "goclaw heartbeat add --agent main 'every 2h:")  # fmt: skip
async def empty_checklist() -> Explanation:
    return await after_heartbeat_runs(saying("HEARTBEAT_OK"), 1, checklist="# Checklist\n")


@CASES.answer("heartbeat.ok", "Nothing needed attention, so no message was sent",
              "goclaw heartbeat run main --dry-run")  # fmt: skip
async def all_well() -> Explanation:
    return await after_heartbeat_runs(saying("HEARTBEAT_OK"), 1)


@CASES.question("An alert came once and not again")
@CASES.answer("heartbeat.duplicate", "an alert of the last 24 hours", "goclaw why run:")
async def said_before() -> Explanation:
    return await after_heartbeat_runs(saying("The house burns."), 2, first=hello)


@CASES.answer("heartbeat.no_route", "there was no chat to send it to",
              "Write to the agent in the chat that should get its alerts")  # fmt: skip
async def no_chat() -> Explanation:
    return await after_heartbeat_runs(saying("The house burns."), 1)


@CASES.answer("heartbeat.failed", "It failed: AgentError: 400 no such model", "goclaw why run:")
async def broken() -> Explanation:
    return await after_heartbeat_runs(saying(Fail(AgentError("Sorry.", "400 no such model"))), 1)


@CASES.question("The heartbeat stopped in the middle of the day: its money is used up")
@CASES.answer("heartbeat.budget", "the daily budget of the heartbeat was used up",
              "[heartbeat.budget]")  # fmt: skip
async def used_up() -> Explanation:
    result = AgentResult("HEARTBEAT_OK", usage=Usage(1, 1000, 10, 0, Decimal(2)))
    policy = HeartbeatPolicy(interval=EVERY, day=Budget(usd=Decimal(1)))
    return await after_heartbeat_runs(saying(Return(result)), 2, policy=policy)


@CASES.answer("heartbeat.busy", "someone is talking to the agent", "goclaw runs --active")
async def agent_is_busy() -> Explanation:
    agent = ScriptedAgent(Block(), otherwise=lambda _: Say("HEARTBEAT_OK"))
    async with a_process(agent, heartbeat_gateway()) as gateway:
        write(gateway)
        await gateway.say("long")
        await asyncio.sleep(90)
        return await ask(gateway, "main")


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_question_about_a_heartbeat_is_answered(case: Case) -> None:
    await check(case)
