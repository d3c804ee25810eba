"""What the next occurrence of a cron expression costs, in µs of CPU.

Ordinary expressions are asked for at random instants of a year, the worst ones where they are
worst. Other libraries answer some of these questions otherwise; here only the time counts. They
are measured for ordinary expressions in the same rounds: the ratio is what counts, the machine is
shared.

    python -m bench.cron [--rounds 5] [--quick]
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import fmean
from zoneinfo import ZoneInfo

from bench.cron.contenders import CONTENDERS, OURS, Next
from bench.options import asked
from bench.scheduler.report import Figure, Line, Report, Sign, Wanted, progress, ratios

ZONE = ZoneInfo("Europe/Berlin")
ORDINARY = (
    "* * * * *",
    "*/10 * * * *",
    "0 9 * * 1-5",
    "0,30 9-17 * * *",
    "0 9 1 * *",
    "0 9 1,15 * 1",
)
GAP = datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC)
REPEATED = datetime(2026, 10, 25, 1, 0, 1, tzinfo=UTC)
WORST = (
    ("* * * * * *", GAP),
    ("0-59 0-59 0-23 * * *", REPEATED),
    ("*/30 2 * * *", GAP),
    ("0 0 29 2 */7", datetime(2088, 3, 1, tzinfo=UTC)),
)
ORDINARY_US = Wanted(Sign.AT_MOST, 50)
WORST_US = Wanted(Sign.AT_MOST, 5_000)
_YEAR_S = 365 * 86_400


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int = 5
    instants: int = 1_000


QUICK = Sizes(rounds=1, instants=20)


def report(sizes: Sizes) -> Report:
    """Measure all, in turns."""
    drawn = random.Random(1)
    begin = datetime(2026, 1, 1, tzinfo=ZONE)
    instants = [
        (begin + timedelta(seconds=drawn.randrange(_YEAR_S))).astimezone(ZONE)
        for _ in range(sizes.instants)
    ]
    ordinary: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    worst: defaultdict[tuple[str, datetime], list[float]] = defaultdict(list)
    for done in range(sizes.rounds):
        progress("cron", done, sizes.rounds)
        for expression in ORDINARY:
            for name, contender in CONTENDERS.items():
                cost = measure(contender(expression, ZONE), instants)
                ordinary[name, expression].append(cost)
        for expression, at in WORST:
            asked = [at.astimezone(ZONE)] * sizes.instants
            worst[expression, at].append(measure(CONTENDERS[OURS](expression, ZONE), asked))
    return _report(sizes, ordinary, worst)


def measure(following: Next, instants: Sequence[datetime]) -> float:
    """CPU in µs for one call; the first one is not counted."""
    following(instants[0])
    began = time.process_time()
    for instant in instants:
        following(instant)
    return 1e6 * (time.process_time() - began) / len(instants)


def _report(
    sizes: Sizes,
    ordinary: dict[tuple[str, str], list[float]],
    worst: dict[tuple[str, datetime], list[float]],
) -> Report:
    made = Report("cron", f"{sizes.instants} instants for each expression", sizes.rounds)
    for expression in ORDINARY:
        figure = Figure("", ordinary[OURS, expression], "µs", ORDINARY_US)
        made.lines.append(Line(f"{expression}, {OURS}", (figure,)))
    for expression, at in WORST:
        label = f"{expression} from {at:%Y-%m-%d %H:%M:%S}, {OURS}"
        made.lines.append(Line(label, (Figure("", worst[expression, at], "µs", WORST_US),)))
    means = {
        name: [fmean(each) for each in zip(*(ordinary[name, e] for e in ORDINARY), strict=True)]
        for name in CONTENDERS
    }
    for name, mean in means.items():
        figures = [Figure("", mean, "µs")]
        if name != OURS:
            figures.append(Figure(f"{name} / {OURS}", ratios(mean, means[OURS])))
        made.lines.append(Line(f"mean of the ordinary ones, {name}", tuple(figures)))
    return made


def main() -> None:
    """Run what was asked for."""
    sizes, _ = asked("bench.cron", __doc__, Sizes(), QUICK)
    report(sizes).show()


if __name__ == "__main__":
    main()
