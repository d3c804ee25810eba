"""One data folder of the embedded server: creating it, starting a server, checking its state.

``store.embedded`` decides when this may be done, and holds the gate lock meanwhile.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from goclaw_py.store.embedded_account import ServerAccount, open_owned, socket_folder
from goclaw_py.store.embedded_files import (
    SOCKET_NAME,
    EmbeddedError,
    EmbeddedFailed,
    EmbeddedRefused,
    Installation,
    holders,
    installation_for,
    listener_pid,
    make_room,
    read_pid_file,
    tail,
    try_lock,
)

USER = DATABASE = "goclaw"

# For a small server on a laptop. Only values that differ from PostgreSQL's defaults.
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "40",
    "shared_buffers": "16MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "max_worker_processes": "2",
    "max_parallel_workers_per_gather": "0",
    "autovacuum_max_workers": "1",
    "log_checkpoints": "off",
    "jit": "off",
    "huge_pages": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
_SETTINGS_SINCE_18 = {"io_method": "sync"}

_INITDB = "-A trust -E UTF8 --no-locale --data-checksums --no-instructions --wal-segsize=4"

# Terse in our database, because error details quote users' messages (SPEC SEC-2). The server's
# own messages keep their details.
_FIRST_SQL = (
    f"CREATE DATABASE {DATABASE}\nALTER DATABASE {DATABASE} SET log_error_verbosity = 'terse'\n"
)

_EXIT_S = 10.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server. Connect with ``host``, ``user`` and ``database`` as separate arguments.

    ``host`` is the folder of its socket; in a URI it would have to be escaped. ``pid`` is for
    people to read.
    """

    host: str
    user: str
    database: str
    data: Path
    pid: int


class Silence(Enum):
    """Why a server does not answer."""

    STARTING = auto()
    """It is recovering, and will answer later."""
    GONE = auto()
    """It is not running, is stopping, lost its socket, or was killed and left child processes."""


