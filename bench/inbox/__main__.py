"""Durable messages a second: the gateway's inbox beside other queues on PostgreSQL.

Everybody works on the same embedded server, with fsync, in turns; ratios are within a round.

    python -m bench.inbox [--rounds 5] [--seconds 4] [--callers 1 10 100]
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bench.inbox.contenders import CONTENDERS
from bench.inbox.measure import Case, Inserts, measure
from bench.scheduler.child import in_child
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress, ratios
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address

OURS = "goclaw_py"
RATE = {100: Wanted(Sign.AT_LEAST, 15_000)}
P99_MS = {100: Wanted(Sign.BELOW, 10)}

Found = Mapping[Case, Sequence[Inserts]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int = 5
    seconds: float = 4.0
    callers: tuple[int, ...] = (1, 10, 100)
    contenders: tuple[str, ...] = tuple(CONTENDERS)


def report(sizes: Sizes) -> Report:
    """Measure everybody."""
    report = Report(
        "inbox",
        "callers that store one message after the other, fsync on; CPU of the process and of the "
        "server, per message",
        sizes.rounds,
    )
    found = _found(sizes)
    for callers in sizes.callers:
        report.lines.extend(_line(Case(name, callers), found) for name in sizes.contenders)
        report.lines.extend(_ratios(callers, found))
    return report


def _found(sizes: Sizes) -> Found:
    found: defaultdict[Case, list[Inserts]] = defaultdict(list)
    cases = [Case(name, callers) for callers in sizes.callers for name in sizes.contenders]
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres") as embedded,
    ):
        server = embedded.start()
        address = Address(host=str(server.host), user=server.user, database=server.database)
        for done in range(sizes.rounds):
            progress("inbox", done, sizes.rounds)
            for case in cases:
                inserts = in_child(measure, case, address, server.pid, sizes.seconds)
                found[case].append(inserts)
    return found


def _line(case: Case, found: Found) -> Line:
    mine = found[case]
    wanted = case.contender == OURS
    return Line(
        f"{case.callers:3} callers, {case.contender}",
        (
            Figure(
                "stored",
                [inserts.per_s for inserts in mine],
                "/s",
                RATE.get(case.callers) if wanted else None,
            ),
            Figure("p50", [inserts.p50_ms for inserts in mine], "ms"),
            Figure(
                "p99",
                [inserts.p99_ms for inserts in mine],
                "ms",
                P99_MS.get(case.callers) if wanted else None,
            ),
            Figure("CPU", [inserts.cpu_ms for inserts in mine], "ms"),
            Figure("server's CPU", [inserts.server_cpu_ms for inserts in mine], "ms"),
        ),
    )


def _ratios(callers: int, found: Found) -> Iterator[Line]:
    ours = found.get(Case(OURS, callers))
    for case, theirs in found.items():
        if ours is not None and case.callers == callers and case.contender != OURS:
            rates = ratios([one.per_s for one in ours], [one.per_s for one in theirs])
            slow = ratios([one.p99_ms for one in theirs], [one.p99_ms for one in ours])
            yield Line(
                f"{callers:3} callers, {OURS} / {case.contender}",
                (Figure("rate", rates, "times"), Figure("p99", slow, "times shorter")),
            )


def main() -> None:
    """Run what was asked for."""
    full = Sizes()
    parser = argparse.ArgumentParser(prog="python -m bench.inbox", description=__doc__)
    parser.add_argument("--rounds", type=int, default=full.rounds)
    parser.add_argument("--seconds", type=float, default=full.seconds)
    parser.add_argument("--callers", type=int, nargs="+", default=full.callers)
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=full.contenders)
    given = parser.parse_args()
    if min(given.rounds, given.seconds, *given.callers) <= 0:
        parser.error("rounds, seconds and callers are more than 0")
    missing = [name for name in given.only if find_spec(name) is None]
    if missing:
        parser.error(f"not installed: {', '.join(missing)}; `make bench-inbox` does it")
    sizes = Sizes(given.rounds, given.seconds, tuple(given.callers), tuple(given.only))
    report(sizes).show()


if __name__ == "__main__":
    main()
