"""The user account of the embedded server, and the owners of its files.

PostgreSQL refuses to run as root. An ordinary user runs it under its own account. Root runs it as
``nobody``, with the single capability to ignore folder modes, so that root's folders stay closed to
all other users. In a folder of another user, root runs it as that user without any capability,
because anyone who can connect to the server can make it run programs.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from goclaw_py.store.embedded_files import ORDINARY, SOCKET_NAME, EmbeddedRefused

# sockaddr_un has room for 107 bytes on Linux and 103 on macOS.
_SOCKET_PATH_MAX_BYTES = 103

# Not tempfile.gettempdir(): TMPDIR may differ between two processes, and may be long.
_SHARED_TEMP = Path("/tmp")  # noqa: S108 - the folder made in it is checked for its owner and mode


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """The account of the server.

    ``keeper`` and ``group`` own the files around the data folder; ``change`` is the command prefix
    that runs a program as ``uid``.
    """

    uid: int
    keeper: int
    group: int
    change: tuple[str, ...] = ()


def account_for(folder: Path) -> ServerAccount:
    """Choose the account for an existing folder. Raises ``EmbeddedRefused``."""
    uid = os.geteuid()
    if uid != 0:
        return ServerAccount(uid=uid, keeper=uid, group=os.getegid())
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise EmbeddedRefused(
            f"PostgreSQL does not run as root, and setpriv is not installed: {ORDINARY}"
        )
    owner = folder.stat().st_uid
    try:
        entry = pwd.getpwuid(owner) if owner else pwd.getpwnam("nobody")
    except KeyError:
        who = f"user id {owner}, which owns {folder}," if owner else "the user nobody"
        raise EmbeddedRefused(f"{who} has no passwd entry: {ORDINARY}") from None
    change: tuple[str, ...] = (setpriv, "--reuid", str(entry.pw_uid), "--regid", str(entry.pw_gid))
    if owner:
        change += ("--init-groups", "--no-new-privs")
        return ServerAccount(uid=owner, keeper=owner, group=entry.pw_gid, change=change)
    # Without no_setuid_fixup the kernel clears the capability when the uid changes, and initdb's
    # access() checks fail.
    change += ("--clear-groups", "--securebits", "+no_setuid_fixup")
    change += ("--inh-caps", "+dac_override", "--ambient-caps", "+dac_override", "--no-new-privs")
    return ServerAccount(uid=entry.pw_uid, keeper=0, group=0, change=change)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700.

    Folders that root creates inside another user's folder belong to that user. Existing folders
    are not changed.
    """
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        above = folder.parent.stat()
        if above.st_uid != 0:
            os.chown(folder, above.st_uid, above.st_gid, follow_symlinks=False)


def open_owned(path: Path, account: ServerAccount) -> int:
    """Open a lock file or log for appending, mode 0600, owned by the account's keeper.

    Returns a file descriptor that is not inherited by child processes.
    """
    # Root must not follow a link that the owner of the folder may have created.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    if os.geteuid() == 0 and account.keeper != 0:
        os.fchown(fd, account.keeper, account.group)
    return fd


def socket_folder(folder: Path, account: ServerAccount) -> Path:
    """Return the folder of the socket: ``folder``, or a private one if its path is too long.

    The private one is the same for all processes that use ``folder`` with the same environment.
    Raises ``EmbeddedRefused`` if another user created it.
    """
    # PostgreSQL's own clients split a host at commas.
    path = os.fsencode(folder / SOCKET_NAME)
    if len(path) <= _SOCKET_PATH_MAX_BYTES and b"," not in path:
        return folder
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    private = _runtime_folder(account)
    for step in (private, private / name):
        _make_private(step, account)
    return private / name


def _runtime_folder(account: ServerAccount) -> Path:
    """Return a folder with a short path that belongs only to the account's keeper."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    # Root's runtime folder is not accessible to a server that runs as another user.
    if given.startswith("/") and account.keeper == os.geteuid():
        room = len(os.fsencode(given)) + len(f"/goclaw/{'x' * 16}/{SOCKET_NAME}")
        runtime = Path(given)
        if room <= _SOCKET_PATH_MAX_BYTES and "," not in given and _is_private(runtime, account):
            return runtime / "goclaw"
    return _SHARED_TEMP / f"goclaw-{account.keeper}"


def _make_private(folder: Path, account: ServerAccount) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    if account.keeper != os.geteuid() and folder.lstat().st_uid == os.geteuid():
        os.chown(folder, account.keeper, account.group, follow_symlinks=False)
    if not _is_private(folder, account):
        raise EmbeddedRefused(
            f"{folder} must be a folder of user id {account.keeper} with mode 0700: delete it"
        )


def _is_private(folder: Path, account: ServerAccount) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    mine = found.st_uid == account.keeper and not found.st_mode & 0o077
    return stat.S_ISDIR(found.st_mode) and mine
