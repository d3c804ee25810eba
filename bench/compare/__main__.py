"""This checkout beside another commit: both in turns, medians, ratios and counters.

The other commit is installed once, in the cache folder of the user. In each round every benchmark
runs with one side and at once with the other; the side that begins alternates. So ratios can be
trusted where the figures themselves swing. Both gateways answer the same emulator and crowd, those
of this checkout; inbox and jobs are measured by each side's own benchmark.

    make compare WITH=<commit> [ROUNDS=5] [ONLY=telegram,inbox,jobs,start,ledger] [QUICK=1]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from bench.compare.measurements import (
    LEDGER,
    PARTS,
    Counters,
    Measurement,
    MeasurementFailed,
    Readings,
    counters_of,
    measure,
    measurements,
)
from bench.compare.trees import CannotCompare, Side, other_side, this_side

_INTERRUPTED = 130

Sides = tuple[Side, Side]
"""This checkout, and what it is compared with."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of both sides: medians, and the ratio of this one to the other, within rounds."""

    measured: str
    name: str
    unit: str
    this: float | None
    other: float | None
    ratio: float | None
    lowest: float | None
    highest: float | None
    rounds: int


@dataclass(slots=True)
class Comparison:
    """What was found so far."""

    sides: Sides
    readings: dict[tuple[Measurement, int, int], Readings] = field(default_factory=dict)
    """By measurement, round, and number of the side."""
    counters: list[Counters] = field(default_factory=lambda: [{}, {}])
    failures: list[str] = field(default_factory=list)

    def measure(
        self,
        todo: Sequence[Measurement],
        rounds: int,
        once: Callable[[Measurement, Side], Readings] = measure,
    ) -> None:
        """Measure both sides in turns: A B, B A, A B, ...; what fails is noted."""
        for done in range(rounds):
            for each in todo:
                for number in (0, 1) if done % 2 == 0 else (1, 0):
                    side = self.sides[number]
                    what = f"{each.name}: {side.name}, round {done + 1} of {rounds}"
                    print(what, file=sys.stderr, flush=True)
                    try:
                        self.readings[each, done, number] = once(each, side)
                    except MeasurementFailed as error:
                        self.failures.append(f"{what}: {error}")

    def count(self, once: Callable[[Side], Counters] = counters_of) -> None:
        """Count what both cost, once: counters do not swing."""
        for number, side in enumerate(self.sides):
            print(f"{LEDGER}: {side.name}", file=sys.stderr, flush=True)
            try:
                self.counters[number] = once(side)
            except MeasurementFailed as error:
                self.failures.append(f"{LEDGER}: {side.name}: {error}")

    def rows(self) -> Iterator[Row]:
        """All figures, in the order in which they were measured first."""
        found: dict[tuple[Measurement, str, str, str], tuple[dict[int, float], dict[int, float]]]
        found = {}
        for (each, done, number), readings in self.readings.items():
            for (label, name), reading in readings.items():
                key = (each, label, name, reading.unit)
                found.setdefault(key, ({}, {}))[number][done] = reading.value
        for (each, label, name, unit), (this, other) in found.items():
            both = [done for done in this if other.get(done)]
            ratios = [this[done] / other[done] for done in both]
            yield Row(
                each.name if label in each.name else f"{each.name}: {label}",
                name,
                unit,
                statistics.median(this.values()) if this else None,
                statistics.median(other.values()) if other else None,
                statistics.median(ratios) if ratios else None,
                min(ratios, default=None),
                max(ratios, default=None),
                len(ratios),
            )

    def show(self) -> None:
        """Print it for people, and as one line for programs."""
        this, other = (side.name for side in self.sides)
        rows = list(self.rows())
        print(f"\n{'':38}{this:>12}{other:>12}   ratio (lowest to highest)")
        measured = ""
        for row in rows:
            if row.measured != measured:
                measured = row.measured
                print(measured)
            spread = f"({_text(row.lowest)} to {_text(row.highest)})" if row.rounds > 1 else ""
            name = f"  {row.name} {row.unit}".rstrip()
            figures = f"{_text(row.this):>12}{_text(row.other):>12}{_text(row.ratio):>8}"
            print(f"{name:38}{figures} {spread}".rstrip())
        self._show_counters()
        for failure in self.failures:
            print(f"failed: {failure}")
        print("load average: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))
        plain = {
            "bench": "compare",
            "this": this,
            "other": other,
            "rows": [asdict(row) for row in rows],
            "counters": dict(zip(("this", "other"), self.counters, strict=True)),
            "failures": self.failures,
        }
        print(json.dumps(plain, ensure_ascii=False), flush=True)

    def _show_counters(self) -> None:
        ours, theirs = self.counters
        for scenario in dict.fromkeys([*ours, *theirs]):
            print(f"{LEDGER}, {scenario}")
            mine, other = ours.get(scenario, {}), theirs.get(scenario, {})
            for name in dict.fromkeys([*mine, *other]):
                one, two = mine.get(name), other.get(name)
                ratio = one / two if one is not None and two else None
                print(f"{f'  {name}':38}{_text(one):>12}{_text(two):>12}{_text(ratio):>8}")


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> int:
    """Compare what was asked for; what was found is printed also after an interruption."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commit", help="a commit, branch or tag of this repository")
    parser.add_argument("--rounds", type=int, help="how often each is measured (5, quick 1)")
    every = (*PARTS, LEDGER)
    parser.add_argument("--only", default=",".join(every), help="some of these (all by default)")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works")
    given = parser.parse_args()
    only = given.only.replace(",", " ").split()
    if unknown := sorted(set(only) - set(every)):
        parser.error(f"--only: {unknown[0]} is none of {', '.join(every)}")
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds is at least 1")
    if not given.commit:
        parser.error("name a commit, for example: make compare WITH=HEAD~1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sides = (this_side(), other_side(given.commit))
    except CannotCompare as error:
        parser.exit(2, f"error: {error}\n")
    except KeyboardInterrupt:
        return _INTERRUPTED
    found, code = Comparison(sides), 0
    todo = list(measurements([part for part in PARTS if part in only], quick=given.quick))
    try:
        if LEDGER in only:
            found.count()
        found.measure(todo, given.rounds or (1 if given.quick else 5))
    except KeyboardInterrupt:
        code = _INTERRUPTED
    found.show()
    return code


if __name__ == "__main__":
    sys.exit(main())
