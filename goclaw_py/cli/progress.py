"""The progress of long operations, on standard error (SPEC OPS-1).

Nothing is shown by a command that ends within a second. After that a terminal shows a bar, which is
removed at the end, and anything else gets a line every few seconds; with ``GOCLAW_PROGRESS=off``
nothing is shown. A process has one display:
whatever runs while it is shown reports to it by ``tell``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import typer

from goclaw_py.app.progress import OnProgress, ProgressStep
from goclaw_py.cli.output import plain
from goclaw_py.core.time.texts import duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.spinner import Spinner
    from rich.table import Table

BAR_AFTER_S: Final = 1.0
"""Counted from the start of the process, so that several short operations are not silent."""
BAR_AT_ONCE_S: Final = 0.3
"""How long an operation must take at least: a bar that disappears at once only flickers."""
LINE_EVERY_S: Final = 5.0
_BAR_WIDTH: Final = 30
_STARTED_S: Final = time.monotonic()


@contextmanager
def progress(what: str, *, lines: bool = False) -> Iterator[OnProgress]:
    """Show what the block does, and how far it is. Yields ``tell``.

    The block may block: the display has its own thread. Inside the block of another display only
    that one is shown. With ``lines`` also a terminal gets lines: if log lines are written to it.
    """
    global _display  # noqa: PLW0603  (a terminal has one display)
    if _display is not None or os.environ.get("GOCLAW_PROGRESS") == "off":
        report(ProgressStep(what))
        yield report
        return
    _display = _Display(ProgressStep(what), is_bar=not lines and _is_movable())
    try:
        yield report
    finally:
        _display.close()
        _display = None


def report(step: ProgressStep) -> None:
    """Report progress. Returns at once; may be called from any thread, and without a display."""
    if (display := _display) is not None:
        display.step = step


def say(line: str) -> None:
    """Print a line on standard error, above the bar if there is one."""
    if (display := _display) is None or not display.say(line):
        typer.echo(line, err=True)


def amount(step: ProgressStep) -> str:
    """Return how much is done, such as ``3 of 10 jobs``; "" if that is not known.

    Bytes are shown in MB.
    """
    if step.unit == "bytes":
        done, total, unit = f"{step.done / 1e6:.1f}", f"{(step.total or 0) / 1e6:.1f}", "MB"
    else:
        done, total, unit = f"{step.done:,}", f"{step.total or 0:,}", step.unit
    if step.total:
        return f"{done} of {total} {unit}".rstrip()
    return f"{done} {unit}".rstrip() if step.done else ""


def _is_movable() -> bool:
    """Return whether standard error is a terminal on which a line can be redrawn."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


class _Display:
    """Shows the latest ``step`` until it is closed."""

    def __init__(self, step: ProgressStep, *, is_bar: bool) -> None:
        self.step = step
        self._begun_s = time.monotonic()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._console: Console | None = None
        show = self._show_bar if is_bar else self._show_lines
        self._thread = threading.Thread(target=show, name="progress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Remove the display."""
        self._over.set()
        self._thread.join()

    def say(self, line: str) -> bool:
        """Print a line above the bar; return False if no bar is shown."""
        with self._lock:
            if self._console is None:
                return False
            self._console.print(plain(line), markup=False, highlight=False, soft_wrap=True)
            return True

    def _show_lines(self) -> None:
        while not self._over.wait(LINE_EVERY_S):
            parts = filter(None, (plain(self.step.what), amount(self.step)))
            with suppress(OSError, ValueError):  # nobody reads it any more
                typer.echo(f"goclaw: {': '.join(parts)} ({self._elapsed()})", err=True)

    def _show_bar(self) -> None:
        left_s = _STARTED_S + BAR_AFTER_S - time.monotonic()
        if self._over.wait(max(left_s, BAR_AT_ONCE_S)):
            return
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415
        from rich.spinner import Spinner  # noqa: PLC0415

        console = Console(stderr=True)
        spinner = Spinner("dots" if console.encoding.startswith("utf") else "line")
        live = Live(
            console=console,
            get_renderable=lambda: self._picture(spinner),
            transient=True,
            refresh_per_second=10,
            # What a command prints on standard output is for programs.
            redirect_stdout=False,
        )
        with suppress(OSError, ValueError), live:  # a closed terminal
            with self._lock:
                self._console = console
            self._over.wait()
            with self._lock:
                self._console = None

    def _picture(self, spinner: Spinner) -> Table:
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        step = self.step
        picture = Table.grid(padding=(0, 1))
        cells: list[RenderableType] = [
            spinner,
            Text(plain(step.what), no_wrap=True, overflow="ellipsis"),
        ]
        if step.total:
            part = min(1.0, step.done / step.total)
            cells += [ProgressBar(1.0, part, width=_BAR_WIDTH), Text(f"{part:4.0%}", no_wrap=True)]
        cells += [Text(amount(step), no_wrap=True), Text(self._elapsed(), "dim", no_wrap=True)]
        picture.add_row(*cells)
        return picture

    def _elapsed(self) -> str:
        return duration(int(time.monotonic() - self._begun_s))


_display: _Display | None = None
