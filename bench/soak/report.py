"""What a soak has found: a table in the terminal, a page with plots, and the samples themselves."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final

from bench.soak.plots import number, plot, share, span
from bench.soak.series import BOUND, CERTAIN, Fold, Point, Series, Trend, Verdict, trend, verdict

PAGE: Final = "report.html"
SAMPLES: Final = "samples.csv"

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  color: #1c1c1c; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: .8rem; }
svg { border: 1px solid #d5d5d5; border-radius: 4px; width: 100%; height: auto; }
svg.growing { border: 2px solid #b00020; }
svg line { stroke: #e6e6e6; } svg circle { fill: #1f5fa8; }
svg polyline { fill: none; } .samples { stroke: #9dbbdc; stroke-width: 1; }
.trend { stroke: #b00020; stroke-width: 1.5; stroke-dasharray: 5 3; }
svg text { font: 10px system-ui, sans-serif; fill: #555; }
svg text.name { font-size: 12px; font-weight: 600; fill: #1c1c1c; }
svg text.value, svg text.end { text-anchor: end; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #e6e6e6; text-align: right; }
th:first-child, td:first-child, td.words { text-align: left; }
tr.growing td, .bad { color: #b00020; font-weight: 600; }
"""


@dataclass(frozen=True, slots=True)
class Soaked:
    """What was sampled, and what else is to be said.

    Args:
        about: What was done, in a sentence or two.
        facts: Counts, for people and programs.
        problems: What must not have happened; each a line.
    """

    title: str
    about: str
    fold: Fold
    series: Sequence[Series]
    facts: Mapping[str, float]
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One series with what became of it."""

    series: Series
    points: Sequence[Point]
    trend: Trend | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Report:
    """All of it, judged."""

    soaked: Soaked
    lines: Sequence[Line] = field(default_factory=tuple)

    @property
    def growing(self) -> list[Line]:
        """What grows and must not."""
        return [line for line in self.lines if line.verdict is Verdict.GROWING]

    @property
    def passed(self) -> bool:
        """Whether nothing grows that must not, and nothing else is wrong."""
        return not self.growing and not self.soaked.problems


def judged(soaked: Soaked) -> Report:
    """Lay a line through each series."""
    lines = []
    for series in soaked.series:
        points = soaked.fold(series.points)
        found = trend(points)
        lines.append(Line(series, points, found, verdict(series, found)))
    groups = {
        name: place for place, name in enumerate(dict.fromkeys(s.group for s in soaked.series))
    }
    lines.sort(key=lambda line: (groups[line.series.group], line.series.name.casefold()))
    return Report(soaked, lines)


# ---------------------------------------------------------------------------- in the terminal


def show(report: Report) -> None:
    """Print a table, then one line of JSON."""
    soaked = report.soaked
    print(f"\n{soaked.title}: {soaked.about}")
    print(_law(soaked.fold))
    for group, found in groupby(report.lines, lambda line: line.series.group):
        lines = list(found)
        told = [line for line in lines if line.series.plotted or line.verdict is Verdict.GROWING]
        print(f"  {group}")
        for line in told:
            print(f"    {_row(line)}")
        if len(lines) > len(told):
            rest = Counter(line.verdict for line in lines if line not in told)
            names = ", ".join(f"{count} {one}" for one, count in rest.items())
            print(f"    and {len(lines) - len(told)} that never held more than a few: {names}")
    print("  " + " · ".join(f"{name} {number(value)}" for name, value in soaked.facts.items()))
    for problem in soaked.problems:
        print(f"  PROBLEM: {problem}")
    print(f"  {_conclusion(report)}")
    print(json.dumps(_plain(report), ensure_ascii=False), flush=True)


def _row(line: Line) -> str:
    series = line.series
    mean = "" if line.trend is None else number(line.trend.mean)
    rise = "" if line.trend is None else share(line.trend)
    why = f"  {series.kept}" if line.verdict is Verdict.KEPT else ""
    unit = f" {series.unit}".rstrip()
    return (
        f"{series.name:44}  {mean:>9}{unit:4} most {number(series.most):>9}  {rise:>9}  "
        f"{line.verdict}{why}"
    )


def _law(fold: Fold) -> str:
    chosen = "the least" if fold.least else "the median"
    return (
        f"  {chosen} of each {span(fold.every_s)}; a line through the second half: mean, and "
        f"its rise. It grows if it rises by more than {100 * BOUND:g} % of the mean (3 % for "
        f"memory), by more than its slack, and by more than {CERTAIN:g} standard errors"
    )


def _conclusion(report: Report) -> str:
    if report.growing:
        names = (f"{line.series.group}: {line.series.name}" for line in report.growing)
        return f"GROWING: {', '.join(names)}"
    if all(line.verdict is Verdict.SHORT for line in report.lines):
        found = "it was too short to say whether anything grows"
    else:
        found = "nothing grows that must not"
    return found if report.passed else f"{found}, but see the problems"


def _plain(report: Report) -> dict[str, object]:
    soaked = report.soaked
    return {
        "bench": soaked.title,
        "passed": report.passed,
        "facts": dict(soaked.facts),
        "problems": list(soaked.problems),
        "growing": [line.series.name for line in report.growing],
    }


# ---------------------------------------------------------------------------- in a folder


def write(report: Report, folder: Path) -> Path:
    """Write the page and the samples into a folder, which is made; the page."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE
    page.write_text(html(report), encoding="utf-8")
    with (folder / SAMPLES).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("group", "series", "unit", "seconds", "value"))
        for one in report.soaked.series:
            for at_s, value in one.points:
                rows.writerow((one.group, one.name, one.unit, f"{at_s:.1f}", f"{value:g}"))
    return page


