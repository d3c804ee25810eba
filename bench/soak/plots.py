"""Plots of series as SVG: small, alike, and readable without colours."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from html import escape
from typing import Final

from bench.soak.series import Point, Series, Trend, Verdict

WIDTH: Final = 360
HEIGHT: Final = 170
MOST_POINTS: Final = 720
"""More of them than there are pixels say nothing more."""

_IMAGE: Final = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg"'
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 10, 42, 22


def plot(
    series: Series, points: Sequence[Point], found: Trend | None, verdict: Verdict, end_s: float
) -> str:
    """One series: its samples as a line, its folded ``points`` as dots, its trend as dashes.

    The plot begins at 0 in time and value, so that noise does not look like growth.
    """
    scale = _Scale(series, end_s)
    words = escape(f"{series.group}: {series.name}, {verdict}")
    parts = [
        f'<svg class="{escape(verdict.name.lower())}" {_IMAGE} aria-label="{words}">',
        _text(8, 14, series.name, "name"),
        _text(8, 27, f"{verdict}{_told(found)}", "verdict"),
        *_axes(scale, series.unit),
        f'<polyline class="samples" points="{scale.line(_thinned(series.points))}"/>',
    ]
    parts += [
        f'<circle cx="{x}" cy="{y}" r="1.8"/>' for x, y in (scale.place(one) for one in points)
    ]
    if found is not None:
        parts.append(f'<polyline class="trend" points="{scale.line((found.begin, found.end))}"/>')
    return "".join([*parts, "</svg>"])


class _Scale:
    def __init__(self, series: Series, end_s: float) -> None:
        self.end_s = max(end_s, 1e-9)
        self.top = _round_up(series.most)

    def place(self, point: Point) -> tuple[str, str]:
        """Where a point is in the picture."""
        wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        x = _LEFT + wide * point[0] / self.end_s
        y = HEIGHT - _BOTTOM - high * min(max(point[1] / self.top, 0.0), 1.0)
        return f"{x:.1f}", f"{y:.1f}"

    def line(self, points: Sequence[Point]) -> str:
        """The same of several."""
        return " ".join(",".join(self.place(point)) for point in points)


def _axes(scale: _Scale, unit: str) -> list[str]:
    bottom = HEIGHT - _BOTTOM
    lines = []
    for part in (0.0, 0.5, 1.0):
        value = part * scale.top
        _, y = scale.place((0.0, value))
        lines.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        name = f"{number(value)} {unit}".rstrip() if part else "0"
        lines.append(_text(_LEFT - 4, float(y) + 3, name, "value"))
    lines.append(_text(_LEFT, bottom + 14, "0", "time"))
    lines.append(_text(WIDTH - _RIGHT, bottom + 14, span(scale.end_s), "time end"))
    return lines


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _told(found: Trend | None) -> str:
    return "" if found is None else f", {share(found)} in the second half"


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    step = math.ceil(len(points) / MOST_POINTS)
    return points[::step] if step > 1 else points


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 times a power of ten; 1 for nothing, or next to nothing."""
    if value < sys.float_info.min or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10, 20) if step * power >= value)


def share(found: Trend) -> str:
    """By how much of the mean it rises, for people."""
    if math.isinf(found.share):
        return f"{found.rise:+.3g}"
    return f"{100 * found.share:+.1f} %"


def number(value: float) -> str:
    """A value for people."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def span(seconds: float) -> str:
    """A time for people."""
    return f"{seconds / 3600:.3g} h" if seconds >= 5400 else f"{seconds / 60:.3g} min"
