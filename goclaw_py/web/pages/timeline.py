"""The timeline: runs of the last hours as bars, one swim lane for each lane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.routing import Route

from goclaw_py.model.ids import LaneName
from goclaw_py.model.outcomes import Outcome
from goclaw_py.ports.control import Control
from goclaw_py.ports.store import RunSpan
from goclaw_py.web.pages.rendering import seconds
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query

SPANS: Final = {
    "10m": timedelta(minutes=10),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(days=1),
}
WIDTH: Final = 1000
"""The width in units; a unit is about a pixel of a wide screen."""

MOST: Final = 800
"""The number of runs that are drawn: each is a fifth of a kilobyte."""

SHORTEST: Final = timedelta(seconds=10)
"""For a shorter time span, the first runs are drawn, however many there are."""

ROWS: Final = 12
"""The number of rows of a lane; further runs share the last one."""

_ROW: Final = 14
_TICKS: Final = 6
_NARROWEST: Final = 3.0
_BAD: Final = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST, Outcome.ABANDONED})


@dataclass(frozen=True, slots=True)
class Stroke:
    """A run as a rectangle, in units of the picture. The style sets the height."""

    run: RunSpan
    x: float
    y: int
    width: float
    meaning: str
    words: str


@dataclass(frozen=True, slots=True)
class Swim:
    """The runs of a lane, with the position of its part of the picture."""

    lane: LaneName
    top: float
    height: float
    strokes: tuple[Stroke, ...]


def routes(service: PageServices) -> list[Route]:
    """Return the page; ``span`` selects its time span."""

    async def look(query: Query) -> Facts:
        name = query.get("span", "1h")
        span = SPANS.get(name, SPANS["1h"])
        # In steps, so that a small movement of the picture does not send everything again.
        step = span.total_seconds() / 200
        until = datetime.fromtimestamp((service.now().timestamp() // step + 1) * step, UTC)
        since = until - span
        runs, drawn = await newest(service.control, since, until)
        return {
            "spans": tuple(SPANS),
            "span": name if name in SPANS else "1h",
            "runs": runs,
            "named": [run.session for run in runs],
            "drawn": drawn if drawn > since else None,
            **draw(runs, since, until),
            "since": since,
            "until": until,
        }

    return service.routes(Page("/timeline", "timeline", "Timeline", look, ("span",), every_s=2.0))


async def newest(
    control: Control, since: datetime, until: datetime
) -> tuple[list[RunSpan], datetime]:
    """Return the newest runs that can be drawn, and the start of their time span."""
    while True:
        runs = await control.runs_between(since, until, limit=MOST)
        if len(runs) < MOST or until - since <= SHORTEST:
            return runs, since
        since = until - (until - since) / 4


def draw(runs: Iterable[RunSpan], since: datetime, until: datetime) -> Facts:
    """Lay out runs in units of the picture.

    Concurrent runs of a lane are below each other.
    """
    scale = WIDTH / (until - since).total_seconds()
    lanes: dict[LaneName, list[RunSpan]] = {}
    for run in runs:
        lanes.setdefault(run.lane, []).append(run)
    swims, top = [], 0.0
    for lane, members in sorted(lanes.items()):
        strokes, rows = _lay_out(members, since, until, scale, top + 4)
        height = rows * _ROW + 8.0
        swims.append(Swim(lane, top, height, tuple(strokes)))
        top += height
    step = (until - since) / _TICKS
    ticks = [(WIDTH * n / _TICKS, since + n * step) for n in range(_TICKS + 1)]
    return {"swims": swims, "ticks": ticks, "height": top}


def _lay_out(
    runs: list[RunSpan], since: datetime, until: datetime, scale: float, top: float
) -> tuple[list[Stroke], int]:
    free: list[float] = []  # up to where each row is taken
    strokes = []
    for run in sorted(runs, key=lambda one: one.started_at):
        left = max(0.0, (run.started_at - since).total_seconds() * scale)
        right = min(float(WIDTH), ((run.finished_at or until) - since).total_seconds() * scale)
        width = max(_NARROWEST, right - left)
        left = min(left, WIDTH - width)
        row = next((n for n, end in enumerate(free) if end <= left), len(free))
        if row == len(free):
            if row < ROWS:
                free.append(0.0)
            else:
                row = ROWS - 1
        free[row] = max(free[row], left + width)
        strokes.append(
            Stroke(
                run,
                round(left, 1),
                round(top) + row * _ROW,
                round(width, 1),
                _meaning(run),
                _words(run),
            )
        )
    return strokes, max(1, len(free))


def _meaning(run: RunSpan) -> str:
    if run.outcome is None:
        return "busy"
    if run.outcome is Outcome.COMPLETED:
        return "good"
    return "bad" if run.outcome in _BAD else "idle"


def _words(run: RunSpan) -> str:
    became = "works" if run.outcome is None else run.outcome.value.replace("_", " ")
    if run.finished_at is None:
        return became
    return f"{became} after {seconds((run.finished_at - run.started_at).total_seconds())}"
