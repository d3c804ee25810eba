"""Messages answered through Telegram: how many a second, at what price, and what a flood does.

A gateway process on the embedded database (fsync on), the Bot API emulator as another process, and
an agent that takes no time. Everything shares the machine, so CPU for each message tells more than
the rate. Nothing is debounced or paced, and reactions and typing are on, as by default. `floor` is
`answering` beside a gateway that has no rules and is written by hand on one page.

    python -m bench.telegram [floor|answering|shares|flood|requests] [--rounds 5] [--quick]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress, ratios
from bench.telegram import flood, rates, requests
from bench.telegram.flood import Flood
from bench.telegram.gateways import CASES, HERE, Case, Tree, tree_of
from bench.telegram.processes import TICK_MS
from bench.telegram.rates import LANE, Load, Rates
from bench.telegram.sampled import CALLING, shares
from goclaw_py.scheduler.models import Debounce

PER_S = Wanted(Sign.AT_LEAST, 300)
CPU_MS = Wanted(Sign.AT_MOST, 3)
CONFIRMED_S = Wanted(Sign.BELOW, 10)
OTHER_S = Wanted(Sign.BELOW, 2)
P50_MS = Wanted(Sign.AT_MOST, 10)
P99_MS = Wanted(Sign.AT_MOST, 30)
GROWTH_MB = Wanted(Sign.BELOW, 50)
WAL_KB = Wanted(Sign.AT_MOST, 5)
TIMES_FLOOR = Wanted(Sign.AT_MOST, 3)
_LEAST = 0.01
"""Shares below this are not told."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int = 5
    load: Load = field(default_factory=Load)
    flood: int = 1_000
    requests: int = 200
    cases: Sequence[Case] = CASES
    tree: Tree = HERE


QUICK = Sizes(rounds=1, load=Load(50, 10), flood=200, requests=20)


def answering(sizes: Sizes) -> Report:
    """Measure how much is answered, library and way of receiving in turns."""
    found: defaultdict[Case, list[Rates]] = defaultdict(list)
    for done in range(sizes.rounds):
        progress("telegram", done, sizes.rounds)
        for case in sizes.cases:
            found[case].append(rates.measure(case, sizes.load, sizes.tree))
    lines = [_line(str(case), found[case]) for case in sizes.cases]
    return Report("telegram", _about_answering(sizes.load), sizes.rounds, lines)


def beside_floor(sizes: Sizes) -> Report:
    """Measure the same beside a gateway that does only what it must."""
    floor: list[Rates] = []
    found: defaultdict[Case, list[Rates]] = defaultdict(list)
    for done in range(sizes.rounds):
        progress("telegram floor", done, sizes.rounds)
        floor.append(rates.measure_floor(sizes.load))
        for case in sizes.cases:
            found[case].append(rates.measure(case, sizes.load))
    lowest = [replace(figure, wanted=None) for figure in _line("floor", floor).figures]
    lines = [Line("floor", tuple(lowest))]
    lines += [_line(str(case), found[case]) for case in sizes.cases]
    lines += [_ratio_line(case, found[case], floor, sizes.load) for case in sizes.cases]
    about = "the floor is a gateway without rules, written by hand on one page, that polls"
    return Report("telegram floor", f"{_about_answering(sizes.load)}; {about}", sizes.rounds, lines)


def _about_answering(load: Load) -> str:
    return (
        f"{load.chats} chats, {load.each} messages in each at once, lane main of {LANE}; from the "
        "first message to the last answer; CPU, write-ahead log, and calls of the Bot API, per "
        "message"
    )


def _line(label: str, mine: Sequence[Rates]) -> Line:
    return Line(
        label,
        (
            Figure("answered", [one.per_s for one in mine], "/s", PER_S),
            Figure("gateway's CPU", [one.gateway_ms for one in mine], "ms", CPU_MS),
            Figure("database's", [one.server_ms for one in mine], "ms"),
            Figure("emulator's", [one.emulator_ms for one in mine], "ms"),
            Figure("WAL", [one.wal_kb for one in mine], "KB", WAL_KB),
            Figure("memory before", [one.before_mb for one in mine], "MB"),
            Figure("after", [one.after_mb for one in mine], "MB"),
            Figure("calls", [sum(one.calls.values()) for one in mine]),
        ),
    )


def _ratio_line(case: Case, mine: Sequence[Rates], floor: Sequence[Rates], load: Load) -> Line:
    # A small load may take less CPU than can be measured.
    least = TICK_MS / load.messages
    gateway = [max(least, one.gateway_ms) for one in floor]
    server = [max(least, one.server_ms) for one in floor]
    return Line(
        f"{case} / floor",
        (
            Figure("answered", ratios([one.per_s for one in mine], [one.per_s for one in floor])),
            Figure(
                "gateway's CPU",
                ratios([one.gateway_ms for one in mine], gateway),
                "times",
                TIMES_FLOOR,
            ),
            Figure(
                "database's", ratios([one.server_ms for one in mine], server), "times", TIMES_FLOOR
            ),
            Figure(
                "WAL", ratios([one.wal_kb for one in mine], [one.wal_kb for one in floor]), "times"
            ),
        ),
    )


