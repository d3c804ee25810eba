"""An embedded PostgreSQL server, shared by all processes that use one folder (SPEC DB-1).

It uses three lock files:

1. ``server.lock`` is inherited by the server and by the programs that create the data folder. It
   is locked as long as one of them is running, whatever ``postmaster.pid`` says.
2. Every process that uses the server holds a shared lock on ``users.lock``. A leaving process that
   gets it exclusively is the last one and stops the server. The kernel releases it on a crash.
3. ``gate.lock`` allows one process at a time to start or stop the server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from goclaw_py.store.embedded_account import account_for, make_folder
from goclaw_py.store.embedded_cluster import RunningServer, ServerFolder, Silence
from goclaw_py.store.embedded_files import (
    EmbeddedError,
    EmbeddedFailed,
    EmbeddedMissing,
    EmbeddedRefused,
    EmbeddedSlow,
    installation_for,
    read_pid_file,
    try_lock,
)

__all__ = [
    "EmbeddedError",
    "EmbeddedFailed",
    "EmbeddedMissing",
    "EmbeddedPostgres",
    "EmbeddedRefused",
    "EmbeddedSlow",
    "RunningServer",
]

_STOP = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 10.0))
"""The shutdown signals: fast, then immediate (recovery at the next start); seconds each."""

_CLEAR_AWAY = ((5.0, signal.SIGINT), (60.0, signal.SIGQUIT), (10.0, signal.SIGKILL))
"""Signals, after seconds each, for processes that hold the lock but do not serve."""

_STOP_GATE_S = 5.0
_SAY_EVERY_S = 10.0


class EmbeddedPostgres:
    """Starts, shares and stops the server of one folder.

    All methods block, usually up to a second; they may be called from any thread. Use it as a
    context manager, or call ``stop`` in a ``finally``. If the process is killed, the server keeps
    running, and the next user of the folder stops it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        say: Callable[[str], None] | None = None,
        patience_s: float = 600.0,
    ) -> None:
        """Create the object; nothing is changed before ``start``.

        Args:
            folder: Contains data, locks, log and usually the socket. Created if it is missing.
            settings: PostgreSQL's settings by name; they override ours, from the next start of the
                server.
            say: Called in the caller's thread with a sentence about a long wait.
            patience_s: How long ``start`` waits for other processes and for a crash recovery.
        """
        self._folder = folder.absolute()
        self._settings = dict(settings or {})
        self._say = say or (lambda _: None)
        self._patience_s = patience_s
        self._mutex = threading.Lock()
        self._leaving = threading.Event()
        self._cluster: ServerFolder | None = None
        self._users: int | None = None

    @property
    def log(self) -> Path:
        """The log file of PostgreSQL; rotated at a start if it is larger than 1 MB."""
        return self._folder / "postgres.log"

    @property
    def exists(self) -> bool:
        """Whether the folder contains a database, running or not."""
        return (self._folder / "data" / "PG_VERSION").exists()

    def binary(self, name: str) -> Path:
        """Return the path of a program of this server's version, such as ``pg_dump``.

        Raises ``EmbeddedMissing``.
        """
        return installation_for(self._folder / "data").binary(name)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # ------------------------------------------------------------------ start

    def start(self) -> RunningServer:
        """Start using the server; create its database and start it if needed.

        It may be called repeatedly: it then checks that the server is running, and starts it if
        not. Raises ``EmbeddedError``; then this object does not use the server.
        """
        with self._mutex, _translated(self._folder):
            cluster = self._cluster = self._cluster or self._settle()
            cluster.check_owner()
            wait = _Wait(self._patience_s, self._leaving, self._say)
            try:
                with _gate(cluster, wait):
                    return self._join(cluster, wait)
            except BaseException:
                self._forget()
                raise

    def _settle(self) -> ServerFolder:
        # Two processes may reach the folder through different links.
        folder = self._folder.resolve()
        if "\n" in str(folder):
            raise EmbeddedRefused(
                f"{str(folder)!r}: PostgreSQL does not support line breaks in paths; "
                "use another folder"
            )
        make_folder(folder)
        return ServerFolder(folder, account_for(folder), self._settings, self._say)

    def _join(self, cluster: ServerFolder, wait: _Wait) -> RunningServer:
        if self._users is None:
            self._users = cluster.open("users.lock")
            try_lock(self._users, shared=True)  # held exclusively only inside the gate
        try:
            return _serve(cluster, wait, limit_s=self._patience_s)
        except EmbeddedSlow:
            raise  # stopping it would discard the progress of its recovery
        except BaseException:
            self._leave(cluster)
            raise

    # ------------------------------------------------------------------ stop

    def stop(self) -> bool:
        """Stop using the server, and stop the server if nobody else uses it.

        A ``start`` that waits in another thread is cancelled. Returns True if this stopped the
        server, False if other processes still use or start it, or it was not running.
        """
        self._leaving.set()
        with self._mutex, _translated(self._folder):
            self._leaving.clear()
            if self._cluster is None or self._users is None:
                return False
            wait = _Wait(_STOP_GATE_S, self._leaving, self._say)
            try:
                with _gate(self._cluster, wait):
                    return self._leave(self._cluster)
            except EmbeddedSlow:
                return False  # the process that is starting uses the server, and will stop it
            finally:
                self._forget()

    def _leave(self, cluster: ServerFolder) -> bool:
        """Release our lock on ``users.lock``; the last user stops the server. The gate is held."""
        # A failed attempt also releases the shared lock, which is what we want.
        alone = self._users is not None and try_lock(self._users)
        return alone and _end(cluster)

    def _forget(self) -> None:
        if self._users is not None:
            os.close(self._users)
            self._users = None


