"""Benchmarks of the scheduler; run without arguments for all of them.

Each prints its figures, medians over the rounds with what was wanted, and one line of JSON.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from bench.scheduler import debounce, dispatch, idle, stop
from bench.scheduler.sizes import FULL, QUICK

BENCHES = {
    "dispatch": dispatch.report,
    "stop": stop.report,
    "debounce": debounce.report,
    "idle": idle.report,
}


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.scheduler", description=__doc__)
    parser.add_argument("bench", nargs="*", help=f"some of {', '.join(BENCHES)}; all by default")
    parser.add_argument("--rounds", type=int, help="how often each is measured (5, quick 2)")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works")
    arguments = parser.parse_args()
    unknown = set(arguments.bench) - BENCHES.keys()
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    sizes = QUICK if arguments.quick else FULL
    if arguments.rounds is not None:
        if arguments.rounds < 1:
            parser.error("--rounds is at least 1")
        sizes = replace(sizes, rounds=arguments.rounds)
    for name in arguments.bench or BENCHES:
        BENCHES[name](sizes).show()


if __name__ == "__main__":
    main()
