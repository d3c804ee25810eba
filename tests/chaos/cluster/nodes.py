"""Gateway processes, each as if it had a machine of its own.

Where the kernel lets us, a gateway has a host name and a disk of its own; where it does not, all
are on one machine, which they then know, and no disk can be filled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from tests.chaos.cluster.lines import Line
from tests.chaos.cluster.script import Kind
from tests.support.process import GUARD_S, ROOT, Home, Program, wait_for
from tests.tools.debian_tools import path_of

_DISK_MB: Final = 8
_BALLAST: Final = "ballast"
WORKSPACES: Final = "workspaces"
MOUNTS_APART: Final = ("unshare", "--mount")
"""What stands in front of a command that is to have mounts of its own."""


class Node:
    """One gateway: its home, its line to the database, its process.

    ``own_clock``: it can be given a wrong time (see ``set_clock``).
    """

    def __init__(
        self, number: int, folder: Path, line: Line, settings: Mapping[str, str], *, own_clock: bool
    ) -> None:
        self.number = number
        self.line = line
        self.program: Program | None = None
        self._folder = folder
        self._home = Home(folder / "disk", **settings)
        self._starts = 0
        self._clock = folder / "clock"
        # On its disk, so that a full one meets whatever is logged.
        self._log = self.home / "gateway.log"
        self._env = {**self._home.env, "GOCLAW_LOG__FILE": str(self._log)}
        if own_clock:
            self.set_clock(0)
            self._env |= _faked(self._clock)

    @property
    def home(self) -> Path:
        """Its home folder: configuration, state, workspaces."""
        return self._home.folder

    @property
    def pid(self) -> int:
        """The process that runs, or ran last."""
        assert self.program is not None
        return self.program.pid

    @property
    def output(self) -> str:
        """What all of its processes have said and logged."""
        logs = [*sorted(self._folder.glob("gateway-*.log")), self._log]
        return "".join(
            f"--- node {self.number}: {log.name}\n{log.read_text(errors='replace')}"
            for log in logs
            if log.exists()
        )

    def start(self) -> None:
        """Start the gateway; it is up a while later."""
        log = self._folder / f"gateway-{self._starts}.log"
        self._starts += 1
        command = [*_apart(f"node{self.number}"), sys.executable, "-m", "goclaw_py", "run"]
        self.program = Program(command, self._env, log)

    def wait_ready(self) -> None:
        """Wait until it is up. Raises ``AssertionError`` if it ended instead."""
        program = self.program
        assert program is not None

        def look() -> bool:
            assert program.alive(), f"node {self.number} ended:\n{program.output}"
            return self.is_ready

        wait_for(look, f"readiness of node {self.number}", limit_s=GUARD_S)

    @property
    def is_ready(self) -> bool:
        """Whether the process that runs, or ran last, has come up."""
        return self.program is not None and " is ready." in self.program.output

    def alive(self) -> bool:
        """Whether its process is there."""
        return self.program is not None and self.program.alive()

    def send(self, sign: signal.Signals) -> None:
        """Send its process a signal."""
        assert self.program is not None
        self.program.send(sign)

    # ------------------------------------------------------------------ disk and clock

    def fill_disk(self) -> None:
        """Leave no room for anything on its disk, which it has to itself."""
        assert os.path.ismount(self.home), self.home
        with (self.home / _BALLAST).open("wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                return

    def empty_disk(self) -> None:
        """Make room again."""
        (self.home / _BALLAST).unlink(missing_ok=True)

    def set_clock(self, seconds: int) -> None:
        """Set its clock ahead by so many seconds, or behind: at once, as ``date -s`` does."""
        new = self._clock.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._clock)


@contextmanager
def nodes(
    folder: Path, lines: Sequence[Line], settings: Sequence[Mapping[str, str]], kinds: Set[Kind]
) -> Iterator[list[Node]]:
    """A node at each line; whatever of them is left is ended by its process id.

    ``kinds``: what will befall them. What nobody will touch is not made apart.
    """
    made: list[Node] = []
    with ExitStack() as stack:
        for number, (line, own) in enumerate(zip(lines, settings, strict=True)):
            place = folder / f"node{number}"
            if Kind.FULL in kinds:
                stack.enter_context(_disk(place / "disk"))
            node = Node(number, place, line, own, own_clock=Kind.CLOCK in kinds)
            stack.callback(_end, node)
            made.append(node)
        yield made


def _end(node: Node) -> None:
    if node.program is not None:
        if node.program.alive():
            node.send(signal.SIGCONT)
        node.program.kill()


# ---------------------------------------------------------------------------- machines


def _apart(name: str) -> list[str]:
    """What stands in front of a command that is to run on a machine with this name."""
    if not _may_unshare():
        return []
    return ["unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$@"', "sh"]


@cache
def _may_unshare() -> bool:
    command = ["unshare", "--uts", "hostname", "node"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@cache
def may_mount() -> bool:
    """Whether gateways can have disks of their own."""
    return os.geteuid() == 0 and _may_unshare()


@cache
def may_mount_apart() -> bool:
    """Whether a process can have mounts that end with it, whoever ends it."""
    done = subprocess.run([*MOUNTS_APART, "true"], capture_output=True, check=False)
    return done.returncode == 0


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """A small disk."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = ["-t", "tmpfs", "-o", f"size={_DISK_MB}m", "tmpfs"]
    subprocess.run(["mount", *kind, str(folder)], check=True, cwd=ROOT)
    try:
        yield
    finally:
        # Lazily: whatever was killed a moment ago may still be there.
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def _faked(clock: Path) -> dict[str, str]:
    """The environment that lets a process tell the time of a file; its steady clock stays true."""
    return {
        "LD_PRELOAD": str(path_of("libfaketime.so.1")),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DISABLE_SHM": "1",
    }