# ---------------------------------------------------------------------------- inside the gate


def _serve(cluster: ServerFolder, wait: _Wait, *, limit_s: float) -> RunningServer:
    """Wait until the server answers; start it if nothing holds its lock."""
    cluster.mark_log()
    spawned: subprocess.Popen[bytes] | None = None
    remedies = iter(_CLEAR_AWAY)
    patience_s, sign = next(remedies)
    silent_since = time.monotonic()
    while True:
        lock = cluster.try_lock()
        if lock is not None:
            try:
                if spawned is not None:
                    raise cluster.why_unlocked(spawned)
                cluster.make(lock, limit_s=limit_s)
                spawned = cluster.spawn(lock)
            finally:
                os.close(lock)
        seen = cluster.check()
        if isinstance(seen, RunningServer):
            return seen
        if seen is Silence.STARTING or spawned is not None:
            silent_since = time.monotonic()
        elif time.monotonic() - silent_since > patience_s:
            cluster.signal_holders(sign)
            patience_s, sign = next(remedies, (patience_s, sign))
            silent_since = time.monotonic()
        wait.pause(lambda: _starting(cluster.last_words()))


def _starting(log: str) -> str:
    line = log.rpartition("\n")[2]
    return f"PostgreSQL is not ready; its last log line: {line}" if line else "starting PostgreSQL"


def _end(cluster: ServerFolder) -> bool:
    """Stop the server. Return False if it is not running, or runs in another container."""
    pid = cluster.postmaster()
    if pid is None:
        return False
    note = read_pid_file(cluster.data)
    for sign, limit_s in _STOP:
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
        if _await_end(cluster, limit_s):
            break
    else:
        raise EmbeddedError(f"PostgreSQL (process {pid}) does not stop: kill it manually")
    if cluster.child is not None:
        cluster.child.wait()  # it releases its lock shortly before it ends
    if note and note.socket.parent != cluster.folder:
        with suppress(OSError):  # not empty: used by another server
            note.socket.parent.rmdir()
    return True


def _await_end(cluster: ServerFolder, limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while (lock := cluster.try_lock()) is None:
        if time.monotonic() > end:
            return False
        time.sleep(0.003)
    os.close(lock)
    return True


@contextmanager
def _gate(cluster: ServerFolder, wait: _Wait) -> Iterator[None]:
    fd = cluster.open("gate.lock")
    try:
        while not try_lock(fd):
            wait.pause(
                lambda: f"another process is starting or stopping PostgreSQL in {cluster.folder}"
            )
        yield
    finally:
        os.close(fd)


class _Wait:
    """A wait with a time limit, which regularly reports what it waits for."""

    def __init__(
        self, limit_s: float, leaving: threading.Event, say: Callable[[str], None]
    ) -> None:
        self._start = time.monotonic()
        self._limit_s = limit_s
        self._leaving = leaving
        self._say = say
        self._step_s = 0.001
        self._next_word_s = _SAY_EVERY_S / 4

    def pause(self, what: Callable[[], str]) -> None:
        """Wait a moment.

        Raises ``EmbeddedSlow`` at the limit, and ``EmbeddedError`` after a call of ``stop``.
        """
        waited_s = time.monotonic() - self._start
        if waited_s >= self._limit_s:
            raise EmbeddedSlow(f"timed out after {waited_s:.0f} s: {what()}")
        if waited_s >= self._next_word_s:
            self._say(f"{what()} ({waited_s:.0f} s)")
            self._next_word_s = waited_s + _SAY_EVERY_S
        if self._leaving.wait(self._step_s):
            raise EmbeddedError("stopped while it was starting")
        self._step_s = min(self._step_s * 1.3, 0.1)


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except subprocess.TimeoutExpired as error:
        raise EmbeddedSlow(f"{folder}: {error}") from error
    except PermissionError as error:
        raise EmbeddedRefused(
            f"user id {os.geteuid()} cannot access {error.filename or folder}: {error.strerror}"
        ) from error
    except OSError as error:
        raise EmbeddedError(f"{error.filename or folder}: {error.strerror}") from error
