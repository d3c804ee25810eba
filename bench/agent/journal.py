"""What it costs to store the steps of a run (SPEC AGENT-10), with a real PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from bench.agent.contenders import SYSTEM, Lookup
from bench.agent.server import CALLS
from bench.scheduler.child import loops, run_on
from goclaw_py.agents import AgentSpec, build_agent
from goclaw_py.app.loop import collect_less_often
from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE, NodeId, RunId, SessionKey
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.records import NewRun, Node, RunEnd
from goclaw_py.runs.agent_loop import AgentLoop, LoopEvent, RunRequest, TextPart
from goclaw_py.runs.run_journal import Journal, step_of
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.store import migrate
from goclaw_py.store.postgres import Address, PostgresStore, connection

_NODE: Final = NodeId("bench")
_SESSION: Final = SessionKey("agent:main:console:direct:local")
STEPS: Final = 3 * CALLS + 1
"""A response, a call and a result, so many times, and the answer."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What storing adds to each step, in ms; CPU is that of the gateway's process."""

    wall_ms: float
    cpu_ms: float


def measure(address: Address, url: str, rounds: int, runs: int) -> list[Cost]:
    """Execute the same runs with and without storing, in turns; the difference in each round."""
    collect_less_often()
    return run_on(loops()[-1], _measure(address, url, rounds, runs))


async def _measure(address: Address, url: str, rounds: int, runs: int) -> list[Cost]:
    agent = build_agent(AgentSpec(MAIN_AGENT, "openai:tools", SYSTEM, url, "key"))
    numbers = count()
    found = []
    try:
        async with _store(address) as store:
            for number in range(rounds + 1):
                without = await _timed(agent, None, runs, numbers)
                stored = await _timed(agent, store, runs, numbers)
                # The first round warms up.
                if number:
                    wall, cpu = (a - b for a, b in zip(stored, without, strict=True))
                    found.append(Cost(wall, cpu))
    finally:
        await agent.close()
    return found


async def _timed(
    agent: AgentLoop, store: PostgresStore | None, runs: int, numbers: count[int]
) -> tuple[float, float]:
    """Wall time and CPU for each step, in ms."""
    wall = cpu = 0.0
    for _ in range(runs):
        run = RunId(f"run-{next(numbers)}")
        if store is not None:
            await store.begin_run(_new(run), node=_NODE)
        began, began_cpu = time.perf_counter(), time.process_time()
        await _run(agent, store, run)
        wall += time.perf_counter() - began
        cpu += time.process_time() - began_cpu
        if store is not None:
            await store.finish_run(RunEnd(run, Outcome.COMPLETED, _now()), node=_NODE)
    return 1000 * wall / (runs * STEPS), 1000 * cpu / (runs * STEPS)


async def _run(agent: AgentLoop, store: PostgresStore | None, run: RunId) -> None:
    """One run of ``STEPS`` steps; without a store its events are recorded, but not stored."""
    progress, clock, steps = RunRecorder(), SystemClock(), 0
    journal = None if store is None else Journal(store, run, _NODE, progress)

    def emit(event: LoopEvent) -> None:
        nonlocal steps
        steps += step_of(event) is not None
        progress.on_event(event, clock)
        if journal is not None:
            journal.on_event(event)

    request = RunRequest(
        run_id=run,
        session=_SESSION,
        agent=MAIN_AGENT,
        trigger=Trigger.CHAT,
        parts=(TextPart("look up owls"),),
        tools=Lookup(),
    )
    if journal is not None:
        request = replace(request, recorded=journal.recorded)
    await agent.run(request, emit)
    if journal is not None:
        await journal.recorded()
    if steps != STEPS:
        raise RuntimeError(f"the run had {steps} steps")


@asynccontextmanager
async def _store(address: Address) -> AsyncIterator[PostgresStore]:
    async with connection(address) as opened:
        await migrate.migrate(opened)
    store = await PostgresStore.open(
        host=address.host, user=address.user, database=address.database
    )
    try:
        lease = _now() + timedelta(days=1)
        await store.join(Node(_NODE, "host", 1, "bench", _now(), lease))
        yield store
    finally:
        await store.close()


def _new(run: RunId) -> NewRun:
    return NewRun(run, _SESSION, MAIN_AGENT, Trigger.CHAT, MAIN_LANE, (), None, _now())


def _now() -> datetime:
    return SystemClock().now()
