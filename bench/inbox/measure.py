"""Callers that store message after message, each with one call under way."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from bench.inbox.contenders import CONTENDERS, Insert
from bench.scheduler.child import loops, run_on
from goclaw_py.app.loop import collect_less_often
from goclaw_py.store.postgres import Address, connection

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Case:
    """Who stores, for how many callers at once."""

    contender: str
    callers: int


@dataclass(frozen=True, slots=True)
class Inserts:
    """What one measurement found. CPU is in ms a message: this process, and the server's."""

    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    server_cpu_ms: float


def measure(case: Case, address: Address, server: int, seconds: float) -> Inserts:
    """Store messages into a fresh database for so many seconds.

    ``address`` is the server's own database, ``server`` its process id. On the loop that a gateway
    uses, with its settings of the garbage collector.
    """
    collect_less_often()
    return run_on(loops()[-1], _measure(case, address, server, seconds))


async def _measure(case: Case, address: Address, server: int, seconds: float) -> Inserts:
    database = f"bench_{case.contender}_{case.callers}"
    await _recreate(address, database)
    try:
        async with CONTENDERS[case.contender](replace(address, database=database)) as insert:
            return await _store(insert, case.callers, server, seconds)
    finally:
        await _run(address, f"drop database {database} with (force)")


async def _recreate(address: Address, database: str) -> None:
    await _run(address, f"drop database if exists {database} with (force)")
    await _run(address, f"create database {database}")


async def _run(address: Address, statement: str) -> None:
    async with connection(address) as opened:
        await opened.script(statement)


async def _store(insert: Insert, callers: int, server: int, seconds: float) -> Inserts:
    numbers = count()
    await _call(insert, callers, numbers, seconds / 4)
    mine, theirs, begin = time.process_time(), cpu_s(server), time.perf_counter()
    taken = await _call(insert, callers, numbers, seconds)
    passed = time.perf_counter() - begin
    mine, theirs = time.process_time() - mine, cpu_s(server) - theirs
    ms = sorted(1000 * seconds for seconds in taken)
    hundredths = statistics.quantiles(ms, n=100, method="inclusive")
    return Inserts(
        per_s=len(ms) / passed,
        p50_ms=hundredths[49],
        p99_ms=hundredths[98],
        cpu_ms=1000 * mine / len(ms),
        server_cpu_ms=1000 * theirs / len(ms),
    )


async def _call(
    insert: Insert, callers: int, numbers: Iterator[int], seconds: float
) -> list[float]:
    """How long each call took, in seconds. Each caller makes two calls at least."""
    clock = time.perf_counter
    end = clock() + seconds
    taken: list[float] = []

    async def call() -> None:
        begin, calls = clock(), 0
        while begin < end or calls < 2:
            await insert(next(numbers))
            now = clock()
            taken.append(now - begin)
            begin, calls = now, calls + 1

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(call())
    return taken


def cpu_s(server: int) -> float:
    """CPU seconds of a process and all its children, those that have ended included."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process may end while we look.
        with suppress(OSError):
            text = stat.read_text()
            fields = text[text.rindex(")") + 2 :].split()
            pid, parent = int(stat.parent.name), int(fields[1])
            own = int(fields[11]) + int(fields[12])
            if pid == server:
                total += own + int(fields[13]) + int(fields[14])
            elif parent == server:
                total += own
    return total / _TICKS_PER_S
