"""What the agent loop itself costs: CPU for each turn, with a model server that takes no time.

The server is another process. The same turns are made by the least that a program over pydantic-ai
needs, in the same round: the ratio is what counts, the machine is shared. ``journal`` measures what
storing the steps of a run adds to each of them, with a PostgreSQL of its own.

    python -m bench.agent [turns] [journal] [--rounds 5] [--quick]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bench.agent import journal
from bench.agent.contenders import CONTENDERS
from bench.agent.measure import Case, measure, model_server
from bench.embedded import server
from bench.options import asked
from bench.scheduler.child import in_child
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress, ratios

RATIO = Wanted(Sign.AT_MOST, 1.3)
WALL = Wanted(Sign.AT_MOST, 2.0)
CPU = Wanted(Sign.AT_MOST, 0.4)
"""What storing may add to a step, in ms."""
OURS, PEER = CONTENDERS


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int = 5
    turns: int = 300
    warm_up: int = 30
    histories: Sequence[int] = (1, 20)
    runs: int = 4


QUICK = Sizes(rounds=1, turns=20, warm_up=5, runs=1)
PARTS = ("turns", "journal")

MODELS = {"answer": "an answer", "tool": "a call of a tool, then an answer"}


def report(sizes: Sizes) -> Report:
    """Measure both, in turns."""
    found: defaultdict[Case, list[float]] = defaultdict(list)
    cases = [
        Case(name, model, history)
        for model in MODELS
        for history in sizes.histories
        for name in CONTENDERS
    ]
    with model_server() as url:
        for done in range(sizes.rounds):
            progress("agent", done, sizes.rounds)
            for case in cases:
                cpu_ms = in_child(measure, case, url, sizes.turns, sizes.warm_up)
                found[case].append(cpu_ms)
    made = Report(
        "agent",
        f"{sizes.turns} turns one after the other, 20 words streamed in each; CPU of the process",
        sizes.rounds,
    )
    for model, what in MODELS.items():
        for history in sizes.histories:
            mine, peer = (found[Case(name, model, history)] for name in CONTENDERS)
            label = f"{what}, {history} turns before"
            made.lines.extend(
                [
                    Line(f"{label}, {OURS}", (Figure("CPU", mine, "ms"),)),
                    Line(f"{label}, {PEER}", (Figure("CPU", peer, "ms"),)),
                    Line(f"{label}, {OURS} / {PEER}", (Figure("", ratios(mine, peer), "", RATIO),)),
                ]
            )
    return made


def journal_report(sizes: Sizes) -> Report:
    """Measure runs with and without stored steps, in turns, in one process."""
    rounds = 3 * sizes.rounds
    with model_server() as url, server() as address:
        progress("agent, journal", 0, 1)
        costs = in_child(journal.measure, address, url, rounds, sizes.runs)
    made = Report(
        "agent, journal",
        f"{sizes.runs} runs of {journal.STEPS} steps one after the other, with and without storing",
        rounds,
    )
    wall = Figure("wall", [cost.wall_ms for cost in costs], "ms", WALL)
    cpu = Figure("CPU", [cost.cpu_ms for cost in costs], "ms", CPU)
    made.lines.append(Line("storing a step adds", (wall, cpu)))
    return made


def main() -> None:
    """Run what was asked for."""
    sizes, parts = asked("bench.agent", __doc__, Sizes(), QUICK, PARTS)
    if "turns" in parts:
        report(sizes).show()
    if "journal" in parts:
        journal_report(sizes).show()


if __name__ == "__main__":
    main()