def profiles(sizes: Sizes) -> Report:
    """Sample once what each gateway works on."""
    lines = []
    for done, case in enumerate(sizes.cases):
        progress("telegram shares", done, len(sizes.cases))
        found = shares(rates.profile(case, sizes.load))
        calling = sum(found.get(name, 0) for name in CALLING)
        whole = Figure("calls of the Bot API", [100 * calling], "%")
        lines.append(Line(str(case), (whole, *_shares(found))))
    return Report(
        "telegram shares",
        "which package uses the gateway's CPU, sampled; other code counts for its caller; calls of "
        f"the Bot API are {', '.join(CALLING)}",
        1,
        lines,
    )


def _shares(found: Mapping[str, float]) -> Iterator[Figure]:
    for name, share in found.items():
        if share >= _LEAST:
            yield Figure(name, [100 * share], "%")


def flooding(sizes: Sizes) -> Report:
    """Measure what one user can do to the others."""
    found: defaultdict[Case, list[Flood]] = defaultdict(list)
    for done in range(sizes.rounds):
        progress("telegram flood", done, sizes.rounds)
        for case in sizes.cases:
            found[case].append(flood.measure(case, sizes.flood))
    return Report(
        "telegram flood",
        f"{sizes.flood:,} messages of one user in one go; the default queue, without debounce",
        sizes.rounds,
        [_flood_line(case, found[case]) for case in sizes.cases],
    )


def _flood_line(case: Case, mine: Sequence[Flood]) -> Line:
    return Line(
        str(case),
        (
            Figure("confirmed after", [one.confirmed_s for one in mine], "s", CONFIRMED_S),
            Figure("another user's answer", [one.other_s for one in mine], "s", OTHER_S),
            Figure("growth", [one.growth_mb for one in mine], "MB", GROWTH_MB),
            Figure("notices", [one.notices for one in mine]),
        ),
    )


def requesting(sizes: Sizes) -> Report:
    """Measure how soon a request reaches the model server, for each way to debounce."""
    found: dict[Debounce, list[list[float]]] = {each: [] for each in Debounce}
    for done in range(sizes.rounds):
        progress("telegram requests", done, sizes.rounds)
        for debounce, rounds in found.items():
            rounds.append(sorted(requests.measure(debounce, sizes.requests)))
    return Report(
        "telegram requests",
        f"{sizes.requests} idle chats, one message in each; from the message, before it is stored, "
        "to the request at a model server on this machine",
        sizes.rounds,
        [_request_line(debounce, rounds) for debounce, rounds in found.items()],
    )


def _request_line(debounce: Debounce, rounds: Sequence[Sequence[float]]) -> Line:
    at_once = debounce is Debounce.SPECULATIVE
    p50 = [ms[len(ms) // 2] for ms in rounds]
    p99 = [ms[len(ms) * 99 // 100] for ms in rounds]
    return Line(
        debounce.value,
        (
            Figure("p50", p50, "ms", P50_MS if at_once else None),
            Figure("p99", p99, "ms", P99_MS if at_once else None),
        ),
    )


REPORTS = {
    "floor": beside_floor,
    "answering": answering,
    "shares": profiles,
    "flood": flooding,
    "requests": requesting,
}


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.telegram",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "report",
        nargs="*",
        help=f"some of {', '.join(REPORTS)}; by default all but answering, which floor includes",
    )
    parser.add_argument("--rounds", type=int, help="how often each is measured (5, quick 1)")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works")
    cases = {str(case): case for case in CASES}
    parser.add_argument("--case", choices=cases, help="only this one")
    parser.add_argument(
        "--tree", type=tree_of, default=HERE, help="measure the gateway of another checkout"
    )
    given = parser.parse_args()
    unknown = set(given.report) - REPORTS.keys()
    if unknown:
        parser.error(f"there is no report {', '.join(sorted(unknown))}")
    if given.tree is not HERE and given.report != ["answering"]:
        parser.error("--tree is for answering")
    sizes = replace(QUICK if given.quick else Sizes(), tree=given.tree)
    if given.case is not None:
        sizes = replace(sizes, cases=[cases[given.case]])
    if given.rounds is not None:
        if given.rounds < 1:
            parser.error("--rounds is at least 1")
        sizes = replace(sizes, rounds=given.rounds)
    for name in given.report or [name for name in REPORTS if name != "answering"]:
        REPORTS[name](sizes).show()


if __name__ == "__main__":
    main()
