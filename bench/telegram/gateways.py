"""Gateway processes on the crowd's emulator, one kind for each library and way of receiving."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.telegram.crowd import Crowd
from channels.telegram.settings import Library
from tests.botapi.control import Control
from tests.support.process import ROOT, Home, Program, home, telegram, wait_for

_PATH = "/telegram"
_TOLD = 4_000
"""How many characters of a gateway's log an error tells."""


class Mode(StrEnum):
    """How updates come in."""

    POLLING = "polling"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class Case:
    """Which gateway is measured."""

    library: Library
    mode: Mode

    def __str__(self) -> str:
        return f"{self.library.value}, {self.mode.value}"


@dataclass(frozen=True, slots=True)
class Tree:
    """Whose gateway is measured: a checkout with its interpreter."""

    folder: Path
    python: Path

    def launch(self, arguments: list[str], env: Mapping[str, str], log: Path) -> Program:
        """Start a program of this tree. The first argument is an interpreter: its own is used."""
        return Program([str(self.python), *arguments[1:]], env, log, folder=self.folder)


HERE = Tree(ROOT, Path(sys.executable))


def tree_of(folder: str) -> Tree:
    """A checkout with the environment that its ``make`` has made."""
    path = Path(folder).resolve()
    return Tree(path, path / ".venv/bin/python")


CASES = tuple(Case(library, mode) for mode in Mode for library in Library)


@contextmanager
def place_for(case: Case, people: Crowd, tree: Tree = HERE, /, **settings: str) -> Iterator[Home]:
    """A new home folder with the embedded database; everybody may talk, and nothing is paced."""
    settings = {
        "GOCLAW_AGENTS__MAIN__MODEL": "python:bench.telegram.agent:run",
        "GOCLAW_CHANNELS__TELEGRAM__DIRECT": "open",
        "GOCLAW_CHANNELS__TELEGRAM__LIBRARY": case.library.value,
        "GOCLAW_QUEUE__DEBOUNCE_MS": "0",
        **settings,
    }
    if case.mode is Mode.WEBHOOK:
        port = _free_port()
        settings |= {
            "GOCLAW_WEB__PORT": str(port),
            "GOCLAW_CHANNELS__TELEGRAM__WEBHOOK_URL": f"http://127.0.0.1:{port}{_PATH}",
        }
    api = Control(people.url, people.token)
    with (
        tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder,
        home(Path(folder), **telegram(api, **settings)) as place,
    ):
        place.launch = tree.launch
        try:
            yield place
        except Exception as error:
            # The folder goes away, and with it what the gateway has to say about it.
            for log in place.folder.glob("*.log"):
                error.add_note(log.read_text(errors="replace")[-_TOLD:])
            raise


@contextmanager
def floor_for(people: Crowd) -> Iterator[tuple[Program, Path]]:
    """The gateway of ``bench.telegram.floor``, ready, and its folder of state."""
    with tempfile.TemporaryDirectory(prefix="goclaw-bench-") as folder:
        state, log = Path(folder) / "state", Path(folder) / "floor.log"
        module = [sys.executable, "-m", "bench.telegram.floor"]
        program = Program([*module, people.url, people.token, str(state)], os.environ, log)
        try:
            wait_for(lambda: "ready" in program.output or not program.alive(), "the floor")
            yield program, state
        except Exception as error:
            error.add_note(program.output[-_TOLD:])
            raise
        finally:
            program.end()


@contextmanager
def sampled(place: Home, file: Path) -> Iterator[Program]:
    """A gateway that notes into a file what it works on; see ``bench.telegram.sampled``."""
    arguments = [sys.executable, "-m", "bench.telegram.sampled", str(file)]
    program = Program(arguments, place.env, place.folder / "sampled.log")
    try:
        place.wait_ready(program)
        yield program
    finally:
        program.end()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
