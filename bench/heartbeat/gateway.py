"""The heartbeats of a gateway on PostgreSQL, with agents that take no time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from bench.jobs.gateway import CLOCK
from goclaw_py.cluster.membership import Membership
from goclaw_py.core.ids import CRON_LANE, MAIN_LANE, AgentName
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.records import Notice
from goclaw_py.records.bound import bind
from goclaw_py.runs.agent_loop import AgentResult, Emit, RunRequest
from goclaw_py.runs.toolbox import NO_TOOLS, Toolbox, ToolContext
from goclaw_py.schedule.heartbeat.checklist_files import FILE
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import HeartbeatConfig, HeartbeatRunEnd
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.scheduler.scheduler import RunScheduler
from goclaw_py.store.postgres import Address, PostgresStore, connection

EVERY = timedelta(minutes=30)

_US = timedelta(microseconds=1)


@dataclass(slots=True)
class Calm:
    """An agent that finds at once that all is well; ``asked`` when, in seconds since 1970."""

    asked: list[float] = field(default_factory=list)

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        """Answer."""
        del request, emit
        self.asked.append(time.time())
        return AgentResult("HEARTBEAT_OK")

    async def warm_up(self) -> None:
        """Nothing is slow here."""

    async def close(self) -> None:
        """Nothing is open."""


async def calm(request: RunRequest, emit: Emit) -> str:
    """The same for the settings: ``python:bench.heartbeat.gateway:calm``."""
    del request, emit
    return "HEARTBEAT_OK"


class _NoTools:
    def toolbox(self, here: ToolContext) -> Toolbox:
        del here
        return NO_TOOLS


def names(count: int) -> list[AgentName]:
    """So many agents."""
    return [AgentName(f"agent-{number:05}") for number in range(count)]


def write_checklists(folders: Iterable[Path], text: str | None) -> None:
    """Give each folder a HEARTBEAT.md of its own, or none."""
    for folder in folders:
        folder.mkdir(parents=True)
        if text is not None:
            (folder / FILE).write_text(text)


@dataclass(slots=True)
class Heard:
    """Ends of runs that are stored, each with when that was heard, in seconds since 1970."""

    ends: list[tuple[HeartbeatRunEnd, float]] = field(default_factory=list)
    _wanted: int = 0
    _enough: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, end: HeartbeatRunEnd) -> None:
        """One more."""
        self.ends.append((end, time.time()))
        if len(self.ends) >= self._wanted:
            self._enough.set()

    def expect(self) -> None:
        """Forget what was heard."""
        self.ends.clear()
        self._enough.clear()

    async def until(self, count: int, patience_s: float) -> None:
        """Wait for so many. Raises ``TimeoutError``."""
        self._wanted = count
        if len(self.ends) < count:
            self._enough.clear()
            async with asyncio.timeout(patience_s):
                await self._enough.wait()


@dataclass(frozen=True, slots=True)
class HeartbeatLoad:
    """Heartbeats at work, over a database of their own."""

    container: Container
    heard: Heard
    agent: Calm
    address: Address

    async def run_sql(self, statement: str) -> None:
        """Change what is stored, behind the back of the gateway."""
        async with connection(self.address) as one:
            await one.script(statement)

    async def fall_due(self, at: datetime, apart: timedelta, heartbeat_runs: int) -> None:
        """Let so many runs be due then, the one so much after the other; the others much later."""
        await self.run_sql(
            f"update heartbeats as h set next_at = '{at.isoformat()}'::timestamptz"
            f" + case when n.number < {heartbeat_runs} then n.number * {apart // _US}"
            f" else {EVERY // _US} end * interval '1 microsecond'"
            " from (select agent, row_number() over (order by agent) - 1 as number"
            " from heartbeats) as n where n.agent = h.agent"
        )
        self.container.heartbeats.wake.call()


@asynccontextmanager
async def heartbeat_runs_of(
    store: PostgresStore,
    address: Address,
    workspaces: Mapping[AgentName, Path],
    policy: HeartbeatPolicy,
    *,
    lane: int,
) -> AsyncIterator[HeartbeatLoad]:
    """What a gateway runs for heartbeats, at work; a heartbeat run of each agent is due at once."""
    lost = asyncio.Event()
    cluster = Membership(
        store, CLOCK, "bench", on_recovery=lambda _: None, on_lost=lambda _: lost.set()
    )
    await cluster.join()
    agent, heard = Calm(), Heard()
    deps = GatewayDependencies(
        channels={},
        rules={},
        agents=dict.fromkeys(workspaces, agent),
        workspaces=workspaces,
        context_windows=dict.fromkeys(workspaces, 100_000),
        tool_factory=_NoTools(),
        heartbeats=HeartbeatSetup(
            policies=dict.fromkeys(workspaces, policy),
            plans={name: HeartbeatConfig(name, EVERY, timedelta()) for name in workspaces},
            workspaces=workspaces,
        ),
    )
    scheduler = RunScheduler({MAIN_LANE: 1, CRON_LANE: lane})
    container = Container(bind(store, lambda: cluster.node.id), CLOCK, scheduler, deps)
    heartbeats = container.heartbeats
    heartbeats.heartbeat_runs.on_end = heard.note

    def hear(notice: Notice) -> None:
        if notice is Notice.CRON:
            container.poll_due()

    store.on_notice(hear)
    duties = [
        asyncio.create_task(duty)
        for duty in (cluster.renew_regularly(), heartbeats.run(), heartbeats.retry_notifications())
    ]
    try:
        yield HeartbeatLoad(container, heard, agent, address)
    finally:
        await container.drain(5, asyncio.Event())
        for duty in duties:
            duty.cancel()
        await asyncio.gather(*duties, return_exceptions=True)
        await cluster.leave()


def own(address: Address, name: str) -> Address:
    """The same server, with another database."""
    return replace(address, database=name)


def settings_file(agents: Sequence[AgentName], *, model: str = "") -> str:
    """``goclaw.toml`` with these agents, which beat as they do by default, and a lane for all."""
    lines = [
        "[lanes]",
        f"cron = {len(agents)}",
        "[agents.main.heartbeat]",
        "enabled = false",
    ]
    for name in agents:
        lines.append(f"[agents.{name}]")
        if model:
            lines.append(f'model = "{model}"')
    return "\n".join(lines) + "\n"
