"""Let everything befall three gateways, again and again, and see whether anybody notices.

    python -m tests.chaos.cluster --rounds 50 --seed 1

The exit code is 1 if an invariant was violated; each such round is reported with
its seed, which replays it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.cluster.nodes import MOUNTS_APART, may_mount, may_mount_apart
from tests.chaos.cluster.report import breaches, lines, summary
from tests.chaos.cluster.rounds import Round, stage
from tests.chaos.cluster.script import Kind, Size, script
from tests.chaos.cluster.server import server
from tests.chaos.report import replayed_by

_IS_APART = "CHAOS_MOUNTS_APART"


def main() -> int:
    """Play and report."""
    chosen = _arguments()
    _mount_apart()
    # Everything that was started is ended then, too, and what was seen so far is told.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    size = Size(people=chosen.people, faults=chosen.faults, kinds=chosen.kinds)
    numbers = range(chosen.rounds) if chosen.only is None else [chosen.only]
    rounds: list[Round] = []
    # A short path: sockets are in it.
    with tempfile.TemporaryDirectory(prefix="goclaw-cc-", dir="/tmp") as name:
        folder = Path(name)
        try:
            with server(folder / "postgres") as running, stage(folder, running) as opened:
                for number in numbers:
                    with replayed_by(_replay(chosen, number)):
                        rounds.append(opened.play(script(chosen.seed, number, size)))
                    _tell(rounds[-1], chosen)
        finally:
            print("\n".join(["", *lines(rounds)]), flush=True)
    return 1 if any(played.breaches for played in rounds) else 0


def _mount_apart() -> None:
    """Go on with mounts of our own: those of nodes are gone then, also if we are killed."""
    if may_mount() and may_mount_apart() and _IS_APART not in os.environ:
        program = [*MOUNTS_APART, sys.executable, "-m", "tests.chaos.cluster", *sys.argv[1:]]
        os.execvpe(program[0], program, {**os.environ, _IS_APART: "1"})


def _tell(played: Round, chosen: argparse.Namespace) -> None:
    print("\n".join(summary(played)), flush=True)
    if played.breaches:
        replay = _replay(chosen, played.script.number)
        log = Path(tempfile.mkstemp(prefix="goclaw-cluster-", suffix=".log")[1])
        log.write_text(played.said)
        print("\n".join([*breaches(played, replay), f"  the gateways' logs: {log}"]), flush=True)


def _replay(chosen: argparse.Namespace, number: int) -> str:
    kinds = " ".join(f"'{kind}'" for kind in chosen.kinds)
    some = "" if chosen.kinds == list(Kind) else f" --kinds {kinds}"
    return (
        f"python -m tests.chaos.cluster --seed {chosen.seed} --only {number} "
        f"--people {chosen.people} --faults {chosen.faults}{some}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", default="1", help="any word; the same one gives the same scripts")
    parser.add_argument("--only", type=int, help="play the round with this number alone")
    parser.add_argument("--people", type=int, default=Size().people, help="in a chat each")
    parser.add_argument("--faults", type=int, default=Size().faults, help="at most, in a round")
    possible = [kind for kind in Kind if kind is not Kind.FULL or may_mount()]
    parser.add_argument("--kinds", type=Kind, nargs="+", default=possible, help="what may happen")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
