"""What it costs to be one of several: a node that does nothing, and lanes that all nodes share."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from bench.cluster.member import Kind, member
from bench.inbox.measure import cpu_s
from bench.jobs.gateway import a_job, add_all, fresh_store
from bench.scheduler.child import loops, run_on
from goclaw_py.app.loop import collect_less_often
from goclaw_py.schedule.jobs.schedule import At
from goclaw_py.store.postgres import Address

ALONE: Final = Kind(among_others=False)
AMONG: Final = Kind()
CRON: Final = 4
"""So many places has the lane in which jobs are measured."""

_SETTLED_S: Final = 2.0
_SOON: Final = timedelta(seconds=3)
_LOOK_S: Final = 0.02
_PATIENCE_S: Final = 200.0


@dataclass(frozen=True, slots=True)
class Used:
    """CPU of a node and of the server: in ms a second of a node at rest, else in ms a run."""

    node_ms: float
    server_ms: float

    @property
    def whole_ms(self) -> float:
        """Both."""
        return self.node_ms + self.server_ms


def idle(address: Address, server: int, kind: Kind, seconds: float) -> Used:
    """A node that has nothing to do."""
    collect_less_often()
    return run_on(loops()[-1], _idle(address, server, kind, seconds))


async def _idle(address: Address, server: int, kind: Kind, seconds: float) -> Used:
    async with fresh_store(address, "bench_idle") as store, member(store, kind):
        await asyncio.sleep(_SETTLED_S)
        mine, theirs, begin = time.process_time(), cpu_s(server), time.monotonic()
        await asyncio.sleep(seconds)
        passed = time.monotonic() - begin
        return Used(
            1000 * (time.process_time() - mine) / passed,
            1000 * (cpu_s(server) - theirs) / passed,
        )


def jobs(address: Address, server: int, runs: int, *, shared: bool) -> Used:
    """So many jobs that are due at once, in a lane of this node or of all nodes."""
    collect_less_often()
    return run_on(loops()[-1], _jobs(address, server, runs, shared=shared))


async def _jobs(address: Address, server: int, runs: int, *, shared: bool) -> Used:
    kind = replace(AMONG, cron=CRON, shared_cron=shared)
    async with fresh_store(address, "bench_lanes") as store, member(store, kind) as node:
        at = node.clock.now() + _SOON + timedelta(milliseconds=2 * runs)
        await add_all(store, [a_job(number, At(at), at) for number in range(runs)])
        await asyncio.sleep(max((at - node.clock.now()).total_seconds() - 1, 0))
        mine, theirs = time.process_time(), cpu_s(server)
        async with asyncio.timeout(_PATIENCE_S):
            while len(node.agent.asked) < runs or node.container.dispatcher.runs():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)
        return Used(
            1000 * (time.process_time() - mine) / runs,
            1000 * (cpu_s(server) - theirs) / runs,
        )
