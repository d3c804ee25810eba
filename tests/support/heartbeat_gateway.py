"""Heartbeats for tests: a gateway whose agents beat, and what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from goclaw_py.core.ids import MAIN_AGENT, AgentName
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Trigger
from goclaw_py.runs.agent_loop import RunRequest
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import OPEN, HeartbeatConfig, HeartbeatRun
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.testing.agents import Block, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import START
from tests.support.harness import GatewayProcess, Ways, a_process
from tests.support.memory_store import MemoryDatabase

ANN = Target("telegram", "default", "ann")
EVERY = timedelta(minutes=5)
OFFSET = timedelta(seconds=60)
CHECKLIST = "# Checklist\n\n- [ ] look at the calendar\n"


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def heartbeat_gateway(
    policy: HeartbeatPolicy | None = None,
    *others: AgentName,
    interval: timedelta | None = EVERY,
    offset: timedelta = OFFSET,
) -> Ways:
    """Agents that beat first after ``offset``, then again and again."""
    made = policy or HeartbeatPolicy(interval=interval)
    names = (MAIN_AGENT, *others)
    return Ways(
        heartbeats=HeartbeatSetup(
            policies=dict.fromkeys(names, made),
            plans={name: HeartbeatConfig(name, made.interval, offset) for name in names},
        )
    )


class Alarmed:
    """What an agent says in its runs, one after the other; the last one again and again."""

    def __init__(self, *replies: str | Step) -> None:
        self._replies = replies
        self._heartbeat_runs = 0

    def __call__(self, request: RunRequest) -> Step:
        if request.trigger is not Trigger.HEARTBEAT:
            return Say(f"re: {request.prompt}")
        reply = self._replies[min(self._heartbeat_runs, len(self._replies) - 1)]
        self._heartbeat_runs += 1
        return Say(reply) if isinstance(reply, str) else reply


def saying(*replies: str | Step) -> ScriptedAgent:
    """An agent that echoes people and says these in its heartbeat runs."""
    return ScriptedAgent(otherwise=Alarmed(*replies))


def write(gateway: GatewayProcess, text: str = CHECKLIST) -> Path:
    """Give the agents a checklist."""
    file = gateway.workspace / "HEARTBEAT.md"
    file.write_text(text, "utf-8")
    return file


def asked(gateway: GatewayProcess) -> list[RunRequest]:
    """What the agent was asked in its heartbeat runs."""
    return [one for one in gateway.scripted.requests if one.trigger is Trigger.HEARTBEAT]


async def log_of(gateway: GatewayProcess, agent: AgentName = MAIN_AGENT) -> list[HeartbeatRun]:
    """The heartbeat runs of an agent, the oldest first."""
    return list(reversed(await gateway.store.heartbeat_runs(agent)))


async def outcomes(gateway: GatewayProcess, agent: AgentName = MAIN_AGENT) -> list[str]:
    """How they ended, the oldest first."""
    return [heartbeat_run.outcome for heartbeat_run in await log_of(gateway, agent)]


async def until_ended(gateway: GatewayProcess, count: int) -> list[HeartbeatRun]:
    """Let time pass until so many heartbeat runs have ended."""
    async with asyncio.timeout(400 * 86_400):
        while True:
            ended = [
                heartbeat_run
                for heartbeat_run in await log_of(gateway)
                if heartbeat_run.status not in OPEN
            ]
            if len(ended) >= count:
                return ended
            await asyncio.sleep(0.5)


@asynccontextmanager
async def beating(
    *replies: str | Step,
    ways: Ways | None = None,
    checklist: str | None = CHECKLIST,
    database: MemoryDatabase | None = None,
    channel: RecordingChannel | None = None,
    spoken_by: str | None = "ann",
) -> AsyncIterator[GatewayProcess]:
    """A gateway with a checklist whose agent says these in its runs, and who spoke to it."""
    channels = () if channel is None else (channel,)
    agent = saying(*(replies or ("HEARTBEAT_OK",)))
    made = ways or heartbeat_gateway()
    async with a_process(agent, made, database=database, channels=channels) as gateway:
        if checklist is not None:
            write(gateway, checklist)
        if spoken_by is not None:
            await gateway.ask("hello", chat=spoken_by)
        yield gateway


@asynccontextmanager
async def busy(
    step: Step | None = None, database: MemoryDatabase | None = None
) -> AsyncIterator[GatewayProcess]:
    """A gateway with a checklist to whose agent somebody talks; until released, by default."""
    agent = saying("HEARTBEAT_OK")
    agent.script = (step or Block("done"),)
    async with a_process(agent, heartbeat_gateway(), database=database) as gateway:
        write(gateway)
        await gateway.say("think about it")
        yield gateway
