"""Shows a person that long work goes on. Programs, files and pipes get none of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def working(what: str, *, bar: bool = False) -> Iterator[Callable[[float], None]]:
    """Show what is being done and for how long, on standard error if that is a terminal.

    With ``bar`` also how much of it: call what this yields with the part that is done, from 0 to 1.
    It is gone when the work has ended. The work may block: what is shown has a thread of its own.
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
