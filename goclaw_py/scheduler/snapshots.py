"""Snapshots of lanes for people: running and waiting requests, and slow waits.

Computed from the views of a scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from goclaw_py.core.display_names import KnownNames, display_name
from goclaw_py.core.text import count
from goclaw_py.core.time.texts import rough
from goclaw_py.scheduler.models import HOLDING
from goclaw_py.scheduler.operator_warnings import OperatorWarning
from goclaw_py.scheduler.timeouts import SLOW_WAIT_S
from goclaw_py.scheduler.views import LaneUse, LaneView, RunState, RunView, WaitsFor

MAX_WARNINGS = 5
"""The number of lanes that are warned about at once."""

MAX_NAMED = 3
"""The number of runs that a warning names."""

_NEXT_FIRST = (RunState.READY, RunState.QUEUED, RunState.COLLECTING)


def lane_uses(lanes: Iterable[LaneView], runs: Sequence[RunView]) -> tuple[LaneUse, ...]:
    """Return the running and waiting runs of each lane."""
    return tuple(_use(lane, runs) for lane in lanes)


def in_line(runs: Iterable[RunView]) -> tuple[RunView, ...]:
    """Return the runs that have not started, the one that starts next first.

    Queues are first come, first served, so the longest waiting is first.
    """
    waiting = [run for run in runs if run.waits_for is not None]
    return tuple(sorted(waiting, key=lambda run: (_NEXT_FIRST.index(run.state), -run.for_s)))


def slow_waits(
    lanes: Iterable[LaneView],
    runs: Sequence[RunView],
    name_of: Callable[[str], str | None] = lambda _session: None,
) -> tuple[OperatorWarning, ...]:
    """Return a warning for each lane in whose queue a request waits slowly (SPEC LANE-7).

    It names the waiting and the running requests, by ``name_of`` their sessions. The longest wait
    comes first; at most ``MAX_WARNINGS``.
    """
    slow = [
        use for use in lane_uses(lanes, runs) if use.waiting and use.waiting[0].for_s > SLOW_WAIT_S
    ]
    slow.sort(key=lambda use: -use.waiting[0].for_s)
    return tuple(_slow_wait(use, name_of) for use in slow[:MAX_WARNINGS])


def _use(lane: LaneView, runs: Sequence[RunView]) -> LaneUse:
    here = [run for run in runs if run.lane == lane.name]
    return LaneUse(
        lane=lane,
        inside=tuple(run for run in here if run.waits_for is None),
        waiting=in_line(run for run in here if run.waits_for is WaitsFor.LANE),
    )


def _slow_wait(use: LaneUse, name_of: Callable[[str], str | None]) -> OperatorWarning:
    def named(run: RunView) -> str:
        return name_of(run.session) or display_name(run.session, KnownNames())

    lane, first = use.lane, use.waiting[0]
    inside = [run for run in use.inside if run.state in HOLDING]
    runs = Counter(map(named, inside[:MAX_NAMED]))
    names = [name if times == 1 else f"{name} ({times} runs)" for name, times in runs.items()]
    if len(inside) > MAX_NAMED:
        names.append(f"{len(inside) - MAX_NAMED} more")
    if lane.elsewhere:
        names.append(f"{count(lane.elsewhere, 'run')} of other nodes")
    state = f"is full ({lane.used} of {lane.concurrency})"
    if lane.shared and lane.used < lane.concurrency:
        # There are free slots, but a run needs its own grant, and the database is unavailable or
        # slow.
        state = f"gets no slot from the database ({lane.used} of {lane.concurrency} taken)"
    occupants = f"; in it: {', '.join(names)}" if names else ""
    return OperatorWarning(
        "gateway.lane_full",
        f"Lane {lane.name}",
        f"{state} and {count(lane.waiting, 'run waits', 'runs wait')}, the first for "
        f"{rough(first.for_s)}: {named(first)}{occupants}",
        "/#lanes",
        "goclaw lanes",
    )
