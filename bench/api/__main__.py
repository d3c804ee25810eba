"""Lists of the HTTP API: the first page and one deep in the list, with 100,000 rows of each kind.

Over HTTP on loopback, as a gateway serves it, on an embedded server with fsync.

    python -m bench.api [--rounds 3] [--quick]
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.api import measure
from bench.embedded import server
from bench.options import asked
from bench.scheduler.child import in_child
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int = 3
    rows: int = 100_000
    times: int = 150


QUICK = Sizes(rounds=1, rows=2_000, times=20)


def lists(sizes: Sizes) -> Report:
    """All lists."""
    found: list[dict[str, measure.Cost]] = []
    with server() as address:
        for done in range(sizes.rounds):
            progress("lists", done, sizes.rounds)
            found.append(in_child(measure.measure, address, sizes.rows, sizes.times))
    report = Report(
        "API lists",
        f"{measure.PAGE} of {sizes.rows:,} rows a page over HTTP, asked {sizes.times} times each; "
        "deep: behind nine tenths of the list",
        sizes.rounds,
    )
    below_20 = Wanted(Sign.BELOW, 20)
    for name in found[0]:
        costs = [one[name] for one in found]
        bound = None if name == "runs/timeline" else below_20
        figures = (
            Figure("p50", [cost.first_p50_ms for cost in costs], "ms"),
            Figure("p99", [cost.first_p99_ms for cost in costs], "ms", bound),
            Figure("deep p50", [cost.deep_p50_ms for cost in costs], "ms"),
            Figure("deep p99", [cost.deep_p99_ms for cost in costs], "ms", bound),
            Figure("rows", [cost.rows for cost in costs]),
        )
        report.lines.append(Line(name, figures))
    return report


def main() -> None:
    """Measure."""
    sizes, _ = asked("bench.api", __doc__, Sizes(), QUICK)
    lists(sizes).show()


if __name__ == "__main__":
    main()
