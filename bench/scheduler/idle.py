"""What remains of sessions that have nothing to do any more."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

from bench.memory import resident_mb
from bench.scheduler.child import in_child
from bench.scheduler.contenders import nothing
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress
from bench.scheduler.sizes import Sizes
from goclaw_py import Lane, Scheduler

WAVE = 1_000
LANE = 30


@dataclass(frozen=True, slots=True)
class Growth:
    """What one-shot sessions left behind, and how quickly they went through.

    ``at_most_mb`` is the largest growth that was seen between two waves.
    """

    at_end_mb: float
    at_most_mb: float
    per_cpu_s: float


def measure_bytes(sizes: Sizes) -> float:
    """Bytes for each session that was used once and has nothing to do."""

    async def main() -> float:
        scheduler = _scheduler()
        await _use(scheduler, range(WAVE))
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for wave in _waves(sizes.used_once):
            await _use(scheduler, wave)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await scheduler.drain(0)
        return (after - before) / sizes.used_once

    return asyncio.run(main())


def measure_growth(sizes: Sizes) -> Growth:
    """Resident memory after all sessions, against that after the first waves."""

    async def main() -> Growth:
        scheduler = _scheduler()
        for wave in _waves(10 * WAVE):
            await _use(scheduler, wave)
        before = most = resident_mb()
        begin = time.process_time()
        for wave in _waves(sizes.one_shot):
            await _use(scheduler, wave)
            most = max(most, resident_mb())
        taken = time.process_time() - begin
        grown = resident_mb() - before
        await scheduler.drain(0)
        return Growth(grown, most - before, sizes.one_shot / taken)

    return asyncio.run(main())


def report(sizes: Sizes) -> Report:
    """Measure everything."""
    weights: list[float] = []
    growths: list[Growth] = []
    for done in range(sizes.rounds):
        progress("idle", done, sizes.rounds)
        weights.append(in_child(measure_bytes, sizes))
        growths.append(in_child(measure_growth, sizes))
    about = (
        f"Sessions that are used once, in waves of {WAVE:,}: the bytes that Python has for "
        f"{sizes.used_once:,} of them when they are idle, and how much the process grows over "
        f"{sizes.one_shot:,}."
    )
    lines = [
        Line(
            "idle session",
            (Figure("", weights, "bytes", Wanted(Sign.AT_MOST, 1_536)),),
        ),
        Line(
            "one-shot sessions",
            (
                Figure(
                    "growth",
                    [one.at_end_mb for one in growths],
                    "MB",
                    Wanted(Sign.BELOW, 20),
                ),
                Figure("at most", [one.at_most_mb for one in growths], "MB"),
                Figure("per CPU second", [one.per_cpu_s for one in growths], "sessions"),
            ),
        ),
    ]
    return Report("idle", about, sizes.rounds, lines)


def _scheduler() -> Scheduler[int, None]:
    return Scheduler(nothing, [Lane("main", LANE)])


def _waves(sessions: int) -> Iterator[range]:
    for first in range(0, sessions, WAVE):
        yield range(first, min(first + WAVE, sessions))


async def _use(scheduler: Scheduler[int, None], wave: range) -> None:
    """Let each session run once, and wait until all have ended."""
    runs = [scheduler.submit(f"agent:main:api:{n}", n) for n in wave]
    for run in runs:
        await run