def html(report: Report) -> str:
    """The whole page; it needs nothing else."""
    soaked = report.soaked
    style = "" if report.passed else ' class="bad"'
    facts = " · ".join(f"{name} {number(value)}" for name, value in soaked.facts.items())
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(soaked.title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(soaked.title)}</h1><p>{escape(soaked.about)}.</p>",
        f"<p>{escape(facts)}</p><p{style}>{escape(_conclusion(report))}.</p>",
        *(f'<p class="bad">{escape(problem)}</p>' for problem in soaked.problems),
        f"<p>{escape(_law(soaked.fold))}.</p>",
        *_plots(report),
        "<h2>All series</h2>",
        *_table(report),
        f"<p>{datetime.now(UTC):%Y-%m-%d %H:%M} UTC</p></html>",
    ]
    return "\n".join(parts)


def _plots(report: Report) -> Iterator[str]:
    end_s = max((one.points[-1][0] for one in report.soaked.series if one.points), default=0.0)
    for group, lines in groupby(report.lines, lambda line: line.series.group):
        seen = [one for one in lines if one.series.plotted or one.verdict is Verdict.GROWING]
        if seen:
            yield f'<h2>{escape(group)}</h2><div class="plots">'
            for line in seen:
                yield plot(line.series, line.points, line.trend, line.verdict, end_s)
            yield "</div>"


def _table(report: Report) -> Iterator[str]:
    yield "<table><tr><th>series<th>mean of the half<th>most<th>rise<th>verdict</tr>"
    for line in report.lines:
        series, found = line.series, line.trend
        cells = (
            f"{series.group}: {series.name}",
            "" if found is None else f"{number(found.mean)} {series.unit}",
            f"{number(series.most)} {series.unit}",
            "" if found is None else share(found),
        )
        why = f"{line.verdict}: {series.kept}" if line.verdict is Verdict.KEPT else line.verdict
        style = ' class="growing"' if line.verdict is Verdict.GROWING else ""
        row = "".join(f"<td>{escape(cell)}" for cell in cells)
        yield f'<tr{style}>{row}<td class="words">{escape(why)}</tr>'
    yield "</table>"
