"""Real gateway processes, and the emulator as a process, for end-to-end tests.

Everything started here is ended by its process id, also when a test fails.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar
from unittest import mock

from goclaw_py.cli import entry
from tests.botapi.control import Control

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.02
GUARD_S = 120.0
"""A guard against waiting for ever, no measure: the machine may be busy with other things."""

T = TypeVar("T")


def wait_for(look: Callable[[], T | None], what: str, *, limit_s: float = GUARD_S) -> T:
    """Look again and again until there is something; real time, bounded."""
    end = time.monotonic() + limit_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit_s} s in vain for {what}")
        time.sleep(POLL_S)


class _Process(Protocol):
    """What is used of ``Popen``."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


class Program:
    """One process whose output goes to a file."""

    def __init__(
        self, arguments: list[str], env: Mapping[str, str], log: Path, folder: Path = ROOT
    ) -> None:
        self._log = log
        self._out: IO[bytes] = log.open("ab")
        self._process: _Process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait(self, limit_s: float = 30.0) -> int:
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"still running after {limit_s} s:\n{self.output}") from error
        finally:
            self._out.close()

    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """``kill -9``, and wait until it is gone."""
        if self.alive():
            self._process.kill()
        self.wait()

    def end(self) -> None:
        """Ask it to end; insist after a while."""
        if self.alive():
            self.send(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.wait()


class Home:
    """A home folder of its own, with the gateways that were started in it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.launch: Callable[[list[str], Mapping[str, str], Path], Program] = Program
        self._started: list[Program] = []
        keep = (
            "GOCLAW_PROGRESS",
            "PATH",
            "LANG",
            "TMPDIR",
            "COVERAGE_PROCESS_START",
            "COVERAGE_FILE",
        )
        self.env = {key: os.environ[key] for key in keep if key in os.environ}
        coverage = {k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")}
        own = {"HOME": str(folder), "GOCLAW_HOME": str(folder), "GOCLAW_WEB__API": "false"}
        self.env |= coverage | own | settings

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def start(self, *options: str, ready: bool = True, **settings: str) -> Program:
        """Start ``goclaw run``; with ``ready`` wait until it answers."""
        log = self.folder / f"gateway-{len(self._started)}.log"
        arguments = [sys.executable, "-m", "goclaw_py", "run", *options]
        program = self.launch(arguments, self.env | settings, log)
        self._started.append(program)
        if ready:
            self.wait_ready(program)
        return program

    def wait_ready(self, program: Program) -> None:
        def look() -> bool:
            assert program.alive(), f"ended with {program.wait()}:\n{program.output}"
            return " is ready." in program.output

        wait_for(look, f"readiness of the gateway:\n{program.output}")

    def goclaw(self, *arguments: str) -> tuple[int, str]:
        """Run a command of the CLI in this process; its exit code and everything it printed.

        A process of its own would import for a second what is loaded here.
        """
        said = io.StringIO()
        with (
            mock.patch.dict(os.environ, self.env, clear=True),
            mock.patch.object(sys, "stdin", io.StringIO()),
            redirect_stdout(said),
            redirect_stderr(said),
        ):
            return entry.run(arguments), said.getvalue()

    def refused(self, *options: str) -> tuple[int, str]:
        """Start a gateway that does not come up; its exit code and everything it printed."""
        program = self.start(*options, ready=False)
        return program.wait(), program.output

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """What a listing command prints with ``--json``."""
        code, output = self.goclaw(*arguments, "--json")
        assert code == 0, output
        rows: list[dict[str, Any]] = json.loads(output)
        return rows

    def end(self) -> None:
        for program in self._started:
            program.end()
        # A gateway that was killed leaves its database running: start and end one in peace.
        if any((self.state / "postgres").glob("data/postmaster.pid")):
            self.start().end()


@contextmanager
def home(folder: Path, **settings: str) -> Iterator[Home]:
    place = Home(folder, **settings)
    try:
        yield place
    finally:
        place.end()


@contextmanager
def emulator() -> Iterator[Control]:
    """The Bot API emulator as a process of its own, so that it survives what tests do to others."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.botapi"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        hello = json.loads(process.stdout.readline())
        yield Control(hello["url"], hello["token"])
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def telegram(api: Control, **more: str) -> dict[str, str]:
    """Environment that makes the emulator the gateway's Telegram. It has no pace to keep."""
    return {
        "GOCLAW_TELEGRAM_TOKEN": api.token,
        "GOCLAW_CHANNELS__TELEGRAM__BASE_URL": api.url,
        "GOCLAW_CHANNELS__TELEGRAM__CHAT_GAP_S": "0",
        "GOCLAW_CHANNELS__TELEGRAM__ACCOUNT_PER_SECOND": "0",
        **more,
    }
