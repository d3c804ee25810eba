"""Jobs: how late they start, alone and a thousand at once, and what a large table costs.

All on an embedded server with fsync; a peer runs in the same round where there is one.

    python -m bench.jobs [together|alone|many] [--rounds 3] [--quick] [--busy 6]
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from bench.embedded import server
from bench.jobs import measure
from bench.options import asked
from bench.scheduler.child import in_child
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress, ratios


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int = 3
    due: int = 1_000
    stored: int = 10_000
    many: int = 100_000
    alone: int = 60
    idle_s: float = 20.0
    busy: int = 0


QUICK = Sizes(rounds=1, due=100, stored=1_000, many=5_000, alone=5, idle_s=3.0)


def together(sizes: Sizes) -> Report:
    """Many jobs due in the same second."""
    ours, theirs = [], []
    peer = find_spec("apscheduler") is not None
    with server() as address:
        for done in range(sizes.rounds):
            progress("together", done, sizes.rounds)
            ours.append(in_child(measure.together, address, sizes.due, sizes.stored, sizes.busy))
            if peer:
                theirs.append(in_child(measure.apscheduler, sizes.due, sizes.busy))
    beside = f"; {sizes.busy} busy loops use the same cores" if sizes.busy else ""
    report = Report(
        "jobs together",
        f"{sizes.due:,} due in the same second of {sizes.stored:,} stored, each a run of its own "
        f"with history and log, an agent that takes no time; from the second to the agent{beside}",
        sizes.rounds,
    )
    last = [one.last_ms for one in ours]
    report.lines.append(
        Line(
            "goclaw_py, PostgreSQL",
            (
                Figure("p50", [one.p50_ms for one in ours], "ms", Wanted(Sign.AT_MOST, 100)),
                Figure("last", last, "ms", Wanted(Sign.AT_MOST, 300)),
            ),
        )
    )
    if theirs:
        their_last = [one.last_ms for one in theirs]
        middle = [one.p50_ms for one in theirs]
        report.lines.append(
            Line(
                "APScheduler 3, in memory, callbacks only",
                (Figure("p50", middle, "ms"), Figure("last", their_last, "ms")),
            )
        )
        report.lines.append(Line("last, ours / theirs", (Figure("", ratios(last, their_last)),)))
    return report


def alone(sizes: Sizes) -> Report:
    """One job, an idle machine."""
    found = []
    with server() as address:
        for done in range(sizes.rounds):
            progress("alone", done, sizes.rounds)
            found.append(in_child(measure.alone, address, sizes.alone))
    report = Report("jobs alone", f"one job every second, {sizes.alone} times", sizes.rounds)
    p99 = Figure("p99", [one.p99_ms for one in found], "ms", Wanted(Sign.BELOW, 30))
    report.lines.append(
        Line("from the second to the agent", (Figure("p50", [o.p50_ms for o in found], "ms"), p99))
    )
    return report


def many(sizes: Sizes) -> Report:
    """A large table of which nothing is due."""
    found = []
    with server() as address:
        for done in range(sizes.rounds):
            progress("many", done, sizes.rounds)
            found.append(in_child(measure.many, address, sizes.many, sizes.idle_s))
    report = Report("jobs many", f"{sizes.many:,} stored jobs, none due", sizes.rounds)
    below_5 = Wanted(Sign.BELOW, 5)
    report.lines.extend(
        [
            Line(
                "look for what is due",
                (Figure("p99", [o.look_p99_ms for o in found], "ms", below_5),),
            ),
            Line(
                "add a job",
                (
                    Figure("p50", [o.add_p50_ms for o in found], "ms", below_5),
                    Figure("p99", [o.add_p99_ms for o in found], "ms"),
                ),
            ),
            Line(
                "idle",
                (
                    Figure(
                        "CPU",
                        [100 * o.idle_cpu for o in found],
                        "%",
                        Wanted(Sign.BELOW, 0.5),
                    ),
                ),
            ),
        ]
    )
    return report


BUSY_HELP = "so many processes use the same cores during `together` (0)"

PARTS = {"together": together, "alone": alone, "many": many}


def main() -> None:
    """Run what was asked for."""
    sizes, parts = asked("bench.jobs", __doc__, Sizes(), QUICK, PARTS, {"busy": BUSY_HELP})
    for part in parts:
        PARTS[part](sizes).show()


if __name__ == "__main__":
    main()
