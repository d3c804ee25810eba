"""Starts gateways within a fraction of a second: forks of a process that has imported everything.

Importing takes seconds, in which there is nothing to kill. A fork runs ``goclaw run`` like any
other process; what it lacks is only its imports.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Final, NoReturn

from goclaw_py.cli.entry import run
from tests.support.process import ROOT, Program

_IMPORTS: Final = (
    "channels.telegram.adapter",
    "channels.telegram.via_ptb",
    "goclaw_py.agents.models.engine",
    "goclaw_py.agents.models.mcp",
    "goclaw_py.app.service",
    "goclaw_py.cli.system.gateway",
)


class Launcher:
    """The process that is forked."""

    def __init__(self, asks: IO[str], answers: IO[str]) -> None:
        self._asks = asks
        self._answers = answers

    def launch(self, arguments: list[str], env: Mapping[str, str], log: Path) -> Program:
        """Start a gateway, as ``Program`` does; ``arguments`` are those of the whole command."""
        ask = {"arguments": arguments[3:], "env": dict(env), "log": str(log)}
        self._asks.write(json.dumps(ask) + "\n")
        self._asks.flush()
        return _Forked(_Process(int(self._answers.readline())), log)


@contextmanager
def launcher() -> Iterator[Launcher]:
    """Run one while it is entered; its forks outlive it."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.kills.launcher"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Launcher(process.stdin, process.stdout)
        process.stdin.close()


class _Process:
    """A process that is not our child, as ``Popen`` shows one. Its exit code is not known."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._file = os.pidfd_open(pid)
        self._has_ended = False

    def poll(self) -> int | None:
        """Return whether it has ended: 0 if so."""
        return 0 if self._ended_within(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises ``TimeoutExpired``."""
        if not self._ended_within(timeout):
            raise subprocess.TimeoutExpired("goclaw run", timeout or 0.0)
        return 0

    def send_signal(self, sig: int) -> None:
        """Send it a signal, if it has not ended."""
        if not self._has_ended:
            signal.pidfd_send_signal(self._file, sig)

    def kill(self) -> None:
        """``kill -9``."""
        self.send_signal(signal.SIGKILL)

    def _ended_within(self, seconds: float | None) -> bool:
        if not self._has_ended and select.select([self._file], [], [], seconds)[0]:
            self._has_ended = True
            os.close(self._file)
        return self._has_ended


class _Forked(Program):
    def __init__(self, process: _Process, log: Path) -> None:
        self._log = log
        self._out = log.open("ab")
        self._process = process


def _serve() -> None:
    """Fork for each line of standard input; print the process ids."""
    for name in _IMPORTS:
        import_module(name)
    # A collection in a fork would copy all pages.
    gc.freeze()
    # Whoever is gone is gone at once, without a zombie.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while line := sys.stdin.readline():
        pid = os.fork()
        if not pid:
            _become(json.loads(line))
        print(pid, flush=True)


def _become(ask: Mapping[str, object]) -> NoReturn:
    """Be a gateway."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(str(ask["log"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  (it is open until the end)
    os.environ.clear()
    env = ask["env"]
    assert isinstance(env, dict)
    os.environ.update(env)
    arguments = ask["arguments"]
    assert isinstance(arguments, list)
    code = 1
    try:
        code = run(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Not back into the loop of the launcher, whatever happened.
        os._exit(code)


if __name__ == "__main__":
    _serve()
