"""A forecast as an HTML page: one row per job and heartbeat, one mark per run.

Skipped runs of jobs are red. Skipped heartbeat runs are normal and numerous, so they are only a
thin grey line below the marks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

from jinja2 import Environment

from goclaw_py.cli.output import one_line
from goclaw_py.cli.simulate.texts import heart_name, heartbeat_runs_row, reach, row, total
from goclaw_py.schedule.forecast_models import Forecast
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus

_LEFT = 190
_COLUMNS = 780
_MOST_LINES = 15
_STEPS = tuple(timedelta(hours=hours) for hours in (1, 3, 6, 12, 24, 48, 168, 720, 2160, 8760))

_HEAD = ("Job", "State", "Runs", "Coalesced", "Skipped", "Model requests", "USD", "Latest start")
_HEARTBEAT_RUNS_HEAD = ("Agent", "Heartbeat runs", "Model requests", "Skipped", "USD")
_NUMBERS = ("Runs", "Coalesced", "Heartbeat runs", "Model requests", "USD", "Latest start")

_Span = tuple[datetime, datetime]


def page(found: Forecast) -> str:
    """The page as HTML that is XML too. It asks nobody for anything: no script, no other host."""
    cut = f" Stopped at the limit of the simulation, after {reach(found)}." if found.cut else ""
    jobs = [(one_line(one.job.spec.title, 200), *row(one)[1:]) for one in found.jobs]
    heartbeat_runs = [
        tuple(one_line(cell, 200) for cell in heartbeat_runs_row(one)) for one in found.heartbeats
    ]
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    template = environment.from_string(Path(__file__).with_name("page.html").read_text("utf-8"))
    return template.render(
        title=f"{found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC",
        summary=f"{total(found)}.{cut}",
        days=list(_days(found)),
        lanes=_lanes(found),
        tables=[(_HEAD, jobs), (_HEARTBEAT_RUNS_HEAD, heartbeat_runs)],
        numbers=_NUMBERS,
    )


class _Lane:
    """A row of the plot: the time spans of runs, by the CSS class of their marks."""

    def __init__(self, found: Forecast, name: str) -> None:
        self.name = one_line(name, 26)
        self.spans: defaultdict[str, list[_Span]] = defaultdict(list)
        self._found = found

    def marks(self, kind: str) -> Iterator[tuple[int, int]]:
        """Yield place and width of marks that show all runs; runs that touch share a mark."""
        columns: set[int] = set()
        for begin, end in self.spans[kind]:
            columns.update(range(_column(self._found, begin), _column(self._found, end) + 1))
        # Numbers that follow each other are as far from their places in the order.
        for _, group in groupby(enumerate(sorted(columns)), lambda pair: pair[1] - pair[0]):
            places = [column for _, column in group]
            yield places[0], len(places)


def _lanes(found: Forecast) -> list[_Lane]:
    """Return the rows that have marks."""
    jobs = {one.job.id: _Lane(found, one.job.spec.slug) for one in found.jobs}
    for event in found.events:
        kind = "ok" if event.status is OccurrenceStatus.OK else "bad"
        span = event.started_at or event.due_at, event.finished_at
        jobs[event.job].spans[kind].append(span)
    hearts = {one.agent: _Lane(found, heart_name(one)) for one in found.heartbeats}
    for heartbeat_run in found.heartbeat_runs:
        kind = "bad" if heartbeat_run.status is HeartbeatRunStatus.FAILED else "ok"
        kind = "idle" if heartbeat_run.skip is not None else kind
        span = heartbeat_run.started_at or heartbeat_run.due_at, heartbeat_run.finished_at
        hearts[heartbeat_run.agent].spans[kind].append(span)
    return [lane for lane in (*jobs.values(), *hearts.values()) if lane.spans]


def _days(found: Forecast) -> Iterator[tuple[int, str]]:
    """Yield a vertical line for each day, or fewer if there is not enough room."""
    span = found.until - found.since
    step = next((one for one in _STEPS if span <= _MOST_LINES * one), _STEPS[-1])
    at = found.since
    while at <= found.until:
        yield _column(found, at), _day(at, step)
        at += step


def _day(at: datetime, step: timedelta) -> str:
    if step < timedelta(days=1):
        return f"{at:%H:%M}"
    return f"{at:%d %b}" if step <= timedelta(days=30) else f"{at:%b %Y}"


def _column(found: Forecast, at: datetime) -> int:
    span = (found.until - found.since) / timedelta(seconds=1) or 1.0
    part = (at - found.since) / timedelta(seconds=1) / span
    return _LEFT + round(_COLUMNS * min(max(part, 0.0), 1.0))
