"""Tables that are readable on a phone."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from channels.telegram.formatting.markup import BOLD, QUOTE, Format, TextRun, nested, pre, unstyled
from channels.telegram.formatting.packing import Block, Flow, Verbatim

_PHONE_COLUMNS = 34
"""The columns of a line in a fixed-width font on a narrow phone."""
_GUTTER = "  "
_DASH = "—"
_EMOJI_COLUMNS = 2
_EMOJI_STYLE = "\ufe0f"
"""Follows a sign of one column that is to be shown as an emoji."""
_JOINER = "\u200d"
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
    """Return the columns of the widest line: wide characters have two, accents none."""
    if text.isascii() and "\n" not in text:
        return len(text)
    return max(_line_columns(line) for line in text.split("\n"))


def _line_columns(line: str) -> int:
    """Return the columns of a line. What belongs to an emoji adds nothing to its two columns."""
    columns = last = 0
    is_joined = False
    for char in line:
        width = _width(char)
        if is_joined or (_is_skin_tone(char) and last == _EMOJI_COLUMNS):
            width = 0
        elif char == _EMOJI_STYLE and last == 1:
            width, last = 1, _EMOJI_COLUMNS
        elif width:
            last = width
        columns += width
        is_joined = char == _JOINER and last == _EMOJI_COLUMNS
    return columns


def _width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _is_skin_tone(char: str) -> bool:
    return "\U0001f3fb" <= char <= "\U0001f3ff"


def _aligned(
    texts: Sequence[Sequence[str]],
    widths: Sequence[int],
    aligns: Sequence[Align],
    gap: TextRun,
    base: Format,
) -> Verbatim:
    lines: list[str] = []
    header = ""
    for number, row in enumerate((texts[0], ["─" * width for width in widths], *texts[1:])):
        # A cell may have several lines.
        cells = zip_longest(*(text.split("\n") for text in row), fillvalue="")
        lines += [_GUTTER.join(map(_padded, line, widths, aligns)).rstrip() for line in cells]
        if number == 1:
            header = "\n".join(lines)
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
