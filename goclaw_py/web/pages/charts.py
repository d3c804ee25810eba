"""Charts as SVG, laid out by the server: they need no script, and have a table beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 600
HEIGHT: Final = 120
"""The size of a chart in units; it is scaled to its place."""


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
        top: The largest value, as people read it.
        bars: Later ones are drawn over earlier ones.
        first: The label of the left end, ``last`` that of the right end.
    """

    title: str
    top: str
    bars: tuple[Bar, ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Series:
    """The values of a chart, one for each label; None is no value.

    ``meaning`` selects the colour: good, bad, busy or idle.
    """

    name: str
    meaning: str
    values: Sequence[float | None]


def bar_chart(
    title: str, labels: Sequence[str], series: Sequence[Series], words: Callable[[float], str]
) -> Chart:
    """Lay out a chart. Of each label the bars of all series stand one in front of the other.

    ``labels`` has at least one label; give the series with the larger values first.
    """
    top = max((value or 0.0 for one in series for value in one.values), default=0.0)
    step = WIDTH / len(labels)
    bars = [
        Bar(
            round(place * step + step * 0.1, 2),
            round(HEIGHT - value / top * HEIGHT, 2),
            round(step * 0.8, 2),
            round(value / top * HEIGHT, 2),
            one.meaning,
            f"{label}: {words(value)}{f' {one.name}' if one.name else ''}",
        )
        for one in series
        for place, (label, value) in enumerate(zip(labels, one.values, strict=True))
        if value and top
    ]
    return Chart(title, words(top) if top else "", tuple(bars), labels[0], labels[-1])
