"""How quickly runs that do nothing go through sessions and a lane."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.scheduler.child import in_child, loops, run_on
from bench.scheduler.contenders import CONTENDERS, Batches, Submission, Work, nothing
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress, ratios
from bench.scheduler.sizes import Sizes

LATENCY_LANE = 30

WANTED: Mapping[str, Wanted | None] = {
    "floor": Wanted(Sign.AT_LEAST, 0.65),
    "semaphore": Wanted(Sign.AT_LEAST, 1.5),
    "aiojobs": None,
}
"""What goclaw_py's rate is to be, as a multiple of theirs."""


@dataclass(frozen=True, slots=True)
class Case:
    """Who does it, with how many slots, on which kind of loop."""

    contender: str
    lane: int
    loop: str


@dataclass(frozen=True, slots=True)
class Rate:
    """Runs per second of this process's CPU time, and per second of the wall."""

    per_cpu_s: float
    per_s: float


@dataclass(frozen=True, slots=True)
class Delays:
    """Milliseconds from submit to start: half of the runs, and 99 of 100, waited no longer."""

    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class BothDelays:
    """Of messages that came all at once, and of messages that came evenly."""

    burst: Delays
    paced: Delays


def measure_rate(case: Case, sizes: Sizes) -> Rate:
    """Hand over all messages at once; the time ends when the last run has ended."""
    messages = burst(sizes)

    async def main() -> Rate:
        await _drive(case, at_once(burst(Sizes(sessions=20, runs_each=20))), nothing)
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        await _drive(case, at_once(messages), nothing, expected=len(messages))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return Rate(len(messages) / cpu, len(messages) / wall)

    return run_on(case.loop, main())


def measure_delays(case: Case, sizes: Sizes) -> BothDelays:
    """Note when each message was handed over and when its run started.

    Once with all of them at once, once with messages that come evenly, the sessions in turn.
    """
    keys = session_keys(sizes.sessions)
    per_ms = sizes.paced_per_ms
    groups = [
        [(keys[n % len(keys)], n) for n in range(ms * per_ms, (ms + 1) * per_ms)]
        for ms in range(sizes.paced_ms)
    ]

    async def main() -> BothDelays:
        return BothDelays(
            paced=await _measure_delays(case, groups),
            burst=await _measure_delays(case, [burst(sizes)]),
        )

    return run_on(case.loop, main())


def burst(sizes: Sizes) -> list[Submission]:
    """Every session's first message, then every session's second …; messages are numbered."""
    keys = session_keys(sizes.sessions)
    count = sizes.sessions * sizes.runs_each
    return [(keys[n % len(keys)], n) for n in range(count)]


def session_keys(count: int) -> list[str]:
    """Keys as chats have them."""
    return [f"agent:main:telegram:direct:{n}" for n in range(count)]


async def at_once(messages: Iterable[Submission]) -> AsyncIterator[Iterable[Submission]]:
    """All in one batch."""
    yield messages


def report(sizes: Sizes) -> Report:
    """Measure everything."""
    cases = [
        Case(contender, lane, loop)
        for loop in loops()
        for lane in sizes.lanes
        for contender in CONTENDERS
    ]
    timed = [Case(name, LATENCY_LANE, loop) for loop in loops() for name in CONTENDERS]
    rates: dict[Case, list[Rate]] = {case: [] for case in cases}
    delays: dict[Case, list[BothDelays]] = {case: [] for case in timed}
    for done in range(sizes.rounds):
        progress("dispatch", done, sizes.rounds)
        for case in cases:
            rates[case].append(in_child(measure_rate, case, sizes))
        for case in timed:
            delays[case].append(in_child(measure_delays, case, sizes))
    per_s = sizes.paced_per_ms * 1000
    about = (
        f"{sizes.sessions:,} sessions x {sizes.runs_each} runs that do nothing, handed over at "
        "once. goclaw_py and the floor (a task per run, a deque per session, a counter) keep the "
        "order of a session; the semaphore (a task per message) and aiojobs do not. Delays are "
        f"from submit to start in a lane of {LATENCY_LANE}: of the burst, and of {per_s:,} "
        "messages a second."
    )
    lines = [line for case in cases for line in _rate_lines(case, rates)]
    lines += [_delay_line(case, delays[case], per_s) for case in timed]
    return Report("dispatch", about, sizes.rounds, lines)


async def _drive(case: Case, batches: Batches, work: Work, expected: int | None = None) -> None:
    count = await CONTENDERS[case.contender](case.lane, batches, work)
    if expected is not None and (count.completed, count.failed) != (expected, 0):
        raise RuntimeError(f"{case.contender} was given {expected} messages: {count}")


async def _measure_delays(case: Case, groups: Sequence[Sequence[Submission]]) -> Delays:
    count = sum(map(len, groups))
    handed_over = [0.0] * count
    started = [0.0] * count
    clock = time.perf_counter

    def stamped(messages: Iterable[Submission]) -> Iterator[Submission]:
        for session, number in messages:
            handed_over[number] = clock()
            yield session, number

    async def note(number: int) -> None:
        started[number] = clock()

    async def each_ms() -> AsyncIterator[Iterable[Submission]]:
        begin = clock()
        for ms, group in enumerate(groups):
            await asyncio.sleep(max(0.0, begin + ms / 1000 - clock()))
            yield stamped(group)

    await _drive(case, at_once(burst(Sizes(sessions=20, runs_each=20))), nothing)
    gc.collect()
    await _drive(case, each_ms(), note, expected=count)
    delays = [1000 * (to - at) for at, to in zip(handed_over, started, strict=True)]
    hundredths = statistics.quantiles(delays, n=100, method="inclusive")
    return Delays(hundredths[49], hundredths[98])


def _rate_lines(case: Case, rates: Mapping[Case, Sequence[Rate]]) -> Iterator[Line]:
    label = f"{case.loop}, lane {case.lane}, {case.contender}"
    mine = rates[case]
    yield Line(
        label,
        (
            Figure("per CPU second", [rate.per_cpu_s for rate in mine], "runs"),
            Figure("per second", [rate.per_s for rate in mine], "runs"),
        ),
    )
    if case.contender not in WANTED:
        return
    ours = rates[Case("goclaw_py", case.lane, case.loop)]
    by_cpu = ratios([rate.per_cpu_s for rate in ours], [rate.per_cpu_s for rate in mine])
    by_wall = ratios([rate.per_s for rate in ours], [rate.per_s for rate in mine])
    yield Line(
        f"{case.loop}, lane {case.lane}, goclaw_py / {case.contender}",
        (
            Figure("by CPU", by_cpu, wanted=WANTED[case.contender]),
            Figure("by wall", by_wall),
        ),
    )


def _delay_line(case: Case, delays: Sequence[BothDelays], per_s: int) -> Line:
    return Line(
        f"{case.loop}, lane {case.lane}, {case.contender}, delays",
        (
            Figure("burst p50", [both.burst.p50_ms for both in delays], "ms"),
            Figure("p99", [both.burst.p99_ms for both in delays], "ms"),
            Figure(f"{per_s:,}/s p50", [both.paced.p50_ms for both in delays], "ms"),
            Figure("p99", [both.paced.p99_ms for both in delays], "ms"),
        ),
    )
