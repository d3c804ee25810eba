"""Prints tables, facts and JSON."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from unicodedata import bidirectional, category

import typer

from goclaw_py.core import display_names
from goclaw_py.core.errors import NotAccepted
from goclaw_py.core.time.texts import age, duration, zone_or_utc

if TYPE_CHECKING:
    from rich.table import Table

T = TypeVar("T")

_SHORT = 20

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
    """Return the beginning of a text on one line, at most ``limit`` cells of the terminal."""
    flat = " ".join(plain(text).split())
    if 2 * len(flat) <= limit:
        return flat
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    if cell_len(flat) <= limit:
        return flat
    # A wide character that does not fit would leave a blank.
    return set_cell_size(flat, limit - 1).rstrip() + "…"


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


def started_text(run: str) -> str:
    """Return what a command prints that has started a run: in a pipe, only its id."""
    if not sys.stdout.isatty():
        return run
    return f"started run {run}\nto follow it: goclaw runs follow {run}"


def since(at: datetime, seconds: float) -> tuple[str, str]:
    """Format when something began that has lasted for some seconds, and how long that is."""
    return clock(at - timedelta(seconds=seconds)), duration(seconds)


def refuse_existing(file: Path) -> None:
    """Raise ``NotAccepted`` if a command would replace a file."""
    if file.is_file():
        text = f"{file}: the file already exists; choose another name, or delete it"
        raise NotAccepted(plain(text))


def show_json(kind: Any, value: object) -> None:
    """Print a value as JSON, as the HTTP API does."""
    from goclaw_py.web.api.wire import adapter  # noqa: PLC0415

    typer.echo(adapter(kind).dump_json(value, indent=2).decode())


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and what becomes of it on a narrow terminal.

    Args:
        drop: The columns with the highest number are left out first; one with 0 never is.
        least: Cells may be cut to this width; with 0 they are never cut, as ids must not be.
        state: Whether the first word of a cell is a state, which has a colour on a terminal.
        wraps: Whether a cell that is too wide takes more lines: a reason is read to its end.
    """

    title: str
    drop: int = 0
    least: int = 0
    state: bool = False
    wraps: bool = False


Columns = Sequence[str | Column]

_GAP: Final = 2
"""Blanks between two columns."""

_LEAST: Final = 24
"""The width to which the last column may be cut in a table that names no other one."""

_COLOURS: Final = {
    word: colour
    for colour, words in {
        "red": "failed expired lost timed_out abandoned delivery_failed no_route denied "
        "stopped unauthorized conflict",
        "yellow": "waiting pending paused draining deferred queued ready collecting stopping "
        "reconnecting",
        "green": "running ok completed sent connected live active",
    }.items()
    for word in words.split()
}

_is_wide: ContextVar[bool] = ContextVar("is_wide", default=False)


@contextmanager
def full_width(wide: bool) -> Iterator[None]:  # noqa: FBT001  (the value of an option)
    """Show all columns of tables meanwhile, whole, if ``wide``."""
    token = _is_wide.set(wide)
    try:
        yield
    finally:
        _is_wide.reset(token)


def shows_whole() -> bool:
    """Return whether tables show everything whole: with ``--wide``, and in a pipe."""
    return _is_wide.get() or not sys.stdout.isatty()


def short_id(whole: str) -> str:
    """Shorten an id on a terminal. Commands accept its beginning."""
    return whole if shows_whole() else display_names.short_id(whole)


