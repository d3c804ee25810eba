"""How long a stop takes to reach the work."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench.scheduler.child import in_child
from bench.scheduler.dispatch import session_keys
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress
from bench.scheduler.sizes import Sizes
from goclaw_py import Lane, QueuePolicy, Run, Scheduler

OTHER_LANES = {"subagent": 4, "delegate": 100, "cron": 1}


@dataclass(frozen=True, slots=True)
class Reaction:
    """Milliseconds from the call of ``Scheduler.stop`` to ``except CancelledError`` in the work."""

    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Reactions:
    """To stops that come one after the other, and to one for each session in the same instant."""

    apart: Reaction
    at_once: Reaction


class _Stops:
    """A scheduler with every lane full, and sessions that have work and more of it waiting."""

    def __init__(self, sizes: Sizes) -> None:
        self.keys = session_keys(sizes.sessions)
        self._reached: dict[str, float] = {}
        self._working = 0
        self._full = len(self.keys) + sum(OTHER_LANES.values())
        self._queued = sizes.queued_each
        self._scheduler: Scheduler[int, None] = Scheduler(
            self._work,
            [Lane("main", sizes.sessions), *(Lane(*lane) for lane in OTHER_LANES.items())],
            policy=QueuePolicy(capacity=sizes.queued_each),
        )

    async def _work(self, run: Run[int, None]) -> None:
        self._working += 1
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self._reached[run.session] = time.perf_counter()
            raise
        finally:
            self._working -= 1

    async def fill(self) -> None:
        """Let every session have one run that works, and messages that wait for its end."""
        others = [(f"{lane}:{n}", lane) for lane, size in OTHER_LANES.items() for n in range(size)]
        for number in range(1 + self._queued):
            for key in self.keys:
                self._scheduler.submit(key, number)
            for key, lane in others:
                self._scheduler.submit(key, number, lane)

    async def measure(self, groups: Sequence[Sequence[str]]) -> Reaction:
        """Stop the sessions of each group in one go, and wait until the work of all has heard."""
        self._reached.clear()
        taken: list[float] = []
        for group in groups:
            # A run that is stopped before its first step has no work that could hear of it.
            await _until(lambda: self._working == self._full)
            called: dict[str, float] = {}
            for key in group:
                called[key] = time.perf_counter()
                self._scheduler.stop(key)
            wanted = len(self._reached) + len(group)
            await _until(partial(self._have_heard, wanted))
            taken += [1000 * (self._reached[key] - at) for key, at in called.items()]
        hundredths = statistics.quantiles(taken, n=100, method="inclusive")
        return Reaction(hundredths[49], hundredths[98], max(taken))

    def _have_heard(self, wanted: int) -> bool:
        return len(self._reached) == wanted

    async def end(self) -> None:
        await self._scheduler.drain(0)


def measure(sizes: Sizes) -> Reactions:
    """Stop one run of each session; then, as each has got its next run, all of them at once."""

    async def main() -> Reactions:
        stops = _Stops(sizes)
        await stops.fill()
        apart = await stops.measure([[key] for key in stops.keys])
        at_once = await stops.measure([stops.keys])
        await stops.end()
        return Reactions(apart, at_once)

    return asyncio.run(main())


def report(sizes: Sizes) -> Report:
    """Measure everything."""
    found: list[Reactions] = []
    for done in range(sizes.rounds):
        progress("stop", done, sizes.rounds)
        found.append(in_child(measure, sizes))
    about = (
        f"{sizes.sessions:,} sessions, each with a run and {sizes.queued_each} messages that wait; "
        "all lanes full. From the call to the CancelledError in the work."
    )
    lines = [
        _line("one after the other", [one.apart for one in found], Wanted(Sign.BELOW, 5.0)),
        _line("all in one go", [one.at_once for one in found], None),
    ]
    return Report("stop", about, sizes.rounds, lines)


def _line(label: str, found: Sequence[Reaction], wanted: Wanted | None) -> Line:
    return Line(
        label,
        (
            Figure("p50", [one.p50_ms for one in found], "ms"),
            Figure("p99", [one.p99_ms for one in found], "ms", wanted),
            Figure("max", [one.max_ms for one in found], "ms"),
        ),
    )


async def _until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110  # an event would be one more turn of the loop
        await asyncio.sleep(0)
