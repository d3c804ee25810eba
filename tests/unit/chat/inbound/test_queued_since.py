"""Since when a run waits for its slot: since its messages were queued, not received (OPS-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import pytest

from goclaw_py.core.approvals import ApprovalRequest, Decision
from goclaw_py.core.errors import ApprovalNeeded
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.agents import Block, Fail, Say, ScriptedAgent
from tests.support.harness import GatewayProcess, Ways, a_process, message, until
from tests.support.memory_store import MemoryDatabase
from tests.support.why import ask

AT_ONCE: Final = Ways(QueuePolicy())
LATER_S: Final = 480.0
PAY: Final = ApprovalNeeded((ApprovalRequest("c1", "pay", "{}", timeout_s=3600),))


async def retry(gateway: GatewayProcess) -> None:
    """Let the agent answer its last turn again, long after it was answered."""
    known = len(gateway.scripted.requests)
    await asyncio.sleep(LATER_S)
    run = gateway.scripted.requests[-1].run_id
    await gateway.gateway.accept([message(f"/undo {run} again")])
    await until(lambda: len(gateway.scripted.requests) > known and gateway.pending == [])


async def approve(gateway: GatewayProcess) -> None:
    """Allow a tool call a while after it was asked for."""
    await gateway.say("hello")
    await asyncio.sleep(LATER_S)
    (asked,) = await gateway.store.approvals()
    await gateway.control.approvals.decide(asked.id, Decision.ONCE)
    await until(lambda: len(gateway.scripted.requests) == 2 and gateway.pending == [])


async def answered_again() -> tuple[float, float, str]:
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("hello")
        await retry(gateway)
        return await measured(gateway)


async def approved() -> tuple[float, float, str]:
    async with a_process(ScriptedAgent(Fail(PAY), Say("paid")), AT_ONCE) as gateway:
        await approve(gateway)
        return await measured(gateway)


async def approved_and_answered_again() -> tuple[float, float, str]:
    agent = ScriptedAgent(Fail(PAY), Say("paid"), Say("again"))
    async with a_process(agent, AT_ONCE) as gateway:
        await approve(gateway)
        await retry(gateway)
        return await measured(gateway)


async def answered_again_beside_others() -> tuple[float, float, str]:
    """Runs of other sessions had slots meanwhile, and one was free."""
    async with a_process(ways=AT_ONCE) as gateway:
        await gateway.ask("hello")
        run = gateway.scripted.requests[-1].run_id
        for _ in range(2):
            await asyncio.sleep(LATER_S / 2)
            await gateway.ask("other", chat="bob")
        await gateway.gateway.accept([message(f"/undo {run} again")])
        await until(lambda: len(gateway.scripted.requests) == 4 and gateway.pending == [])
        return await measured(gateway)


async def crashed() -> tuple[float, float, str]:
    database = MemoryDatabase()
    async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as gateway:
        await gateway.say("hello")
        await gateway.scripted.until_active(1)
        gateway.kill()
    await asyncio.sleep(LATER_S)
    async with a_process(ways=AT_ONCE, database=database) as other:
        await until(lambda: bool(other.channel.sent))
        return await measured(other)


async def measured(gateway: GatewayProcess) -> tuple[float, float, str]:
    """What the newest run waited, how long before it its question was received, and why."""
    (run, *_) = await gateway.store.runs()
    waited_s = (run.started_at - run.submitted_at).total_seconds()
    question = (await gateway.store.history(run.session))[0]
    explained = await ask(gateway, f"run:{run.id}")
    return waited_s, (run.started_at - question.at).total_seconds(), explained.code


CASES: Final[Mapping[Callable[[], Awaitable[tuple[float, float, str]]], str]] = {
    answered_again: "answered",
    answered_again_beside_others: "answered",
    approved: "late.approval",
    approved_and_answered_again: "answered",
    crashed: "late.cut",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_a_run_waits_since_its_messages_were_queued(
    case: Callable[[], Awaitable[tuple[float, float, str]]],
) -> None:
    """What they waited before that was no wait for a slot; a question stays at its own time."""
    waited_s, ago_s, code = await case()
    assert waited_s < 1
    assert ago_s >= LATER_S
    assert code == CASES[case]
