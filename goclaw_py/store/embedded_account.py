"""As whom the embedded server runs, and who owns what lies around it.

PostgreSQL refuses to run as root. An ordinary user runs it as itself. Root runs it as ``nobody``,
with the one right to pass by folder modes, so that root's folders stay closed to everybody else.
Root in a folder of somebody else runs it as that person, without any right: a person who can
connect to the server can make it run programs.
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
    """As whom the server runs.

    ``keeper`` and ``group`` own the files around the data folder; ``change`` is the command in
    front of each program that makes it run as ``uid``.
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
            f"PostgreSQL does not run as root, and there is no setpriv here: {ORDINARY}"
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
    """Make a folder, and those above it that are missing, with mode 0700.

    What root makes inside somebody's folder is given to that person. Folders that exist are left
    as they are.
    """
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        above = folder.parent.stat()
        if above.st_uid != 0:
            os.chown(folder, above.st_uid, above.st_gid, follow_symlinks=False)


def open_kept(path: Path, account: ServerAccount) -> int:
    """Open a lock file or log for appending, mode 0600, owned by the account's keeper.

    Returns a file descriptor that no child inherits by itself.
    """
    # Root must not be led through a link that the folder's owner has put here.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    if os.geteuid() == 0 and account.keeper != 0:
        os.fchown(fd, account.keeper, account.group)
    return fd


def socket_folder(folder: Path, account: ServerAccount) -> Path:
    """Where the socket goes: the folder itself, or a private short one if its path does not do.

    The short one is the same for every process that works on ``folder`` with the same
    environment. Raises ``EmbeddedRefused`` if somebody else has made it.
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
    """A short folder that belongs to the account's keeper alone."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    # Root's own runtime folder is closed to a server that runs as somebody else.
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
            f"{folder} must be a folder of user id {account.keeper} with mode 0700: remove it"
        )


def _is_private(folder: Path, account: ServerAccount) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    mine = found.st_uid == account.keeper and not found.st_mode & 0o077
    return stat.S_ISDIR(found.st_mode) and mine
