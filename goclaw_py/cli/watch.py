"""Implements ``--watch``: refreshes the output of a command, also across gateway restarts."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    redirect_stderr,
    redirect_stdout,
)
from io import StringIO
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import typer

from goclaw_py.cli.context import Question
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Printer, clock
from goclaw_py.cli.terminal import fail_without_reader, until_interrupted
from goclaw_py.core.errors import GoclawError, NoGateway, StoreUnavailable
from goclaw_py.web.sockets import is_answered, socket_path

if TYPE_CHECKING:
    from goclaw_py.config import Settings
    from goclaw_py.operations.control import Control

T = TypeVar("T")
Connect = Callable[["Settings"], AbstractAsyncContextManager["Control"]]

_CLEAR = "\x1b[H\x1b[2J"
_HOME = "\x1b[H"
_END_OF_LINE = "\x1b[K"
_BELOW = "\x1b[J"
_CODES = re.compile(r"\x1b\[[0-9;]*m")


# ---------------------------------------------------------------------------- screens


class Screen(Protocol):
    """Where the output of each refresh is shown."""

    def show(self, text: str, remark: str = "") -> None:
        """Show the output of a refresh, and what it wrote to standard error."""

    def gone(self, why: str) -> None:
        """Report that there is nothing to show now; called at every refresh."""


class Display:
    """A terminal: each refresh replaces the one before."""

    def __init__(self) -> None:
        self._begun = False
        self._seen = "no answer yet"

    def show(self, text: str, remark: str = "") -> None:
        """Show as much as fits on the terminal."""
        at = clock(display.now())
        self._seen = f"last answer at {at}"
        self._fill(f"{at}  Ctrl-C to quit", f"{remark}\n\n{text}" if remark else text)

    def gone(self, why: str) -> None:
        """Replace the outdated output by the reason."""
        self._fill(f"{self._seen}  Ctrl-C to quit", why)

    def _fill(self, title: str, body: str) -> None:
        size = shutil.get_terminal_size()
        lines = [title, "", *body.splitlines()]
        room = max(size.lines - 1, 1)
        if len(lines) > room:
            left = len(lines) - room + 1
            lines[room - 1 :] = [f"… and {left} more lines"]
        text = "".join(f"{_truncated(line, size.columns)}{_END_OF_LINE}\n" for line in lines)
        # Write once, and overwrite instead of clearing first, so that it does not flicker.
        _write(f"{_HOME if self._begun else _CLEAR}{text}{_BELOW}")
        self._begun = True


def _truncated(line: str, columns: int) -> str:
    """Cut a line to the width of the terminal: wrapping would scroll the first line away."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    bare = _CODES.sub("", line)  # colour codes have no width
    return line if cell_len(bare) <= columns else set_cell_size(bare, columns)


class Paper:
    """A file or a pipe: refreshes follow each other; an outage is reported once."""

    def __init__(self) -> None:
        self._told = ""
        self._remarked = ""

    def show(self, text: str, remark: str = "") -> None:
        """Write the output below its time."""
        self._beside(remark)
        _write(f"{clock(display.now())}\n{text}\n\n")

    def _beside(self, remark: str) -> None:
        self._told = ""
        if remark and remark != self._remarked:
            typer.echo(remark, err=True)
        self._remarked = remark

    def gone(self, why: str) -> None:
        """Report the reason on standard error, so that it does not mix with the output."""
        if why != self._told:
            typer.echo(f"goclaw: {'; '.join(why.splitlines())}", err=True)
        self._told = why


class JsonDocuments(Paper):
    """The output with ``--json``: one JSON document per line."""

    def show(self, text: str, remark: str = "") -> None:
        """Write the JSON on one line."""
        import orjson  # noqa: PLC0415

        self._beside(remark)
        _write(f"{orjson.dumps(orjson.loads(text)).decode()}\n")


class _Canvas(StringIO):
    """Captures the output of a command; tables check whether it is a terminal."""

    def __init__(self, *, interactive: bool) -> None:
        super().__init__()
        self._interactive = interactive

    def isatty(self) -> bool:
        return self._interactive


# ---------------------------------------------------------------------------- looks


class Watching:
    """Sends requests over one connection, and reconnects when it breaks.

    ``connect`` opens the connection. Use this in ``with``.
    """

    def __init__(self, settings: Settings, connect: Connect) -> None:
        self._settings = settings
        self._connect = connect
        self._runner = asyncio.Runner()
        self._exits = AsyncExitStack()
        self._control: Control | None = None
        self._is_gateway = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        with self._runner:
            self._runner.run(self._leave())

    def ask(self, question: Question[T]) -> T:
        """Ask the gateway, or the database if no gateway is running and that suffices."""
        return self._runner.run(self._answer(question))

    def pause(self, seconds: float) -> None:
        """Wait; connections stay alive meanwhile. Raises ``BrokenPipeError``."""

        async def paused() -> None:
            with fail_without_reader():
                await asyncio.sleep(seconds)

        self._runner.run(paused())

    async def _answer(self, question: Question[T]) -> T:
        control = await self._connected()
        try:
            return await question(control)
        except GoclawError as error:
            if is_passing(error):
                await self._leave()
            raise

    async def _connected(self) -> Control:
        from goclaw_py.cli.client.control import RemoteControl  # noqa: PLC0415

        path = socket_path(self._settings.state_folder)
        if self._control is not None and (self._is_gateway or not is_answered(path)):
            return self._control
        await self._leave()
        way = self._connect(self._settings)
        self._control = control = await self._exits.enter_async_context(way)
        self._is_gateway = isinstance(control, RemoteControl)
        return control

    async def _leave(self) -> None:
        self._control = None
        await self._exits.aclose()


def is_passing(error: GoclawError) -> bool:
    """Return whether an error is temporary, so that the next refresh may succeed."""
    return isinstance(error, NoGateway | StoreUnavailable)


def watch(
    settings: Settings,
    connect: Connect,
    question: Question[T],
    output: Printer[T],
    *,
    every_s: float,
) -> None:
    """Ask until Ctrl-C, and show each answer in one piece.

    Raises what a question raises, except if the gateway or database is away: it may come back.
    """
    interactive = sys.stdout.isatty()
    screen: Screen = Display() if interactive else Paper()
    if output.as_json:
        screen, interactive = JsonDocuments(), False
    with until_interrupted(), Watching(settings, connect) as watching:
        while True:
            canvas = _Canvas(interactive=interactive)
            _watch_loop(lambda: output.print(watching.ask(question)), screen, canvas)
            watching.pause(every_s)


def _watch_loop(show: Callable[[], None], screen: Screen, canvas: _Canvas) -> None:
    beside = StringIO()
    try:
        with redirect_stdout(canvas), redirect_stderr(beside):
            show()
    except GoclawError as error:
        if not is_passing(error):
            raise
        what = "the database" if isinstance(error, StoreUnavailable) else "a gateway"
        screen.gone(f"{error}\nwaiting for {what}")
        return
    screen.show(canvas.getvalue().rstrip("\n"), beside.getvalue().rstrip("\n"))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
