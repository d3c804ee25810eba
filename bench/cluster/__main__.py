"""Several gateways on one database: how quickly work moves, what it costs, how far it goes.

- takeover: gateway processes; the one that works is killed, or told to end, and the other goes on.
- stop: a ``/stop`` that comes to another gateway than the one that works.
- wait: a job that comes due at one gateway while its session works at another.
- throughput: one node and two, with an agent that takes no time.
- leases: what a node among others costs more than one that is alone.
- million: every statement of a gateway, in a database with 1,000,000 of everything.

The database is an embedded PostgreSQL with fsync, on the same machine.

    python -m bench.cluster [takeover|stop|wait|throughput|leases|million] [--rounds 3] [--quick]
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.api.measure import quantile
from bench.cluster import busy, leases, million, stops, takeover, throughput
from bench.cluster.leases import ALONE, AMONG, Used
from bench.cluster.million import LIMIT_MS, Cost
from bench.cluster.throughput import Load, Rates
from bench.options import asked
from bench.scheduler.child import in_child
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress, ratios
from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.postgres import Address

KILLED_S: Final = Wanted(Sign.AT_MOST, 15)
ENDED_S: Final = Wanted(Sign.AT_MOST, 2)
STOP_S: Final = Wanted(Sign.AT_MOST, 0.3)
FREE_S: Final = Wanted(Sign.AT_MOST, 0.3)
TWO: Final = Wanted(Sign.AT_LEAST, 1.6)
MORE: Final = Wanted(Sign.AT_MOST, 1.1)
STATEMENT_MS: Final = Wanted(Sign.AT_MOST, LIMIT_MS)

_SHOWN: Final = 1.0
"""What servers were seen waiting for less often than this, in percent, is not told."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int = 3
    kills: int = 20
    stops: int = 50
    waits: int = 60
    load: Load = field(default_factory=Load)
    paced: Load = field(default_factory=lambda: Load(200, 4, 20.0))
    idle_s: float = 30.0
    jobs: int = 400
    rows: int = 1_000_000
    work_s: float = 60.0
    times: int = 50


QUICK = Sizes(
    rounds=1,
    kills=2,
    stops=3,
    waits=4,
    load=Load(20, 5),
    paced=Load(20, 2, 20.0),
    idle_s=2.0,
    jobs=20,
    rows=2_000,
    work_s=3.0,
    times=5,
)


@contextmanager
def own_server() -> Iterator[tuple[Address, int]]:
    """An embedded PostgreSQL, and its process id."""
    with (
        TemporaryDirectory(prefix="goclaw-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres") as embedded,
    ):
        server = embedded.start()
        address = Address(host=str(server.host), user=server.user, database=server.database)
        yield address, server.pid


def spread(label: str, seconds: Sequence[float], wanted: Wanted | None) -> Line:
    """Median, 99th hundredth and the longest of some times."""
    values = list(seconds)
    return Line(
        label,
        (
            Figure("p50", [quantile(values, 50)], "s"),
            Figure("p99", [quantile(values, 99)], "s", wanted),
            Figure("max", [max(values)], "s"),
            Figure("of", [len(values)]),
        ),
    )


def taking_over(sizes: Sizes) -> Report:
    """Kill, and end, the node that works."""
    report = Report(
        "takeover",
        "seconds from the signal until the other node began, of each session; running: it was "
        "at work, waiting: a message behind it or in a full lane, new: said after the signal",
        sizes.kills,
    )
    for label, waits, wanted in (
        ("kill -9", takeover.killed(sizes.kills), KILLED_S),
        ("SIGTERM", takeover.ended(sizes.kills), ENDED_S),
    ):
        report.lines.extend(
            [
                spread(f"{label}, running", waits.running, wanted),
                spread(f"{label}, waiting", waits.waiting, wanted),
                spread(f"{label}, new", waits.new, wanted),
            ]
        )
    return report


def stopping(sizes: Sizes) -> Report:
    """Stop at one node what works at another."""
    found = stops.measure(sizes.stops)
    return Report(
        "stop",
        "seconds from a stop at one node until the task of the agent had ended at another",
        sizes.stops,
        [
            spread("/stop in the chat", found.chat, STOP_S),
            spread("an operator's", found.operator, STOP_S),
            spread("at the node itself", found.here, STOP_S),
        ],
    )


def waiting(sizes: Sizes) -> Report:
    """Let jobs wait for sessions that other nodes hold."""
    found = busy.measure(sizes.waits)
    figures = (
        Figure("jobs", [found.rows.total()]),
        Figure("with one row", [found.rows[1]], "", Wanted(Sign.AT_LEAST, sizes.waits)),
        Figure("handed over", [found.elsewhere]),
    )
    return Report(
        "wait",
        "seconds from the end of a chat's run until the job began that waited for its session; "
        "handed over: claimed by a node that did not hold it",
        sizes.waits,
        [spread("the session is free", found.seconds, FREE_S), Line("rows of the log", figures)],
    )


def answering(sizes: Sizes) -> Report:
    """One node, and two."""
    kinds = {"one node": [AMONG], "two nodes": [AMONG, AMONG]}
    found: defaultdict[str, list[Rates]] = defaultdict(list)
    with own_server() as (address, server):
        for done in range(sizes.rounds):
            progress("throughput", done, sizes.rounds)
            for name, nodes in kinds.items():
                found[name].append(throughput.measure(address, server, nodes, sizes.load))
    one, two = found["one node"], found["two nodes"]
    report = Report(
        "throughput",
        f"{sizes.load.chats} chats, {sizes.load.each} messages in each at once; CPU, commits and "
        "WAL for each message, from its arrival to its answer",
        sizes.rounds,
        [line for name in kinds for line in _rate_lines(name, found[name])],
    )
    rate = ratios([r.per_s for r in two], [r.per_s for r in one])
    cost = ratios([r.whole_ms for r in two], [r.whole_ms for r in one])
    figures = (Figure("answered", rate, "times", TWO), Figure("CPU a message", cost, "times"))
    report.lines.append(Line("two / one", figures))
    return report


