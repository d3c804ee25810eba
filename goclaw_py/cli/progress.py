"""Shows the progress of long work on a terminal, and nothing in files and pipes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def working(what: str, *, bar: bool = False) -> Iterator[Callable[[float], None]]:
    """Show a spinner with the elapsed time on standard error, if that is a terminal.

    With ``bar`` also a progress bar: call the yielded function with the part that is done, from 0
    to 1. The display is removed at the end. The work may block: the display has its own thread.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    how_much = (BarColumn(), TaskProgressColumn()) if bar else ()
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), text, *how_much, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=1.0 if bar else None)
        yield lambda part: shown.update(task, completed=part)
