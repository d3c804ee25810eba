"""A forecast as an HTML page: one row per job and heartbeat, one mark per run.

Skipped runs of jobs are red. Skipped heartbeat runs are normal and numerous, so they are only a
thin grey line below the marks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from goclaw_py.cli.output import one_line
from goclaw_py.cli.simulate.texts import beats_row, heart_name, reach, row, total
from goclaw_py.heartbeat.models import HeartbeatRunStatus
from goclaw_py.jobs.execution_models import OccurrenceStatus

if TYPE_CHECKING:
    from goclaw_py.app.simulation.simulation import Forecast

_LEFT = 190
_COLUMNS = 780
_WIDTH = 1000
_LANE = 26
_THIN = 3
_MOST_LINES = 15
_STEPS = tuple(timedelta(hours=hours) for hours in (1, 3, 6, 12, 24, 48, 168, 720, 2160, 8760))

_HEAD = ("Job", "State", "Runs", "Coalesced", "Skipped", "Model calls", "USD", "Latest start")
_BEATS_HEAD = ("Agent", "Heartbeat runs", "Model calls", "Skipped", "USD")
_NUMBERS = ("Runs", "Coalesced", "Heartbeat runs", "Model calls", "USD", "Latest start")

_Span = tuple[datetime, datetime]

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --grid: #ddd; --ok: #186;
        --bad: #c33; --idle: #bbb }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --paper: #161616; --grid: #3a3a3a; --ok: #3c9; --bad: #f66; --idle: #666 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       margin: 2rem auto; max-width: 1100px; padding: 0 1rem }
div { overflow-x: auto }
table { border-collapse: collapse; width: 100%; margin-top: 1rem }
td, th { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--grid) }
.n { text-align: right; white-space: nowrap } .s { min-width: 9rem }
svg { width: 100%; min-width: 900px; height: auto } text { fill: var(--ink); font-size: 12px }
.at { text-anchor: middle } line { stroke: var(--grid) }
@media (max-width: 600px) { body { margin: 1rem auto } h1 { font-size: 1.4rem } }
.ok { fill: var(--ok) } .bad { fill: var(--bad) } .idle { fill: var(--idle) }
"""


def page(found: Forecast) -> str:
    """The page as HTML that is XML too. It asks nobody for anything: no script, no other host."""
    title = f"{found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC"
    cut = f" Stopped at the limit of the simulation, after {reach(found)}." if found.cut else ""
    jobs = [(_text(one.job.spec.title, 200), *row(one)[1:]) for one in found.jobs]
    beats = [tuple(_text(cell, 200) for cell in beats_row(one)) for one in found.heartbeats]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>goclaw simulate: {title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Forecast of jobs and heartbeats</h1>
<p>{title}: {total(found)}.{cut} Each mark is a run. Red: skipped or interrupted. \
Grey: heartbeat runs that did not ask a model.</p>
<div>{_plot(found)}</div>
{_table(_HEAD, jobs)}{_table(_BEATS_HEAD, beats)}</body>
</html>
"""


def _kind(name: str) -> str:
    if name in _NUMBERS:
        return ' class="n"'
    return ' class="s"' if name == "Skipped" else ""


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table, "" if there are no rows. Cells are already HTML."""
    if not rows:
        return ""
    names = "".join(f"<th{_kind(name)}>{name}</th>" for name in head)
    lines = (
        "".join(f"<td{_kind(name)}>{cell}</td>" for name, cell in zip(head, one, strict=True))
        for one in rows
    )
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<div><table>\n<tr>{names}</tr>\n{body}</table></div>\n"


def _text(text: str, limit: int) -> str:
    return escape(one_line(text, limit))


@dataclass(slots=True)
class _Lane:
    """A row of the plot: the time spans of runs, by the CSS class of their marks."""

    name: str
    spans: defaultdict[str, list[_Span]] = field(default_factory=lambda: defaultdict(list))


def _lanes(found: Forecast) -> list[_Lane]:
    """Return the rows that have marks."""
    jobs = {one.job.id: _Lane(one.job.spec.slug) for one in found.jobs}
    for event in found.events:
        kind = "ok" if event.status is OccurrenceStatus.OK else "bad"
        span = event.started_at or event.due_at, event.finished_at
        jobs[event.job].spans[kind].append(span)
    hearts = {one.agent: _Lane(heart_name(one)) for one in found.heartbeats}
    for beat in found.beats:
        kind = "bad" if beat.status is HeartbeatRunStatus.FAILED else "ok"
        kind = "idle" if beat.skip is not None else kind
        span = beat.started_at or beat.due_at, beat.finished_at
        hearts[beat.agent].spans[kind].append(span)
    return [lane for lane in (*jobs.values(), *hearts.values()) if lane.spans]


def _plot(found: Forecast) -> str:
    lanes = _lanes(found)
    if not lanes:
        return "<p>No runs.</p>"
    bottom = _LANE * len(lanes)
    size = f"0 0 {_WIDTH} {bottom + 22}"
    parts = [f'<svg viewBox="{size}" role="img" aria-label="runs over time">']
    parts += _lines(found, bottom)
    for number, lane in enumerate(lanes):
        top = number * _LANE
        parts.append(f'<text x="0" y="{top + 17}">{_text(lane.name, 26)}</text>')
        for kind in ("idle", "ok", "bad"):
            y, height = (top + 18, _THIN) if kind == "idle" else (top + 5, _LANE - 10)
            spans = lane.spans.get(kind, ())
            parts += _marks(found, spans, f'class="{kind}" y="{y}" height="{height}"')
    return "\n".join([*parts, "</svg>"])


def _lines(found: Forecast, bottom: int) -> Iterator[str]:
    """Yield a vertical line for each day, or fewer if there is not enough room."""
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


def _marks(found: Forecast, spans: Iterable[_Span], attributes: str) -> Iterator[str]:
    """Yield marks that show all runs; runs that touch are merged into one mark."""
    columns: set[int] = set()
    for begin, end in spans:
        columns.update(range(_column(found, begin), _column(found, end) + 1))
    # Numbers that follow each other are as far from their places in the order.
    for _, group in groupby(enumerate(sorted(columns)), lambda pair: pair[1] - pair[0]):
        places = [column for _, column in group]
        x, width = _LEFT + places[0], len(places)
        yield f'<rect {attributes} x="{x}" width="{width}"/>'


def _column(found: Forecast, at: datetime) -> int:
    span = (found.until - found.since) / timedelta(seconds=1) or 1.0
    part = (at - found.since) / timedelta(seconds=1) / span
    return round(_COLUMNS * min(max(part, 0.0), 1.0))
