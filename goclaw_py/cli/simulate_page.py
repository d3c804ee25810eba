"""A forecast as a page: a lane for each job, a mark for each run, what was skipped in red."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING

from goclaw_py.core.occurrence import Status

if TYPE_CHECKING:
    from goclaw_py.app.simulation import Event, Forecast, Foreseen

_WIDTH = 1000
_LEFT = 190
_LANE = 26
_MOST_MARKS = 20_000
"""More marks than this are pixels upon pixels; the table has all of them."""

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --grid: #ddd; --ok: #2a7;
        --bad: #c33 }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --paper: #161616; --grid: #333 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       margin: 2rem auto; max-width: 1100px; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .2rem .6rem;
       border-bottom: 1px solid var(--grid) } td.n { text-align: right }
svg { width: 100%; height: auto } text { fill: var(--ink); font-size: 12px }
.grid { stroke: var(--grid) } .ok { fill: var(--ok) } .bad { fill: var(--bad) }
"""


def page(found: Forecast) -> str:
    """The page as HTML. It asks nobody for anything: no script, no other host."""
    rows = "\n".join(_row(one) for one in found.jobs)
    title = f"{found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC"
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>goclaw simulate: {title}</title>
<style>{_STYLE}</style>
<h1>What the jobs will do</h1>
<p>{title}. Every mark is a run as long as it takes; red: due, and skipped.</p>
{_plot(found)}
<table>
<tr><th>Job<th>State<th>Runs<th>Coalesced<th>Skipped<th>Model calls<th>USD</tr>
{rows}
</table>
</html>
"""


def _row(one: Foreseen) -> str:
    skipped = ", ".join(f"{count} {why.value}" for why, count in one.skipped.items())
    usd = "" if one.usd is None else f"{one.usd:.2f}"
    return (
        f"<tr><td>{escape(one.job.spec.title)}<td>{one.job.state.value}"
        f'<td class="n">{one.runs}<td class="n">{one.coalesced}<td>{escape(skipped)}'
        f'<td class="n">{one.model_calls}<td class="n">{usd}</tr>'
    )


def _plot(found: Forecast) -> str:
    height = _LANE * (len(found.jobs) + 1)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="runs over time">']
    parts += _grid(found, height)
    lanes = {one.job.id: place for place, one in enumerate(found.jobs)}
    for one in found.jobs:
        y = lanes[one.job.id] * _LANE + 17
        parts.append(f'<text x="0" y="{y}">{escape(one.job.spec.slug[:26])}</text>')
    parts += (_mark(found, event, lanes[event.job]) for event in found.events[:_MOST_MARKS])
    return "\n".join([*parts, "</svg>"])


def _grid(found: Forecast, height: int) -> Iterator[str]:
    """A line for each day, or for as many as there is room."""
    days = max(1, (found.until - found.since).days)
    step = max(1, days // 15)
    for day in range(0, days + 1, step):
        at = found.since + timedelta(days=day)
        x = _x(found, day * 86_400.0)
        yield f'<line class="grid" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height - _LANE}"/>'
        yield f'<text x="{x:.1f}" y="{height - 8}">{at:%d %b}</text>'


def _mark(found: Forecast, event: Event, lane: int) -> str:
    start = event.started_at or event.due_at
    x = _x(found, (start - found.since).total_seconds())
    end = _x(found, (event.finished_at - found.since).total_seconds())
    kind = "ok" if event.status is Status.OK else "bad"
    width = max(end - x, 1.0)
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{lane * _LANE + 5}" width="{width:.1f}" '
        f'height="{_LANE - 10}"/>'
    )


def _x(found: Forecast, seconds: float) -> float:
    span = (found.until - found.since).total_seconds() or 1.0
    return _LEFT + (_WIDTH - _LEFT) * min(max(seconds / span, 0.0), 1.0)