class ServerFolder:
    """The data folder, its server, and its log.

    ``child`` is the server that was started here last; None if it never was.
    """

    def __init__(
        self,
        folder: Path,
        account: ServerAccount,
        settings: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "postgres.log"
        self.child: subprocess.Popen[bytes] | None = None
        self._account = account
        self._settings = settings
        self._say = say
        self._log_start = 0

    def check_owner(self) -> None:
        """Raise ``EmbeddedRefused`` if the server would not be the owner of its data."""
        if self.data.exists() and self.data.stat().st_uid != self._account.uid:
            raise EmbeddedRefused(
                f"{self.data} belongs to user id {self.data.stat().st_uid}, but here PostgreSQL"
                f" would run as user id {self._account.uid}: run goclaw as the owner of the folder"
            )

    # ------------------------------------------------------------------ what is there

    def open(self, name: str) -> int:
        """Open one of the lock files of the folder. The caller closes it."""
        return open_owned(self.folder / name, self._account)

    def try_lock(self) -> int | None:
        """Return the locked ``server.lock`` if no process of the server is running.

        The caller closes it.
        """
        fd = self.open("server.lock")
        if try_lock(fd):
            return fd
        os.close(fd)
        return None

    def check(self) -> RunningServer | Silence:
        """Return the server if it is ready, otherwise why it is not."""
        note = read_pid_file(self.data)
        pid = listener_pid(note.socket) if note else None
        if note is None or pid is None:
            return Silence.GONE
        match note.status:
            case "ready":
                return RunningServer(str(note.socket.parent), USER, DATABASE, self.data, pid)
            case "starting":
                return Silence.STARTING
            case _:
                return Silence.GONE

    def postmaster(self) -> int | None:
        """Return the process to signal; None if there is none, or it is not visible from here."""
        if self.child is not None and self.child.poll() is None:
            return self.child.pid  # perhaps too young to listen
        note = read_pid_file(self.data)
        return (listener_pid(note.socket) if note else None) or None

    def signal_holders(self, sign: signal.Signals) -> None:
        """Signal the processes that have the server's lock open, which all belong to this server.

        They remain from a server that was killed or cannot be reached. The gate is held, so no
        other process has the file open.
        """
        for pid in holders(self.folder / "server.lock") - {os.getpid()}:
            with suppress(ProcessLookupError):
                os.kill(pid, sign)

    def mark_log(self) -> None:
        """Let ``last_words`` begin here."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0

    def last_words(self) -> str:
        """Return the end of what PostgreSQL logged since ``mark_log``."""
        return tail(self.log, self._log_start) if self.log.exists() else ""

    # ------------------------------------------------------------------ making and starting

    def make(self, lock: int, *, limit_s: float) -> None:
        """Create the data folder if it does not exist; it is renamed once it is complete."""
        if (self.data / "PG_VERSION").exists():
            return
        if self.data.exists() and any(self.data.iterdir()):
            raise EmbeddedRefused(
                f"{self.data} is not empty and not a PostgreSQL data folder: move it away"
            )
        new = self.folder / "data.new"
        if new.exists():
            shutil.rmtree(new)  # left by a process that was killed
        install = installation_for(self.data)
        self._say(f"creating a PostgreSQL {install.version} database in {self.folder}")
        self._run(install, ["initdb", "-D", str(new), "-U", USER, *_INITDB.split()], lock, limit_s)
        single = ["postgres", "--single", "-D", str(new), "-c", "exit_on_error=on", "template1"]
        self._run(install, single, lock, limit_s, stdin=_FIRST_SQL)
        new.rename(self.data)
        self._sync_folder()

    def _sync_folder(self) -> None:
        fd = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _run(
        self, install: Installation, args: list[str], lock: int, limit_s: float, *, stdin: str = ""
    ) -> None:
        with self._open_log() as log:
            done = subprocess.run(  # noqa: S603 - our own arguments, no shell
                self._command(install, args),
                input=stdin.encode(),
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                pass_fds=(lock,),
                start_new_session=True,
                timeout=limit_s,
                check=False,
            )
        if done.returncode != 0:
            raise self._failed(f"{args[0]} failed with status {done.returncode}")

    def spawn(self, lock: int) -> subprocess.Popen[bytes]:
        """Start the server, which inherits ``lock``; does not wait until it is ready."""
        sockets = socket_folder(self.folder, self._account)
        # No process of this folder's server is running, so these files are stale, whatever process
        # id they contain. PostgreSQL itself would be misled by a reused pid or a zombie.
        for stale in (
            self.data / "postmaster.pid",
            sockets / SOCKET_NAME,
            sockets / f"{SOCKET_NAME}.lock",
        ):
            stale.unlink(missing_ok=True)
        make_room(self.log)
        self.mark_log()
        install = installation_for(self.data)
        with self._open_log() as log:
            child = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                self._command(install, self._arguments(install, sockets)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                pass_fds=(lock,),
                start_new_session=True,  # Ctrl-C in the terminal must not reach the server
            )
        # Reaps it when it ends. It may outlive this process, so no caller can wait for it.
        threading.Thread(target=child.wait, name="embedded-postgres-reaper", daemon=True).start()
        self.child = child
        return child

    def _arguments(self, install: Installation, sockets: Path) -> list[str]:
        quoted = str(sockets).replace('"', '""')
        settings = {
            **_SETTINGS,
            **(_SETTINGS_SINCE_18 if int(install.version) >= 18 else {}),
            **self._settings,
            "port": "5432",
            "unix_socket_directories": f'"{quoted}"',
        }
        args = ["postgres", "-D", str(self.data)]
        for name, value in settings.items():
            args += ["-c", f"{name}={value}"]
        return args

    def _command(self, install: Installation, args: list[str]) -> list[str]:
        return [*self._account.change, str(install.binary(args[0])), *args[1:]]

    def _open_log(self) -> io.FileIO:
        return io.FileIO(self.open(self.log.name), "a")

    # ------------------------------------------------------------------ failures

    def why_unlocked(self, child: subprocess.Popen[bytes]) -> EmbeddedError:
        """Return why a server that we started does not hold its lock. Stops it if it is running."""
        try:
            status = child.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            child.wait(_EXIT_S)
            return EmbeddedRefused(
                f"the file system of {self.folder} does not support inherited locks"
                " (NFS?): use a local folder"
            )
        return self._failed(f"PostgreSQL exited with status {status} during its start")

    def _failed(self, what: str) -> EmbeddedFailed:
        return EmbeddedFailed(f"{what} ({self.log})", self.last_words())


def _environment() -> dict[str, str]:
    # initdb fails if the locale is not installed, and PG… variables would change its behavior.
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
