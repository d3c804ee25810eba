"""Kill a gateway again and again while people write to it, and see whether they notice.

    python -m tests.chaos --rounds 300 --seed 1

The rounds are shared out over both libraries and both ways of receiving. The exit code is 1 if the
invariants were violated; each such round is reported with its seed, which replays it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from channels.telegram.settings import Library
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address
from tests.chaos.checker import Verdict
from tests.chaos.report import Tally, breaches, replayed_by
from tests.chaos.rounds import Combination, Mode, Stage, stage
from tests.chaos.script import Script, Size, Trigger, script, triggers
from tests.support.postgres import run_sql


def main() -> int:
    """Play and report."""
    chosen = _arguments()
    # Everything that was started is ended then, too, and what was seen so far is told.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    combinations = [
        Combination(library, mode) for library, mode in product(chosen.library, chosen.mode)
    ]
    with (
        # A short path: a socket is in it.
        tempfile.TemporaryDirectory(prefix="goclaw-chaos-", dir="/tmp") as folder,
        _server(Path(folder) / "postgres") as server,
    ):
        tallies = [
            _play(chosen.seed, _scripts(chosen, number, one), Path(folder), server, one)
            for number, one in enumerate(combinations)
        ]
    return 1 if any(tally.verdict.violations for tally in tallies) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=300, help="over all combinations together")
    parser.add_argument("--seed", default="1", help="any word; the same one gives the same scripts")
    parser.add_argument("--library", type=Library, nargs="+", default=list(Library))
    parser.add_argument("--mode", type=Mode, nargs="+", default=list(Mode))
    parser.add_argument("--moment", type=Trigger, help="kill at this moment in every round")
    parser.add_argument("--only", type=int, help="play the round with this number alone")
    return parser.parse_args()


def _scripts(chosen: argparse.Namespace, number: int, combination: Combination) -> Sequence[Script]:
    """The scripts of a combination, which is the one with this number."""
    combinations = len(chosen.library) * len(chosen.mode)
    count = len(range(number, chosen.rounds, combinations))
    numbers = range(count) if chosen.only is None else [chosen.only]
    # Its own, so that playing it alone is the same as playing it among others.
    seed = f"{chosen.seed}/{combination}"
    moments = triggers(seed, max(numbers, default=0) + 1)
    if chosen.moment is not None:
        moments = [chosen.moment] * len(moments)
    return [script(seed, one, moments[one], Size()) for one in numbers]


@contextmanager
def _server(folder: Path) -> Iterator[Address]:
    server = EmbeddedPostgres(folder)
    started = server.start()
    try:
        yield Address(host=str(started.host), user=started.user, database=started.database)
    finally:
        server.stop()


def _play(
    seed: str, scripts: Sequence[Script], folder: Path, server: Address, combination: Combination
) -> Tally:
    """Play the rounds of one combination; breaches are told at once."""
    database = f"chaos_{combination.library.name}_{combination.mode.name}".lower()
    asyncio.run(run_sql(server, f"create database {database}"))
    dsn = f"postgresql://{server.user}@/{database}?host={server.host}"
    tally = Tally(combination)
    print(f"{combination}: {len(scripts)} rounds", flush=True)
    with stage(folder / database, dsn, combination) as opened:
        try:
            for one in scripts:
                _play_one(opened, seed, one, tally)
            _look_again(opened, tally)
        finally:
            print("\n".join(["", *tally.lines(), ""]), flush=True)
    return tally


def _play_one(opened: Stage, seed: str, one: Script, tally: Tally) -> None:
    began = time.monotonic()
    library, mode = tally.combination.library.value, tally.combination.mode.value
    replay = (
        f"python -m tests.chaos --seed {seed} --library {library} --mode {mode} "
        f"--moment '{one.trigger}' --only {one.number}"
    )
    with replayed_by(replay):
        played = opened.play(one)
    tally.add(played)
    if played.verdict.violations:
        print("\n".join(breaches(tally.combination, played, replay)), flush=True)
    _progress(f"round {one.number}: {one.trigger}, {time.monotonic() - began:.1f} s")


def _look_again(opened: Stage, tally: Tally) -> None:
    """Nothing that was settled may have changed since."""
    for played in tally.rounds:
        verdict = opened.again(played)
        if verdict != played.verdict:
            print(f"round {played.script.number} has changed since: {verdict}", flush=True)
            # It is counted already.
            tally.verdict += Verdict(violations=verdict.violations)


def _progress(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
