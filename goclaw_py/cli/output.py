"""Prints tables, facts and JSON."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from typing import Any, Generic, TypeVar
from unicodedata import bidirectional, category

import typer

T = TypeVar("T")

_WIDE = 10_000
_SHORT = 20
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))

_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""Bidirectional controls, which can make a line look like a different one."""


def plain(text: str) -> str:
    """Remove the characters with which a chat could manipulate the terminal (SPEC SEC-1).

    Those are control characters except newline and tab, bidirectional controls, and lone
    surrogates. Joiners and all kinds of blanks stay, because scripts and numbers need them.
    """
    return "".join(c for c in text if c in "\n\t" or not _is_dangerous(c))


def _is_dangerous(char: str) -> bool:
    return category(char) in ("Cc", "Cs") or bidirectional(char) in _TURNS


def one_line(text: str, limit: int = 60) -> str:
    """Return the beginning of a text, on one line."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def duration(seconds: float) -> str:
    """Format a duration in its two largest units, such as ``2h 5m``; below a minute ``1.5s``."""
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
    """Format an instant in the time zone of this machine."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True, slots=True)
class Printer(Generic[T]):
    """How a command prints an answer: as JSON of type ``kind``, or as text by ``show``.

    ``document`` returns what the JSON shows; by default the answer itself.
    """

    kind: Any
    show: Callable[[T], None]
    as_json: bool
    document: Callable[[T], object] | None = None

    def print(self, found: T) -> None:
        """Print an answer."""
        if self.as_json:
            show_json(self.kind, found if self.document is None else self.document(found))
        else:
            self.show(found)


def since(at: datetime, seconds: float) -> tuple[str, str]:
    """Format when something began that has lasted for some seconds, and how long that is."""
    return clock(at - timedelta(seconds=seconds)), duration(seconds)


def show_json(kind: Any, value: object) -> None:
    """Print a value as JSON, as the HTTP API does."""
    from goclaw_py.web.api.wire import adapter  # noqa: PLC0415

    typer.echo(adapter(kind).dump_json(value, indent=2).decode())


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """Print a table, or ``empty`` if it has no rows. In a pipe lines are never cut or wrapped."""
    typer.echo(table_text(columns, rows, empty=empty))


def table_text(columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> str:
    """Return a table as text for the terminal or pipe, without a newline at the end."""
    rows = list(rows)
    if not rows:
        return empty
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        # Do not wrap short names in the first column on a narrow terminal: people copy them.
        is_name = place == 0 and all(len(row[0]) <= _SHORT for row in rows)
        table.add_column(column, overflow="fold", no_wrap=is_name)
    for row in rows:
        # Use Text, because rich interprets [brackets] in strings as markup.
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
    # Strip trailing blanks in a pipe; on a terminal the end of a line contains colour codes.
    return "\n".join(lines if interactive else map(str.rstrip, lines))


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line."""
    facts = list(facts)
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        typer.echo(f"{name:<{width}}  {plain(value)}")
