"""A forecast as a page: a lane for each job, a mark for each run, what was left out in red."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from goclaw_py.cli.output import one_line
from goclaw_py.cli.simulate_words import row, total
from goclaw_py.core.occurrence import Status

if TYPE_CHECKING:
    from goclaw_py.app.simulation import Event, Forecast, Foreseen

_LEFT = 190
_COLUMNS = 780
_WIDTH = 1000
_LANE = 26
_MOST_LINES = 15
_STEPS = tuple(timedelta(hours=hours) for hours in (1, 3, 6, 12, 24, 48, 168, 720, 2160, 8760))

_HEAD = ("Job", "State", "Runs", "Coalesced", "Skipped", "Model calls", "USD", "Latest start")
_NUMBERS = ("Runs", "Coalesced", "Model calls", "USD", "Latest start")

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --grid: #ddd; --ok: #186;
        --bad: #c33 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --paper: #161616; --grid: #3a3a3a; --ok: #3c9; --bad: #f66 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       margin: 2rem auto; max-width: 1100px; padding: 0 1rem }
div { overflow-x: auto }
table { border-collapse: collapse; width: 100%; margin-top: 1rem }
td, th { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--grid) }
.n { text-align: right; white-space: nowrap }
svg { width: 100%; min-width: 600px; height: auto } text { fill: var(--ink); font-size: 12px }
.at { text-anchor: middle } line { stroke: var(--grid) }
.ok { fill: var(--ok) } .bad { fill: var(--bad) }
"""


def page(found: Forecast) -> str:
    """The page as HTML that is XML too. It asks nobody for anything: no script, no other host."""
    title = f"{found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC"
    head = "".join(f"<th{_kind(name)}>{name}</th>" for name in _HEAD)
    cut = f" It ends there, after {len(found.events)} runs." if found.cut else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>goclaw simulate: {title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>What the jobs will do</h1>
<p>{title}: {total(found)}.{cut} Each mark is a run; red: due, and skipped or cut.</p>
<div>{_plot(found)}</div>
<div><table>
<tr>{head}</tr>
{"".join(map(_row, found.jobs))}</table></div>
</body>
</html>
"""


def _kind(name: str) -> str:
    return ' class="n"' if name in _NUMBERS else ""


def _row(one: Foreseen) -> str:
    cells = (_text(one.job.spec.title, 200), *row(one)[1:])
    shown = zip(_HEAD, cells, strict=True)
    return f"<tr>{''.join(f'<td{_kind(name)}>{cell}</td>' for name, cell in shown)}</tr>\n"


def _text(text: str, limit: int) -> str:
    return escape(one_line(text, limit))


def _plot(found: Forecast) -> str:
    ran = {event.job for event in found.events}
    jobs = [one.job for one in found.jobs if one.job.id in ran]
    if not jobs:
        return "<p>Nothing runs.</p>"
    bottom = _LANE * len(jobs)
    size = f"0 0 {_WIDTH} {bottom + 22}"
    parts = [f'<svg viewBox="{size}" role="img" aria-label="runs over time">']
    parts += _lines(found, bottom)
    for lane, job in enumerate(jobs):
        top = lane * _LANE
        parts.append(f'<text x="0" y="{top + 17}">{_text(job.spec.slug, 26)}</text>')
        mine = [event for event in found.events if event.job == job.id]
        for kind, well in (("ok", True), ("bad", False)):
            chosen = (event for event in mine if (event.status is Status.OK) is well)
            parts += _marks(found, chosen, f'class="{kind}" y="{top + 5}"')
    return "\n".join([*parts, "</svg>"])


def _lines(found: Forecast, bottom: int) -> Iterator[str]:
    """A line for each day, or as many as there is room for."""
    span = found.until - found.since
    step = next((one for one in _STEPS if span <= _MOST_LINES * one), _STEPS[-1])
    at = found.since
    while at <= found.until:
        x = _LEFT + _column(found, at)
        yield f'<line x1="{x}" y1="0" x2="{x}" y2="{bottom}"/>'
        yield f'<text class="at" x="{x}" y="{bottom + 16}">{_day(at, step)}</text>'
        at += step


def _day(at: datetime, step: timedelta) -> str:
    if step < timedelta(days=1):
        return f"{at:%H:%M}"
    return f"{at:%d %b}" if step <= timedelta(days=30) else f"{at:%b %Y}"


def _marks(found: Forecast, events: Iterable[Event], attributes: str) -> Iterator[str]:
    """As few as show all runs: those that touch are one, whatever their number."""
    columns: set[int] = set()
    for event in events:
        first = _column(found, event.started_at or event.due_at)
        columns.update(range(first, _column(found, event.finished_at) + 1))
    # Numbers that follow each other are as far from their places in the order.
    for _, group in groupby(enumerate(sorted(columns)), lambda pair: pair[1] - pair[0]):
        places = [column for _, column in group]
        x, width = _LEFT + places[0], len(places)
        yield f'<rect {attributes} x="{x}" width="{width}" height="{_LANE - 10}"/>'


def _column(found: Forecast, at: datetime) -> int:
    span = (found.until - found.since) / timedelta(seconds=1) or 1.0
    part = (at - found.since) / timedelta(seconds=1) / span
    return round(_COLUMNS * min(max(part, 0.0), 1.0))
