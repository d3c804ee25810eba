"""Tables that are readable on a phone."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from channels.telegram.formatting.markup import BOLD, QUOTE, Format, TextRun, nested, pre, unstyled
from channels.telegram.formatting.packing import Block, Flow, Verbatim

_PHONE_COLUMNS = 34
"""The columns of a line in a fixed-width font on a narrow phone."""
_GUTTER = "  "
_DASH = "—"
_MOST_REPEATED = 8_000
"""The most characters for repeated headings of a wide table."""

Cell = Sequence[TextRun]


class Align(Enum):
    """The alignment of a column."""

    LEFT = "left"
    RIGHT = "right"
    CENTER = "center"


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table whose rows have equal numbers of cells; the first row is the heading."""

    aligns: Sequence[Align]
    rows: Sequence[Sequence[Cell]]


def table_blocks(table: TextTable, gap: TextRun, base: Format) -> list[Block]:
    """Return a table as aligned text if it fits on a phone, otherwise as a block per row."""
    texts = [[_text(cell) for cell in row] for row in table.rows]
    widths = [max(1, *map(_columns, column)) for column in zip(*texts, strict=True)]
    whole = sum(widths) + len(_GUTTER) * (len(widths) - 1)
    # In a font of fixed width there are no links, and an address may be what matters.
    linked = any(_is_linked(run) for row in table.rows for cell in row for run in cell)
    if whole <= _PHONE_COLUMNS and not linked:
        return [_aligned(texts, widths, table.aligns, gap, base)]
    repeated = (sum(map(len, texts[0])) + len(widths)) * (len(texts) - 1)
    if 0 < repeated <= _MOST_REPEATED:
        return _gapped([_titled(table.rows[0], row, base) for row in table.rows[1:]], gap, base)
    return _gapped([_listed(row, base) for row in table.rows], gap, base)


def _text(cell: Cell) -> str:
    return "".join(run.text for run in cell)


def _is_linked(run: TextRun) -> bool:
    return any(tag is not QUOTE for tag in unstyled(run.format))


def _columns(text: str) -> int:
    """Return the columns of a text: wide characters have two, accents none."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _aligned(
    texts: Sequence[Sequence[str]],
    widths: Sequence[int],
    aligns: Sequence[Align],
    gap: TextRun,
    base: Format,
) -> Verbatim:
    lines = [
        _GUTTER.join(map(_padded, row, widths, aligns)).rstrip()
        for row in (texts[0], ["─" * width for width in widths], *texts[1:])
    ]
    header = "\n".join(lines[:2])
    return Verbatim("\n".join(lines), nested(base, pre("")), gap, header)


def _padded(text: str, width: int, align: Align) -> str:
    missing = width - _columns(text)
    match align:
        case Align.LEFT:
            return text + " " * missing
        case Align.RIGHT:
            return " " * missing + text
        case Align.CENTER:
            return " " * (missing // 2) + text + " " * (missing - missing // 2)


def _titled(titles: Sequence[Cell], row: Sequence[Cell], base: Format) -> list[TextRun]:
    """Return a line for each cell, after the heading of its column."""
    runs: list[TextRun] = []
    for title, cell in zip(titles, row, strict=True):
        if runs:
            runs.append(TextRun("\n", base))
        if title:
            runs += [TextRun(text, nested(form, BOLD)) for text, form in title]
            runs.append(TextRun(": ", base))
        runs += cell or [TextRun(_DASH, base)]
    return runs


def _listed(row: Sequence[Cell], base: Format) -> list[TextRun]:
    """Return all cells in one line."""
    runs: list[TextRun] = []
    for number, cell in enumerate(row):
        if number:
            runs.append(TextRun(" | ", base))
        runs += cell or [TextRun(_DASH, base)]
    return runs


def _gapped(rows: Sequence[list[TextRun]], gap: TextRun, base: Format) -> list[Block]:
    return [
        Flow(runs, TextRun("\n\n", base) if number else gap) for number, runs in enumerate(rows)
    ]