def show_table(columns: Columns, rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """Print a table, or ``empty`` if it has no rows.

    On a terminal each row takes one line: columns are left out and cells cut. With ``--wide`` long
    cells are folded instead. In a pipe nothing is left out, cut or folded.
    """
    typer.echo(table_text(columns, rows, empty=empty))


def table_text(columns: Columns, rows: Iterable[Sequence[str]], *, empty: str) -> str:
    """Return a table as text for the terminal or pipe, without a newline at the end."""
    heads = [Column(one) if isinstance(one, str) else one for one in columns]
    cells = [[flat(cell) for cell in row] for row in rows]
    if not cells:
        return empty
    from rich.console import Console  # noqa: PLC0415

    interactive = sys.stdout.isatty()
    folds = interactive and _is_wide.get()
    room = shutil.get_terminal_size().columns
    widths = _whole(heads, cells)
    is_whole = True
    if interactive and not folds:
        # Nobody misses a column that says nothing.
        for place in range(1, len(heads)):
            if not any(row[place] for row in cells):
                del widths[place]
        filled = len(widths)
        widths = _fitted(heads, widths, room)
        is_whole = len(widths) == filled
    text = StringIO()
    console = Console(
        file=text,
        # Never less than the table: to make it fit, rich would cut ids, too.
        width=room if folds else sum(widths.values()) + _GAP * len(widths) + _LEAST,
        force_terminal=interactive,
        highlight=False,
    )
    console.print(_table(heads, cells, widths, folds=folds))
    if not is_whole:
        console.print("more columns: --wide", style="dim")
    lines = text.getvalue().rstrip("\n").split("\n")
    # Strip trailing blanks in a pipe; on a terminal the end of a line contains colour codes.
    return "\n".join(lines if interactive else map(str.rstrip, lines))


def table_lines(columns: Columns, rows: Iterable[Sequence[str]], room: int) -> list[str]:
    """Return the head and the rows of a table as lines of at most ``room`` cells."""
    from rich.cells import set_cell_size  # noqa: PLC0415

    heads = [Column(one) if isinstance(one, str) else one for one in columns]
    titles = [one.title for one in heads]
    cells = [titles, *([flat(cell) for cell in row] for row in rows)]
    widths = _fitted(heads, _whole(heads, cells), room)
    gap = " " * _GAP
    return [
        gap.join(set_cell_size(one_line(row[n], width), width) for n, width in widths.items())
        for row in cells
    ]


def flat(cell: str) -> str:
    """Put a cell on one line."""
    return " ".join(plain(cell).replace("\t", " ").splitlines())


def _whole(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> dict[int, int]:
    """Return the widths of whole columns by their places, in cells of the terminal."""
    from rich.cells import cell_len  # noqa: PLC0415

    return {
        place: max(cell_len(column.title), *(cell_len(row[place]) for row in rows))
        for place, column in enumerate(columns)
    }


def _fitted(columns: Sequence[Column], whole: dict[int, int], room: int) -> dict[int, int]:
    """Return the columns that are shown in a line of this width, with their widths."""
    columns = list(columns)
    last = max(whole)
    if len(whole) > 1 and not columns[last].state and not any(columns[n].least for n in whole):
        columns[last] = replace(columns[last], least=_LEAST)
    widths = {n: min(width, columns[n].least or width) for n, width in whole.items()}

    def left() -> int:
        return room - sum(widths.values()) - _GAP * (len(widths) - 1)

    by_drop = sorted((-columns[n].drop, -n) for n in whole if columns[n].drop)
    for _, place in by_drop:
        if left() >= 0:
            break
        del widths[-place]
    # What is left goes to the narrowest of the cut columns, so that each shows about the same.
    for _ in range(left()):
        cut = [n for n, width in widths.items() if width < whole[n]]
        if not cut:
            break
        widths[min(cut, key=widths.__getitem__)] += 1
    return widths


def _table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    widths: dict[int, int],
    *,
    folds: bool,
) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    wraps = {place for place in widths if folds or columns[place].wraps}
    for place, width in widths.items():
        # Do not fold short names in the first column on a narrow terminal: people copy them.
        is_name = place == 0 and width <= _SHORT
        table.add_column(
            columns[place].title,
            overflow="fold" if place in wraps else "ellipsis",
            no_wrap=place not in wraps or is_name,
            max_width=None if folds else width,
        )
    for row in rows:
        # Use Text, because rich interprets [brackets] in strings as markup.
        texts = {
            n: row[n] if n in wraps else one_line(row[n], width) for n, width in widths.items()
        }
        colours = {n: _colour(row[n]) if columns[n].state else "" for n in widths}
        table.add_row(*(Text(texts[n], colours[n]) for n in widths))
    return table


def _colour(state: str) -> str:
    """Return the colour of a state, whose words come before a reason: ``timed out (deadline)``."""
    words = re.split(r"[(:]", state)[0].split()
    return _COLOURS.get("_".join(words)) or _COLOURS.get(words[0] if words else "", "")


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line; on a terminal long values are folded."""
    facts = list(facts)
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        typer.echo("\n".join(folded(plain(value), f"{name:<{width}}  ")))


def folded(text: str, start: str = "", *, err: bool = False) -> list[str]:
    """Return a text in lines that fit the terminal, between words; in a pipe as it is.

    The first line begins with ``start``, the others with as many blanks. ``err``: the text goes to
    standard error.
    """
    blank = " " * len(start)
    if not (sys.stderr if err else sys.stdout).isatty():
        return (start + text.replace("\n", f"\n{blank}")).split("\n")
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    room = max(shutil.get_terminal_size().columns - len(start), _LEAST)
    console = Console(width=room)
    parts = [
        part.plain.rstrip()
        for line in text.replace("\t", " ").split("\n")
        for part in Text(line).wrap(console, room) or [Text()]
    ]
    return [f"{blank if number else start}{part}".rstrip() for number, part in enumerate(parts)]


def show_text(text: str, start: str = "", *, err: bool = False) -> None:
    """Print a text that may come from a chat, folded on a terminal."""
    typer.echo("\n".join(folded(plain(text), start, err=err)), err=err)


# ---------------------------------------------------------------------------- times


TIME: Final = len("Fri 2026-01-31 12:00:00…")
"""The width to which a column of ``when`` may be cut: the time stays whole."""


def local(at: datetime | None) -> str:
    """Format an instant in the time zone of this machine, with the weekday; "" for None."""
    return "" if at is None else f"{at.astimezone():%a %Y-%m-%d %H:%M:%S}"


def brief_when(at: datetime | None, now: datetime) -> str:
    """Format an instant in a list: its distance on a terminal, all of ``when`` elsewhere."""
    if at is None:
        return ""
    return when(at, now) if shows_whole() else age(at, now)


def when(at: datetime | None, now: datetime, zone: str = "") -> str:
    """Format an instant with its distance from now; "" for None.

    With the time in ``zone``, too, if a clock there shows another one than this machine.
    """
    if at is None:
        return ""
    here, there = at.astimezone(), at.astimezone(zone_or_utc(zone)[0] if zone else None)
    other = "" if there.utcoffset() == here.utcoffset() else f"; {there:%a %H:%M} in {zone}"
    return f"{local(at)} ({age(at, now)}{other})"
