"""One measurement each, to be made in a process of its own."""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bench.busy import busy_loops
from bench.jobs.gateway import CLOCK, Instant, a_job, add_all, fresh_store, jobs_of
from bench.scheduler.child import loops, run_on
from goclaw_py.app.loop import collect_less_often
from goclaw_py.core.ids import Owner
from goclaw_py.schedule.jobs.schedule import At, Every
from goclaw_py.store.postgres import Address

_SETTLE_S = 4
_EARLY_S = 5
"""A burst is claimed so long before its time."""
_BUSY_S = 1.0
"""Busy loops are at work for so long, at least, when a burst is claimed."""

MOST = 50
"""How many jobs an owner may have."""


@dataclass(frozen=True, slots=True)
class Late:
    """How late runs began after the second at which they were due, in milliseconds."""

    p50_ms: float
    p99_ms: float
    last_ms: float


def together(address: Address, due: int, stored: int, busy: int = 0) -> Late:
    """So many jobs due in the same second, among so many, in lane of a thousand.

    ``busy``: so many processes use the processor from the time at which all jobs are stored.
    """
    return run_on(loops()[-1], _together(address, due, stored, busy))


async def _together(address: Address, due: int, stored: int, busy: int) -> Late:
    collect_less_often()
    async with fresh_store(address, "bench_together", stored - due) as store:
        agent = Instant()
        async with jobs_of(store, agent, lane=1000):
            # Time to store them all, and for the process to come to rest.
            at = _whole(CLOCK.now() + timedelta(seconds=_SETTLE_S + _EARLY_S + due / 150))
            await add_all(store, [a_job(n + 1, At(at), at) for n in range(due)])
            if CLOCK.now() > at - timedelta(seconds=_EARLY_S + _BUSY_S):
                raise RuntimeError("storing the jobs took longer than they had until their claim")
            with busy_loops(busy):
                await _until(lambda: len(agent.asked) >= due, at)
        return _late(agent.asked, [at.timestamp()] * due)


def apscheduler(due: int, busy: int = 0) -> Late:
    """The same with APScheduler 3 and its store in memory."""
    return asyncio.run(_apscheduler(due, busy))


async def _apscheduler(due: int, busy: int) -> Late:
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    asked: list[float] = []

    async def work() -> None:
        asked.append(time.time())

    scheduler = AsyncIOScheduler(timezone=UTC)
    at = _whole(datetime.now(UTC) + timedelta(seconds=_SETTLE_S))
    for number in range(due):
        scheduler.add_job(work, "date", run_date=at, id=str(number), misfire_grace_time=60)
    scheduler.start()
    with busy_loops(busy):
        await _until(lambda: len(asked) >= due, at)
    scheduler.shutdown()
    return _late(asked, [at.timestamp()] * due)


def alone(address: Address, runs: int) -> Late:
    """One job every second, nothing else."""
    return run_on(loops()[-1], _alone(address, runs))


async def _alone(address: Address, runs: int) -> Late:
    collect_less_often()
    async with fresh_store(address, "bench_alone") as store:
        agent = Instant()
        async with jobs_of(store, agent, lane=1):
            begin = _whole(CLOCK.now() + timedelta(seconds=_SETTLE_S))
            job = a_job(1, Every(timedelta(seconds=1), begin), begin)
            grid = replace(job, spec=replace(job.spec, policy={"anchor": "grid"}))
            await store.add_job(grid, most=10)
            await _until(lambda: len(agent.asked) >= runs, begin, patience_s=runs + 30)
        seconds = [math.floor(asked) for asked in agent.asked]
        return _late(agent.asked, seconds)


@dataclass(frozen=True, slots=True)
class Many:
    """What a large table costs. Times in ms; ``idle_cpu`` is a part of one processor."""

    look_p99_ms: float
    add_p50_ms: float
    add_p99_ms: float
    idle_cpu: float


def many(address: Address, stored: int, seconds: float) -> Many:
    """With so many jobs of which none is due."""
    return run_on(loops()[-1], _many(address, stored, seconds))


async def _many(address: Address, stored: int, seconds: float) -> Many:
    collect_less_often()
    async with fresh_store(address, "bench_many", stored) as store:
        looks = []
        for _ in range(500):
            begin = time.perf_counter()
            await store.next_job_due()
            looks.append(1000 * (time.perf_counter() - begin))
        adds = []
        for number in range(300):
            job = a_job(number + 1, At(CLOCK.now() + timedelta(days=1)), CLOCK.now() + timedelta(1))
            # The others are the operator's; people may have as many as the settings allow.
            job = replace(job, owner=Owner(f"telegram:default:direct:{number // MOST}"))
            begin = time.perf_counter()
            await store.add_job(job, most=MOST)
            adds.append(1000 * (time.perf_counter() - begin))
        async with jobs_of(store, Instant(), lane=1):
            await asyncio.sleep(1)
            used, begin = time.process_time(), time.perf_counter()
            await asyncio.sleep(seconds)
            idle = (time.process_time() - used) / (time.perf_counter() - begin)
    return Many(_quantile(looks, 99), statistics.median(adds), _quantile(adds, 99), idle)


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=0) + timedelta(seconds=1)


async def _until(done: Callable[[], bool], at: datetime, *, patience_s: float = 30) -> None:
    end = at.timestamp() + patience_s
    while not done():
        if time.time() > end:
            raise TimeoutError("not all that was due has run")
        await asyncio.sleep(0.05)


def _late(asked: Sequence[float], due: Sequence[float]) -> Late:
    late = sorted(1000 * (mine - at) for mine, at in zip(asked, due, strict=True))
    return Late(statistics.median(late), _quantile(late, 99), late[-1])


def _quantile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
