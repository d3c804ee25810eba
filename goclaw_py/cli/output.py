"""Tables for people, JSON for programs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Any
from unicodedata import bidirectional, category

import typer

_WIDE = 10_000
_SHORT = 20
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))

_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""What turns the direction of text, and can make a line look like another one."""


def plain(text: str) -> str:
    """Text without the characters with which a chat could take over the terminal (SPEC SEC-1).

    Those are control characters but newline and tab, those that turn the direction of text, and
    lone surrogates. Joiners and all kinds of blanks stay: scripts and numbers need them.
    """
    return "".join(c for c in text if c in "\n\t" or not _is_dangerous(c))


def _is_dangerous(char: str) -> bool:
    return category(char) in ("Cc", "Cs") or bidirectional(char) in _TURNS


def one_line(text: str, limit: int = 60) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def duration(seconds: float) -> str:
    """A duration in its two largest units, such as ``2h 5m``; below a minute ``1.5s``."""
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"
    rest = int(seconds)
    parts: list[str] = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def clock(at: datetime | None) -> str:
    """An instant in the zone of this machine."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def show_json(kind: Any, value: object) -> None:
    """Write a value as the HTTP API would."""
    from goclaw_py.web.api.wire import adapter  # noqa: PLC0415

    typer.echo(adapter(kind).dump_json(value, indent=2).decode())


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """Write a table; ``empty`` instead if it has no rows. In a pipe nothing is cut or wrapped."""
    typer.echo(table_text(columns, rows, empty=empty))


def table_text(columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> str:
    """A table as text for where standard output goes, without a newline at its end."""
    rows = list(rows)
    if not rows:
        return empty
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        # A short name at the beginning stays whole on a narrow terminal: it is what people copy.
        is_name = place == 0 and all(len(row[0]) <= _SHORT for row in rows)
        table.add_column(column, overflow="fold", no_wrap=is_name)
    for row in rows:
        # Not strings: rich would read [brackets] in them as markup.
        table.add_row(*(Text(plain(cell)) for cell in row))
    interactive = sys.stdout.isatty()
    text = StringIO()
    Console(
        file=text,
        width=shutil.get_terminal_size().columns if interactive else _WIDE,
        force_terminal=interactive,
        highlight=False,
    ).print(table)
    lines = text.getvalue().rstrip("\n").split("\n")
    # A terminal has its colours at the end of a line; elsewhere blanks there are of no use.
    return "\n".join(lines if interactive else map(str.rstrip, lines))


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Write names and values, one a line."""
    facts = list(facts)
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        typer.echo(f"{name:<{width}}  {plain(value)}")
