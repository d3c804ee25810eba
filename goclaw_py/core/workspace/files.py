"""The files of a workspace, which no path leaves (SPEC SEC-4).

A path is opened part by part, each relative to the folder that was opened before, and no part may
be a link. Checking first and opening later would not be safe: a program in the workspace could
create a link in between. Hard links are not detected; no tool creates them, and writing replaces a
file, so that other names of it are unchanged.

Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from goclaw_py.core.errors import GoclawError
from goclaw_py.core.text import truncate
from goclaw_py.core.workspace.paths import MAX_DEPTH, BadPath, split_file_path, split_path

MAX_LOOKED_AT = 20_000
"""The number of files and folders that a listing examines."""

_TEMPORARY = ".goclaw-tmp"
_SHOWN_CHARS = 200
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
# A pipe without a writer would block, and a terminal would become ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceError(GoclawError):
    """A file of a workspace cannot be used. ``str()`` names it and says why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{shown(truncate(path, _SHOWN_CHARS)) or '(empty path)'}: {reason}")
        self.reason = reason


class NotThere(WorkspaceError):
    """There is nothing with this name."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "there is no such file or folder")


class _Refused(Exception):
    """The file is of the wrong kind; the text says which."""


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a file: different after a change, as far as the file system notices."""

    inode: int
    mtime_ns: int
    size: int

    @classmethod
    def of(cls, info: os.stat_result) -> Version:
        """Return the version of a file."""
        return cls(info.st_ino, info.st_mtime_ns, info.st_size)


@dataclass(frozen=True, slots=True)
class FileContent:
    """The whole content of a file, and its version."""

    data: bytes
    version: Version


class EntryKind(StrEnum):
    """The kind of a folder's entry."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SPECIAL = "special"
    """A device, a pipe, a socket."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry of a folder. ``path`` is relative to it, ``size`` in bytes."""

    path: str
    kind: EntryKind
    size: int


