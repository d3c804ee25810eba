"""Shows a gateway's lanes again and again, whether it is there or not."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import typer

from goclaw_py.cli.output import clock
from goclaw_py.core.errors import GoclawError

if TYPE_CHECKING:
    from goclaw_py.config import Settings
    from goclaw_py.core.status import LanesView
    from goclaw_py.ports.control import Control

EVERY_S = 1.0

_CLEAR = "\x1b[H\x1b[2J"
_HOME = "\x1b[H"
_END_OF_LINE = "\x1b[K"
_BELOW = "\x1b[J"

Draw = Callable[["LanesView"], str]


class Screen(Protocol):
    """Where snapshots are shown."""

    def show(self, found: LanesView) -> None:
        """Show a snapshot."""

    def gone(self, why: str) -> None:
        """Say that there is none now; called again every time."""


class Display:
    """A terminal: the newest snapshot, in place of the one before."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._begun = False
        self._seen = "no gateway has answered yet"

    def show(self, found: LanesView) -> None:
        """As much as the terminal has room for."""
        self._seen = f"the last answer was of {clock(found.at)}"
        self._fill(f"{clock(found.at)}  Ctrl-C ends", self._draw(found))

    def gone(self, why: str) -> None:
        """Instead of a snapshot that is not true any more."""
        self._fill(f"{self._seen}  Ctrl-C ends", f"{why}\nwaiting for a gateway")

    def _fill(self, title: str, body: str) -> None:
        size = shutil.get_terminal_size()
        lines = [title[: size.columns], "", *body.splitlines()]
        room = max(size.lines - 1, 1)
        if len(lines) > room:
            left = len(lines) - room + 1
            lines[room - 1 :] = [f"… and {left} lines more"]
        text = "".join(f"{line}{_END_OF_LINE}\n" for line in lines)
        # One write, and nothing is wiped before it is written over: so it does not flicker.
        _write(f"{_HOME if self._begun else _CLEAR}{text}{_BELOW}")
        self._begun = True


class Paper:
    """A file or a pipe: one snapshot after the other; that there is none is told once."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._told = ""

    def show(self, found: LanesView) -> None:
        """Below its time."""
        self._told = ""
        _write(f"{clock(found.at)}\n{self._draw(found)}\n\n")

    def gone(self, why: str) -> None:
        """On standard error, where programs do not read it."""
        if why != self._told:
            typer.echo(f"goclaw: {why}; waiting for a gateway", err=True)
        self._told = why


def _compact(found: LanesView) -> str:
    from goclaw_py.core.status import LanesView  # noqa: PLC0415
    from goclaw_py.web.wire import dump  # noqa: PLC0415

    return dump(LanesView, found).decode()


class Lines(Paper):
    """For programs: one JSON document a line."""

    def __init__(self) -> None:
        super().__init__(_compact)

    def show(self, found: LanesView) -> None:
        """On one line."""
        self._told = ""
        _write(f"{self._draw(found)}\n")


def watch_lanes(settings: Settings, *, as_json: bool, draw: Draw) -> None:
    """Show the lanes of the gateway of these settings until Ctrl-C."""
    screen: Screen = Display(draw) if sys.stdout.isatty() else Paper(draw)
    if as_json:
        screen = Lines()
    try:
        asyncio.run(_watch(settings, screen))
    except KeyboardInterrupt:
        # That is how it ends. The terminal has shown ^C and stands behind it.
        if isinstance(screen, Display):
            typer.echo()


async def _watch(settings: Settings, screen: Screen) -> None:
    from goclaw_py.cli.remote import RemoteControl  # noqa: PLC0415
    from goclaw_py.web.sockets import socket_path  # noqa: PLC0415

    while True:
        async with RemoteControl(socket_path(settings.state_folder)) as control:
            await _follow(control, screen)
        await asyncio.sleep(EVERY_S)


async def _follow(control: Control, screen: Screen) -> None:
    """Show snapshots until the gateway does not answer."""
    while True:
        try:
            found = await control.lanes()
        except GoclawError as error:
            screen.gone(str(error))
            return
        screen.show(found)
        await asyncio.sleep(EVERY_S)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
