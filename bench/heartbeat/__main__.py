"""Heartbeats: what a heartbeat run costs that is skipped, and how late runs are with many agents.

All on an embedded server with fsync. Nobody else has heartbeats to compare with, so the ratio is to
the least that one row can cost: a loop that does nothing but insert it.

    python -m bench.heartbeat [skips|process|leaks] [--rounds 3] [--quick]

``skips`` is what a run costs by itself, ``process`` a whole gateway process with its agents at the
offsets that they have, in real time, ``leaks`` the search for HEARTBEAT_OK in what is delivered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.embedded import server
from bench.heartbeat import leaks, measure, process
from bench.heartbeat.measure import Cost, HeartbeatTimes
from bench.heartbeat.process import Load, Stretch
from bench.options import asked
from bench.scheduler.child import in_child
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress, ratios
from goclaw_py.schedule.heartbeat.models import Skip

CPU_MS = Wanted(Sign.BELOW, 2)
ROWS = Wanted(Sign.AT_MOST, 1)
LATE_MS = Wanted(Sign.AT_MOST, 1_000)
LATE_S = Wanted(Sign.AT_MOST, 1)
CPU = Wanted(Sign.BELOW, 1)

NONE = Wanted(Sign.AT_MOST, 0)

_SEED = 7

BARE = "bare"
ASKED = "asked"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Args:
        agents: All of them have heartbeat runs that are due at once.
        singly: So many have heartbeat runs that come one after the other, ``apart_ms`` apart.
    """

    rounds: int = 3
    agents: int = 1_000
    singly: int = 250
    apart_ms: float = 20.0
    stretch: Stretch = field(default_factory=Stretch)
    replies: int = 100_000


QUICK = Sizes(rounds=1, agents=100, singly=50, stretch=Stretch(20.0, 5.0, 5.0), replies=2_000)

SINGLY = (Skip.EMPTY.value, Skip.QUIET_HOURS.value)
"""One that looks at file and database, and one that does not."""


# ------------------------------------------------------------------------------------ by itself


def skips(sizes: Sizes) -> Report:
    """What a heartbeat run costs, whatever its cause, all at once and singly."""
    at_once = HeartbeatTimes(sizes.agents, sizes.agents)
    singly = HeartbeatTimes(sizes.agents, sizes.singly, sizes.apart_ms)
    kinds = {"at once": (at_once, measure.CAUSES), "singly": (singly, SINGLY)}
    found: defaultdict[tuple[str, str], list[Cost]] = defaultdict(list)
    with server() as address:
        for done in range(sizes.rounds):
            progress("heartbeat skips", done, sizes.rounds)
            for how, (heartbeat_runs, causes) in kinds.items():
                found[how, BARE].append(in_child(measure.bare, address, heartbeat_runs))
                for cause in causes:
                    found[how, cause].append(
                        in_child(measure.skips, address, cause, heartbeat_runs)
                    )
                found[how, ASKED].append(in_child(measure.asked, address, heartbeat_runs))
    report = Report(
        "heartbeat skips",
        f"beats of {sizes.agents:,} agents, due at once, or {sizes.singly} of them singly, every "
        f"{sizes.apart_ms:g} ms; CPU of the process and rows of the log for each; from the claim "
        "until its end is stored; how long after it was due the last was claimed",
        sizes.rounds,
    )
    for (how, what), costs in found.items():
        report.lines.extend(_lines(what, how, costs, found[how, BARE]))
    return report


def _lines(what: str, how: str, costs: Sequence[Cost], bare: Sequence[Cost]) -> Iterator[Line]:
    mine = [one.cpu_ms for one in costs]
    took = (
        Figure("p50", [one.p50_ms for one in costs], "ms"),
        Figure("p99", [one.p99_ms for one in costs], "ms"),
    )
    if what == BARE:
        yield Line(f"{how}, a bare loop that inserts a row", (Figure("CPU", mine, "ms"), *took))
        return
    rows = Figure("rows", [one.rows for one in costs], "", ROWS)
    late = Figure("latest", [one.late_ms for one in costs], "ms", LATE_MS)
    if what == ASKED:
        begun = Figure("to its agent", [one.asked_ms for one in costs], "ms")
        cpu = Figure("CPU", mine, "ms")
        yield Line(f"{how}, asks its agent, which is calm", (cpu, rows, *took, late, begun))
    else:
        yield Line(f"{how}, {what}", (Figure("CPU", mine, "ms", CPU_MS), rows, *took, late))
    ratio = Figure("CPU", ratios(mine, [one.cpu_ms for one in bare]))
    yield Line(f"{how}, {what} / bare", (ratio,))


# ------------------------------------------------------------------------------------ a process


def processes(sizes: Sizes) -> Report:
    """A gateway with many agents, as it is used."""
    found: defaultdict[bool, list[Load]] = defaultdict(list)
    with server() as address:
        for done in range(sizes.rounds):
            progress("heartbeat process", done, sizes.rounds)
            for asks in (False, True):
                load = process.measure(address, sizes.agents, sizes.stretch, asks=asks)
                found[asks].append(load)
    stretch = sizes.stretch
    report = Report(
        "heartbeat process",
        f"a gateway process with {sizes.agents:,} agents that beat every 30 minutes, at offsets "
        f"over 5 minutes: {stretch.busy_s:g} s of these, and {stretch.idle_s:g} s in which nothing "
        "is due; the half-hour is 5 minutes of the one and 25 of the other",
        sizes.rounds,
    )
    for asks, loads in found.items():
        report.lines.append(_process_line(loads, asks=asks))
    return report


def _process_line(loads: Sequence[Load], *, asks: bool) -> Line:
    figures = [
        Figure("CPU over the half-hour", [100 * one.mean for one in loads], "%", CPU),
        Figure("in the 5 minutes", [100 * one.busy for one in loads], "%"),
        Figure("idle", [100 * one.idle for one in loads], "%"),
        Figure(
            "each heartbeat run",
            [one.heartbeat_ms for one in loads],
            "ms",
            None if asks else CPU_MS,
        ),
        Figure("latest", [one.late_s for one in loads], "s", LATE_S),
    ]
    if asks:
        figures.append(Figure("to its run", [one.began_s for one in loads], "s", LATE_S))
    return Line("all ask their agents" if asks else "all skipped", tuple(figures))


# ------------------------------------------------------------------------------------ the token


def token(sizes: Sizes) -> Report:
    """Whether HEARTBEAT_OK gets out; see ``bench.heartbeat.leaks``."""
    progress("heartbeat leaks", 0, 1)
    found = leaks.count(sizes.replies, _SEED)
    report = Report("heartbeat leaks", f"{sizes.replies:,} made-up replies, judged", 1)
    figures = (
        Figure("all is well", [found.ok]),
        Figure("delivered without the token", [found.cleaned]),
        Figure("leaks", [len(found.leaked)], "", NONE),
    )
    report.lines.append(Line("replies", figures))
    return report


PARTS = {"skips": skips, "process": processes, "leaks": token}


def main() -> None:
    """Run what was asked for."""
    sizes, parts = asked("bench.heartbeat", __doc__, Sizes(), QUICK, PARTS)
    for part in parts:
        PARTS[part](sizes).show()


if __name__ == "__main__":
    main()