class Workspace:
    """The folder of an agent. ``root`` is the operator's choice and may be a link.

    Paths are as in ``core.workspace.paths``. Everything raises ``WorkspaceError``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def reading(self, path: str) -> Iterator[BinaryIO]:
        """Open a regular file. Errors while it is read are ``WorkspaceError`` too."""
        *folders, name = self._parts(path, names_file=True)
        with _explained(path):
            with self._folder(folders) as folder:
                number = _open_file(name, folder)
            with os.fdopen(number, "rb") as file:
                yield file

    def read(self, path: str, most_bytes: int) -> FileContent:
        """Read a file with at most ``most_bytes``."""
        with self.reading(path) as file:
            info = os.fstat(file.fileno())
            # One more than is allowed: a file may grow, and some do not know their size.
            data = file.read(most_bytes + 1) if info.st_size <= most_bytes else b""
        size = max(info.st_size, len(data))
        if size > most_bytes:
            reason = f"has {size:,} bytes; the most that can be taken is {most_bytes:,}"
            raise WorkspaceError(path, reason)
        return FileContent(data, Version.of(info))

    def write(self, path: str, data: bytes, *, expected: Version | None = None) -> bool:
        """Create or replace a file atomically, with the folders that it needs.

        After a crash it has the old or the new content. With ``expected``, it must exist in that
        version. Returns whether it existed; its permissions are kept.
        """
        *folders, name = self._parts(path, names_file=True)
        with _explained(path), self._folder(folders, create=expected is None) as folder:
            before = _replaceable(name, folder)
            if expected is not None and (before is None or Version.of(before) != expected):
                raise _Refused("was changed by somebody else meanwhile; read it again")
            _replace(name, folder, data, mode=None if before is None else before.st_mode & 0o777)
            return before is not None

    def entries(self, path: str, *, deep: bool = False) -> Iterator[FolderEntry]:
        """Yield the entries of a folder, sorted by name; with ``deep``, also of folders in it.

        Examines at most ``MAX_LOOKED_AT`` names. Links are not followed.
        """
        top = self._parts(path)
        left = MAX_LOOKED_AT
        waiting: list[tuple[str, ...]] = [()]
        while waiting and left > 0:
            below = waiting.pop()
            try:
                with _explained(path), self._folder((*top, *below)) as folder:
                    found = _entries(folder, "".join(f"{part}/" for part in below), left)
            except WorkspaceError:
                if not below:
                    raise
                # It went away, or became unreadable, since it was listed.
                continue
            left -= len(found)
            yield from found
            # What is deeper has no path that could be opened.
            if deep and len(top) + len(below) < MAX_DEPTH:
                inner = [e.path for e in found if e.kind is EntryKind.FOLDER]
                waiting += [tuple(path.split("/")) for path in reversed(inner)]

    def _parts(self, path: str, *, names_file: bool = False) -> tuple[str, ...]:
        split = split_file_path if names_file else split_path
        try:
            return split(path, str(self.root))
        except BadPath as error:
            raise WorkspaceError(path, str(error)) from error

    @contextmanager
    def _folder(self, parts: tuple[str, ...] | list[str], *, create: bool = False) -> Iterator[int]:
        """Yield the descriptor of an open folder."""
        folder = os.open(self.root, _ROOT)
        try:
            for name in parts:
                inner = _open_folder(name, folder, create=create)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


def shown(name: str) -> str:
    """Return a name for a text: in quotation marks if a part of it is invisible."""
    return name if name.isprintable() else repr(name)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except _Refused as error:
        raise WorkspaceError(path, str(error)) from error
    except FileNotFoundError as error:
        raise NotThere(path) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise WorkspaceError(path, reason[0].lower() + reason[1:]) from error


def _status(name: str, folder: int) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _open_folder(name: str, folder: int, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
        # Another process may create it now; what counts is what is opened below.
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise _Refused(f"{shown(name)} is {_kind_in_words(name, folder)}, not a folder") from error


def _open_file(name: str, folder: int) -> int:
    # Checked before it is opened, because opening a device may have effects, and after that,
    # because it may have been replaced.
    if not stat.S_ISREG(_status(name, folder).st_mode):
        raise _Refused(f"is {_kind_in_words(name, folder)}, not a file")
    try:
        number = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise _Refused(f"is {_kind_in_words(name, folder)}, not a file") from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise _Refused("is not a file")
    return number


def _replaceable(name: str, folder: int) -> os.stat_result | None:
    """Return the status of the file that would be replaced, None if there is none."""
    try:
        info = _status(name, folder)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(info.st_mode):
        raise _Refused(f"is {_kind_in_words(name, folder)}, not a file")
    if not info.st_mode & 0o222:
        # To rename over it asks only for rights on the folder.
        raise _Refused("is write-protected")
    return info


def _replace(name: str, folder: int, data: bytes, *, mode: int | None) -> None:
    # Not made from the name, which may already be as long as a name can be.
    temporary = f".{secrets.token_hex(8)}{_TEMPORARY}"
    number = os.open(temporary, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        # Whatever the name has become meanwhile is replaced, never followed.
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _entries(folder: int, prefix: str, most: int) -> list[FolderEntry]:
    found: list[FolderEntry] = []
    with os.scandir(folder) as names:
        for name in names:
            if len(found) >= most:
                break
            if name.name.endswith(_TEMPORARY):
                continue
            # It may have been deleted.
            with suppress(FileNotFoundError):
                info = name.stat(follow_symlinks=False)
                found.append(FolderEntry(prefix + name.name, _kind(info.st_mode), info.st_size))
    return sorted(found, key=lambda entry: entry.path)


def _kind(mode: int) -> EntryKind:
    if stat.S_ISREG(mode):
        return EntryKind.FILE
    if stat.S_ISDIR(mode):
        return EntryKind.FOLDER
    return EntryKind.LINK if stat.S_ISLNK(mode) else EntryKind.SPECIAL


def _kind_in_words(name: str, folder: int) -> str:
    try:
        kind = _kind(_status(name, folder).st_mode)
    except OSError:
        return "something else"
    match kind:
        case EntryKind.LINK:
            return "a link, which is never followed"
        case EntryKind.SPECIAL:
            return "a device, a pipe or a socket"
        case _:
            return f"a {kind.value}"