def _rate_lines(name: str, found: Sequence[Rates]) -> Iterator[Line]:
    yield Line(
        name,
        (
            Figure("answered", [one.per_s for one in found], "/s"),
            Figure("nodes' CPU", [one.node_ms for one in found], "ms"),
            Figure("server's", [one.server_ms for one in found], "ms"),
            Figure("commits", [one.commits for one in found]),
            Figure("WAL", [one.wal_kb for one in found], "KB"),
            Figure("memory of a node", [one.memory_mb for one in found], "MB"),
        ),
    )
    last = found[-1]
    for label, values, unit, least in (
        ("waits", last.waits, "%", _SHOWN),
        ("rows written", last.writes, "", 0.01),
        ("updates without an index", last.hot, "%", 0.0),
    ):
        yield Line(f"{name}, {label}", tuple(_shares(values, unit, least)))


def _shares(values: Mapping[str, float], unit: str, least: float) -> Iterator[Figure]:
    for name, value in sorted(values.items(), key=lambda item: -item[1]):
        if value >= least:
            yield Figure(name or "at work", [value], unit)


def being_one_of_several(sizes: Sizes) -> Report:
    """Leases, the clock of the database, questions of others; and lanes that all share."""
    rates: defaultdict[str, list[Rates]] = defaultdict(list)
    used: defaultdict[str, list[Used]] = defaultdict(list)
    pace = f"{sizes.paced.per_s:g} a second"
    with own_server() as (address, server):
        for done in range(sizes.rounds):
            progress("leases", done, sizes.rounds)
            for name, load in (("at once", sizes.load), (pace, sizes.paced)):
                for who, kind in (("alone", ALONE), ("among others", AMONG)):
                    found = throughput.measure(address, server, [kind], load)
                    rates[f"{name}, {who}"].append(found)
            for who, kind in (("alone", ALONE), ("among others", AMONG)):
                idle = in_child(leases.idle, address, server, kind, sizes.idle_s)
                used[f"at rest, {who}"].append(idle)
            for who, shared in (("of a node", False), ("of all nodes", True)):
                ran = in_child(leases.jobs, address, server, sizes.jobs, shared=shared)
                used[f"a job's run in a lane {who}"].append(ran)
    report = Report(
        "leases",
        "CPU in ms for each message or run, and of a node at rest for each second",
        sizes.rounds,
    )
    for name, found_rates in rates.items():
        nodes, whole = [r.node_ms for r in found_rates], [r.server_ms for r in found_rates]
        report.lines.append(_cpu_line(name, nodes, whole))
    for name, found_used in used.items():
        nodes, whole = [u.node_ms for u in found_used], [u.server_ms for u in found_used]
        report.lines.append(_cpu_line(name, nodes, whole))
    for name in ("at once", pace):
        report.lines.append(
            _ratio_line(name, rates[f"{name}, among others"], rates[f"{name}, alone"])
        )
    lanes = "a job's run in a lane of"
    report.lines.append(_ratio_line(lanes, used[f"{lanes} all nodes"], used[f"{lanes} a node"]))
    return report


def _cpu_line(name: str, node: Sequence[float], server: Sequence[float]) -> Line:
    return Line(name, (Figure("node's CPU", node, "ms"), Figure("server's", server, "ms")))


def _ratio_line(name: str, ours: Sequence[Rates | Used], theirs: Sequence[Rates | Used]) -> Line:
    cost = ratios([one.whole_ms for one in ours], [one.whole_ms for one in theirs])
    return Line(f"{name}: all / one", (Figure("CPU", cost, "times", MORE),))


def large(sizes: Sizes) -> Report:
    """Every statement, where there are a million rows."""
    with own_server() as (address, _):
        found = million.measure(address, sizes.rows, sizes.work_s, sizes.times)
    report = Report(
        "million",
        f"every statement of a gateway, with {sizes.rows:,} sessions, messages, replies, runs and "
        "chats; nodes.time reads no row: so long does any take. "
        f"Not asked: {', '.join(found.unseen)}",
        1,
    )
    for part, costs in (
        ("singly", found.singly),
        ("in batches", found.batches),
        ("lists", found.lists),
        ("forgetting", found.forgetting),
    ):
        report.lines.extend(_cost_line(part, cost) for cost in costs)
    for plan in found.plans:
        print(f"\n{plan}", file=sys.stderr)
    return report


def _cost_line(part: str, cost: Cost) -> Line:
    return Line(
        f"{part}, {cost.name}",
        (
            Figure("p50", [cost.p50_ms], "ms"),
            Figure("p99", [cost.p99_ms], "ms", STATEMENT_MS),
            Figure("of", [cost.calls]),
        ),
    )


PARTS: Final[Mapping[str, Callable[[Sizes], Report]]] = {
    "takeover": taking_over,
    "stop": stopping,
    "wait": waiting,
    "throughput": answering,
    "leases": being_one_of_several,
    "million": large,
}


def main() -> None:
    """Measure what was asked for."""
    sizes, parts = asked("bench.cluster", __doc__, Sizes(), QUICK, PARTS)
    for part in parts:
        PARTS[part](sizes).show()


if __name__ == "__main__":
    main()
