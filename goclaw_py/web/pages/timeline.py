"""The timeline: runs as bars on a time axis, one swim lane for each lane.

Where there are too many runs for a bar each, it shows how many started in each part of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.exceptions import HTTPException
from starlette.routing import Route

from goclaw_py.core.ids import LaneName
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.records import RunDensity, RunSpan
from goclaw_py.web.pages.filters import Field, ListFilters, Tab, one_of, params_of
from goclaw_py.web.pages.rendering import seconds
from goclaw_py.web.pages.runs import run_filter
from goclaw_py.web.pages.services import Facts, Page, PageServices, Query

SPANS: Final = {
    "10m": timedelta(minutes=10),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(days=1),
}
_STATES: Final = ("1h", *(name for name in SPANS if name != "1h"))
WIDTH: Final = 1000
"""The width in units; a unit is about a pixel of a wide screen."""

MOST: Final = 800
"""The number of runs that are drawn: each is a fifth of a kilobyte."""

SHORTEST: Final = timedelta(seconds=1)
"""The shortest time span. One with too many runs is drawn in parts, however short it is."""

PARTS: Final = 100
"""The number of parts into which a time with too many runs is divided."""

ROWS: Final = 12
"""The number of rows of a lane; further runs share the last one."""

_ROW: Final = 14
_TICKS: Final = 6
_NARROWEST: Final = 3.0
_PILE: Final = 80.0
"""The height of a lane with too many runs."""
_NAMES: Final = {"bad": "failed", "busy": "running", "idle": "stopped", "good": "completed"}
_WORST_FIRST: Final = tuple(_NAMES)
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
class Heap:
    """The runs that started in a part of the time: bars above each other, the worst at the bottom.

    ``since`` and ``until`` are the part, for a closer look.
    """

    x: float
    width: float
    bars: tuple[tuple[str, float, float], ...]
    """Meaning, y and height of each."""
    words: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Swim:
    """The runs of a lane, with the position of its part of the picture."""

    lane: LaneName
    top: float
    height: float
    strokes: tuple[Stroke, ...] = ()
    heaps: tuple[Heap, ...] = ()


def routes(service: PageServices) -> list[Route]:
    """Return the page; ``span`` selects its time span, or ``from`` and ``to`` do."""

    async def look(query: Query) -> Facts:
        fields = (
            one_of("agent", "Agent", service.control.heartbeats.agents),
            one_of("trigger", "Trigger", Trigger),
            one_of("outcome", "Outcome", Outcome),
            Field("from", "From", hidden=True),
            Field("to", "To", hidden=True),
        )
        tabs = tuple(map(Tab, SPANS))
        filters = ListFilters("/timeline", "runs", query, fields, _STATES, "span", tabs=tabs)
        outcome = filters.values["outcome"]
        only = replace(run_filter(filters.values), outcome=Outcome(outcome) if outcome else None)
        name = filters.show
        span = SPANS[name]
        # In steps, so that a small movement of the picture does not send everything again.
        step = span.total_seconds() / 200
        until = datetime.fromtimestamp((service.now().timestamp() // step + 1) * step, UTC)
        since, until = _chosen(query) or (until - span, until)
        runs = await service.control.runs_between(since, until, limit=MOST + 1, only=only)
        facts: Facts = {}
        if len(runs) > MOST:
            runs = []
            counts = await service.control.run_density(since, until, parts=PARTS, only=only)
            facts = pile(counts, since, until)
        return {
            "filters": filters,
            "span": "" if "from" in query else name,
            "runs": runs,
            "named": [run.session for run in runs],
            **(facts or draw(runs, since, until)),
            "piled": bool(facts),
            "since": since,
            "until": until,
        }

    params = params_of("span", "from", "to", "agent", "trigger", "outcome")
    return service.routes(Page("/timeline", "timeline", "Timeline", look, params, 2.0, keeps=True))


def _chosen(query: Query) -> tuple[datetime, datetime] | None:
    """Return the time in the address, at least ``SHORTEST``. Raises ``HTTPException`` (422)."""
    if "from" not in query:
        return None
    try:
        since, until = (datetime.fromisoformat(query.get(name, "")) for name in ("from", "to"))
        since, until = since.astimezone(UTC), until.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise HTTPException(422, "from and to: times such as 2026-01-31T08:00:00Z") from error
    if not timedelta(0) < until - since <= timedelta(days=366):
        raise HTTPException(422, "to: must be after from, at most by a year")
    return since, max(until, since + SHORTEST)


def pile(counts: Iterable[RunDensity], since: datetime, until: datetime) -> Facts:
    """Lay out how many runs of each lane started in each part, in units of the picture."""
    lanes: dict[LaneName, dict[int, dict[str, int]]] = {}
    for one in counts:
        part = lanes.setdefault(one.lane, {}).setdefault(one.part, {})
        meaning = _meaning(one.outcome)
        part[meaning] = part.get(meaning, 0) + one.runs
    most = max((sum(part.values()) for lane in lanes.values() for part in lane.values()), default=1)
    swims, top = [], 0.0
    for lane, parts in sorted(lanes.items()):
        heaps = [
            _heap(number, part, top + _PILE, most, since + number * (until - since) / PARTS, until)
            for number, part in sorted(parts.items())
        ]
        swims.append(Swim(lane, top, _PILE + 4.0, heaps=tuple(heaps)))
        top += _PILE + 4.0
    return {"swims": swims, "ticks": _ticks(since, until), "height": top}


def _heap(
    number: int, part: Mapping[str, int], base: float, most: int, at: datetime, until: datetime
) -> Heap:
    bars, y = [], base
    for meaning in _WORST_FIRST:
        if runs := part.get(meaning, 0):
            height = max(1.0, runs / most * (_PILE - 4))
            y -= height
            bars.append((meaning, round(y, 1), round(height, 1)))
    step = (until - at) / (PARTS - number)
    counted = [
        f"{part[meaning]:,} {_NAMES[meaning]}" for meaning in _WORST_FIRST if meaning in part
    ]
    words = f"{sum(part.values()):,} runs: {', '.join(counted)}"
    width = WIDTH / PARTS
    return Heap(number * width + 0.5, width - 1, tuple(bars), words, at, at + step)


def _ticks(since: datetime, until: datetime) -> list[tuple[float, datetime]]:
    step = (until - since) / _TICKS
    return [(WIDTH * n / _TICKS, since + n * step) for n in range(_TICKS + 1)]


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
    return {"swims": swims, "ticks": _ticks(since, until), "height": top}


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
                _meaning(run.outcome),
                _words(run),
            )
        )
    return strokes, max(1, len(free))


def _meaning(outcome: Outcome | None) -> str:
    if outcome is None:
        return "busy"
    if outcome is Outcome.COMPLETED:
        return "good"
    return "bad" if outcome in _BAD else "idle"


def _words(run: RunSpan) -> str:
    became = "works" if run.outcome is None else run.outcome.value.replace("_", " ")
    if run.finished_at is None:
        return became
    return f"{became} after {seconds((run.finished_at - run.started_at).total_seconds())}"
