"""Charts as SVG, laid out by the server: they need no script, and have a table beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final

WIDTH: Final = 360
HEIGHT: Final = 150
"""The size of a chart in units; it is scaled to its place."""

LEFT: Final = 52
TOP: Final = 14
BOTTOM: Final = HEIGHT - 16
"""The bars are right of ``LEFT``, between ``TOP`` and ``BOTTOM``; labels are around them."""

_MOST_TICKS: Final = 4
_LETTER: Final = 6
"""The width of a letter of a label: the last label must not be cut off."""

_ROUND: Final = (1.0, 2.0, 5.0, 10.0)

_TIMES_S: Final = (
    *(1, 2, 5, 10, 15, 60, 120, 300, 600, 900),
    *(hours * 3600.0 for hours in (1, 2, 3, 6, 24)),
)
"""Steps of which a few make a short duration, such as 30 s, 4 min or 18 h."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from the bottom line, in units. ``words`` are shown on hover."""

    x: float
    y: float
    width: float
    height: float
    meaning: str
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars over a time axis.

    Args:
        title: What it shows.
        value: The sum or the newest value, as people read it.
        bars: Later ones are drawn over earlier ones; none if there are no values.
        levels: The lines of round values: y, and the value as people read it.
        ticks: The labels of the time axis: x, and the words.
        first: The label of the first bar, ``last`` that of the last one.
    """

    title: str
    value: str
    bars: tuple[Bar, ...]
    levels: tuple[tuple[float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Series:
    """The values of a chart, one for each label; None is no value.

    ``meaning`` selects the colour: good, bad, busy, idle or told.
    """

    name: str
    meaning: str
    values: Sequence[float | None]


def bar_chart(
    title: str,
    value: str,
    labels: Sequence[str],
    series: Sequence[Series],
    words: Callable[[float], str],
    *,
    is_time: bool = False,
) -> Chart:
    """Lay out a chart. Of each label the bars of all series stand one in front of the other.

    ``labels`` has at least one label; give the series with the larger values first. ``is_time``:
    the values are seconds.
    """
    largest = max((value or 0.0 for one in series for value in one.values), default=0.0)
    step = _round_step(largest)
    if is_time and step >= 1:
        step = next((one for one in _TIMES_S if largest / one <= _MOST_TICKS), step)
    lines = -int(-largest // step) if largest else 0
    scale = (BOTTOM - TOP) / (lines * step) if lines else 0.0
    width = (WIDTH - LEFT) / len(labels)
    bars = [
        Bar(
            round(LEFT + place * width + width * 0.1, 2),
            round(BOTTOM - value * scale, 2),
            round(width * 0.8, 2),
            round(value * scale, 2),
            one.meaning,
            f"{label}: {words(value)}{f' {one.name}' if one.name else ''}",
        )
        for one in series
        for place, (label, value) in enumerate(zip(labels, one.values, strict=True))
        if value
    ]
    levels = [(round(BOTTOM - n * step * scale, 2), words(n * step)) for n in range(1, lines + 1)]
    each = -(-len(labels) // _MOST_TICKS)
    places = [(round(LEFT + n * width, 2), labels[n]) for n in range(0, len(labels), each)]
    ticks = [(x, label) for x, label in places if x + len(label) * _LETTER <= WIDTH]
    return Chart(title, value, tuple(bars), tuple(levels), tuple(ticks), labels[0], labels[-1])


def _round_step(largest: float) -> float:
    """Return the step between lines, one of 1, 2 or 5 times a power of ten: two to four lines."""
    if not largest:
        return 1.0
    power = 10.0 ** floor(log10(largest / 2))
    return next(power * one for one in _ROUND if largest / (power * one) <= _MOST_TICKS)
