"""The database process, and what can befall it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from goclaw_py.store.embedded import EmbeddedPostgres
from goclaw_py.store.embedded import RunningServer as Started
from goclaw_py.store.postgres import Address
from tests.support.process import wait_for

_ENDS_S: Final = 60.0


class Server:
    """One PostgreSQL server."""

    def __init__(self, folder: Path) -> None:
        # Three gateways, and what cut lines have left of their connections.
        self._embedded = EmbeddedPostgres(folder, settings={"max_connections": "120"})
        self._started: Started | None = None
        self._frozen: list[int] = []

    @property
    def folder(self) -> Path:
        """Where its socket is."""
        assert self._started is not None
        return Path(str(self._started.host))

    @property
    def address(self) -> Address:
        """Its own database."""
        assert self._started is not None
        started = self._started
        return Address(host=str(started.host), user=started.user, database=started.database)

    def start(self) -> None:
        """Start it, unless it runs."""
        self._started = self._embedded.start()

    def end(self, sign: signal.Signals) -> None:
        """End it: by SIGINT in order, by SIGQUIT as if it had crashed."""
        assert self._started is not None
        pid = self._started.pid
        os.kill(pid, sign)
        # Until it has seen the signal it looks as if it went on: nobody would start another.
        left = Path(f"/proc/{pid}")
        wait_for(lambda: not left.exists(), "the end of the database", limit_s=_ENDS_S)

    def freeze(self) -> None:
        """Stop all of its processes, the one first that makes the others."""
        assert self._started is not None
        self._frozen = [self._started.pid]
        os.kill(self._started.pid, signal.SIGSTOP)
        for pid in _children(self._started.pid):
            self._frozen.append(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        frozen, self._frozen = self._frozen, []
        for pid in frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it for good."""
        self.thaw()
        self._embedded.stop()


def _children(parent: int) -> list[int]:
    """The processes that a process has made."""
    found: list[int] = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        with suppress(OSError):
            # The name of the program, in brackets, may hold blanks.
            after = (place / "stat").read_text().rpartition(")")[2].split()
            if int(after[1]) == parent:
                found.append(int(place.name))
    return found


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """A server until the end."""
    made = Server(folder)
    made.start()
    try:
        yield made
    finally:
        made.stop()
