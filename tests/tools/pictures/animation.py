"""Draws a recording of a terminal as an SVG that plays by itself.

Each content of a line is drawn once. CSS shows it while the line had that content. Where nothing is
animated, or a reader has asked for less motion, the last frame is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from xml.sax.saxutils import escape

from pyte.screens import Char

from tests.tools.pictures.recorder import Frame, Line, Recorder

STEP_S: Final = 0.1
"""Changes that follow faster are drawn as one."""
REST_S: Final = 4.0
"""How long the last frame stays."""
CELL: Final = (8.4, 18.0)
_MARGIN: Final = 14.0
_BAR: Final = 30.0
_INK, _PAPER = "#d8dee9", "#1e222a"
_COLOURS: Final = {
    "black": "#3b4252",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#d8dee9",
    "brightblack": "#7f8898",
    "brightred": "#e06c75",
    "brightgreen": "#98c379",
    "brightbrown": "#e5c07b",
    "brightblue": "#61afef",
    "brightmagenta": "#c678dd",
    "brightcyan": "#56b6c2",
    "brightwhite": "#ffffff",
}
_BLOCKS: Final = {"█": (0.0, 1.0), "▀": (0.0, 0.5), "▄": (0.5, 0.5)}
"""Begin and height of characters that must touch each other, as those of a QR code."""

Shown = tuple[int, Line, int, int]
"""A content of a row, and the steps from which and until which it is shown."""


def drawn(recorder: Recorder, title: str) -> str:
    """Return the SVG."""
    steps = max(1, round((recorder.length_s + REST_S) / STEP_S))
    spans = list(_spans(recorder.frames, recorder.rows, steps))
    contents = {line: number for number, line in enumerate(dict.fromkeys(s[1] for s in spans))}
    width = recorder.columns * CELL[0] + 2 * _MARGIN
    height = recorder.rows * CELL[1] + _BAR + _MARGIN
    look = (
        "text{white-space:pre;font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
        f".s{{opacity:0;animation:{steps * STEP_S:.1f}s step-end infinite}}.z{{opacity:1}}"
        "@media(prefers-reduced-motion){.s{animation:none}}"
    )
    styles = [look]
    uses = []
    for number, (row, line, begin, end) in enumerate(spans):
        last = " z" if end == steps else ""
        y = _BAR + row * CELL[1]
        uses.append(
            f'<use href="#c{contents[line]}" y="{y:g}" class="s{last}" '
            f'style="animation-name:k{number}"/>'
        )
        styles.append(keyframes(f"k{number}", begin, end, steps))
    symbols = [f'<g id="c{number}">{_line(line)}</g>' for line, number in contents.items()]
    lights = "".join(
        f'<circle cx="{_MARGIN + 6 + 18 * place:g}" cy="15" r="5.5" fill="{colour}"/>'
        for place, colour in enumerate(("#e06c75", "#e5c07b", "#98c379"))
    )
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{''.join(styles)}</style>\n"
        f"<defs>{''.join(symbols)}</defs>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>{lights}\n'
        f'<g fill="{_INK}">{"".join(uses)}</g>\n</svg>\n'
    )


def _spans(frames: Sequence[Frame], rows: int, steps: int) -> Iterator[Shown]:
    """Return when each content of each row is shown; blank lines are left out."""
    # Of several frames in one step the last one counts.
    at = {round(frame.at_s / STEP_S): frame for frame in frames}
    for row in range(rows):
        whole = [(step, at[step].lines[row]) for step in sorted(at)]
        changes = [next(group) for _, group in groupby(whole, key=lambda change: change[1])]
        ends = [*(step for step, _ in changes[1:]), steps]
        for (begin, line), end in zip(changes, ends, strict=True):
            if any(char.data.strip() or char.bg != "default" or char.reverse for char in line):
                yield row, line, begin, end


def keyframes(name: str, begin: int, end: int, steps: int) -> str:
    """Return the rule that shows something from one step until another."""
    points = {0: 0, begin: 1}
    if end < steps:
        points[end] = 0
    places = "".join(
        f"{100 * step / steps:.2f}%{{opacity:{shown}}}" for step, shown in sorted(points.items())
    )
    return f"@keyframes {name}{{{places}}}"


@dataclass(frozen=True, slots=True)
class _Style:
    """How characters beside each other look; ``block``: they must touch each other."""

    ink: str
    paper: str
    bold: bool
    italic: bool
    block: bool


def _line(line: Line) -> str:
    parts, column = [], 0
    for style, group in groupby(line, key=_style):
        text = "".join(char.data for char in group)
        parts.append(_run(column, text, style))
        column += len(text)
    return "".join(parts)


def _style(char: Char) -> _Style:
    ink, paper = _colour(char.fg, _INK), _colour(char.bg, _PAPER)
    if char.reverse:
        ink, paper = paper, ink
    return _Style(ink, paper, char.bold, char.italics, char.data in _BLOCKS)


def _run(column: int, text: str, style: _Style) -> str:
    x, width = _MARGIN + column * CELL[0], len(text) * CELL[0]
    back = ""
    if style.paper != _PAPER:
        back = f'<rect x="{x:g}" width="{width:.1f}" height="{CELL[1]:g}" fill="{style.paper}"/>'
    if style.block:
        path = ""
        for place, char in enumerate(text):
            top, part = _BLOCKS[char]
            left = x + place * CELL[0]
            path += f"M{left:.1f} {top * CELL[1]:g}h{CELL[0]}v{part * CELL[1]:g}h-{CELL[0]}z"
        return f'{back}<path d="{path}" fill="{style.ink}" shape-rendering="crispEdges"/>'
    if not text.strip():
        return back
    kept = text.rstrip()
    look = f' fill="{style.ink}"' if style.ink != _INK else ""
    look += ' font-weight="bold"' if style.bold else ""
    look += ' font-style="italic"' if style.italic else ""
    length = len(kept) * CELL[0]
    return f'{back}<text x="{x:.1f}" y="13.5" textLength="{length:.1f}"{look}>{escape(kept)}</text>'


def _colour(name: str, default: str) -> str:
    if name == "default":
        return default
    return _COLOURS.get(name, f"#{name}" if len(name) == 6 else default)
