"""Shows what a command shows again and again, whether the gateway is there or not."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    redirect_stderr,
    redirect_stdout,
)
from io import StringIO
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import typer

from goclaw_py.cli.output import clock
from goclaw_py.cli.readers import cut_without_a_reader, forget_output
from goclaw_py.model.errors import GoclawError, StoreUnavailable

if TYPE_CHECKING:
    from datetime import datetime

    from goclaw_py.cli.context import Show
    from goclaw_py.config import Settings
    from goclaw_py.ports.control import Control

T = TypeVar("T")
Connect = Callable[["Settings"], AbstractAsyncContextManager["Control"]]

_CLEAR = "\x1b[H\x1b[2J"
_HOME = "\x1b[H"
_END_OF_LINE = "\x1b[K"
_BELOW = "\x1b[J"


# ---------------------------------------------------------------------------- screens


class Screen(Protocol):
    """Where looks are shown."""

    def show(self, text: str, remark: str = "") -> None:
        """Show what a look has found, and what was said beside it."""

    def gone(self, why: str) -> None:
        """Say that there is nothing to see now; called again every time."""


class Display:
    """A terminal: the newest look, in place of the one before."""

    def __init__(self) -> None:
        self._begun = False
        self._seen = "nobody has answered yet"

    def show(self, text: str, remark: str = "") -> None:
        """As much as the terminal has room for."""
        at = clock(_now())
        self._seen = f"the last answer was of {at}"
        self._fill(f"{at}  Ctrl-C ends", f"{remark}\n\n{text}" if remark else text)

    def gone(self, why: str) -> None:
        """Instead of what is not true any more."""
        self._fill(f"{self._seen}  Ctrl-C ends", why)

    def _fill(self, title: str, body: str) -> None:
        size = shutil.get_terminal_size()
        lines = [title, "", *body.splitlines()]
        room = max(size.lines - 1, 1)
        if len(lines) > room:
            left = len(lines) - room + 1
            lines[room - 1 :] = [f"… and {left} lines more"]
        text = "".join(f"{_cut(line, size.columns)}{_END_OF_LINE}\n" for line in lines)
        # One write, and nothing is wiped before it is written over: so it does not flicker.
        _write(f"{_HOME if self._begun else _CLEAR}{text}{_BELOW}")
        self._begun = True


def _cut(line: str, columns: int) -> str:
    """What fits on one line of the terminal: a second one would push the first away."""
    if "\x1b" in line:
        # Of a table, which is as wide as the terminal; colours have no width.
        return line
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    return line if cell_len(line) <= columns else set_cell_size(line, columns)


class Paper:
    """A file or a pipe: one look after the other; that there is nothing to see is told once."""

    def __init__(self) -> None:
        self._told = ""
        self._remarked = ""

    def show(self, text: str, remark: str = "") -> None:
        """Below its time."""
        self._beside(remark)
        _write(f"{clock(_now())}\n{text}\n\n")

    def _beside(self, remark: str) -> None:
        self._told = ""
        if remark and remark != self._remarked:
            typer.echo(remark, err=True)
        self._remarked = remark

    def gone(self, why: str) -> None:
        """On standard error, where programs do not read it."""
        if why != self._told:
            typer.echo(f"goclaw: {'; '.join(why.splitlines())}", err=True)
        self._told = why


class Lines(Paper):
    """For programs: one JSON document a line."""

    def show(self, text: str, remark: str = "") -> None:
        """On one line."""
        import orjson  # noqa: PLC0415

        self._beside(remark)
        _write(f"{orjson.dumps(orjson.loads(text)).decode()}\n")


class _Canvas(StringIO):
    """What a command writes on while it is watched; tables ask whether it is a terminal."""

    def __init__(self, *, interactive: bool) -> None:
        super().__init__()
        self._interactive = interactive

    def isatty(self) -> bool:
        return self._interactive


# ---------------------------------------------------------------------------- looks


class Watching:
    """Asks again and again over one connection, and makes a new one when that has broken.

    ``connect`` makes it. Use this in ``with``.
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

    def settings(self) -> Settings:
        """Those of the beginning."""
        return self._settings

    def ask(self, question: Callable[[Control], Awaitable[T]]) -> T:
        """Ask the gateway, or the database if no gateway runs and that is enough."""
        return self._runner.run(self._asked(question))

    def pause(self, seconds: float) -> None:
        """Wait; connections stay alive meanwhile. Raises ``BrokenPipeError``."""
        self._runner.run(_paused(seconds))

    async def _asked(self, question: Callable[[Control], Awaitable[T]]) -> T:
        control = await self._connected()
        try:
            return await question(control)
        except GoclawError as error:
            if is_passing(error):
                await self._leave()
            raise

    async def _connected(self) -> Control:
        from goclaw_py.cli.client.client import RemoteControl  # noqa: PLC0415
        from goclaw_py.web.sockets import is_answered, socket_path  # noqa: PLC0415

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


async def _paused(seconds: float) -> None:
    with cut_without_a_reader():
        await asyncio.sleep(seconds)


def is_passing(error: GoclawError) -> bool:
    """Whether it may be over at the next look."""
    from goclaw_py.ports.control import NoGateway  # noqa: PLC0415

    return isinstance(error, NoGateway | StoreUnavailable)


def watch(
    settings: Settings, connect: Connect, show: Show, *, every_s: float, as_json: bool
) -> None:
    """Call ``show`` until Ctrl-C, with what it can ask; what it writes is shown in one piece.

    Raises what ``show`` raises, but for a gateway or a database that is away: it may come back.
    """
    interactive = sys.stdout.isatty()
    screen: Screen = Display() if interactive else Paper()
    if as_json:
        screen = Lines()
    try:
        with Watching(settings, connect) as watching:
            while True:
                _look(watching, show, screen, interactive=interactive and not as_json)
                watching.pause(every_s)
    except KeyboardInterrupt:
        # That is how it ends. The terminal has shown ^C and stands behind it.
        if isinstance(screen, Display):
            typer.echo()
    except BrokenPipeError:
        # Whoever read it has seen enough.
        forget_output()


def _look(watching: Watching, show: Show, screen: Screen, *, interactive: bool) -> None:
    canvas, beside = _Canvas(interactive=interactive), StringIO()
    try:
        with redirect_stdout(canvas), redirect_stderr(beside):
            show(watching)
    except GoclawError as error:
        if not is_passing(error):
            raise
        what = "the database" if isinstance(error, StoreUnavailable) else "a gateway"
        screen.gone(f"{error}\nwaiting for {what}")
        return
    screen.show(canvas.getvalue().rstrip("\n"), beside.getvalue().rstrip("\n"))


def _now() -> datetime:
    from goclaw_py.cli.messages import display  # noqa: PLC0415

    return display.now()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
