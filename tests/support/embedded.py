"""Programs that use embedded servers, and an end for everything started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from goclaw_py.store.embedded import EmbeddedPostgres, RunningServer
from goclaw_py.store.embedded_files import holders

LIMIT_S = 60.0

_USER = """
import json, os, sys
from pathlib import Path
from goclaw_py.store.embedded import EmbeddedError, EmbeddedPostgres

told = []
pg = EmbeddedPostgres(Path(sys.argv[1]), say=told.append)
try:
    server = pg.start()
except EmbeddedError as error:
    print(json.dumps({"error": type(error).__name__, "text": str(error)}), flush=True)
    sys.exit(3)
print(json.dumps({"pid": server.pid, "host": server.host, "told": told}), flush=True)
sys.stdin.readline()
print(json.dumps(pg.stop()), flush=True)
"""


def until(true: Callable[[], bool], what: str) -> None:
    """Poll until it is true; fail after a generous limit."""
    end = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.005)


def lives(pid: int) -> bool:
    """Whether a process exists, a zombie included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def kill(pid: int) -> None:
    """kill -9, until the process is gone and reaped."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid), f"the end of process {pid}")


def query(pg: EmbeddedPostgres, server: RunningServer, sql: str) -> str:
    """Run SQL with the package's own psql."""
    done = subprocess.run(
        [*psql(pg, server), "-c", sql], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def psql(pg: EmbeddedPostgres, server: RunningServer) -> list[str]:
    """The command in front of ``-c``."""
    who = ["-h", server.host, "-U", server.user, "-d", server.database]
    return [str(pg.binary("psql")), "-XAtq", "-v", "ON_ERROR_STOP=1", *who]


@dataclass
class User:
    """Another process that uses the server of a folder until it is told to stop."""

    process: subprocess.Popen[str]

    def answer(self) -> dict[str, object]:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return {"stopped": json.loads(line)} if line[:1] in "tf" else dict(json.loads(line))

    def stop(self) -> object:
        """Let it stop; what its ``stop`` returned."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        result = self.answer()["stopped"]
        self.process.wait(LIMIT_S)
        return result

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(LIMIT_S)


class Users:
    """Starts users; ends the ones that are left."""

    def __init__(self) -> None:
        self._all: list[User] = []

    def start(
        self, folder: Path, *, change: tuple[str, ...] = (), env: Mapping[str, str] | None = None
    ) -> User:
        """Start one; ``change`` is a command in front that makes it somebody else."""
        process = subprocess.Popen(
            [*change, sys.executable, "-c", _USER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], **env} if env is not None else None,
        )
        self._all.append(User(process))
        return self._all[-1]

    def end(self) -> None:
        for user in self._all:
            user.kill()
            for pipe in (user.process.stdin, user.process.stdout):
                assert pipe is not None
                pipe.close()


def end_servers(root: Path) -> None:
    """kill -9 whatever holds the lock of a server below ``root``."""
    for lock in root.rglob("server.lock"):
        for pid in holders(lock) - {os.getpid()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda lock=lock: not holders(lock) - {os.getpid()}, f"the end of {lock}")  # type: ignore[misc]  # bound early
