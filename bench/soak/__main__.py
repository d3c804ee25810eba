"""Whether a gateway that runs for long keeps its size, in memory, files and tables.

    python -m bench.soak virtual [--hours 24] [--rate 1] [--quick] [--out FOLDER]
    python -m bench.soak real [--minutes 30] [--rate 20] [--nodes 1] [--quick] [--out FOLDER]

``virtual`` is a day of a whole gateway over the store in memory: all containers that can be reached
from it are counted. ``real`` is half an hour of one gateway process or two on PostgreSQL, behind
the Bot API emulator: memory, files, connections, tables. Both have jobs and heartbeats, forget
after minutes what is forgotten at all, and look whether each message is answered once. The exit
code is 1 if anything grows that must not, or anything is missing. A page with plots and all samples
go into the folder (``bench/soak/out`` unless told otherwise).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.soak import real, virtual
from bench.soak.report import Soaked, judged, show, write

OUT: Final = Path(__file__).parent / "out"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    profiles = parser.add_subparsers(dest="profile", required=True)
    played = profiles.add_parser("virtual", help="a day in virtual time")
    played.add_argument("--hours", type=_more_than_nothing, help="virtual hours (24, quick 1)")
    played.add_argument("--seed", type=int, help=f"what is said when ({virtual.Plans().seed})")
    lived = profiles.add_parser("real", help="half an hour in real time")
    lived.add_argument("--minutes", type=_more_than_nothing, help="real minutes (30, quick 1)")
    lived.add_argument("--nodes", type=int, choices=(1, 2), help="how many gateways (1)")
    for one in (played, lived):
        one.add_argument("--rate", type=_more_than_nothing, dest="per_s", help="messages a second")
        one.add_argument(
            "--quick", action="store_true", help="too short to say more than that it works"
        )
        one.add_argument("--out", type=Path, help="the folder for the report")
    return parser


def _more_than_nothing(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError("is more than 0")
    return value


def soaked(given: argparse.Namespace) -> Soaked:
    """Run the profile that was asked for."""
    if given.profile == "virtual":
        played = virtual.QUICK if given.quick else virtual.Plans()
        return virtual.soak(replace(played, **_given(given, "hours", "per_s", "seed")))
    lived = real.QUICK if given.quick else real.Plans()
    return real.soak(replace(lived, **_given(given, "minutes", "per_s", "nodes")))


def _given(given: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(given, name)) is not None}


def main() -> int:
    """Soak, report, and fail if something grows."""
    given = _parser().parse_args()
    report = judged(soaked(given))
    show(report)
    print(f"  {write(report, given.out or OUT / given.profile)}")
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
