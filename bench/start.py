"""A gateway with Telegram and a language model: how soon it answers, and its idle memory.

Its folder and its database exist already, and a message is waiting. The times are from `exec` to
"ready", and to the answer in Telegram; the model is a server on this machine. Memory is what is
proportional (PSS), of the gateway and of its embedded database, 40 seconds after the answer.

    python -m bench.start [--rounds 5] [--quick] [--library aiogram]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress
from bench.telegram.crowd import FIRST
from bench.telegram.gateways import HERE, Tree, tree_of
from bench.telegram.processes import (
    own_cpu_s,
    proportional_mb,
    proportional_mb_with_children,
    server_of,
)
from bench.telegram.requests import model_server
from channels.telegram.settings import Library
from tests.support.process import emulator, home, telegram, wait_for


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is wanted of a library, where it is."""

    ready_s: Wanted | None = None
    answer_s: Wanted | None = None
    gateway_mb: Wanted | None = None
    database_mb: Wanted | None = None


WANTED = {
    Library.PTB: Bounds(
        Wanted(Sign.AT_MOST, 1.5),
        Wanted(Sign.AT_MOST, 2.5),
        Wanted(Sign.AT_MOST, 110),
        Wanted(Sign.AT_MOST, 40),
    ),
    Library.AIOGRAM: Bounds(answer_s=Wanted(Sign.AT_MOST, 4), gateway_mb=Wanted(Sign.AT_MOST, 160)),
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured, and of which checkout."""

    rounds: int = 5
    # Unused connections to the database are closed after 30 s.
    idle_s: float = 40.0
    libraries: Sequence[Library] = tuple(Library)
    tree: Tree = HERE


@dataclass(frozen=True, slots=True)
class Start:
    """What one start has cost. ``cpu_s`` is that of the gateway until the answer."""

    ready_s: float
    answer_s: float
    cpu_s: float
    gateway_mb: float
    database_mb: float


def measure(library: Library, idle_s: float, tree: Tree) -> Start:
    """Start a gateway a second time, and wait for its first answer."""
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
        emulator() as api,
        model_server() as url,
        home(
            Path(folder),
            **telegram(
                api,
                GOCLAW_CHANNELS__TELEGRAM__DIRECT="open",
                GOCLAW_CHANNELS__TELEGRAM__LIBRARY=library.value,
                GOCLAW_AGENTS__MAIN__MODEL="openai:gpt-4o",
                GOCLAW_AGENTS__MAIN__BASE_URL=url,
                OPENAI_API_KEY="none",
            ),
        ) as place,
    ):
        place.launch = tree.launch
        place.start().end()
        api.say(FIRST, "say hello")
        begin = time.monotonic()
        gateway = place.start()
        ready_s = time.monotonic() - begin
        wait_for(partial(api.texts, FIRST), "the answer")
        answer_s = time.monotonic() - begin
        used_s = own_cpu_s(gateway.pid)
        time.sleep(idle_s)
        database_mb = proportional_mb_with_children(server_of(place.state))
        return Start(ready_s, answer_s, used_s, proportional_mb(gateway.pid), database_mb)


def report(sizes: Sizes) -> Report:
    """Measure the libraries in turns."""
    found: defaultdict[Library, list[Start]] = defaultdict(list)
    for done in range(sizes.rounds):
        progress("start", done, sizes.rounds)
        for library in sizes.libraries:
            found[library].append(measure(library, sizes.idle_s, sizes.tree))
    return Report(
        "start",
        "Telegram, polling, a language model, embedded database; from the start of the process, "
        "with a message waiting; memory (PSS) after the answer",
        sizes.rounds,
        [_line(library, found[library]) for library in sizes.libraries],
    )


def _line(library: Library, mine: Sequence[Start]) -> Line:
    bounds = WANTED[library]
    return Line(
        library.value,
        (
            Figure("ready", [one.ready_s for one in mine], "s", bounds.ready_s),
            Figure("first answer", [one.answer_s for one in mine], "s", bounds.answer_s),
            Figure("its CPU", [one.cpu_s for one in mine], "s"),
            Figure("gateway", [one.gateway_mb for one in mine], "MB", bounds.gateway_mb),
            Figure("database", [one.database_mb for one in mine], "MB", bounds.database_mb),
        ),
    )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.start",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [library.value for library in Library]
    parser.add_argument("--rounds", type=int, help="how often each is measured (5, quick 1)")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works")
    parser.add_argument("--library", choices=names, help="only this one")
    parser.add_argument(
        "--tree", type=tree_of, default=HERE, help="measure the gateway of another checkout"
    )
    given = parser.parse_args()
    sizes = Sizes(rounds=1, idle_s=0.5) if given.quick else Sizes()
    if given.rounds is not None:
        if given.rounds < 1:
            parser.error("--rounds is at least 1")
        sizes = replace(sizes, rounds=given.rounds)
    if given.library is not None:
        sizes = replace(sizes, libraries=[Library(given.library)])
    report(replace(sizes, tree=given.tree)).show()


if __name__ == "__main__":
    main()
