"""The unix socket of a gateway: its path, its listener, and paths that are too long."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from goclaw_py.core.errors import GoclawError

SOCKET_NAME = "gateway.sock"

MAX_PATH_BYTES = 100
"""The longest path on every system; Linux has 107, macOS 103."""

_PROBE_S = 2.0
_BACKLOG = 128


class AlreadyRunning(GoclawError):
    """Another gateway listens at this socket."""


def socket_path(state_folder: Path) -> Path:
    """Return the socket's path in a state folder."""
    return state_folder / SOCKET_NAME


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a path for ``path`` that is short enough, valid inside the ``with``.

    A path that is too long is reached through a symbolic link to its folder, in a new folder of
    this process. The socket stays where it belongs.
    """
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield str(path)
        return
    # $TMPDIR may be long as well, so the folder is asked for by name.
    with tempfile.TemporaryDirectory(prefix="goclaw-", dir="/tmp") as folder:
        link = Path(folder, "s")
        link.symlink_to(path.parent, target_is_directory=True)
        yield str(link / path.name)


@dataclass(frozen=True, slots=True)
class UnixListener:
    """A listening socket. ``close`` removes its file, unless it belongs to another process."""

    socket: socket.socket
    path: Path
    inode: int

    def close(self) -> None:
        """Stop listening. May be repeated."""
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_ino == self.inode:
                self.path.unlink()
        self.socket.close()


def listen_unix(path: Path) -> UnixListener:
    """Listen at a path for this user; create its folder if needed.

    Replaces the file of a dead gateway. Raises ``AlreadyRunning`` if one is alive.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(path.with_name(path.name + ".lock")), short_path(path) as name:
        if is_answered(path):
            raise AlreadyRunning(
                f"a gateway is already running here: {path}; end it first, with Ctrl-C in its "
                "terminal; its process id: goclaw status"
            )
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(name)
            # No process can connect before listen(), so the mode is never too open.
            path.chmod(0o600)
            listener.listen(_BACKLOG)
            listener.settimeout(0)
            return UnixListener(listener, path, path.stat().st_ino)
        except BaseException:
            listener.close()
            raise


def is_answered(path: Path) -> bool:
    """Return whether a process listens at this path. A file alone is not enough."""
    with short_path(path) as name, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(name)
        except TimeoutError:
            return True
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Serialize starting gateways, which may find the same dead socket."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
