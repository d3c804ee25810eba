"""Play many scenarios and see whether the invariants hold in each.

    python -m tests.simulation --seeds 10000 --seed 1

The exit code is 1 if they do not; each such scenario is reported with its seed, so that it can
be played again: ``--seeds 1 --seed N --story``.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.faults import FAULTS
from tests.simulation.pool import Verdict, verdicts

_TELL_EVERY = 500


def main() -> int:
    """Play and report."""
    chosen = _arguments()
    began, bad = time.monotonic(), 0
    seeds = range(chosen.seed, chosen.seed + chosen.seeds)
    found = verdicts(seeds, fault=chosen.fault, told=chosen.story, workers=chosen.workers)
    for number, one in enumerate(found, 1):
        print(*one.story, sep="\n", end="\n" if one.story else "")
        if one.wrongs:
            bad += 1
            _tell(one, chosen.fault)
        if number % _TELL_EVERY == 0:
            print(f"  {number} scenarios, {bad} bad", file=sys.stderr, flush=True)
    took_s = time.monotonic() - began
    print(f"{chosen.seeds} scenarios in {took_s:.0f} s, invariants were violated in {bad}")
    return 1 if bad else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=10_000, help="how many scenarios")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--workers", type=int, help="processes; one for each processor")
    parser.add_argument("--story", action="store_true", help="tell all that happened")
    parser.add_argument("--fault", choices=sorted(FAULTS), default="", help="plant this one")
    return parser.parse_args()


def _tell(one: Verdict, fault: str) -> None:
    planted = f" --fault '{fault}'" if fault else ""
    replay = f"python -m tests.simulation --seeds 1 --seed {one.seed}{planted} --story"
    print("\n".join([f"seed {one.seed}:", *(f"  {wrong}" for wrong in one.wrongs), f"  {replay}"]))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
