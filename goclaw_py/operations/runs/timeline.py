"""The picture of the timeline: runs as bars on a time axis, one swim lane for each lane.

Where there are too many runs for a bar each, it shows how many started in each part of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Final

from goclaw_py.core.ids import LaneName
from goclaw_py.core.outcomes import FAILURES, Outcome
from goclaw_py.core.text import count
from goclaw_py.records import RunDensity, RunSpan

WIDTH: Final = 100.0
"""The width of the picture in percent: it is as wide as its place, and its texts are not scaled."""

PARTS: Final = 100
"""The number of parts into which a time with too many runs is divided."""

ROWS: Final = 12
"""The number of rows of a lane; further runs share the last one."""

_ROW: Final = 18
_NAME: Final = 20
"""The height of the name of a lane, above its runs."""

_NARROWEST: Final = 0.3
_PILE: Final = 80.0
"""The height of a lane with too many runs."""

_MOST_TICKS: Final = 6
_STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(hours * 3600 for hours in (1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 1440, 2160)),
)
"""The times between two ticks, in seconds."""
_NAMES: Final = {"bad": "failed", "busy": "running", "idle": "cancelled", "good": "completed"}
_WORST_FIRST: Final = tuple(_NAMES)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A run as a rectangle: place and width in percent of the width, ``y`` in pixels."""

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
    """The runs of a lane, with the position of its part of the picture.

    ``covered`` is how many runs the last row has besides those that fit into it.
    """

    lane: LaneName
    top: float
    height: float
    strokes: tuple[Stroke, ...] = ()
    heaps: tuple[Heap, ...] = ()
    covered: int = 0


def pile(counts: Iterable[RunDensity], since: datetime, until: datetime) -> Mapping[str, object]:
    """Lay out how many runs of each lane started in each part, in units of the picture."""
    lanes: dict[LaneName, dict[int, dict[str, int]]] = {}
    for one in counts:
        part = lanes.setdefault(one.lane, {}).setdefault(one.part, {})
        meaning = outcome_meaning(one.outcome)
        part[meaning] = part.get(meaning, 0) + one.runs
    most = max((sum(part.values()) for lane in lanes.values() for part in lane.values()), default=1)
    swims, top = [], 0.0
    for lane, parts in sorted(lanes.items()):
        heaps = [
            _heap(
                number,
                part,
                top + _NAME + _PILE,
                most,
                since + number * (until - since) / PARTS,
                until,
            )
            for number, part in sorted(parts.items())
        ]
        height = _NAME + _PILE + 4.0
        swims.append(Swim(lane, top, height, heaps=tuple(heaps)))
        top += height
    return {"swims": swims, "height": top, **_scale(since, until)}


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
    words = f"{count(sum(part.values()), 'run')}: {', '.join(counted)}"
    width = WIDTH / PARTS
    return Heap(number * width + 0.05, width - 0.1, tuple(bars), words, at, at + step)


def _scale(since: datetime, until: datetime) -> Mapping[str, object]:
    """Return the ticks at round times, and what their labels show: ``second``, ``minute``, ``day``.

    The round times are those of UTC.
    """
    whole_s = (until - since).total_seconds()
    step_s = next((one for one in _STEPS_S if whole_s / one <= _MOST_TICKS), _STEPS_S[-1])
    first = ceil(since.timestamp() / step_s)
    last = int(until.timestamp() // step_s)
    instants = [datetime.fromtimestamp(n * step_s, UTC) for n in range(first, last + 1)]
    places = [(at - since).total_seconds() / whole_s * WIDTH for at in instants]
    ticks = [(round(x, 2), at) for x, at in zip(places, instants, strict=True)]
    unit = "second" if step_s < 60 else "minute" if step_s < 86_400 else "day"
    return {"ticks": ticks, "unit": unit}


def draw(
    runs: Iterable[RunSpan], since: datetime, until: datetime, whole: str = ""
) -> Mapping[str, object]:
    """Lay out runs in units of the picture.

    Concurrent runs of a lane are below each other; those of the lane ``whole`` in as many rows as
    they need.
    """
    scale = WIDTH / (until - since).total_seconds()
    lanes: dict[LaneName, list[RunSpan]] = {}
    for run in runs:
        lanes.setdefault(run.lane, []).append(run)
    swims, top = [], 0.0
    for lane, members in sorted(lanes.items()):
        most = len(members) if lane == whole else ROWS
        strokes, rows, covered = _lay_out(members, since, until, scale, top + _NAME, most)
        height = _NAME + rows * _ROW + 4.0
        swims.append(Swim(lane, top, height, tuple(strokes), covered=covered))
        top += height
    return {"swims": swims, "height": top, **_scale(since, until)}


def _lay_out(
    runs: list[RunSpan], since: datetime, until: datetime, scale: float, top: float, most: int
) -> tuple[list[Stroke], int, int]:
    free: list[float] = []  # up to where each row is taken
    strokes, covered = [], 0
    for run in sorted(runs, key=lambda one: one.started_at):
        left = max(0.0, (run.started_at - since).total_seconds() * scale)
        right = min(WIDTH, ((run.finished_at or until) - since).total_seconds() * scale)
        width = max(_NARROWEST, right - left)
        # Short runs are drawn longer than they were, and may cover each other: below each other
        # they would look as if they had run at the same time.
        row = next((n for n, end in enumerate(free) if end <= left), len(free))
        if row == len(free):
            if row < most:
                free.append(0.0)
            else:
                row, covered = most - 1, covered + 1
        free[row] = max(free[row], right)
        strokes.append(
            Stroke(
                run,
                round(min(left, WIDTH - width), 2),
                round(top) + row * _ROW,
                round(width, 2),
                outcome_meaning(run.outcome),
                "running" if run.outcome is None else run.outcome.value.replace("_", " "),
            )
        )
    return strokes, max(1, len(free)), covered


def outcome_meaning(outcome: Outcome | None) -> str:
    """Return the colour of a run, everywhere: None is one in progress."""
    if outcome is None:
        return "busy"
    if outcome is Outcome.COMPLETED:
        return "good"
    return "bad" if outcome in FAILURES else "idle"
