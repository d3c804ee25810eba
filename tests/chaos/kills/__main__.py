"""Kill gateways during runs of a language model, and see whether anything is done or paid twice.

    python -m tests.chaos.kills --kills 500 --nodes 2 --seed 1

The exit code is 1 if an invariant was violated.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.cluster.server import server
from tests.chaos.kills.report import Played
from tests.chaos.kills.stage import Size, play
from tests.chaos.report import replayed_by
from tests.support.postgres import run_sql


def main() -> int:
    """Play and report."""
    chosen = _arguments()
    # Everything that was started is ended then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    plays = [_play(chosen, nodes) for nodes in chosen.nodes]
    return 1 if any(played.breaches for played in plays) else 0


def _play(chosen: argparse.Namespace, nodes: int) -> Played:
    size = Size(chosen.kills, nodes, chosen.chats, warm=not chosen.cold)
    command = (
        f"python -m tests.chaos.kills --kills {size.kills} --nodes {nodes} "
        f"--chats {size.chats} --seed {chosen.seed}"
    )
    # A short path: a socket is in it.
    with (
        replayed_by(command),
        tempfile.TemporaryDirectory(prefix="goclaw-kills-", dir="/tmp") as name,
        server(Path(name) / "postgres") as running,
    ):
        address = running.address
        asyncio.run(run_sql(address, "create database kills"))
        dsn = f"postgresql://{address.user}@/kills?host={address.host}"
        played = play(chosen.seed, size, dsn, Path(name))
    print("\n".join([command, *played.lines()]), flush=True)
    return played


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.kills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=500, help="for each number of nodes")
    parser.add_argument("--nodes", type=int, choices=(1, 2), nargs="+", default=[1, 2])
    parser.add_argument("--chats", type=int, default=4, help="in which people write at a time")
    parser.add_argument("--cold", action="store_true", help="let each gateway do its own imports")
    parser.add_argument("--seed", default="1", help="any word; the same one gives the same tasks")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
