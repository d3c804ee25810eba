"""How long the runs of a job took, as a picture: pure geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from goclaw_py.web.pages.job_texts import LoggedLine
from goclaw_py.web.pages.rendering import seconds

HEIGHT: Final = 100
STEP: Final = 12
_WIDTH: Final = 8
_LEAST: Final = 3
"""What did not run is a stub of this height."""


@dataclass(frozen=True, slots=True)
class DurationBar:
    """A run as a bar; ``meaning`` is its colour."""

    x: int
    y: float
    width: int
    height: float
    meaning: str
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars in the order of time, the oldest first; the longest reaches the top."""

    width: int
    bars: tuple[DurationBar, ...]
    longest_s: float


def plot_of(newest_first: Sequence[LoggedLine]) -> Plot | None:
    """The picture of these occurrences; None if none of them has run."""
    lines = newest_first[::-1]
    longest = max((line.took_s or 0.0 for line in lines), default=0.0)
    if all(line.took_s is None for line in lines):
        return None
    bars = tuple(_bar(number, line, longest) for number, line in enumerate(lines))
    return Plot(STEP * len(bars), bars, longest)


def _bar(number: int, line: LoggedLine, longest: float) -> DurationBar:
    took = line.took_s or 0.0
    height = _LEAST + (HEIGHT - _LEAST) * (took / longest if longest else 0.0)
    said = line.row.status.value + (f", {line.why}" if line.why else "")
    lasted = f", {seconds(line.took_s)}" if line.took_s is not None else ""
    x = number * STEP + (STEP - _WIDTH) // 2
    title = f"{line.due_at}: {said}{lasted}"
    return DurationBar(x, round(HEIGHT - height, 2), _WIDTH, round(height, 2), line.meaning, title)
