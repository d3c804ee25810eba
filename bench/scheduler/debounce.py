"""How quickly a burst of messages is prolonged, and what it costs to wait for its end."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from dataclasses import dataclass

from bench.scheduler.child import in_child
from bench.scheduler.dispatch import session_keys
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress
from bench.scheduler.sizes import Sizes
from goclaw_py import QueuePolicy, Run, Scheduler
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.scheduler.debounce import Debouncer
from goclaw_py.scheduler.models import Request

WINDOW_S = 0.8
STEP_S = 0.1
"""Virtual time from one message of a session to its next."""

ANN = "ann"
PATIENT = QueuePolicy(debounce_s=3600.0)
"""No burst ends while it is measured."""

SUBMITS_EACH = 2
"""Messages keep their text until their burst ends, so there are not as many."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Messages per second of CPU time that prolonged a burst.

    ``collector``: what debouncing itself does for one, looking at timers that have come included.
    ``submit``: a whole ``Scheduler.submit``, which makes a run and puts it into the burst.
    """

    collector: float
    submit: float


@dataclass(frozen=True, slots=True)
class Weight:
    """Bytes for each session that has an open burst.

    ``collector``: what debouncing adds to its first message. ``submit``: all of it, the message's
    run included.
    """

    collector: float
    submit: float


def measure_speed(sizes: Sizes) -> Speed:
    """Prolong the bursts of all sessions, one after the other, again and again."""
    return Speed(_prolonged_per_s(sizes), asyncio.run(_submitted_per_s(sizes)))


def measure_weight(sizes: Sizes) -> Weight:
    """Open a burst for each session."""
    return Weight(_collector_bytes(sizes), asyncio.run(_submit_bytes(sizes)))


def report(sizes: Sizes) -> Report:
    """Measure everything."""
    speeds: list[Speed] = []
    weights: list[Weight] = []
    for done in range(sizes.rounds):
        progress("debounce", done, sizes.rounds)
        speeds.append(in_child(measure_speed, sizes))
        weights.append(in_child(measure_weight, sizes))
    about = (
        f"{sizes.armed:,} sessions wait for the end of a burst of messages. Debouncing itself is "
        f"prolonged every {STEP_S:g} s of a window of {WINDOW_S:g} s in virtual time, timers "
        "included; a submit makes a run for each message and keeps it."
    )
    fast, light = Wanted(Sign.AT_LEAST, 1_000_000), Wanted(Sign.AT_MOST, 400)
    lines = [
        Line(
            "debouncing itself",
            (
                Figure("per CPU second", [one.collector for one in speeds], "re-arms", fast),
                Figure("per armed session", [one.collector for one in weights], "bytes", light),
            ),
        ),
        Line(
            "through submit",
            (
                Figure("per CPU second", [one.submit for one in speeds], "re-arms"),
                Figure("per armed session", [one.submit for one in weights], "bytes"),
            ),
        ),
    ]
    return Report("debounce", about, sizes.rounds, lines)


def _prolonged_per_s(sizes: Sizes) -> float:
    leaders = _leaders(sizes.armed)
    collector = Debouncer()
    for leader in leaders:
        collector.begin(leader, WINDOW_S, 0.0)
    ended = 0
    gc.collect()
    begin = time.process_time()
    for step in range(1, sizes.rearms_each + 1):
        now = step * STEP_S
        for leader in leaders:
            burst = collector.find(leader.session, ANN)
            assert burst is not None
            collector.extend(burst, now)
        while collector.pop_due(now) is not None:
            ended += 1
    taken = time.process_time() - begin
    if ended:
        raise RuntimeError(f"{ended} bursts ended that were still prolonged")
    return sizes.armed * sizes.rearms_each / taken


async def _submitted_per_s(sizes: Sizes) -> float:
    scheduler, keys = _scheduler(), session_keys(sizes.armed)
    for key in keys:
        scheduler.submit(key, 0, sender=ANN)
    gc.collect()
    begin = time.process_time()
    for number in range(1, SUBMITS_EACH + 1):
        for key in keys:
            scheduler.submit(key, number, sender=ANN)
    taken = time.process_time() - begin
    _check(scheduler, sizes)
    await scheduler.drain(0)
    return sizes.armed * SUBMITS_EACH / taken


def _collector_bytes(sizes: Sizes) -> float:
    leaders = _leaders(sizes.armed)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    collector = Debouncer()
    for leader in leaders:
        collector.begin(leader, WINDOW_S, 0.0)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / sizes.armed


async def _submit_bytes(sizes: Sizes) -> float:
    keys = session_keys(sizes.armed)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    scheduler = _scheduler()
    for key in keys:
        scheduler.submit(key, 0, sender=ANN)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    _check(scheduler, sizes)
    await scheduler.drain(0)
    return (after - before) / sizes.armed


async def _nothing(_run: Run[int, None]) -> None:
    """Never called: what it is for is still being collected."""


def _scheduler() -> Scheduler[int, None]:
    return Scheduler(_nothing, policy=PATIENT)


def _check(scheduler: Scheduler[int, None], sizes: Sizes) -> None:
    if len(scheduler.runs()) != sizes.armed:
        raise RuntimeError(f"{len(scheduler.runs())} bursts for {sizes.armed} sessions")


def _leaders(count: int) -> list[Request]:
    return [
        Request(RunId(str(n)), SessionKey(key), sender=ANN)
        for n, key in enumerate(session_keys(count))
    ]
